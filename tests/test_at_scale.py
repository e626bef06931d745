"""The estimators with many points: what lists of neighbours and samples give, all distances give.

Few points are taken for many by lower limits.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
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
from nearfield.distances.neighbors import NeighborIndex
from nearfield.estimators import _at_scale, _metric, _near, _nearfield, _neighbors_cv, _settings
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import Posterior
from nearfield.near import NearField, fit, list_fit
from nearfield.near.box_index import BoxIndex
from nearfield.near.list_fit import fit_lists, n_sites_for
from nearfield.near.lists import ListConditionals, ListSearch, NeighborLists
from nearfield.near.quick_index import quick_index

SINGLE = 1e-6  # tables of supports have seven digits
NEIGHBORHOODS = pytest.mark.parametrize("neighborhood", ["symmetric", "directed"])


def noisy_moon(n_points, seed=0, *, has_ties=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_points, 2))
    X = np.round(2.0 * X) if has_ties else X
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n_points) > 0.3).astype(int)


def pk_nn(neighborhood="symmetric", **settings):
    settings = {"inference": "pseudolikelihood", "random_state": 0, **settings}
    return ProbabilisticKNeighborsClassifier(neighborhood, **settings)


def list_search(points, labels, sites, search="exact"):
    return ListSearch(points, labels, NeighborIndex.of(points, search=search), sites)


@pytest.fixture
def few_are_many(monkeypatch):
    """Take 200 points for many."""
    for module in (_near, _nearfield):
        monkeypatch.setattr(module, "MAX_DENSE_AUTOMATIC", 200)
    monkeypatch.setattr(_settings, "MAX_DENSE_POINTS", 200)


@pytest.fixture
def all_is_seen(monkeypatch):
    """Leave no tail of the posterior, and no tie, to longer lists."""
    monkeypatch.setattr(list_fit, "_LEAST_K", 512)


@pytest.fixture
def some_sites(few_are_many, monkeypatch):
    """Let a third of 300 points speak for all."""
    monkeypatch.setattr(fit, "MAX_ALL_SITES", 200)
    monkeypatch.setattr(fit, "N_SITES", 100)


# Lists of neighbours


@pytest.mark.parametrize("has_ties", [False, True])
@NEIGHBORHOODS
def test_lists_give_the_support_that_all_distances_give(neighborhood, has_ties):
    X, labels = noisy_moon(120, has_ties=has_ties)
    family = NeighborFamily(distance_matrix(X), 2, is_directed=neighborhood == "directed")
    sites = np.array([5, 100, 7, 64])
    search = list_search(X, labels, sites)
    ramps = [search.from_sites(119)[1]]
    if neighborhood == "symmetric":
        ramps.append(search.from_all(119)[1])
    conditionals = ListConditionals.of(ramps, labels[sites], 2, 119)
    for k in (1, 2, 7, 30, 119):
        expected = family.support(k, labels)[sites]
        np.testing.assert_allclose(conditionals.support(k, labels[sites]), expected, rtol=SINGLE)


def test_short_lists_give_the_support_at_small_k():
    X, labels = noisy_moon(120)
    search = list_search(X, labels, np.arange(120))
    distances, hearing = search.from_all(12)
    conditionals = ListConditionals.of([search.from_sites(40)[1], hearing], labels, 2, 12)
    expected = NeighborFamily(distance_matrix(X), 2).support(12, labels)
    np.testing.assert_allclose(conditionals.support(12, labels), expected, rtol=SINGLE)
    np.testing.assert_allclose(distances, np.sort(distance_matrix(X))[:, 1:13], rtol=1e-12)
    assert conditionals.scale_range == (1.0, 12.0)
    np.testing.assert_array_equal(conditionals.scale_steps, np.arange(1.0, 13.0))


def test_conditionals_of_some_of_many_points_are_no_field():
    X, labels = noisy_moon(40)
    _, own = list_search(X, labels, np.arange(10)).from_sites(5)
    conditionals = ListConditionals.of([own], labels[:10], 2, 5)
    with pytest.raises(ValueError, match="got the conditionals of some of many points"):
        conditionals.at(3.0)


def test_an_approximate_search_makes_lists_that_rise():
    pytest.importorskip("faiss")
    X, labels = noisy_moon(400, has_ties=True)
    X = X + 1e-9 * np.random.default_rng(1).normal(size=X.shape)  # apart, beyond seven digits
    distances, _ = list_search(X, labels, np.arange(400), "approximate").from_sites(20)
    assert (np.diff(distances, axis=1) >= 0.0).all()


def test_lists_are_made_longer_until_they_hold_the_posterior(monkeypatch):
    X, labels = noisy_moon(200)
    lengths, ks = [], iter([17.0, 31.0, 30.0])

    def infer(conditionals):
        lengths.append(conditionals.table.shape[1])
        return conditionals, Posterior.from_nodes([1.0], [next(ks)], [1.0], "k")

    fitted = fit_lists(list_search(X, labels, np.arange(50)), 2, infer, is_directed=False)
    assert lengths == [199, 34, 62]  # all; twice 17; twice 31, since 31 is near 34
    assert fitted.lists.nearest.shape == (200, 30)


def test_many_classes_leave_fewer_sites():
    assert n_sites_for(4_096, 4) == 4_096
    assert n_sites_for(4_096, 100) == 2**26 // 51_200
    assert n_sites_for(4_096, 10_000) == 256


def test_boxes_are_used_where_they_save_distances_and_nowhere_else():
    rng = np.random.default_rng(0)
    flat, noise = rng.normal(size=(4_000, 2)), rng.normal(size=(4_000, 30))
    thin = flat @ rng.normal(size=(2, 30))
    for points in (flat, flat + 1e6, thin):
        assert isinstance(quick_index(points), BoxIndex)
    assert isinstance(quick_index(noise, metric="manhattan"), BoxIndex)
    assert quick_index(noise).index._fit_method == "brute"
    assert quick_index(flat, metric="chebyshev").index._fit_method == "kd_tree"
    assert isinstance(quick_index(sp.csr_matrix(flat)), NeighborIndex)
    found, expected = (make(thin).query(thin[:50], 20) for make in (quick_index, NeighborIndex.of))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(found[1], expected[1])


# pk-nn


@pytest.mark.parametrize("settings", [{}, {"external_field": "fitted"}, {"predictive": "printed"}])
@NEIGHBORHOODS
def test_pk_nn_from_lists_predicts_what_all_distances_predict(
    neighborhood, settings, all_is_seen, request
):
    X, y = noisy_moon(300)
    new, _ = noisy_moon(60, seed=1)
    dense = pk_nn(neighborhood, **settings).fit(X, y)
    request.getfixturevalue("few_are_many")
    model = pk_nn(neighborhood, **settings).fit(X, y)
    assert isinstance(model.family_, NeighborLists)
    assert model.inference_ == "pseudolikelihood"
    assert model.log_evidence_ == pytest.approx(dense.log_evidence_, abs=1e-4)
    np.testing.assert_allclose(model.predict_proba(new), dense.predict_proba(new), atol=SINGLE)
    np.testing.assert_allclose(model.outlier_score(new), dense.outlier_score(new), rtol=SINGLE)
    np.testing.assert_allclose(model.external_field_, dense.external_field_, atol=1e-5)
    lower, upper = model.predict_proba_interval(new)
    probabilities = model.predict_proba(new)
    assert ((lower <= probabilities + 1e-3) & (probabilities <= upper + 1e-3)).all()


@NEIGHBORHOODS
def test_pk_nn_from_lists_shares_among_ties(neighborhood, all_is_seen, request):
    X, y = noisy_moon(300, has_ties=True)
    new, _ = noisy_moon(60, seed=1, has_ties=True)
    prior = {"prior_k": stats.randint(1, 25), "standardize": False}
    dense = pk_nn(neighborhood, **prior).fit(X, y)
    request.getfixturevalue("few_are_many")
    model = pk_nn(neighborhood, **prior).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(new), dense.predict_proba(new), atol=1e-5)


def test_points_in_one_place_are_no_obstacle(few_are_many):
    X, y = np.zeros((250, 2)), np.arange(250) % 2
    X[200:] = np.random.default_rng(0).normal(size=(50, 2))
    model = pk_nn(prior_k=stats.randint(1, 17)).fit(X, y)
    assert np.isfinite(model.outlier_score(X[195:205])).all()
    assert np.isfinite(model.predict_proba(X[195:205])).all()


@NEIGHBORHOODS
def test_some_conditionals_know_less_than_all(neighborhood, some_sites, monkeypatch):
    X, y = noisy_moon(300)
    some = pk_nn(neighborhood).fit(X, y)
    monkeypatch.setattr(fit, "MAX_ALL_SITES", 300)
    every = pk_nn(neighborhood).fit(X, y)
    # A third of the conditionals: sd up by the square root of three, give or take.
    ratio = some.posterior_.summary()["sd"]["beta"] / every.posterior_.summary()["sd"]["beta"]
    assert 1.3 < ratio < 2.5


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


def test_a_posterior_that_reaches_the_largest_k_is_told(few_are_many, monkeypatch):
    monkeypatch.setattr("nearfield.estimators._lists.MAX_K", 5)
    monkeypatch.setattr(list_fit, "MAX_K", 5)
    X, y = noisy_moon(300)
    with pytest.warns(ConvergenceWarning, match="Expected a posterior of k below 5, the largest"):
        model = pk_nn().fit(X, y)
    assert model.posterior_.scale.max() <= 5


def test_what_pk_nn_cannot_do_with_many_points_is_refused(few_are_many):
    X, y = noisy_moon(250)
    with pytest.raises(ValueError, match="Use predict_proba, or fit on a subset"):
        pk_nn().fit(X, y).predict_joint(X[:3])
    with pytest.raises(ValueError, match="Expected at most 200 training points"):
        pk_nn(inference="path").fit(X, y)
    with pytest.raises(ValueError, match="Expected n_neighbors=None"):
        pk_nn(n_neighbors=8).fit(X, y)
    with pytest.raises(ValueError, match="Expected a prior of k with mass between 1 and 249"):
        pk_nn(prior_k=stats.randint(600, 700)).fit(X, y)
    with pytest.raises(ValueError, match="Expected search among"):
        pk_nn(search="quick").fit(X, y)
    with pytest.raises(ValueError, match="Expected neighborhood among"):
        pk_nn("mutual").fit(X, y)


# k-nn, k by leaving out


def test_knn_leaves_out_each_of_many_points_as_it_does_each_of_few(request):
    X, y = noisy_moon(250)
    new, _ = noisy_moon(60, seed=1)
    dense = KNeighborsClassifierCV().fit(X, y)
    request.getfixturevalue("few_are_many")
    model = KNeighborsClassifierCV().fit(X, y)
    assert isinstance(model._index, BoxIndex)
    np.testing.assert_array_equal(model.cv_errors_, dense.cv_errors_)
    assert model.n_neighbors_ == dense.n_neighbors_
    np.testing.assert_allclose(model.predict_proba(new), dense.predict_proba(new), rtol=1e-14)
    sparse = KNeighborsClassifierCV(standardize=False).fit(sp.csr_matrix(X), y)
    plain = KNeighborsClassifierCV(standardize=False).fit(X, y)
    np.testing.assert_array_equal(sparse.cv_errors_, plain.cv_errors_)


def test_some_points_left_out_tell_the_error_rate_of_all(few_are_many, monkeypatch):
    X, y = noisy_moon(400)
    every = KNeighborsClassifierCV(max_neighbors=20).fit(X, y)
    monkeypatch.setattr(_neighbors_cv, "_N_SITES", 200)
    some = KNeighborsClassifierCV(max_neighbors=20).fit(X, y)
    assert some.cv_errors_.shape == (20,)
    standard_error = np.sqrt(0.25 / 200 * (1.0 - 200 / 400))
    np.testing.assert_allclose(some.cv_errors_, every.cv_errors_, atol=4.0 * standard_error)
    assert (some.cv_errors_ != every.cv_errors_).any()
    again = KNeighborsClassifierCV(max_neighbors=20, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.cv_errors_, some.cv_errors_)
    other = KNeighborsClassifierCV(max_neighbors=20, random_state=1).fit(X, y)
    assert (other.cv_errors_ != some.cv_errors_).any()


def test_with_many_points_k_has_a_bound_unless_one_is_given(few_are_many, monkeypatch):
    monkeypatch.setattr(_neighbors_cv, "_MAX_K", 16)
    X, y = noisy_moon(250)
    assert KNeighborsClassifierCV().fit(X, y).cv_errors_.shape == (16,)
    assert KNeighborsClassifierCV(max_neighbors=30).fit(X, y).cv_errors_.shape == (30,)
    given = KNeighborsClassifierCV("precomputed").fit(distance_matrix(X), y)
    assert given.cv_errors_.shape == (125,)


def test_a_saved_knn_of_many_points_predicts_the_same(few_are_many, tmp_path):
    X, y = noisy_moon(250)
    model = KNeighborsClassifierCV().fit(X, y)
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_knn_refuses_a_search_that_there_is_not():
    with pytest.raises(ValueError, match="Expected search among"):
        KNeighborsClassifierCV(search="quick").fit(*noisy_moon(20))


# The average over candidates


@pytest.fixture
def few_learn(few_are_many, monkeypatch):
    """Let 100 points choose candidates, 100 others teach metrics."""
    monkeypatch.setattr(_at_scale, "_N_SAMPLE", 100)
    monkeypatch.setattr(_metric, "_MAX_LEARNING_POINTS", 200)
    monkeypatch.setattr(_metric, "_N_LEARNING_POINTS", 100)


@pytest.mark.filterwarnings("ignore:Expected class probabilities")
def test_conditionals_of_training_points_are_densities_of_labels_left_out():
    X, y = noisy_moon(150)
    model = DistanceNeighborsClassifier(
        inference="pseudolikelihood", n_neighbors=16, random_state=0
    ).fit(X, y)
    sites = np.array([3, 140, 77])
    family = DistanceFamily(distance_matrix(model.metric_space_.points), "gaussian", 2)
    posterior = model.posterior_
    expected = np.zeros(3)
    for beta, sigma, weight in zip(posterior.beta, posterior.sigma, posterior.weight, strict=True):
        own = softmax(beta * family.support(sigma, y)[sites], axis=1)[np.arange(3), y[sites]]
        expected += weight * own
    found = np.exp(_at_scale._log_densities(model, sites))
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Expected class probabilities")
def test_no_point_that_taught_a_metric_weighs_candidates(few_learn, monkeypatch):
    asked = []
    log_densities = _at_scale._log_densities

    def remember(fitted, sites):
        asked.append(sites)
        return log_densities(fitted, sites)

    monkeypatch.setattr(_at_scale, "_log_densities", remember)
    X, y = noisy_moon(300)
    model = NearfieldClassifier(metrics=("euclidean", "ard")).fit(X, y)
    assert all(isinstance(candidate.family_, NearField) for candidate in model.candidates_)
    taught = _metric.learning_rows(300)
    assert len(taught) == 100
    for sites in asked:
        assert len(np.unique(sites)) == 200
        assert not np.isin(sites, taught).any()


def test_some_points_tell_how_features_are_distributed(monkeypatch):
    points = np.random.default_rng(0).lognormal(size=(4_000, 2))
    every = PowerTransform().fit(_at_scale.some_points(points))
    monkeypatch.setattr(_at_scale, "_MAX_NORMALIZING", 1_000)
    some = _at_scale.some_points(points)
    assert len(np.unique(some, axis=0)) == 1_000
    gaps = np.abs(PowerTransform().fit(some).powers_ - every.powers_)
    assert gaps.max() <= 0.25  # a step of the grid


@pytest.mark.filterwarnings("ignore:Expected class probabilities")
def test_one_seed_gives_the_average_one_answer_whatever_the_number_of_jobs(few_learn):
    X, y = noisy_moon(300)
    models = [
        NearfieldClassifier(("gaussian",), ("euclidean", "within"), n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*(model.weights_ for model in models))
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


@pytest.mark.filterwarnings("ignore:Expected class probabilities")
def test_candidates_without_weight_are_dropped(few_learn, monkeypatch):
    monkeypatch.setattr(_at_scale, "_LEAST_SAMPLE_WEIGHT", 0.0)
    monkeypatch.setattr(_at_scale, "stacking_weights", lambda *_: np.array([0.04, 0.36, 0.6]))
    X, y = noisy_moon(300)
    model = NearfieldClassifier(metrics=("euclidean", "manhattan")).fit(X, y)
    assert len(model.candidates_) == len(model.log_scores_) == 2
    np.testing.assert_allclose(model.weights_, [0.375, 0.625])
