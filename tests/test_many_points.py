"""The estimators with many points: on the k-nearest-neighbour graph, with samples for choices.

Few points are taken for many by lower limits.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from plain import new_point_support
from scipy import stats
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.distances import PowerTransform, distance_matrix
from nearfield.estimators import _graph, _many_points, _metric
from nearfield.field import NeighborFamily
from nearfield.inference import Exchange, Posterior
from nearfield.inference.profile import maximize_pseudolikelihood
from nearfield.neighbors import BoxIndex, NeighborGraph, make_index

NEIGHBORHOODS = pytest.mark.parametrize("neighborhood", ["symmetric", "directed"])
KERNELS = pytest.mark.parametrize("kernel", ["gaussian", "exponential", "radius"])


def noisy_moon(n_points, seed=0, *, has_ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, 2))
    X = np.round(2.0 * X) if has_ties else X
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n_points) > 0.3).astype(int)


def d_nn(kernel="gaussian", **settings):
    settings = {"inference": "pseudolikelihood", "random_state": 0, **settings}
    return DistanceNeighborsClassifier(kernel, **settings)


def pk_nn(neighborhood="symmetric", **settings):
    settings = {"inference": "pseudolikelihood", "random_state": 0, **settings}
    return ProbabilisticKNeighborsClassifier(neighborhood, **settings)


@pytest.fixture
def few_are_many(use_sizes):
    """Take 200 points for many."""
    use_sizes(max_dense_automatic=200, max_folds=200, max_dense=200)


@pytest.fixture
def some_sites(few_are_many, use_sizes):
    """Infer parameters from a third of 300 points."""
    use_sizes(max_all_sites=200, n_sites=100)


# d-nn on the graph


@KERNELS
@pytest.mark.parametrize("has_ties", [False, True])
def test_predictions_are_those_of_a_plain_loop(kernel, has_ties):
    X, y = noisy_moon(50, has_ties=has_ties)
    new, _ = noisy_moon(5, seed=1, has_ties=has_ties)
    model = d_nn(kernel, n_neighbors=6, standardize=False).fit(X, y)
    posterior = model.posterior_
    expected = np.zeros((5, 2))
    for sigma in np.unique(posterior.scale):
        support = new_point_support(cdist(X, X), y, cdist(new, X), kernel, sigma, 6, 2)
        is_here = posterior.scale == sigma
        for beta, weight in zip(posterior.beta[is_here], posterior.weight[is_here], strict=True):
            expected += weight * softmax(beta * support, axis=1)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-4)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_few_neighbours_of_few_points_are_allowed(kernel):
    X, y = noisy_moon(60)
    model = DistanceNeighborsClassifier(kernel, n_neighbors=8, random_state=0).fit(X, y)
    assert model.inference_ == "path"
    assert model.family_.n_neighbors == 8
    assert model.score(X, y) > 0.8
    lower, upper = model.predict_proba_interval(X)
    probabilities = model.predict_proba(X)
    assert ((lower <= probabilities + 1e-3) & (probabilities <= upper + 1e-3)).all()


def test_as_many_neighbours_as_points_are_the_model_of_the_paper():
    X, y = noisy_moon(60)
    every = d_nn().fit(X, y)
    for n_neighbors in (59, 60, 1_000):
        model = d_nn(n_neighbors=n_neighbors).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), every.predict_proba(X))


def test_precomputed_distances_give_the_same_graph():
    X, y = noisy_moon(90)
    new, _ = noisy_moon(10, seed=1)
    model = d_nn(n_neighbors=7, standardize=False).fit(X, y)
    given = d_nn(n_neighbors=7, metric="precomputed").fit(distance_matrix(X), y)
    np.testing.assert_allclose(
        given.predict_proba(distance_matrix(new, X)), model.predict_proba(new), atol=1e-10
    )


@KERNELS
def test_the_number_of_neighbours_has_the_largest_pseudolikelihood_around(kernel, few_are_many):
    X, y = noisy_moon(400)
    model = d_nn(kernel).fit(X, y)
    chosen = model.family_.n_neighbors
    place = _graph.NEIGHBOR_CHOICES.index(chosen)
    points = model.metric_space_.points
    for k in _graph.NEIGHBOR_CHOICES[max(place - 1, 0) : place + 2]:
        graph = NeighborGraph.from_index(make_index(points), points, k)
        family = NeighborFamily(graph, 2, kernel)
        largest = maximize_pseudolikelihood(family, y).log_pseudolikelihood
        best = maximize_pseudolikelihood(model.family_, y).log_pseudolikelihood
        assert largest <= best + 0.05


def test_the_maximum_of_the_pseudolikelihood_is_that_of_a_fine_grid():
    X, y = noisy_moon(120)
    family = NeighborFamily.from_distances(cdist(X, X), 2, "gaussian", n_neighbors=12)
    found = maximize_pseudolikelihood(family, y)
    betas, values = np.linspace(0.0, 8.0, 161), []
    for sigma in np.geomspace(0.02, 20.0, 200):
        support = family.support(sigma, y)
        logits = betas[:, None, None] * support
        own = softmax(logits, axis=2)[:, np.arange(120), y]
        values.append(np.log(own).sum(axis=1).max())
    assert found.log_pseudolikelihood > max(values) - 0.02


@pytest.mark.filterwarnings("ignore:Expected R-hat")
def test_every_engine_runs_on_the_graph():
    X, y = noisy_moon(120)
    means = {}
    for inference in ("path", Exchange(n_draws=2_000, n_burn=500, n_sweeps=50), "pseudolikelihood"):
        model = d_nn(n_neighbors=8, inference=inference).fit(X, y)
        means[model.inference_] = model.posterior_.mean()["beta"]
        assert model.predict_joint(X[:3] + 0.01, 50).shape == (50, 3)
    sd = model.posterior_.summary()["sd"]["beta"]
    assert abs(means["path"] - means["exchange"]) < 0.5 * sd
    assert abs(means["path"] - means["pseudolikelihood"]) < 2.0 * sd


def test_another_engine_has_its_neighbours_chosen_first(few_are_many):
    X, y = noisy_moon(220)
    model = d_nn(inference="path").fit(X, y)
    assert model.inference_ == "path"
    assert model.family_.n_neighbors == d_nn().fit(X, y).family_.n_neighbors


def test_joint_draws_of_one_point_have_its_probability():
    X, y = noisy_moon(100)
    model = d_nn(n_neighbors=8).fit(X, y)
    new = X[:1] + 0.05
    draws = model.predict_joint(new, 4_000, random_state=0)
    probability = model.predict_proba(new)[0, 1]
    standard_error = np.sqrt(0.25 / 4_000)
    # The joint field renormalises its parameters' posterior: only the draws are random here.
    assert abs((draws == 1).mean() - probability) < 5.0 * standard_error


def test_influences_add_up_to_the_support():
    X, y = noisy_moon(80)
    new = X[:3] + 0.02
    for model in (d_nn(n_neighbors=7), d_nn(), pk_nn(), pk_nn("directed")):
        model.fit(X, y)
        posterior = model.posterior_
        if len(posterior.beta) > 1:
            posterior = Posterior.from_nodes([2.0], [3.0], [1.0], posterior.scale_name)
            model._keep(
                model.metric_space_, y, model.family_, posterior, model.priors_, model.inference_
            )
        influence = model.influence(new)
        assert influence.shape == (3, 80)
        scores = np.stack([influence[:, y == g].sum(axis=1) for g in (0, 1)], axis=1)
        np.testing.assert_allclose(softmax(scores, axis=1), model.predict_proba(new), atol=1e-10)


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_one_seed_gives_one_answer_whatever_the_number_of_jobs(search, some_sites):
    if search == "approximate":
        pytest.importorskip("faiss")
    X, y = noisy_moon(300)
    first, second = (d_nn(n_jobs=n, search=search).fit(X, y).predict_proba(X) for n in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_some_conditionals_know_less_than_all(some_sites, use_sizes):
    X, y = noisy_moon(300)
    some = d_nn(n_neighbors=8).fit(X, y)
    use_sizes(max_all_sites=300)
    every = d_nn(n_neighbors=8).fit(X, y)
    # A third of the conditionals: sd up by the square root of three, give or take.
    ratio = some.posterior_.summary()["sd"]["beta"] / every.posterior_.summary()["sd"]["beta"]
    assert 1.3 < ratio < 2.5


@pytest.mark.parametrize("settings", [{}, {"kernel": "radius"}, {"metric": "within"}])
def test_a_saved_model_predicts_the_same(settings, some_sites, tmp_path):
    X, y = noisy_moon(300)
    model = d_nn(**settings).fit(X, y)
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.outlier_score(X), model.outlier_score(X))


def test_bad_numbers_of_neighbours_are_refused():
    X, y = noisy_moon(40)
    for n_neighbors in (0, -3, 2.5, "many", True):
        with pytest.raises(ValueError, match="Expected n_neighbors as a whole number >= 1"):
            d_nn(n_neighbors=n_neighbors).fit(X, y)
    with pytest.raises(ValueError, match="Expected search among"):
        d_nn(search="quick").fit(X, y)


# Adding points


@pytest.mark.parametrize(
    "make",
    [
        lambda: d_nn(),
        lambda: d_nn(n_neighbors=6),
        lambda: d_nn("radius", n_neighbors=6),
        lambda: d_nn(metric="manhattan", n_neighbors=6),
        lambda: pk_nn(),
        lambda: pk_nn("directed"),
    ],
)
@pytest.mark.parametrize("has_ties", [False, True])
def test_added_points_make_the_model_of_all_points_at_the_same_parameters(make, has_ties):
    X, y = noisy_moon(150, has_ties=has_ties)
    new, _ = noisy_moon(40, seed=1, has_ties=has_ties)
    model = make().fit(X[:110], y[:110])
    posterior = model.posterior_
    model.partial_fit(X[110:130], y[110:130]).partial_fit(X[130:], y[130:])
    assert model.posterior_ is posterior
    standardized = model.metric_space_.standardization.apply(X)
    whole = make().set_params(standardize=False).fit(standardized, y)
    n_neighbors = model.family_.n_neighbors if model.family_.has_graph else None
    family = whole.family_
    if n_neighbors is not None and family.n_neighbors > n_neighbors:
        family = type(family)(family.graph.first(n_neighbors), 2, family.kernel, family.is_directed)
    whole._keep(whole.metric_space_, y, family, posterior, model.priors_, model.inference_)
    expected = whole.predict_proba(model.metric_space_.standardization.apply(new))
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-10)


def test_points_added_to_nothing_are_a_fit():
    X, y = noisy_moon(60)
    added, fitted = d_nn().partial_fit(X, y), d_nn().fit(X, y)
    np.testing.assert_array_equal(added.predict_proba(X), fitted.predict_proba(X))


def test_points_that_cannot_be_added_are_refused():
    X, y = noisy_moon(60)
    model = d_nn().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"Expected classes that .* got \[2\]"):
        model.partial_fit(X[:3], [0, 2, 1])
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.ones((2, 3)), [0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), before)
    given = d_nn(metric="precomputed").fit(distance_matrix(X), y)
    with pytest.raises(ValueError, match="Expected features for partial_fit"):
        given.partial_fit(distance_matrix(X)[:2], y[:2])


# pk-nn


@pytest.mark.parametrize("settings", [{}, {"fit_intercept": True}, {"predictive": "printed"}])
@NEIGHBORHOODS
def test_pk_nn_of_many_points_is_that_of_few(neighborhood, settings, request):
    X, y = noisy_moon(300)
    new, _ = noisy_moon(60, seed=1)
    prior = {"prior_k": stats.randint(1, 60)}
    few = pk_nn(neighborhood, **settings, **prior).fit(X, y)
    request.getfixturevalue("few_are_many")
    model = pk_nn(neighborhood, **settings, **prior).fit(X, y)
    assert model.inference_ == "pseudolikelihood"
    np.testing.assert_allclose(model.predict_proba(new), few.predict_proba(new), atol=2e-3)
    np.testing.assert_allclose(model.intercept_, few.intercept_, atol=1e-2)


def test_points_in_one_place_are_no_obstacle(few_are_many):
    X, y = np.zeros((250, 2)), np.arange(250) % 2
    X[200:] = np.random.default_rng(0).normal(size=(50, 2))
    for model in (pk_nn(prior_k=stats.randint(1, 17)), d_nn(), d_nn("radius")):
        model.fit(X, y)
        assert np.isfinite(model.outlier_score(X[195:205])).all()
        assert np.isfinite(model.predict_proba(X[195:205])).all()


@NEIGHBORHOODS
def test_one_seed_gives_pk_nn_one_answer_whatever_the_number_of_jobs(neighborhood, some_sites):
    X, y = noisy_moon(300)
    first, second = (pk_nn(neighborhood, n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2))
    np.testing.assert_array_equal(first, second)
    other = pk_nn(neighborhood, random_state=1).fit(X, y).predict_proba(X)
    assert (other != first).any()


@NEIGHBORHOODS
def test_a_saved_pk_nn_of_many_points_predicts_the_same(neighborhood, some_sites, tmp_path):
    X, y = noisy_moon(300)
    model = pk_nn(neighborhood).fit(X, y)
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@NEIGHBORHOODS
@pytest.mark.parametrize("has_ties", [False, True], ids=["apart", "ties"])
def test_decisions_of_pk_nn_hold_out_each_point(neighborhood, has_ties, some_sites, use_sizes):
    """The conditionals of the graph of all points, though a directed model keeps that of some."""
    use_sizes(max_calibration=150, max_learning=150, n_learning=100, n_pilot_sites=90)
    X, y = noisy_moon(320, has_ties=has_ties)
    model = pk_nn(neighborhood).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    family, nodes, rows = model.family_, model._predictor.nodes, model.calibration_rows_
    whole = NeighborFamily.from_distances(
        distance_matrix(model.metric_space_.points),
        2,
        n_neighbors=family.n_neighbors,
        is_directed=family.is_directed,
    )
    supports = [whole.support(k, y)[rows] for k in nodes.scales]
    expected = nodes.mean(np.stack(supports, axis=1), np.zeros(2))
    np.testing.assert_allclose(model.held_out_proba_, expected, atol=1e-12)
    assert model.predict_set(X).shape == (320, 2)


def test_a_posterior_that_reaches_the_largest_k_is_told(few_are_many, use_sizes):
    use_sizes(max_k=5)
    X, y = noisy_moon(300)
    with pytest.warns(ConvergenceWarning, match="Expected a posterior of k below 5, the largest"):
        model = pk_nn().fit(X, y)
    assert model.posterior_.scale.max() <= 5


def test_many_classes_leave_fewer_sites():
    assert len(_graph.site_rows(100_000, 4, "uniform", 0)) == 4_096
    assert len(_graph.site_rows(100_000, 100, "uniform", 0)) == 2**26 // 51_200
    assert len(_graph.site_rows(100_000, 10_000, "uniform", 0)) == 256
    assert len(_graph.site_rows(5_000, 10, "gaussian", 0)) == 5_000


def test_what_pk_nn_cannot_do_is_refused():
    X, y = noisy_moon(250)
    with pytest.raises(ValueError, match="Expected search among"):
        pk_nn(search="quick").fit(X, y)
    for prior_k in ("uniform", 5):
        with pytest.raises(ValueError, match=r"Expected a frozen scipy\.stats distribution"):
            pk_nn(prior_k=prior_k).fit(X, y)
    with pytest.raises(ValueError, match="Expected neighborhood among"):
        pk_nn("mutual").fit(X, y)
    with pytest.raises(ValueError, match='Expected neighborhood="symmetric" for joint draws'):
        pk_nn("directed").fit(X, y).predict_joint(X[:2])


# k-nn, k by leaving out


def test_knn_leaves_out_each_of_many_points_as_it_does_each_of_few(request):
    X, y = noisy_moon(250)
    new, _ = noisy_moon(60, seed=1)
    dense = KNeighborsClassifierCV(random_state=0).fit(X, y)
    request.getfixturevalue("few_are_many")
    model = KNeighborsClassifierCV(random_state=0).fit(X, y)
    assert isinstance(model._index, BoxIndex)
    np.testing.assert_array_equal(model.cv_errors_, dense.cv_errors_)
    assert model.n_neighbors_ == dense.n_neighbors_
    np.testing.assert_allclose(model.predict_proba(new), dense.predict_proba(new), rtol=1e-14)
    sparse = KNeighborsClassifierCV(random_state=0, standardize=False).fit(sp.csr_matrix(X), y)
    plain = KNeighborsClassifierCV(random_state=0, standardize=False).fit(X, y)
    np.testing.assert_array_equal(sparse.cv_errors_, plain.cv_errors_)


def test_some_points_left_out_tell_the_error_rate_of_all(few_are_many, use_sizes):
    X, y = noisy_moon(400)
    every = KNeighborsClassifierCV(random_state=0, max_neighbors=20).fit(X, y)
    use_sizes(n_left_out=200)
    some = KNeighborsClassifierCV(random_state=0, max_neighbors=20).fit(X, y)
    assert some.cv_errors_.shape == (20,)
    standard_error = np.sqrt(0.25 / 200 * (1.0 - 200 / 400))
    np.testing.assert_allclose(some.cv_errors_, every.cv_errors_, atol=4.0 * standard_error)
    assert (some.cv_errors_ != every.cv_errors_).any()
    again = KNeighborsClassifierCV(random_state=0, max_neighbors=20, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.cv_errors_, some.cv_errors_)
    other = KNeighborsClassifierCV(random_state=1, max_neighbors=20).fit(X, y)
    assert (other.cv_errors_ != some.cv_errors_).any()


def test_with_many_points_k_has_a_bound_unless_one_is_given(few_are_many, use_sizes):
    use_sizes(max_k=16)
    X, y = noisy_moon(250)
    assert KNeighborsClassifierCV(random_state=0).fit(X, y).cv_errors_.shape == (16,)
    assert KNeighborsClassifierCV(max_neighbors=30).fit(X, y).cv_errors_.shape == (30,)
    given = KNeighborsClassifierCV("precomputed").fit(distance_matrix(X), y)
    assert given.cv_errors_.shape == (125,)


def test_a_saved_knn_of_many_points_predicts_the_same(few_are_many, tmp_path):
    X, y = noisy_moon(250)
    model = KNeighborsClassifierCV(random_state=0).fit(X, y)
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_knn_refuses_a_search_that_there_is_not():
    with pytest.raises(ValueError, match="Expected search among"):
        KNeighborsClassifierCV(search="quick").fit(*noisy_moon(20))


# The average over estimators


@pytest.fixture
def few_learn(few_are_many, use_sizes):
    """Let 100 points choose estimators, 100 others teach metrics."""
    use_sizes(n_sample=100, max_learning=200, n_learning=100)


def test_no_point_that_taught_a_metric_weighs_estimators(few_learn):
    _, labels = noisy_moon(300)
    taught = _metric.learning_rows(300)
    assert len(taught) == 100
    learning, neighbors, held_out = _many_points.draw_rows(np.random.default_rng(0), labels)
    np.testing.assert_array_equal(learning, taught)
    assert len(np.unique(neighbors)) == 100
    assert len(np.unique(held_out)) == 200
    assert not np.isin([*neighbors, *held_out], taught).any()
    assert not np.isin(neighbors, held_out[:100]).any()  # those that choose estimators


def test_some_points_tell_how_features_are_distributed(use_sizes):
    points = np.random.default_rng(0).lognormal(size=(4_000, 2))
    every = PowerTransform().fit(points[_many_points.normalizing_rows(len(points))])
    use_sizes(max_normalizing=1_000)
    some = points[_many_points.normalizing_rows(len(points))]
    assert len(np.unique(some, axis=0)) == 1_000
    gaps = np.abs(PowerTransform().fit(some).powers_ - every.powers_)
    assert gaps.max() <= 0.25  # a step of the grid


def test_one_seed_gives_the_average_one_answer_whatever_the_number_of_jobs(few_learn):
    X, y = noisy_moon(300)
    models = [
        NearfieldClassifier(
            ("gaussian",), ("euclidean", "within"), n_jobs=n_jobs, random_state=0
        ).fit(X, y)
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*(model.weights_ for model in models))
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


def test_estimators_without_weight_are_dropped(few_learn, monkeypatch):
    monkeypatch.setattr(_many_points, "_LEAST_SAMPLE_WEIGHT", 0.0)
    monkeypatch.setattr(_many_points, "stacking_weights", lambda *_: np.array([0.04, 0.36, 0.6]))
    X, y = noisy_moon(300)
    model = NearfieldClassifier(metrics=("euclidean", "manhattan"), random_state=0).fit(X, y)
    assert len(model.estimators_) == len(model.log_scores_) == 2
    np.testing.assert_allclose(model.weights_, [0.375, 0.625])
