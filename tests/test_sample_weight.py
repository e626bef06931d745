"""Points that count as several: the model against repeated points, and `sample_weight`."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearfield import (
    DistanceNeighborsClassifier,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    load,
    save,
)
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily, NeighborKernel
from nearfield.inference import Exchange, PathSampling, Posterior, Pseudolikelihood
from nearfield.inference.intercepts import fit_external_field
from nearfield.inference.pseudolikelihood import log_pseudolikelihood
from nearfield.neighbors import NeighborGraph, ReverseNeighbors
from nearfield.prediction import NeighborPredictor, Predictor
from nearfield.prediction.grid import HeldOutPrior
from nearfield.prediction.heldout import HeldOutField, HeldOutFold

RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(24, 2))
LABELS = RNG.integers(3, size=24)
COUNTS = RNG.integers(1, 5, size=24).astype(np.float64)
NEW = RNG.normal(size=(7, 2))
SCALES = {"gaussian": 0.6, "exponential": 1.7, "radius": 0.9}


def kernel_of(name, distances, scale):
    """Evaluate a kernel plainly."""
    if name == "gaussian":
        return np.exp(-0.5 * (distances / scale) ** 2)
    if name == "exponential":
        return np.exp(-distances * scale)
    return np.where(distances < scale, 1.0, 1e-10)


def coupling_of_copies(name, points, counts, scale):
    """Give the coupling of points that are repeated, without weights among copies of a point."""
    copies = np.repeat(np.arange(len(points)), counts.astype(int))
    kernel = kernel_of(name, distance_matrix(points[copies]), scale)
    kernel[copies[:, None] == copies] = 0.0
    weights = kernel / kernel.sum(axis=1, keepdims=True)
    return copies, weights + weights.T


@pytest.mark.parametrize("kernel", SCALES)
def test_support_is_that_of_repeated_points_without_weights_among_copies(kernel):
    copies, coupling = coupling_of_copies(kernel, POINTS, COUNTS, SCALES[kernel])
    expected = coupling @ (LABELS[copies][:, None] == np.arange(3))
    family = DistanceFamily(distance_matrix(POINTS), kernel, 3, multiplicities=COUNTS)
    found = family.support(SCALES[kernel], LABELS)
    np.testing.assert_allclose(found[copies], expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", SCALES)
@pytest.mark.parametrize("predictive", ["joint", "printed"])
def test_prediction_is_that_of_repeated_points_without_weights_among_copies(kernel, predictive):
    beta, scale, posterior = 2.5, SCALES[kernel], Posterior.from_nodes
    family = DistanceFamily(distance_matrix(POINTS), kernel, 3, multiplicities=COUNTS)
    predictor = Predictor(posterior([beta], [scale], [1.0], "sigma"), family, LABELS, predictive)
    found = predictor.probabilities(distance_matrix(NEW, POINTS))
    influence = predictor.influence(distance_matrix(NEW, POINTS))
    for i, new in enumerate(NEW):
        points, counts = np.vstack([POINTS, new]), np.append(COUNTS, 1.0)
        copies, coupling = coupling_of_copies(kernel, points, counts, scale)
        row = coupling[-1, :-1]
        if predictive == "printed":
            row = kernel_of(kernel, distance_matrix([new], POINTS[copies[:-1]])[0], scale)
            row = row / row.sum()
        logits = beta * np.bincount(LABELS[copies[:-1]], row)
        expected = np.exp(logits - logits.max())
        np.testing.assert_allclose(found[i], expected / expected.sum(), atol=1e-9)
        np.testing.assert_allclose(influence[i], beta * np.bincount(copies[:-1], row), atol=1e-9)


@pytest.mark.parametrize("kernel", SCALES)
def test_the_graph_of_all_neighbours_is_the_dense_field(kernel):
    posterior = Posterior.from_nodes([2.5], [SCALES[kernel]], [1.0], "sigma")
    dense = DistanceFamily(distance_matrix(POINTS), kernel, 3, multiplicities=COUNTS)
    sparse = NeighborFamily(
        NeighborGraph.from_distances(distance_matrix(POINTS), 23), 3, kernel, multiplicities=COUNTS
    )
    scale = SCALES[kernel]
    np.testing.assert_allclose(sparse.support(scale, LABELS), dense.support(scale, LABELS))
    coupling = sparse.at(scale).to_dense().coupling
    np.testing.assert_allclose(coupling, dense.at(scale).coupling, atol=1e-12)
    model = DistanceNeighborsClassifier(kernel, standardize=False, inference="pseudolikelihood")
    index = model.fit(POINTS, LABELS).metric_space_.make_index("exact")
    on_graph = NeighborPredictor(posterior, sparse, LABELS, index).probabilities(NEW)
    distances = distance_matrix(NEW, POINTS)
    np.testing.assert_allclose(
        on_graph, Predictor(posterior, dense, LABELS).probabilities(distances), atol=1e-9
    )


@pytest.mark.parametrize("kernel", [*SCALES, "uniform"])
def test_in_weights_of_multiples_of_one_are_the_compiled_ones(kernel):
    """With ties: all distances are multiples of a half."""
    grid = RNG.integers(6, size=(30, 2)) / 2.0
    labels, new = RNG.integers(3, size=30), RNG.integers(6, size=(9, 2)) / 2.0
    graph = NeighborGraph.from_distances(distance_matrix(grid), 7)
    distances = distance_matrix(new, grid)
    reverse = ReverseNeighbors.from_mask(distances <= graph.distances[:, 6] + 1e-9, distances)
    smooth = NeighborKernel(kernel, 7)
    scales = np.array([1.0, 3.0, 7.0]) if kernel == "uniform" else np.array([0.4, 1.1])
    found = smooth.new_in_support(
        reverse, labels, graph.distances, scales, 3, np.ones(30), np.ones(graph.rows.shape)
    )
    expected = smooth.new_in_support(reverse, labels, graph.distances, scales, 3)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "uniform"])
def test_in_weights_on_the_graph_count_the_nearest_but_one(kernel):
    """Point j gives s_j kappa / (Z_j + kappa), with Z_j over its k - 1 nearest by their weights."""
    k, scale = 5, 0.6
    graph = NeighborGraph.from_distances(distance_matrix(POINTS), k)
    distances = distance_matrix(NEW, POINTS)
    reverse = ReverseNeighbors.from_mask(distances < graph.distances[:, k - 1], distances)
    value = (lambda d: np.ones_like(d)) if kernel == "uniform" else SquaredExponential(scale)
    expected = np.zeros((len(NEW), 3))
    for i, j in zip(reverse.queries, reverse.rows, strict=True):
        rest = COUNTS[graph.rows[j, : k - 1]] @ value(graph.distances[j, : k - 1])
        own = value(distances[i, j])
        expected[i, LABELS[j]] += COUNTS[j] * own / (rest + own)
    found = NeighborKernel(kernel, k).new_in_support(
        reverse,
        LABELS,
        graph.distances,
        np.array([float(k) if kernel == "uniform" else scale]),
        3,
        COUNTS,
        COUNTS[graph.rows],
    )
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)


class SquaredExponential:
    """The Gaussian kernel at a scale."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, distances):
        return kernel_of("gaussian", distances, self.scale)


