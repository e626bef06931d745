import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.text import Text
from plain import row_weights
from plain_dense import weights_out
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_iris
from nearfield.inference import Posterior
from nearfield.plotting import (
    ClassMapDisplay,
    InfluenceDisplay,
    LeaveOneOutDisplay,
    PosteriorDisplay,
    RankDisplay,
    ReliabilityDisplay,
    TraceDisplay,
    expected_calibration_error,
)
from nearfield.plotting._style import OKABE_ITO, class_colors, class_markers
from nearfield.plotting.calibration import calibration_bins, top_label_bins
from nearfield.plotting.posterior import _density, _heights

BUNCH = load_iris()
X = pd.DataFrame(BUNCH.data[::3], columns=BUNCH.feature_names)
Y = np.asarray(BUNCH.target_names)[BUNCH.target[::3]]
PLAIN = {"inference": "pseudolikelihood"}


@pytest.fixture(autouse=True)
def no_figure_stays_open(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a display must not show or save on its own")

    monkeypatch.setattr(plt, "show", refuse)
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def dnn():
    return DistanceNeighborsClassifier(**PLAIN).fit(X, Y)


@pytest.fixture(scope="module")
def flat_dnn():
    """A classifier of two features."""
    return DistanceNeighborsClassifier(**PLAIN).fit(X.iloc[:, :2], Y)


@pytest.fixture(scope="module")
def pknn():
    return ProbabilisticKNeighborsClassifier(**PLAIN).fit(X, Y)


@pytest.fixture(scope="module")
def knn():
    return KNeighborsClassifierCV().fit(X, Y)


def chains(n_chains=4, n_draws=500, seed=0):
    rng = np.random.default_rng(seed)
    beta = rng.normal(3.0, 0.5, size=(n_chains, n_draws))
    return Posterior.from_draws(beta, np.exp(rng.normal(-1.0, 0.2, beta.shape)), "sigma")


class WithChains(BaseEstimator):
    """The part of a fitted estimator that pictures of chains see."""

    def __init__(self, posterior):
        self.posterior_ = posterior

    def fit(self, X, y):
        """Do nothing: scikit-learn takes what has no fit for no estimator."""


def clipped_texts(figure):
    """Draw a figure, and list the texts that reach beyond its edge."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    out = []
    for text in figure.findobj(Text):
        if not (text.get_visible() and text.get_text().strip()):
            continue
        box = text.get_window_extent()
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1:
            # Ticks outside the limits of an axis are kept by Matplotlib but never drawn.
            is_tick = any(
                text in (t.label1, t.label2)
                for ax in figure.axes
                for axis in (ax.xaxis, ax.yaxis)
                for t in (*axis.get_major_ticks(), *axis.get_minor_ticks())
            )
            if not is_tick:
                out.append(text.get_text())
    return out


DRAWN = {
    "posterior of nodes": lambda m: PosteriorDisplay.from_estimator(m["dnn"]),
    "posterior of draws": lambda m: PosteriorDisplay(chains()).plot(),
    "posterior of many draws": lambda m: PosteriorDisplay(chains(n_draws=2_000)).plot(),
    "posterior of k": lambda m: PosteriorDisplay.from_estimator(m["pknn"]),
    "trace": lambda m: TraceDisplay.from_estimator(WithChains(chains())),
    "trace of one chain": lambda m: TraceDisplay(chains(1)).plot(),
    "rank": lambda m: RankDisplay.from_estimator(WithChains(chains())),
    "leave-one-out": lambda m: LeaveOneOutDisplay.from_estimator(m["knn"]),
    "leave-one-out with lines": lambda m: LeaveOneOutDisplay.from_estimator(
        m["knn"], test_errors=m["knn"].cv_errors_ + 0.02, lines={"d-nn1": 0.05, "d-nn2": 0.08}
    ),
    "map of probability": lambda m: ClassMapDisplay.from_estimator(
        m["flat"], X.iloc[:, :2], Y, grid_resolution=20
    ),
    "map of entropy": lambda m: ClassMapDisplay.from_estimator(
        m["flat"], X.iloc[:, :2], Y, response="entropy", grid_resolution=20
    ),
    "slice without points": lambda m: ClassMapDisplay.from_estimator(
        m["dnn"], X, features=("petal length (cm)", 0), grid_resolution=20
    ),
    "reliability": lambda m: ReliabilityDisplay.from_estimator(m["flat"], X.iloc[:, :2], Y),
    "influence": lambda m: InfluenceDisplay.from_estimator(m["dnn"], X.iloc[[70 // 3]]),
    "influence in pk-nn": lambda m: InfluenceDisplay.from_estimator(m["pknn"], X.iloc[[3]]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_each_display_is_drawn_with_readable_text(name, dnn, flat_dnn, pknn, knn):
    display = DRAWN[name]({"dnn": dnn, "flat": flat_dnn, "pknn": pknn, "knn": knn})
    axes = np.ravel(display.ax_)
    assert all(ax.figure is display.figure_ for ax in axes)
    assert all(ax.get_xlabel() for ax in axes)
    assert any(ax.lines or ax.collections or ax.patches for ax in axes)
    assert clipped_texts(display.figure_) == []


def test_displays_draw_into_the_axes_that_are_given(dnn, knn):
    _, (left, right) = plt.subplots(1, 2)
    assert PosteriorDisplay.from_estimator(dnn, ax=left).ax_ is left
    assert LeaveOneOutDisplay.from_estimator(knn, ax=right).ax_ is right
    figure, axes = plt.subplots(2, 2)
    assert TraceDisplay(chains()).plot(ax=axes).figure_ is figure
    with pytest.raises(ValueError, match="Expected 2 axes as ax; got 4"):
        RankDisplay(chains()).plot(ax=axes)


def test_matplotlib_is_imported_only_when_something_is_drawn():
    script = (
        "import sys, nearfield.plotting as p;"
        "p.expected_calibration_error([0], [[0.5, 0.5]]); print('matplotlib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


def test_contours_hold_the_share_of_the_draws_that_they_name():
    posterior = chains(n_draws=1_000)
    beta, log_sigma, density = _density(posterior)
    (height,) = _heights(density, [0.8])
    columns = np.searchsorted(beta, posterior.beta.ravel())
    rows = np.searchsorted(log_sigma, np.log(posterior.sigma.ravel()))
    n = len(beta) - 1
    share = np.mean(density[np.minimum(rows, n), np.minimum(columns, n)] >= height)
    # The smoothing widens a contour by sqrt(1 + 0.35^2): 80% becomes 83.5%.
    expected = 1.0 - 0.2 ** (1.0 + 0.35**2)
    assert abs(share - expected) < 4.0 * np.sqrt(expected * (1.0 - expected) / 4_000) + 0.01


def test_nodes_and_draws_of_one_posterior_have_the_same_contours():
    beta, log_sigma = np.meshgrid(np.linspace(0.5, 5.5, 41), np.linspace(-2.0, 0.0, 41))
    weight = np.exp(-0.5 * ((beta - 3.0) / 0.5) ** 2 - 0.5 * ((log_sigma + 1.0) / 0.2) ** 2)
    nodes = Posterior.from_nodes(
        beta.ravel(), np.exp(log_sigma).ravel(), (weight / weight.sum()).ravel(), "sigma"
    )
    limits = []
    for posterior in (nodes, chains(n_draws=1_000)):
        ax = PosteriorDisplay(posterior).plot().ax_
        limits.append([*ax.get_xlim(), *np.log(ax.get_ylim())])
    widths = np.array([0.5, 0.5, 0.2, 0.2])
    assert (np.abs(np.subtract(*limits)) < 0.5 * widths).all()


def test_contours_of_a_beta_that_is_never_negative_stop_at_zero(rng):
    posterior = Posterior.from_draws(
        np.abs(rng.normal(size=(2, 500))), np.exp(rng.normal(size=(2, 500))), "sigma"
    )
    beta, _, density = _density(posterior)
    assert beta[0] == 0.0
    marginal = density.sum(axis=0)  # half normal: falls from zero on, by exp(-1/2) until one
    ratio = marginal[np.searchsorted(beta, 1.0)] / marginal[0]
    assert 0.4 < ratio < 0.85


def test_a_parameter_that_is_known_exactly_can_be_drawn():
    posterior = Posterior.from_draws(np.full((2, 50), 3.0), np.full((2, 50), 0.5), "sigma")
    PosteriorDisplay(posterior).plot().figure_.canvas.draw()


def test_the_range_of_sigma_decides_its_ticks():
    wide = Posterior.from_draws(
        *np.random.default_rng(0).normal(size=(2, 1, 200)) * [[[1.0]], [[0.0]]]
        + np.stack([np.zeros((1, 200)), np.logspace(-2, 2, 200)[None]]),
        "sigma",
    )
    display = PosteriorDisplay(wide).plot()
    display.figure_.canvas.draw()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert {"0.1", "1", "10"} <= set(labels)


@pytest.mark.parametrize("levels", [(0.0,), (0.5, 1.0)])
def test_levels_are_shares(dnn, levels):
    with pytest.raises(ValueError, match="levels between 0 and 1"):
        PosteriorDisplay.from_estimator(dnn, levels=levels)


def test_chains_are_asked_for_where_there_are_none(dnn, knn):
    with pytest.raises(ValueError, match="the nodes of a quadrature"):
        TraceDisplay.from_estimator(dnn)
    with pytest.raises(ValueError, match="two chains or more"):
        RankDisplay(chains(1)).plot()
    with pytest.raises(ValueError, match="with a posterior_; got KNeighborsClassifierCV"):
        PosteriorDisplay.from_estimator(knn)
    with pytest.raises(ValueError, match="cv_errors_; got Distance"):
        LeaveOneOutDisplay.from_estimator(dnn)


def test_traces_are_the_draws_of_each_chain():
    posterior = chains(3)
    (_, beta), (_, sigma) = TraceDisplay(posterior).plot(color="black").ax_
    for ax, draws in ((beta, posterior.beta), (sigma, posterior.sigma)):
        np.testing.assert_array_equal([line.get_ydata() for line in ax.lines], draws)
        assert {line.get_color() for line in ax.lines} == {"black"}  # keywords win


def test_a_chain_that_never_moved_has_a_trace_and_no_density():
    beta = np.stack([np.full(100, 2.0), np.linspace(1.0, 3.0, 100)])
    display = TraceDisplay(Posterior.from_draws(beta, beta, "sigma")).plot()
    assert [len(ax.lines) for ax in display.ax_[0]] == [1, 2]


def test_bars_of_ranks_count_the_draws_of_each_chain():
    lowest, highest = np.arange(100.0), np.arange(100.0) + 1_000.0
    beta = np.stack([lowest, highest, np.concatenate([lowest, highest])[::2] + 0.5])
    ax = RankDisplay(Posterior.from_draws(beta, beta, "sigma")).plot().ax_[0]
    bars = np.array([[bar.get_x(), bar.get_y(), bar.get_height()] for bar in ax.patches])
    bars = bars.reshape(3, 20, 3)
    np.testing.assert_array_equal(bars[:, :, 1], [[0.0] * 20, [1.0] * 20, [2.0] * 20])
    np.testing.assert_allclose(bars[:, :, 2].sum(axis=1), bars[0, :, 2].sum())  # as many draws
    assert (bars[0, 10:, 2] == 0.0).all()
    assert (bars[1, :10, 2] == 0.0).all()
    np.testing.assert_allclose(bars[2, :, 2], bars[2, 0, 2])  # ranks of the third are uniform
    assert bars[:, :, 2].max() < 1.0  # chains do not overlap


def test_leave_one_out_marks_the_k_that_was_chosen(knn):
    display = LeaveOneOutDisplay.from_estimator(knn)
    curve, chosen = display.ax_.lines
    np.testing.assert_array_equal(curve.get_ydata(), knn.cv_errors_)
    assert chosen.get_xdata()[0] == knn.n_neighbors_
    assert chosen.get_ydata()[0] == knn.cv_errors_.min()
    with pytest.raises(ValueError, match="one for each k"):
        LeaveOneOutDisplay.from_estimator(knn, test_errors=[0.1])


def test_the_map_shows_what_the_model_predicts(dnn):
    display = ClassMapDisplay.from_estimator(dnn, X, features=(2, 3), grid_resolution=7)
    i, j = 5, 2
    point = X.median().to_frame().T
    point.iloc[0, 2], point.iloc[0, 3] = display.x[j], display.y[i]
    expected = dnn.predict_proba(point)[0]
    np.testing.assert_allclose(display.probabilities[i, j], expected, atol=1e-6)
    entropy = -(expected * np.log(expected)).sum() / np.log(3.0)
    assert display.entropy[i, j] == pytest.approx(entropy, abs=1e-5)


def test_a_frame_of_polars_gives_the_same_map(dnn):
    table = pl.DataFrame({name: X[name].to_list() for name in X})
    options = {"features": tuple(X.columns[2:]), "grid_resolution": 5}
    maps = [ClassMapDisplay.from_estimator(dnn, frame, Y, **options) for frame in (X, table)]
    np.testing.assert_array_equal(maps[0].probabilities, maps[1].probabilities)
    assert maps[0].feature_names == maps[1].feature_names == tuple(X.columns[2:])


def test_the_map_takes_arrays_and_refuses_what_is_not_there(flat_dnn):
    points = X.iloc[:, :2].to_numpy()
    model = DistanceNeighborsClassifier(**PLAIN).fit(points, Y)
    display = ClassMapDisplay.from_estimator(model, points, grid_resolution=5)
    assert display.ax_.get_xlabel() == "feature 0"
    for options, message in (
        ({"features": (0, 2)}, "from 0 to 1; got 2"),
        ({"features": ("width", 1)}, "got 'width'"),
        ({"response": "doubt"}, "response='doubt'"),
    ):
        with pytest.raises(ValueError, match=message):
            ClassMapDisplay.from_estimator(model, points, **options, grid_resolution=5)
    with pytest.raises(ValueError, match="classes that the estimator was fitted to"):
        display.add_points(points[:1], ["rose"])


def test_a_region_of_one_class_needs_no_boundary():
    one = np.zeros((5, 5, 2))
    one[..., 0], one[..., 1] = 0.9, 0.1
    axis = np.arange(5.0)
    display = ClassMapDisplay(axis, axis, one, np.array(["a", "b"])).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a"]


def test_calibration_error_is_the_mean_gap_over_bins():
    labels = [0, 0, 1, 1, 0]
    probabilities = [[0.9, 0.1], [0.92, 0.08], [0.95, 0.05], [0.3, 0.7], [0.5, 0.5]]
    # Bins: three of mean 0.92333 with two right; one of 0.7, right; one of 0.5, right.
    expected = 3 / 5 * (0.923333333 - 2 / 3) + 1 / 5 * 0.3 + 1 / 5 * 0.5
    assert expected_calibration_error(labels, probabilities) == pytest.approx(expected)
    assert expected_calibration_error([0, 1], np.eye(2)) == 0.0


def test_calibration_error_of_honest_probabilities_is_small(rng):
    probabilities = rng.dirichlet([1.0, 1.0, 1.0], size=20_000)
    labels = (probabilities.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    assert expected_calibration_error(labels, probabilities) < 3.0 * np.sqrt(0.25 * 7 / 20_000)
    sure = np.eye(3)[probabilities.argmax(axis=1)]
    assert expected_calibration_error(labels, sure) > 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_bins([True], [0.5, 0.5]), "one shape"),
        (lambda: calibration_bins([], []), "n >= 1"),
        (lambda: calibration_bins([True], [0.5], n_bins=0), "n_bins >= 1"),
        (lambda: top_label_bins([0, 1], [[0.5, 0.5]]), "labels of shape"),
    ],
)
def test_calibration_refuses_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_reliability_intervals_cover_the_true_frequency(rng):
    n_covered = n_bins = 0
    for _ in range(300):
        promised = rng.uniform(0.5, 1.0, size=400)
        bins = calibration_bins(rng.random(400) < promised, promised)
        lower, upper = ReliabilityDisplay(bins).interval()
        n_covered += ((lower <= bins.confidence) & (bins.confidence <= upper)).sum()
        n_bins += len(lower)
    share = n_covered / n_bins
    assert abs(share - 0.95) < 4.0 * np.sqrt(0.95 * 0.05 / n_bins) + 0.01  # Jeffreys is not exact


def test_reliability_of_several_models_shares_one_diagonal(rng):
    labels = rng.integers(2, size=50)
    probabilities = rng.dirichlet([1.0, 1.0], size=50)
    first = ReliabilityDisplay.from_predictions(labels, probabilities, name="one")
    second = ReliabilityDisplay.from_predictions(labels, probabilities, ax=first.ax_)
    texts = [text.get_text() for text in second.ax_.get_legend().get_texts()]
    assert texts.count("perfect") == 1
    assert len(texts) == 3
    with pytest.raises(ValueError, match="level=1"):
        ReliabilityDisplay(first.bins, level=1.0).plot()


def test_influences_explain_the_log_odds(dnn):
    """With one node, the log odds are the differences of the sums: nothing is left over."""
    model = DistanceNeighborsClassifier(**PLAIN).fit(X, Y)
    model.posterior_ = Posterior.from_nodes([2.5], [0.7], [1.0], "sigma")
    model._predictor = model._make_predictor()
    point = pd.DataFrame([X.mean()])
    for predictive in ("joint", "printed"):
        model.predictive = predictive
        display = InfluenceDisplay.from_estimator(model, point, n_points=4)
        sums = np.bincount(display.labels, weights=display.influence)
        log_odds = np.log(display.probabilities[1:] / display.probabilities[0])
        np.testing.assert_allclose(sums[1:] - sums[0], log_odds, atol=1e-6)
    weights = weights_out(model.family_, model.metric_space_.distances_to(point.to_numpy()), 0.7)
    np.testing.assert_allclose(display.influence, 2.5 * weights[0])


def test_influences_see_through_a_pipeline():
    scaler = MinMaxScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, DistanceNeighborsClassifier(**PLAIN)).fit(X, Y)
    inside = InfluenceDisplay.from_estimator(pipeline, X.iloc[[0]])
    direct = InfluenceDisplay.from_estimator(pipeline[-1], scaler.transform(X.iloc[[0]]))
    np.testing.assert_array_equal(inside.influence, direct.influence)
    assert PosteriorDisplay.from_estimator(pipeline).posterior is pipeline[-1].posterior_
    alone = make_pipeline(DistanceNeighborsClassifier(**PLAIN)).fit(X, Y)
    InfluenceDisplay.from_estimator(alone, X.iloc[[0]])


INFLUENCED = {
    "dnn": (DistanceNeighborsClassifier(**PLAIN), None),
    "printed": (DistanceNeighborsClassifier(**PLAIN, predictive="printed"), None),
    "radius": (DistanceNeighborsClassifier("radius", inference="pseudolikelihood"), None),
    "graph": (DistanceNeighborsClassifier(**PLAIN, n_neighbors=6), 6),
    "pknn": (ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"), "k"),
    "directed": (ProbabilisticKNeighborsClassifier("directed"), "k"),
}


@pytest.mark.parametrize("name", INFLUENCED)
def test_influence_is_beta_times_in_and_out_weights_in_a_plain_loop(name):
    """Of three nodes, each a field of n + 1 points whose weights are written out."""
    model, k = clone(INFLUENCED[name][0]).fit(X, Y), INFLUENCED[name][1]
    kernel, betas, weights = model.family_.kernel, (0.5, 1.5, 4.0), (0.2, 0.5, 0.3)
    scales = (2.0, 3.0, 7.0) if k == "k" else np.quantile(model.posterior_.scale, (0.2, 0.5, 0.8))
    name_of_scale = model.posterior_.scale_name
    model.posterior_ = Posterior.from_nodes(betas, scales, weights, name_of_scale)
    model._predictor = model._make_predictor()
    points, new = model.metric_space_.points, model.metric_space_.place(X.mean().to_numpy()[None])
    distances, to_new = cdist(points, points), cdist(new, points)[0]
    expected = np.zeros(len(X))
    for beta, scale, weight in zip(betas, scales, weights, strict=True):
        n_neighbors = {"k": int(scale), None: len(X)}.get(k, k)
        expected += weight * beta * row_weights(to_new, kernel, scale, n_neighbors)
        for j in range(len(X)) if name not in ("printed", "directed") else ():
            others = np.append(np.delete(distances[j], j), to_new[j])
            expected[j] += weight * beta * row_weights(others, kernel, scale, n_neighbors)[-1]
    display = InfluenceDisplay.from_estimator(model, pd.DataFrame([X.mean()]))
    np.testing.assert_allclose(display.influence, expected, rtol=1e-9, atol=1e-12)


def test_influence_is_of_one_point(dnn):
    with pytest.raises(ValueError, match="Expected one point"):
        InfluenceDisplay.from_estimator(dnn, X)
    with pytest.raises(ValueError, match="n_points >= 1"):
        InfluenceDisplay.from_estimator(dnn, X.iloc[[0]], n_points=0)


def test_influence_is_drawn_for_a_sparse_row():
    rows = sp.csr_matrix(X.to_numpy())
    model = DistanceNeighborsClassifier(**PLAIN).fit(rows, Y)
    assert InfluenceDisplay.from_estimator(model, rows[:1]).influence.shape == (len(X),)


def test_all_points_can_be_shown(dnn):
    display = InfluenceDisplay.from_estimator(dnn, X.iloc[[0]], n_points=100)
    assert len(display.ax_.get_yticks()) == len(X)


def test_no_two_classes_look_alike():
    looks = list(zip(class_colors(16), class_markers(16), strict=True))
    assert len(set(looks)) == 16
    assert len(set(class_colors(8))) == len(OKABE_ITO) == 8


def test_the_check_of_clipped_text_can_fail():
    figure, ax = plt.subplots(figsize=(2.0, 2.0))
    ax.set_title("a title that is far too long for a figure as small as this one")
    assert len(clipped_texts(figure)) == 1


def test_a_mixture_is_shown_by_its_parts():
    mixture = NearfieldClassifier(
        metrics=("euclidean", "manhattan"), n_folds=2, random_state=0
    ).fit(X, Y)
    title = PosteriorDisplay.from_estimator(mixture).ax_.get_title()
    assert f"weight {mixture.weights_.max():.2f}" in title
    display = InfluenceDisplay.from_estimator(mixture, X.iloc[[0]])
    points = mixture.power_transform_.transform(X.iloc[[0]].to_numpy())
    expected = sum(
        weight * InfluenceDisplay.from_estimator(candidate, points).influence
        for weight, candidate in zip(mixture.weights_, mixture.estimators_, strict=True)
    )
    np.testing.assert_allclose(display.influence, expected)
    ReliabilityDisplay.from_estimator(mixture, X, Y)
