"""What every estimator checks of its data, once, before any work starts."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from nearfield.distances import (
    RawColumn,
    TableEncoder,
    as_numbers,
    is_table,
    may_be_codes,
    raw_columns,
)
from nearfield.estimators._metric import is_named, takes_tables

MIN_POINTS = 3
"""With fewer, no point has two others whose weights could differ."""


_ROUNDING = 1e-8  # of the largest distance


def check_training_data(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
    """Accept features and labels; set ``classes_`` and what is known of the features.

    A table with categories or missing values is encoded by ``encoder_``, which is None otherwise.

    Returns
    -------
    X : ndarray or csr_matrix, shape (n, n_features)
    labels : ndarray of int, shape (n,)
        The labels as 0..G-1.
    """
    encoder = None
    _check_is_no_stand_in(X)
    _check_labels_are_known(y)
    if _needs_encoder(estimator, X):
        X, y = validate_data(estimator, X, y, skip_check_array=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        _check_enough(len(y))
        encoder = TableEncoder(estimator.categorical_features)
    else:
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
    if encoder is not None:
        X = encoder.fit_transform(X, labels)
    estimator.classes_ = classes
    estimator.encoder_ = encoder
    is_filled = encoder is None and takes_tables(estimator.metric) and not sp.issparse(X)
    # The mean, by shares: the sum of the values may overflow.
    estimator._fill = (X / len(X)).sum(axis=0) if is_filled else None
    return X, labels.astype(np.int64)


def check_further_data(estimator: Any, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
    """Accept further labelled points of an estimator that is fitted: features and labels."""
    if is_named(estimator.metric, "precomputed"):
        raise ValueError(
            'Expected features for partial_fit; got metric="precomputed", where the distances '
            "between all points are needed. Use fit."
        )
    _check_labels_are_known(y)
    y = column_or_1d(y, warn=True)
    X = check_new_points(estimator, X)
    check_consistent_length(X, y)
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
            f"n_samples = n_classes = {n_points}: no two points share a class. "
            "Supply more points, or labels that repeat."
        )


def check_new_points(estimator: Any, X: Any) -> Any:
    """Accept features to predict from: the same ones as in training, missing values among them."""
    encoder = getattr(estimator, "encoder_", None)
    _check_is_no_stand_in(X)
    if is_table(X) and len(X) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required. "
            "Give at least one row."
        )
    if encoder is not None:
        validate_data(estimator, X, reset=False, skip_check_array=True)
        return encoder.transform(X if hasattr(X, "shape") else np.asarray(X, dtype=object))
    options = array_options(estimator.metric)
    fill = getattr(estimator, "_fill", None)
    if fill is None or sp.issparse(X):
        return validate_data(estimator, X, reset=False, **options)
    if is_table(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        X = np.column_stack([as_numbers(column) for column in raw_columns(X)])
        return np.where(np.isnan(X), fill, X)
    options["ensure_all_finite"] = "allow-nan"
    X = validate_data(estimator, X, reset=False, **options)
    return np.where(np.isnan(X), fill, X) if np.isnan(X).any() else X


def _needs_encoder(estimator: Any, X: Any) -> bool:
    """Tell whether features are a table that holds more than numbers, or has gaps."""
    if not takes_tables(estimator.metric) or sp.issparse(X):
        return False
    chosen = getattr(estimator, "categorical_features", None)
    if chosen is not None and not is_named(chosen, "from_dtype"):
        return True
    if is_table(X):
        return any(_is_more_than_numbers(column, estimator) for column in raw_columns(X))
    array = np.asarray(X)
    if array.ndim != 2 or array.dtype.kind not in "OUSf":
        return False
    try:
        return bool(np.isnan(array.astype(np.float64)).any())
    except (TypeError, ValueError):
        return True


def _is_more_than_numbers(column: RawColumn, estimator: Any) -> bool:
    """Tell whether a column has categories or gaps, or may have codes for one who reads these."""
    if column.kind not in ("number", "boolean") or np.isnan(column.values).any():
        return True
    return getattr(estimator, "_reads_codes", False) and may_be_codes(column)


def _check_is_no_stand_in(X: Any) -> None:
    """Refuse one row without its table, and a query of polars that has not been run."""
    if isinstance(X, pd.Series):
        raise ValueError(
            "Expected 2D array, a table with a row for each sample; got a pandas Series. For one "
            "row of a frame use frame.iloc[[0]]."
        )
    if type(X).__name__ == "LazyFrame":
        raise ValueError("Expected a table; got a LazyFrame, which holds no rows. Call .collect().")


def _check_labels_are_known(y: Any) -> None:
    """Refuse missing labels by their rows, which scikit-learn calls labels of an unknown type."""
    labels = np.asarray(y, dtype=object) if y is not None else np.empty(0)
    is_missing = pd.isna(labels)
    if labels.ndim == 1 and is_missing.any():
        raise ValueError(
            f"Input y contains NaN or None: expected a class for every sample; {is_missing.sum()} "
            f"of {len(labels)} are missing, the first in row {int(is_missing.argmax())}. Leave "
            "these rows out."
        )


def _check_enough(n_points: int) -> None:
    if n_points < MIN_POINTS:
        raise ValueError(
            f"Found array with {n_points} sample(s) while a minimum of {MIN_POINTS} is required."
        )


def array_options(metric: Any) -> dict[str, Any]:
    """Say what scikit-learn is to ask of features that a metric reads."""
    return {
        "accept_sparse": False if is_named(metric, "precomputed") else "csr",
        "dtype": np.float64,
        "order": "C",  # sums along another order would round otherwise
        "ensure_all_finite": "allow-nan" if is_named(metric, "nan_euclidean") else True,
    }


def check_groups(groups: ArrayLike | None, n_points: int, *, has_folds: bool) -> Any:
    """Accept groups of points as 0..n_groups-1, or none; refuse them where there are no folds."""
    if groups is None:
        return None
    if not has_folds:
        raise ValueError(
            'Expected groups with averaging="stacking" and at most 2,000 points, where points are '
            f"held out in folds; got {n_points} points. Fit to one point of each group."
        )
    checked = column_or_1d(groups, warn=True)
    if len(checked) != n_points:
        raise ValueError(
            f"Expected one group for each of {n_points} points; got {len(checked)}. Give as many."
        )
    codes = np.unique(checked, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError("Expected at least two groups; got one. Leave groups out.")
    return codes
