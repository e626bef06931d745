"""Predictions depend continuously on the data, and not on its order or units."""

import numpy as np
import pytest
import scipy.sparse as sp

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_iris

METRICS = ("euclidean", "manhattan", "within", "ard", "discriminant", "quadratic")
TOLERANCE = 1e-4  # of a probability


def _clouds(rng, n_points=45, n_features=3):
    labels = np.arange(n_points) % 3
    return rng.normal(size=(n_points, n_features)) + 1.5 * np.eye(3, n_features)[labels], labels


def _one_hot(rng):
    X, y = _clouds(rng)
    return np.c_[X, np.eye(4)[rng.integers(4, size=len(y))]], y


def _repeated(rng):
    X, y = _clouds(rng)
    return np.c_[X, X[:, :1], X[:, 1] + X[:, 2]], y


def _constant(rng):
    X, y = _clouds(rng)
    return np.c_[X, np.full(len(y), 3.0), np.full(len(y), 0.1)], y


def _rare(rng):
    X, y = _clouds(rng)
    level, near_constant = np.zeros(len(y)), np.full(len(y), 0.1)
    level[4], near_constant[7] = 1.0, 0.2
    return np.c_[X, level, near_constant], y


def _cancelling(rng):
    X, y = _clouds(rng)
    level = np.zeros(len(y))
    level[:2] = 1.0, -1.0  # zero on average, and constant where both are held out
    return np.c_[X, level], y


def _pairs(rng):
    X, y = _clouds(rng, n_points=44)
    return X, np.where(np.arange(44) >= 40, 3 + np.arange(44) % 2, y)


def _collinear(rng):
    X, y = _clouds(rng)
    X = X - np.eye(3)[y] * 1.5
    X -= np.array([X[y == g].mean(axis=0) for g in range(3)])[y]
    X[:, 0] += 1.5 * y  # class means on a line
    return X, y


def _wide(rng):
    return _clouds(rng, n_points=24, n_features=40)


SHAPES = (
    _clouds,
    _one_hot,
    _repeated,
    _constant,
    _rare,
    _cancelling,
    _pairs,
    _collinear,
    _wide,
)


def _model(metric):
    if metric == "average":
        return NearfieldClassifier(random_state=0)
    return DistanceNeighborsClassifier(metric=metric, inference="pseudolikelihood")


def _predict(metric, X, y, rows=None):
    new = X + 0.3 * np.abs(X).mean(axis=0) * np.resize([1.0, -1.0], X.shape[1])
    return _model(metric).fit(X, y).predict_proba(new if rows is None else new[rows])


@pytest.mark.parametrize("metric", [*METRICS, "average"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__[1:])
@pytest.mark.parametrize("seed", [0, 1])
def test_noise_in_the_twelfth_digit_changes_no_probability(request, metric, shape, seed):
    if (metric, shape, seed) == ("average", _one_hot, 1):
        reason = "1.04e-4: the steps of L-BFGS for metric ard follow rounding errors"
        request.applymarker(pytest.mark.xfail(reason=reason, strict=False))  # rounding decides
    rng = np.random.default_rng(seed)
    X, y = shape(rng)
    noisy = X + 1e-12 * rng.normal(size=X.shape)
    np.testing.assert_allclose(
        _predict(metric, noisy, y), _predict(metric, X, y), atol=TOLERANCE, rtol=0.0
    )


@pytest.mark.parametrize("metric", ["within", "discriminant", "average"])
def test_iris_with_indicators_of_categories_is_stable(metric):
    X, y = (part[::3] for part in load_iris(return_X_y=True))
    X = np.c_[X, np.eye(5)[np.random.default_rng(0).integers(5, size=len(y))]]
    noisy = X + 1e-12 * np.random.default_rng(1).normal(size=X.shape)
    np.testing.assert_allclose(
        _predict(metric, noisy, y), _predict(metric, X, y), atol=TOLERANCE, rtol=0.0
    )


@pytest.mark.parametrize("metric", [*METRICS, "average"])
@pytest.mark.parametrize("shape", [_clouds, _one_hot, _repeated, _rare], ids=lambda s: s.__name__)
def test_order_and_units_of_features_do_not_matter(metric, shape):
    rng = np.random.default_rng(3)
    X, y = shape(rng)
    expected = _predict(metric, X, y)
    new = X + 0.3 * np.abs(X).mean(axis=0) * np.resize([1.0, -1.0], X.shape[1])
    order, units = rng.permutation(X.shape[1]), 10.0 ** rng.uniform(-6, 6, size=X.shape[1])
    for change in (lambda Z: Z[:, order], lambda Z: Z * units):
        found = _model(metric).fit(change(X), y).predict_proba(change(new))
        np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0.0)


@pytest.mark.parametrize("metric", METRICS)
def test_order_of_points_does_not_matter(metric):
    rng = np.random.default_rng(4)
    X, y = _one_hot(rng)
    order = rng.permutation(len(y))
    found = _model(metric).fit(X[order], y[order]).predict_proba(X + 0.1)
    expected = _model(metric).fit(X, y).predict_proba(X + 0.1)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=0.0)


@pytest.mark.parametrize(
    "model",
    [
        DistanceNeighborsClassifier(inference="pseudolikelihood"),
        ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"),
        KNeighborsClassifierCV(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_sparse_features_and_directions_are_not_standardized(model):
    rng = np.random.default_rng(5)
    X = sp.random(60, 30, density=0.2, random_state=6, format="csr")
    y = rng.integers(2, size=60)
    as_is = model.set_params(standardize=False, metric="euclidean").fit(X, y).predict_proba(X)
    found = model.set_params(standardize=True).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, as_is)
    dense = X.toarray() + 0.1
    for metric in ("cosine", "correlation"):
        as_is = (
            model.set_params(standardize=False, metric=metric).fit(dense, y).predict_proba(dense)
        )
        found = model.set_params(standardize=True).fit(dense, y).predict_proba(dense)
        np.testing.assert_array_equal(found, as_is)
