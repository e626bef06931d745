"""Predictions of samples that a model has not seen, with the training points behind them."""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from nearfield.estimators import split_pipeline
from nearfield.report.results import Floats, Integers

N_NEIGHBORS = 8
_N_INFLUENCES = 2**23  # of samples on training points, at once


class Predictions(NamedTuple):
    """What a method says of samples.

    Attributes
    ----------
    probabilities : ndarray, shape (n, n_classes)
    p_values : ndarray, shape (n, n_classes), or None
        Of membership in each class against all training points, if the method has them.
    neighbors : ndarray of int, shape (n, 8), or None
        The training points with the largest influence; -1 where there are fewer.
    influence : ndarray, shape (n, 8), or None
        What these add to the log odds of their classes.
    seconds : float
    """

    probabilities: Floats
    p_values: Floats | None
    neighbors: Integers | None
    influence: Floats | None
    seconds: float


def cross_validate(
    methods: Mapping[str, Any],
    features: pd.DataFrame,
    labels: Integers,
    folds: Integers,
    *,
    fit_options: Callable[[Any, NDArray[np.bool_]], dict[str, Any]] = lambda *_: {},
    n_jobs: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, Predictions]:
    """Predict every sample by models of the other folds.

    Parameters
    ----------
    methods : mapping of str to estimator
        Not fitted. The first one also gives neighbours and p-values, if it has them.
    features : DataFrame, shape (n, n_features)
    labels : ndarray of int, shape (n,)
        0..G-1.
    folds : ndarray of int, shape (n,)
        In which fold each sample is tested: 0, 1, ...
    fit_options : callable
        Given an estimator and the samples it is fitted to, as a mask, further arguments of `fit`.
    n_jobs : int, optional
        Processes.
    advance : callable
        Called after each fold of each method.

    Returns
    -------
    predictions : dict of str to Predictions
        Neighbours are rows of `features`.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield import KNeighborsClassifierCV
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import cross_validate
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> folds = np.arange(len(y)) % 5
    >>> predictions = cross_validate({"k-nn": KNeighborsClassifierCV()}, X, y.to_numpy(), folds)
    >>> predictions["k-nn"].probabilities.shape
    (150, 3)
    """
    from joblib import Parallel, delayed

    first = next(iter(methods))
    tests = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    parts = Parallel(n_jobs, return_as="generator")(
        delayed(_predict_fold)(
            method, features, labels, test, fit_options, is_explained=name == first
        )
        for name, method in methods.items()
        for test in tests
    )
    order = np.argsort(np.concatenate(tests), kind="stable")
    results = {}
    for name in methods:
        own = []
        for _ in tests:
            own.append(next(parts))
            advance()
        results[name] = _joined(own, order)
    return results


def predict_new(fitted: Any, features: Any, *, is_explained: bool = True) -> Predictions:
    """Predict new samples by a fitted classifier or pipeline.

    Neighbours are numbers of training points.

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import predict_new
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[::2], y[::2])
    >>> new = predict_new(model, X[1::2])
    >>> new.probabilities.shape, new.p_values.shape, new.neighbors.shape
    ((75, 3), (75, 3), (75, 8))
    """
    started = time.perf_counter()
    final, X = split_pipeline(fitted, features)
    probabilities = final.predict_proba(X)
    seconds = time.perf_counter() - started
    p_values = neighbors = influence = None
    if is_explained and hasattr(final, "membership"):
        p_values = final.membership(X, class_conditional=False)
    if is_explained and hasattr(final, "influence"):
        neighbors, influence = _leading_neighbors(final, X)
    return Predictions(probabilities, p_values, neighbors, influence, seconds)


def _predict_fold(
    method: Any,
    features: pd.DataFrame,
    labels: Integers,
    test: Integers,
    fit_options: Any,
    *,
    is_explained: bool,
) -> Predictions:
    is_train = np.ones(len(labels), dtype=bool)
    is_train[test] = False
    started = time.perf_counter()
    fitted = clone(method)
    with warnings.catch_warnings():
        # A fold may leave one group of a small class, of which there are two or more in all.
        warnings.filterwarnings("ignore", "Expected points of every class in two groups")
        fitted.fit(features[is_train], labels[is_train], **fit_options(fitted, is_train))
    seconds = time.perf_counter() - started
    part = predict_new(fitted, features.iloc[test], is_explained=is_explained)
    rows = np.flatnonzero(is_train)
    neighbors = part.neighbors
    if neighbors is not None:
        neighbors = np.where(neighbors < 0, -1, rows[neighbors])
    # Where groups are few, a class may be missing among the training rows.
    n_classes = int(labels.max()) + 1
    probabilities = _in_all_classes(part.probabilities, fitted.classes_, n_classes)
    p_values = part.p_values
    if p_values is not None:
        p_values = _in_all_classes(p_values, fitted.classes_, n_classes)
    return Predictions(probabilities, p_values, neighbors, part.influence, seconds + part.seconds)


def _in_all_classes(values: Floats, classes: Integers, n_classes: int) -> Floats:
    whole = np.zeros((len(values), n_classes))
    whole[:, classes] = values
    return whole


def _leading_neighbors(final: Any, X: Any) -> tuple[Integers, Floats]:
    """Find the training points with the largest influence, a part of the samples at a time."""
    n_training = len(final.labels_)
    size = max(1, _N_INFLUENCES // n_training)
    parts = []
    for start in range(0, X.shape[0], size):
        rows_at_once = slice(start, start + size)
        influence = final.influence(X.iloc[rows_at_once] if hasattr(X, "iloc") else X[rows_at_once])
        shape = (len(influence), N_NEIGHBORS)
        order = np.argsort(-np.abs(influence), axis=1, kind="stable")[:, :N_NEIGHBORS]
        leading = np.take_along_axis(influence, order, axis=1)
        rows, values = np.full(shape, -1, dtype=np.int64), np.zeros(shape)
        rows[:, : order.shape[1]] = np.where(leading != 0.0, order, -1)
        values[:, : order.shape[1]] = leading
        parts.append((rows, values))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _joined(parts: list[Predictions], order: Integers) -> Predictions:
    """Put the folds of one method together, in the order of the samples."""

    def whole(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)[order]

    seconds = sum(part.seconds for part in parts)
    columns = (whole(name) for name in Predictions._fields[:-1])
    return Predictions._make((*columns, seconds))