def test_the_pseudolikelihood_counts_each_label_as_often_as_its_weight():
    family = DistanceFamily(distance_matrix(POINTS), "gaussian", 3, multiplicities=COUNTS)
    support, alpha = family.support(0.6, LABELS), np.array([0.3, -0.1, -0.2])
    copies = np.repeat(np.arange(24), COUNTS.astype(int))
    betas = np.array([0.1, 1.0, 4.0])
    np.testing.assert_allclose(
        log_pseudolikelihood(support, LABELS, alpha, COUNTS)(betas),
        log_pseudolikelihood(support[copies], LABELS[copies], alpha)(betas),
        rtol=1e-9,
    )


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_held_out_labels_of_whole_weights_are_those_of_repeated_labels(kernel):
    """The posterior of folds is that of copies that are held out together, within its grid."""
    distances = distance_matrix(POINTS)
    order = np.argsort(LABELS, kind="stable")
    part = np.arange(24) % 3
    folds = []
    for fold in range(3):
        training, held_out = order[part[order] != fold], np.flatnonzero(part == fold)
        folds.append(
            HeldOutFold(
                held_out,
                LABELS[training],
                distances[np.ix_(training, training)],
                distances[np.ix_(held_out, training)],
                COUNTS[training],
            )
        )
    field = HeldOutField(folds, LABELS, kernel, 3, COUNTS)
    for fold in folds:
        training = np.setdiff1d(np.arange(24), fold.rows)
        training = training[np.argsort(LABELS[training], kind="stable")]
        for i in fold.rows:
            rows = np.append(training, i)
            family = DistanceFamily(
                distances[np.ix_(rows, rows)],
                kernel,
                3,
                multiplicities=np.append(COUNTS[training], 1.0),
            )
            expected = family.support(0.7, LABELS[rows])[-1]
            np.testing.assert_allclose(field.support(np.array([0.7]))[0, i], expected, rtol=1e-6)
    found = field.infer(HeldOutPrior(50.0, 100.0, 1.0), (0.1, 10.0))
    assert np.isfinite(found.log_densities).all()
    assert found.external_field.sum() == pytest.approx(0.0, abs=1e-9)


