"""What every estimator checks of its data, once, before any work starts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from nearfield.estimators._metric import is_named

MIN_POINTS = 3
"""With fewer, no point has two others whose weights could differ."""


_ROUNDING = 1e-8  # of the largest distance


def check_training_data(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
    """Accept features and labels; set ``classes_`` and what scikit-learn knows of the features.

    Returns
    -------
    X : ndarray or csr_matrix, shape (n, n_features)
    labels : ndarray of int, shape (n,)
        The labels as 0..G-1.
    """
    X, y = validate_data(
        estimator, X, y, ensure_min_samples=MIN_POINTS, **array_options(estimator.metric)
    )
    if is_named(estimator.metric, "precomputed") and X.min() < -_ROUNDING * np.abs(X).max():
        raise ValueError(
            f"Negative values in data: expected precomputed distances >= 0; got {X.min():g}. "
            "Give distances, not similarities."
        )
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    check_classes(classes, len(y))
    estimator.classes_ = classes
    return X, labels.astype(np.int64)


def check_further_data(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
    """Accept further labelled points of an estimator that is fitted: features and labels."""
    if is_named(estimator.metric, "precomputed"):
        raise ValueError(
            'Expected features for partial_fit; got metric="precomputed", where the distances '
            "between all points are needed. Use fit."
        )
    X, y = validate_data(estimator, X, y, reset=False, **array_options(estimator.metric))
    classes = estimator.classes_
    labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1).astype(np.int64)
    is_unknown = classes[labels] != y
    if is_unknown.any():
        raise ValueError(
            f"Expected classes that the estimator was fitted to, {classes.tolist()}; got "
            f"{np.unique(np.asarray(y)[is_unknown]).tolist()}. Fit anew with points of all classes."
        )
    return X, labels


def check_classes(classes: NDArray[Any], n_points: int) -> None:
    """Refuse classes that there is nothing to learn from: one alone, or as many as points."""
    if len(classes) < 2:
        raise ValueError(
            f"Expected at least two classes in y; got one class, {classes[0]}. "
            "Supply points of another class."
        )
    if len(classes) == n_points:
        raise ValueError(
            "Expected fewer classes in y than samples; got as many, "
            f"n_samples = n_classes = {n_points}: no point has a fellow to learn from. "
            "Supply more points, or labels that repeat."
        )


def check_new_points(estimator: Any, X: Any) -> Any:
    """Accept features to predict from: the same ones as in training."""
    return validate_data(estimator, X, reset=False, **array_options(estimator.metric))


def check_class_prior(class_prior: ArrayLike, n_classes: int) -> NDArray[np.float64]:
    """Accept class proportions that sum to one, one a class."""
    try:
        checked = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError):
        checked = np.empty(0)
    is_valid = checked.shape == (n_classes,) and (checked >= 0.0).all()
    if not is_valid or abs(checked.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"Expected class_prior of {n_classes} proportions that sum to one, in the order of "
            f"classes_; got {class_prior!r}. Give one for each class."
        )
    return checked


def array_options(metric: Any) -> dict[str, Any]:
    """Say what scikit-learn is to ask of features that a metric reads."""
    return {
        "accept_sparse": False if is_named(metric, "precomputed") else "csr",
        "dtype": np.float64,
        "order": "C",  # sums along another order would round otherwise
        "ensure_all_finite": "allow-nan" if is_named(metric, "nan_euclidean") else True,
    }
