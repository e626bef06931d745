"""pk-nn of many points, predicted from near boxes, is what all distances predict."""

import pickle

import numpy as np
import pytest
from scipy import stats

import nearfield
from nearfield import ProbabilisticKNeighborsClassifier
from nearfield.estimators import _near, _settings
from nearfield.near import list_fit
from nearfield.near.box_index import BoxIndex
from nearfield.near.list_predictor import BoxPredictor, ListPredictor

ROUNDING = 1e-9
N_POINTS = 1_100  # two levels above the nodes whose points are measured

METRICS = {
    "euclidean": {},
    "manhattan": {"metric": "manhattan"},
    "learned": {"metric": "within"},
}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Take 200 points for many."""
    monkeypatch.setattr(_near, "MAX_DENSE_AUTOMATIC", 200)
    monkeypatch.setattr(_settings, "MAX_DENSE_POINTS", 200)


def make_points(shape, n_points, rng):
    if shape == "ties":
        return rng.integers(5, size=(n_points, 3)).astype(np.float64)
    if shape == "duplicates":  # more of them in one place than any k
        points = rng.normal(size=(n_points, 3))
        points[rng.random(n_points) < 0.4] = 0.0
        return points
    if shape == "clusters":  # of very different widths, far from each other
        cluster = rng.integers(3, size=n_points)
        widths, centres = np.array([0.01, 1.0, 30.0]), np.array([0.0, 5.0, -400.0])
        return centres[cluster, None] + widths[cluster, None] * rng.normal(size=(n_points, 4))
    if shape == "heavy tails":
        return rng.standard_t(1, size=(n_points, 3))
    if shape == "far from zero":
        return 1e8 + rng.normal(size=(n_points, 3))
    return rng.normal(size=(n_points, {"one feature": 1, "40 features": 40}[shape]))


SHAPES = ["ties", "duplicates", "clusters", "heavy tails", "far from zero", "one feature"]
SHAPES = [*SHAPES, "40 features"]


def problem(shape):
    """Make training points, labels, and new points: others, some of the former, and far ones."""
    rng = np.random.default_rng(5)
    points = make_points(shape, N_POINTS + 60, rng)
    X, others = points[:N_POINTS], points[N_POINTS:]
    rank = stats.rankdata(X[:, 0] + 0.3 * X.std(axis=0)[0] * rng.normal(size=N_POINTS))
    far = X.mean(axis=0) + np.array([[30.0], [-1e6]]) * X.std(axis=0)
    return X, (3 * rank / (N_POINTS + 1)).astype(int), np.concatenate([others, X[:20], far])


def fitted(shape, neighborhood="symmetric", **settings):
    X, y, new = problem(shape)
    settings = {"standardize": False, "prior_k": stats.randint(1, 41), **settings}
    model = ProbabilisticKNeighborsClassifier(neighborhood, random_state=0, **settings).fit(X, y)
    assert isinstance(model._predictor, BoxPredictor)
    return model, new


def by_all_distances(model):
    return ListPredictor(model.posterior_, model.family_, model.labels_, model.predictive)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("neighborhood", ["symmetric", "directed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_near_boxes_predict_what_all_distances_predict(shape, neighborhood, metric):
    model, new = fitted(shape, neighborhood, **METRICS[metric])
    distances, dense = model.metric_space_.distances_to(new), by_all_distances(model)
    expected = dense.probabilities(distances)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=ROUNDING)
    np.testing.assert_allclose(model.outlier_score(new), dense.outlier_score(distances))
    for bound, expected in zip(
        model.predict_proba_interval(new), dense.interval(distances), strict=True
    ):
        np.testing.assert_allclose(bound, expected, atol=ROUNDING)


@pytest.mark.parametrize("settings", [{"predictive": "printed"}, {"external_field": "fitted"}])
def test_they_do_so_with_the_first_term_alone_and_with_intercepts(settings):
    model, new = fitted("heavy tails", **settings)
    expected = by_all_distances(model).probabilities(model.metric_space_.distances_to(new))
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=ROUNDING)
    model.set_params(predictive="joint")
    expected = by_all_distances(model).probabilities(model.metric_space_.distances_to(new))
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=ROUNDING)


@pytest.mark.parametrize("shape", ["ties", "clusters", "heavy tails", "40 features"])
def test_bounds_a_tenth_too_tight_would_be_noticed(shape, monkeypatch):
    model, new = fitted(shape)
    expected = model.predict_proba(new)
    plain = BoxIndex.bounds_within
    monkeypatch.setattr(
        BoxIndex, "bounds_within", lambda index, reaches: plain(index, 0.9 * reaches)
    )
    model._predictor = model._make_predictor()
    assert np.abs(model.predict_proba(new) - expected).max() > 1e-3


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_bounds_of_boxes_hold_those_of_their_points(shape, power):
    points = problem(shape)[0]
    index = BoxIndex.of(points, power=power)
    reaches = np.random.default_rng(0).random(len(points))
    box_bounds, point_bounds = index.bounds_within(reaches)
    exact = reaches[index.order] ** power
    assert (point_bounds[: len(points)] >= exact).all()
    first_level = box_bounds[: 8 * index.tree.sizes[1]][: index.tree.sizes[0]]
    np.testing.assert_array_equal(first_level, point_bounds.reshape(-1, 8).max(axis=1))
    assert box_bounds[-8:].max() == point_bounds.max()


def test_the_number_of_jobs_changes_nothing():
    model, new = fitted("clusters")
    expected = model.predict_proba(np.tile(new, (20, 1)))
    model.set_params(n_jobs=2)
    np.testing.assert_array_equal(model.predict_proba(np.tile(new, (20, 1))), expected)


def test_models_are_stored_without_their_index(tmp_path):
    model, new = fitted("ties")
    expected = model.predict_proba(new)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(new), expected)
    nearfield.save(model, tmp_path / "model.skops")
    loaded = nearfield.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(new), expected)
    np.testing.assert_array_equal(loaded.outlier_score(new), model.outlier_score(new))


def test_points_too_far_for_numbers_are_refused():
    model, _ = fitted("one feature")
    assert np.isfinite(model.predict_proba(np.full((1, 1), 1e150))).all()
    with pytest.raises(ValueError, match="Expected finite distances"):
        model.predict_proba(np.full((1, 1), 1e200))


def test_other_metrics_measure_all_distances(monkeypatch):
    monkeypatch.setattr(list_fit, "_LEAST_K", 512)
    X, y, new = problem("one feature")
    options = {"standardize": False, "random_state": 0, "prior_k": stats.randint(1, 20)}
    model = ProbabilisticKNeighborsClassifier(metric="chebyshev", **options).fit(X, y)
    assert not model._predictor.takes_points
    expected = ProbabilisticKNeighborsClassifier(**options).fit(X, y).predict_proba(new)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-6)