def test_intercepts_count_labels_by_their_weights():
    """A class whose points weigh nine times as much gets the larger intercept."""
    labels = np.arange(24) % 2
    family = DistanceFamily(
        distance_matrix(POINTS), "gaussian", 2, multiplicities=np.where(labels == 0, 9.0, 1.0)
    )
    alpha = fit_external_field(family, labels)
    assert alpha[0] > alpha[1]


@pytest.mark.parametrize("engine", [PathSampling(), Exchange()])
def test_engines_of_the_joint_refuse_weights(engine):
    family = DistanceFamily(distance_matrix(POINTS), "gaussian", 3, multiplicities=COUNTS)
    with pytest.raises(ValueError, match="no joint one"):
        engine.infer(0, family, LABELS)
    Pseudolikelihood().infer(0, family, LABELS)


def test_multiplicities_of_zero_or_another_number_are_refused():
    with pytest.raises(ValueError, match="Leave out points"):
        DistanceFamily(distance_matrix(POINTS), "gaussian", 3, multiplicities=np.zeros(24))


# The estimators

MODELS = {
    "gaussian": DistanceNeighborsClassifier(inference="pseudolikelihood"),
    "radius": DistanceNeighborsClassifier("radius", inference="pseudolikelihood"),
    "graph": DistanceNeighborsClassifier(n_neighbors=8, inference="pseudolikelihood"),
    "pk-nn": ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"),
    "directed": ProbabilisticKNeighborsClassifier("directed"),
    "nearfield": NearfieldClassifier(["gaussian"], ["within"], n_folds=3, random_state=0),
}
FEATURES = np.vstack([RNG.normal(size=(20, 3)), RNG.normal(size=(20, 3)) + 1.2])
CLASSES = np.repeat(["a", "b"], 20)
WEIGHTS = RNG.uniform(0.3, 3.0, size=40)


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def test_a_weight_of_zero_leaves_a_point_out_and_one_changes_nothing(model):
    weights = (np.arange(40) % 4 > 0).astype(float)
    kept = weights > 0.0
    left = clone(model).fit(FEATURES[kept], CLASSES[kept]).predict_proba(FEATURES)
    np.testing.assert_array_equal(
        model.fit(FEATURES, CLASSES, sample_weight=weights).predict_proba(FEATURES), left
    )


def test_heavier_classes_are_more_probable(model):
    """On average: the parameters are inferred anew, and may say otherwise of single points."""
    plain = clone(model).fit(FEATURES, CLASSES).predict_proba(FEATURES)
    heavy = model.set_params(class_weight={"a": 10.0}).fit(FEATURES, CLASSES)
    assert heavy.predict_proba(FEATURES)[:, 0].mean() > plain[:, 0].mean() + 0.02


