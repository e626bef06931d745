"""The near field through the estimator: agreement with dense, errors, engines, persistence."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from shapes import SHAPES, imbalanced, uniform
from sklearn.exceptions import ConvergenceWarning

import nearfield
from nearfield import DistanceNeighborsClassifier, ProbabilisticKNeighborsClassifier
from nearfield.distances.neighbors import NeighborIndex
from nearfield.estimators import _near
from nearfield.inference import Exchange, Posterior, Pseudolikelihood
from nearfield.near import NearConditionals, NearField, NearPredictor, drawn
from nearfield.near import cells as cells_module
from nearfield.near import field as field_module
from nearfield.near import fit as fit_module
from nearfield.near.fit import conditionals_at
from nearfield.near.sparse import SparseFamily

PSEUDO = {"inference": "pseudolikelihood", "random_state": 0}


def split(shape, n_training=400):
    X, y = shape(560)
    return X[:n_training], y[:n_training], X[n_training:], y[n_training:]


@pytest.fixture
def far_by_sample(monkeypatch):
    """Make few points many: far ones, and normalisers, are estimates."""
    monkeypatch.setattr(drawn, "MAX_ALL_REFERENCES", 100)
    monkeypatch.setattr(drawn, "N_REFERENCES", 160)
    monkeypatch.setattr(cells_module, "MAX_EXACT", 100)
    monkeypatch.setattr("nearfield.near.error.MAX_EXACT", 100)
    monkeypatch.setattr(cells_module, "N_WHOLE", 128)
    monkeypatch.setattr(cells_module, "N_SEEN", 128)
    monkeypatch.setattr(cells_module, "_POINTS_A_CELL", 16)


@pytest.mark.parametrize("shape", SHAPES)
def test_probabilities_agree_with_dense(shape):
    X, y, new, _ = split(shape)
    dense = DistanceNeighborsClassifier(**PSEUDO).fit(X, y)
    near = DistanceNeighborsClassifier(n_neighbors=32, **PSEUDO).fit(X, y)
    assert isinstance(near.family_, NearField)
    gaps = np.abs(dense.predict_proba(new) - near.predict_proba(new)).max(axis=1)
    assert np.mean(gaps < 0.01) >= 0.99
    assert near.neighborhood_error_ < 0.001
    assert dense.neighborhood_error_ == 0.0


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "exponential"},
        {"metric": "manhattan"},
        {"metric": "chebyshev"},
        {"metric": "within"},
        {"predictive": "printed"},
        {"external_field": "fitted"},
    ],
    ids=str,
)
def test_every_kind_of_model_agrees_with_dense(settings):
    X, y, new, _ = split(imbalanced)
    dense = DistanceNeighborsClassifier(**settings, **PSEUDO).fit(X, y)
    near = DistanceNeighborsClassifier(n_neighbors=32, **settings, **PSEUDO).fit(X, y)
    # With fitted intercepts differences of 0.010 were seen; their cause is not known.
    tolerance = 0.02 if "external_field" in settings else 0.005
    gaps = np.abs(dense.predict_proba(new) - near.predict_proba(new))
    assert gaps.max() < tolerance
    for ours, theirs in zip(
        near.predict_proba_interval(new), dense.predict_proba_interval(new), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=0.05)
    correlation = np.corrcoef(near.outlier_score(new), dense.outlier_score(new))[0, 1]
    assert correlation > 0.999


def test_the_radius_kernel_is_near_to_dense():
    X, y, new, _ = split(uniform, 250)
    dense = DistanceNeighborsClassifier("radius", **PSEUDO).fit(X, y)
    near = DistanceNeighborsClassifier("radius", n_neighbors=32, **PSEUDO).fit(X, y)
    gaps = np.abs(dense.predict_proba(new) - near.predict_proba(new)).max(axis=1)
    assert np.median(gaps) < 0.01
    assert np.corrcoef(near.outlier_score(new), dense.outlier_score(new))[0, 1] > 0.9
    lower, upper = near.predict_proba_interval(new)
    assert (lower <= upper).all()


@pytest.mark.usefixtures("far_by_sample")
def test_more_neighbours_are_taken_until_the_error_is_small(monkeypatch):
    X, y, _, _ = split(uniform)
    monkeypatch.setattr(_near, "MAX_DENSE_AUTOMATIC", 300)
    monkeypatch.setattr(_near, "CHOICES", (8, 32, 128))
    monkeypatch.setattr(fit_module, "CHOICES", (8, 32, 128))
    chosen, errors = [], []
    for goal in (1.0, 1e-9):
        monkeypatch.setattr(fit_module, "GOAL", goal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = DistanceNeighborsClassifier(random_state=0).fit(X, y)
        assert model.inference_ == "pseudolikelihood"
        chosen.append(model.family_.n_neighbors)
        errors.append(model.neighborhood_error_)
    assert chosen == [8, 128]
    assert errors[1] < errors[0]


@pytest.mark.usefixtures("far_by_sample")
def test_a_large_error_is_told(monkeypatch):
    X, y, _, _ = split(uniform)
    monkeypatch.setattr(_near, "_SMALL_ERROR", 1e-6)
    with pytest.warns(ConvergenceWarning, match=r"n_neighbors=4 one in a hundred may be off by"):
        DistanceNeighborsClassifier(n_neighbors=4, **PSEUDO).fit(X, y)


@pytest.mark.usefixtures("far_by_sample")
def test_other_metrics_see_far_points_through_references(monkeypatch):
    monkeypatch.setattr("nearfield.near._rows.MAX_EXACT", 100)
    monkeypatch.setattr("nearfield.near._rows.N_NEAR", 64)
    X, y, new, _ = split(uniform)
    dense = DistanceNeighborsClassifier(metric="chebyshev", **PSEUDO).fit(X, y)
    near = DistanceNeighborsClassifier(metric="chebyshev", n_neighbors=64, **PSEUDO).fit(X, y)
    gaps = np.abs(dense.predict_proba(new) - near.predict_proba(new)).max(axis=1)
    assert np.median(gaps) < 0.01


def test_few_conditionals_make_a_wider_posterior(monkeypatch):
    X, y, _, _ = split(uniform)
    sds = []
    monkeypatch.setattr(fit_module, "MAX_ALL_SITES", 10)
    for n_sites in (400, 100):
        monkeypatch.setattr(fit_module, "N_SITES", n_sites)
        model = DistanceNeighborsClassifier(n_neighbors=32, **PSEUDO).fit(X, y)
        sds.append(model.posterior_.summary()["sd"])
    ratio = sds[1] / sds[0]
    assert (ratio > 1.2).all()  # about two: a quarter of the sites know half as much
    assert (ratio < 4.0).all()


def test_one_seed_gives_one_answer_for_any_number_of_threads():
    X, y, new, _ = split(imbalanced)
    probabilities = [
        DistanceNeighborsClassifier(
            n_neighbors=16, n_jobs=n_jobs, inference="pseudolikelihood", random_state=3
        )
        .fit(X, y)
        .predict_proba(new)
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*probabilities)


def test_a_saved_near_field_predicts_the_same_to_the_last_bit(tmp_path):
    X, y, new, _ = split(uniform)
    model = DistanceNeighborsClassifier(n_neighbors=16, **PSEUDO).fit(X, y)
    nearfield.save(model, tmp_path / "model.skops")
    again = nearfield.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(again.outlier_score(new), model.outlier_score(new))
    assert again.neighborhood_error_ == model.neighborhood_error_


def test_sparse_points_stay_sparse():
    X, y, new, _ = split(uniform)
    X, new = np.where(X > 0.4, X, 0.0), np.where(new > 0.4, new, 0.0)
    dense = DistanceNeighborsClassifier(**PSEUDO).fit(sp.csr_matrix(X), y)
    near = DistanceNeighborsClassifier(n_neighbors=16, **PSEUDO).fit(sp.csr_matrix(X), y)
    assert sp.issparse(near.family_.points)
    expected = dense.predict_proba(sp.csr_matrix(new))
    np.testing.assert_allclose(near.predict_proba(sp.csr_matrix(new)), expected, atol=5e-3)
    lower, upper = near.predict_proba_interval(sp.csr_matrix(new))
    assert lower.shape == upper.shape == expected.shape


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "radius"])
def test_the_sparse_field_of_all_neighbours_is_the_dense_one(kernel):
    X, y, _, _ = split(uniform, 60)
    dense = DistanceNeighborsClassifier(kernel, **PSEUDO).fit(X, y)
    points = dense.metric_space_.points
    near_field = NearField.of(points, dense.labels_, 4, kernel, n_neighbors=59, seed=0)
    family = SparseFamily.of(near_field)
    for sigma in (0.3, 1.0, 4.0):
        expected = dense.family_.at(sigma).coupling
        np.testing.assert_allclose(family.at(sigma).coupling.toarray(), expected, atol=1e-12)
        expected = dense.family_.support(sigma, dense.labels_)
        np.testing.assert_allclose(family.support(sigma, dense.labels_), expected, atol=1e-12)
    assert (len(family.scale_steps) > 0) == (kernel == "radius")


@pytest.mark.parametrize(
    "inference",
    ["path", Exchange(n_draws=40, n_burn=40, n_sweeps=5, n_chains=1)],
    ids=["path", "exchange"],
)
def test_engines_for_joints_work_on_the_sparse_field(inference):
    X, y, new, new_y = split(imbalanced, 80)
    model = DistanceNeighborsClassifier(n_neighbors=8, inference=inference, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 40 draws are few
        model.fit(X, y)
    assert isinstance(model.family_, NearField)
    assert model.inference_ == ("path" if inference == "path" else "exchange")
    assert model.score(new, new_y) > 0.8
    assert 0.0 <= model.neighborhood_error_ < 0.01


def test_settings_of_pseudolikelihood_are_used():
    X, y, _, _ = split(uniform, 200)
    plain, finer = (
        DistanceNeighborsClassifier(
            n_neighbors=16, inference=Pseudolikelihood(density=density), random_state=0
        ).fit(X, y)
        for density in (1.0, 2.0)
    )
    assert plain.inference_ == finer.inference_ == "pseudolikelihood"
    assert finer.posterior_.beta.size > plain.posterior_.beta.size


def test_above_a_few_thousand_points_the_near_field_takes_over(monkeypatch):
    monkeypatch.setattr(_near, "MAX_DENSE_AUTOMATIC", 199)
    X, y, _, _ = split(uniform, 200)
    assert isinstance(DistanceNeighborsClassifier(random_state=0).fit(X, y).family_, NearField)
    path = DistanceNeighborsClassifier(inference="path", random_state=0).fit(X, y)
    assert not isinstance(path.family_, NearField)
    distances = path.family_.distances
    precomputed = DistanceNeighborsClassifier(metric="precomputed", **PSEUDO).fit(distances, y)
    assert not isinstance(precomputed.family_, NearField)


def test_a_metric_of_many_points_is_learned_from_some(monkeypatch):
    X, y, new, new_y = split(imbalanced)
    monkeypatch.setattr("nearfield.estimators._metric._MAX_LEARNING_POINTS", 300)
    monkeypatch.setattr("nearfield.estimators._metric._N_LEARNING_POINTS", 200)
    model = DistanceNeighborsClassifier(metric="ard", n_neighbors=16, **PSEUDO).fit(X, y)
    assert model.metric_space_.points.shape[0] == 400
    assert model.score(new, new_y) > 0.85


@pytest.mark.parametrize("n_neighbors", [0, -3, 2.5, "64", True])
def test_a_number_of_neighbours_that_is_none_is_refused(n_neighbors):
    X, y, _, _ = split(uniform, 60)
    with pytest.raises(ValueError, match="Expected n_neighbors as a whole number >= 1, or None"):
        DistanceNeighborsClassifier(n_neighbors=n_neighbors).fit(X, y)


def test_more_neighbours_than_points_are_all_of_them():
    X, y, _, _ = split(uniform, 60)
    model = DistanceNeighborsClassifier(n_neighbors=10_000, **PSEUDO).fit(X, y)
    assert model.family_.n_neighbors == 59


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "fast"}, "Expected search among"),
        ({"kernel": "cubic"}, "Expected a kernel among"),
        ({"metric": "precomputed"}, 'Expected n_neighbors=None with metric="precomputed"'),
        ({"search": "approximate", "metric": "manhattan"}, "Expected Euclidean distances between"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    X, y, _, _ = split(uniform, 60)
    if settings.get("metric") == "precomputed":
        X = np.abs(X[:, :1] - X[:, :1].T)
    with pytest.raises(ValueError, match=message):
        DistanceNeighborsClassifier(n_neighbors=8, **settings).fit(X, y)


def test_joint_draws_are_refused_with_a_way_out():
    X, y, new, _ = split(uniform, 60)
    model = DistanceNeighborsClassifier(n_neighbors=8, **PSEUDO).fit(X, y)
    with pytest.raises(ValueError, match="Use predict_proba, or fit on a subset"):
        model.predict_joint(new)


def test_pk_nn_says_what_to_use_instead(monkeypatch):
    X, y, _, _ = split(uniform, 60)
    with pytest.raises(ValueError, match="use DistanceNeighborsClassifier"):
        ProbabilisticKNeighborsClassifier(n_neighbors=8).fit(X, y)
    monkeypatch.setattr("nearfield.estimators._settings.MAX_DENSE_POINTS", 50)
    with pytest.raises(ValueError, match="Use DistanceNeighborsClassifier with"):
        ProbabilisticKNeighborsClassifier().fit(X, y)


def test_conditionals_of_some_sites_are_no_field():
    X, y, _, _ = split(uniform, 60)
    near_field = NearField.of(X, y.astype(np.int64), 4, "radius", n_neighbors=8, seed=0)
    conditionals = conditionals_at(near_field, 20)
    assert isinstance(conditionals, NearConditionals)
    assert conditionals.n_points == 20
    assert conditionals.scale_steps.size == 0
    with pytest.raises(ValueError, match="Use pseudolikelihood"):
        conditionals.at(1.0)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "radius"])
def test_identical_points_are_a_uniform_field(kernel):
    X, y = np.ones((40, 2)), np.arange(40) % 2
    near_field = NearField.of(X, y, 2, kernel, n_neighbors=5, seed=0)
    support = conditionals_at(near_field, 40).support(1.0, y)
    np.testing.assert_allclose(support.sum(axis=1), 2.0, atol=1e-5)


def test_an_approximate_index_finds_nearly_all():
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).normal(size=(5_000, 6))
    _, expected = NeighborIndex.of(X).query(X[:200], 20)
    done = []
    _, found = NeighborIndex.of(X, search="approximate").query(X[:200], 20, advance=done.append)
    recall = np.mean(
        [len(np.intersect1d(*pair)) / 20 for pair in zip(expected, found, strict=True)]
    )
    assert recall > 0.95
    assert sum(done) == 200


def test_an_approximate_index_fills_lists_that_are_short():
    pytest.importorskip("faiss")
    X = np.random.default_rng(0).normal(size=(4_000, 2))
    _, found = NeighborIndex.of(X, search="approximate").query(X[:5], 3_900)
    assert (found >= 0).all()
    assert all(len(np.unique(row)) == 3_900 for row in found)


def test_approximate_search_predicts_about_the_same():
    pytest.importorskip("faiss")
    X, y, new, _ = split(imbalanced)
    exact, approximate = (
        DistanceNeighborsClassifier(n_neighbors=32, search=search, **PSEUDO).fit(X, y)
        for search in ("exact", "approximate")
    )
    gaps = np.abs(exact.predict_proba(new) - approximate.predict_proba(new))
    assert gaps.max() < 0.01


def test_without_faiss_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    X, y, _, _ = split(uniform, 60)
    with pytest.raises(ModuleNotFoundError, match=r"pip install nearfield\[ann\]"):
        DistanceNeighborsClassifier(n_neighbors=8, search="approximate").fit(X, y)


def test_a_radius_posterior_of_many_draws_is_taken_at_some_of_them():
    X, y, new, _ = split(uniform, 100)
    near_field = NearField.of(X, y.astype(np.int64), 4, "radius", n_neighbors=16, seed=0)
    rng = np.random.default_rng(0)
    betas, sigmas = rng.normal(3.0, 0.2, 400), rng.uniform(0.2, 0.4, 400)
    by_draw = [
        softmax(
            beta * near_field.support(near_field.look(new[:5]), np.array([sigma]))[:, 0], axis=1
        )
        for beta, sigma in zip(betas, sigmas, strict=True)
    ]
    posterior = Posterior.from_nodes(betas, sigmas, np.full(400, 1 / 400), "sigma")
    found = NearPredictor(posterior, near_field).probabilities(new[:5])
    # 512 places among 400 draws: some count twice, one or none.
    np.testing.assert_allclose(found, np.mean(by_draw, axis=0), atol=0.01)


def test_scales_are_found_where_all_near_points_are_in_one_place():
    low, high = field_module.usual_scales("gaussian", np.empty(0), 2.0)
    assert (low, high) == pytest.approx((2e-4, 10.0))


@pytest.mark.parametrize(
    ("errors", "n_neighbors"),
    [
        ([0.004, 0.003, 0.002, 0.001], 64),
        ([0.02, 0.004, 0.003, 0.002], 128),
        ([0.04, 0.03, 0.02, 0.01], 512),
        ([0.00705, 0.0070, 0.0071, 0.0069], 64),
        ([0.09, 0.0080, 0.0079, 0.0078], 128),
    ],
)
def test_neighbours_double_as_long_as_it_helps(errors, n_neighbors):
    assert fit_module.first_good(errors) == n_neighbors