def test_class_weights_are_weights_of_points(model):
    y = np.where(np.arange(40) < 30, "a", "b")
    weights = np.where(y == "a", 40 / 60, 40 / 20)
    balanced = clone(model).set_params(class_weight="balanced").fit(FEATURES, y)
    given = clone(model).set_params(class_weight={"a": 40 / 60, "b": 2.0}).fit(FEATURES, y)
    expected = model.fit(FEATURES, y, sample_weight=weights).predict_proba(FEATURES)
    np.testing.assert_allclose(balanced.predict_proba(FEATURES), expected, atol=1e-9)
    np.testing.assert_allclose(given.predict_proba(FEATURES), expected, atol=1e-9)


def test_class_prior_undoes_balanced_weights_in_the_odds(model):
    """Its reference are the weighted proportions, here equal ones: a prior of these is neutral."""
    y = np.where(np.arange(40) < 30, "a", "b")
    model.set_params(class_weight="balanced").fit(FEATURES, y)
    plain = model.predict_proba(FEATURES)
    np.testing.assert_allclose(
        model.set_params(class_prior=[0.5, 0.5]).predict_proba(FEATURES), plain, atol=1e-9
    )


def test_a_file_keeps_the_weights(model, tmp_path):
    model.fit(FEATURES, CLASSES, sample_weight=WEIGHTS)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.predict_proba(FEATURES), model.predict_proba(FEATURES), atol=1e-12
    )
    np.testing.assert_allclose(loaded.held_out_proba_, model.held_out_proba_, atol=1e-12)


@pytest.mark.parametrize("names", [[0, 1], [False, True], [1.0, 2.0], ["a", "b"]])
def test_a_file_keeps_weights_of_classes_of_any_kind(names, tmp_path):
    y = np.repeat(names, 20)
    model = clone(MODELS["gaussian"]).set_params(class_weight={names[0]: 3.0}).fit(FEATURES, y)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").class_weight == {names[0]: 3.0}


def test_partial_fit_takes_weights(model):
    """Points added in two parts with their weights are those added at once."""
    model.fit(FEATURES[:25], CLASSES[:25], sample_weight=WEIGHTS[:25])
    once, twice = model, load_copy(model)
    once.partial_fit(FEATURES[25:], CLASSES[25:], sample_weight=WEIGHTS[25:])
    twice.partial_fit(FEATURES[25:32], CLASSES[25:32], sample_weight=WEIGHTS[25:32])
    twice.partial_fit(FEATURES[32:], CLASSES[32:], sample_weight=WEIGHTS[32:])
    np.testing.assert_array_equal(once._multiplicities, WEIGHTS)
    np.testing.assert_allclose(
        once.predict_proba(FEATURES), twice.predict_proba(FEATURES), atol=1e-9
    )


def load_copy(model):
    return pickle.loads(pickle.dumps(model))


def test_every_prediction_works_with_weights(model):
    model.fit(FEATURES, CLASSES, sample_weight=WEIGHTS)
    probabilities = model.predict_proba(FEATURES[:4])
    lower, upper = model.predict_proba_interval(FEATURES[:4])
    assert ((lower <= probabilities + 1e-6) & (probabilities <= upper + 1e-6)).all()
    assert model.influence(FEATURES[:4]).shape == (4, 40)
    assert model.explain(FEATURES[:1])[0].first in ("a", "b")
    assert model.predict_set(FEATURES[:4]).shape == (4, 2)
    if getattr(model, "neighborhood", "symmetric") == "symmetric":
        draws = model.predict_joint(FEATURES[:1], 2_000, random_state=0)
        error = np.sqrt(0.25 / 2_000)
        assert abs((draws == "b").mean() - model.predict_proba(FEATURES[:1])[0, 1]) < 5 * error


def test_scaling_all_weights_is_as_many_labels_more():
    model = clone(MODELS["gaussian"])
    sds = [
        model.fit(FEATURES, CLASSES, sample_weight=np.full(40, c)).posterior_.summary()["sd"]
        for c in (0.5, 2.0, 8.0)
    ]
    assert sds[0]["beta"] > sds[1]["beta"] > sds[2]["beta"]


def test_automatic_inference_is_pseudolikelihood_and_others_are_refused():
    model = DistanceNeighborsClassifier(random_state=0)
    assert model.fit(FEATURES, CLASSES, sample_weight=WEIGHTS).inference_ == "pseudolikelihood"
    with pytest.raises(ValueError, match='Expected inference="pseudolikelihood" with sample_w'):
        model.set_params(inference="path").fit(FEATURES, CLASSES, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match='Expected averaging="stacking" with sample_weight'):
        NearfieldClassifier(averaging="evidence").fit(FEATURES, CLASSES, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(39), "one number for each point"),
        (np.ones((40, 2)), "one number for each point"),
        (np.full(40, -1.0), "finite numbers >= 0"),
        (np.full(40, np.nan), "finite numbers >= 0"),
        (np.zeros(40), "some of them above zero"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        MODELS["gaussian"].fit(FEATURES, CLASSES, sample_weight=weights)


@pytest.mark.parametrize("class_weight", ["even", {"c": 1.0}, {"a": 0.0}, [1.0, 2.0]])
def test_wrong_class_weights_are_refused(class_weight):
    with pytest.raises(ValueError, match="Expected class_weight"):
        clone(MODELS["gaussian"]).set_params(class_weight=class_weight).fit(FEATURES, CLASSES)


def test_given_distances_refuse_a_weight_of_zero():
    model = DistanceNeighborsClassifier(metric="precomputed", inference="pseudolikelihood")
    weights = np.arange(40) % 3
    with pytest.raises(ValueError, match="Leave these points out of X"):
        model.fit(distance_matrix(FEATURES), CLASSES, sample_weight=weights)


def test_metadata_routing_hands_weights_and_groups_on():
    model = clone(MODELS["gaussian"])
    kept = np.arange(40) % 4 > 0
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scores = cross_val_score(
            model, FEATURES, CLASSES, cv=3, params={"sample_weight": kept.astype(float)}
        )
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), clone(model)
        )
        search = GridSearchCV(
            pipeline,
            {"distanceneighborsclassifier__kernel": ["gaussian", "exponential"]},
            scoring=get_scorer("accuracy").set_score_request(sample_weight=True),
            cv=3,
        )
        search.fit(FEATURES, CLASSES, sample_weight=WEIGHTS)
        final = search.best_estimator_[-1]
        mixture = NearfieldClassifier(metrics=["euclidean"], n_folds=3, random_state=0)
        mixture.set_fit_request(groups=True, sample_weight=True)
        groups = np.arange(40) // 2
        routed = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), mixture)
        routed.fit(FEATURES, CLASSES, groups=groups, sample_weight=WEIGHTS)
    assert len(scores) == 3
    np.testing.assert_array_equal(final._multiplicities, WEIGHTS)
    np.testing.assert_array_equal(routed[-1]._calibration_groups, groups)
    np.testing.assert_array_equal(routed[-1]._multiplicities, WEIGHTS)


def test_many_points_take_weights():
    """On the graph, with k chosen: the weighted class gains, and files keep the weights."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1_400, 2)), rng.normal(size=(700, 2)) + 1.5])
    y = np.repeat([0, 1], [1_400, 700])
    model = NearfieldClassifier(("gaussian",), ("euclidean",), random_state=0)
    plain = clone(model).fit(X, y).predict_proba(X[::20])
    balanced = model.set_params(class_weight="balanced").fit(X, y).predict_proba(X[::20])
    assert balanced[:, 1].mean() > plain[:, 1].mean() + 0.03
    assert model.held_out_proba_.shape[1] == 2


@pytest.mark.parametrize("weights", [{"class_weight": "balanced"}, {"sample_weight": WEIGHTS}])
def test_dask_refuses_weights(weights):
    array, lazy = pytest.importorskip("dask.array"), pytest.importorskip("nearfield.dask")
    X, y = array.from_array(FEATURES, chunks=20), array.from_array(CLASSES, chunks=20)
    model = lazy.NearfieldClassifier(class_weight=weights.get("class_weight"))
    with pytest.raises(ValueError, match="Expected points without weights on Dask"):
        model.fit(X, y, sample_weight=weights.get("sample_weight"))
