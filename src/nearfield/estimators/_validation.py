"""What every estimator checks of its data, once, before any work starts."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, validate_data

from nearfield.distances import (
    RawColumn,
    TableEncoder,
    as_numbers,
    is_missing,
    is_table,
    may_be_codes,
    raw_columns,
)
from nearfield.estimators._metric import is_named, takes_tables

MIN_POINTS = 3
"""With fewer, no point has two others whose weights could differ."""


_ROUNDING = 1e-8  # of the largest distance
_MAX_DENSE_VALUES = 2**28


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
        options = array_options(estimator.metric)
        with _sums_may_overflow():
            X, y = validate_data(estimator, X, y, ensure_min_samples=MIN_POINTS, **options)
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


class WeightedData(NamedTuple):
    """Training points that were checked, without those of weight zero."""

    X: Any  # ndarray or csr_matrix, shape (n, n_features)
    labels: NDArray[np.int64]  # shape (n,)
    multiplicities: NDArray[np.float64] | None  # shape (n,); None where all weigh one
    kept: NDArray[np.intp] | None  # shape (n,): the rows that are left; None for all


def check_weighted_data(estimator: Any, X: Any, y: Any, sample_weight: Any) -> WeightedData:
    """Accept features, labels and weights, as `check_training_data`; apply `class_weight`."""
    X, y, weights, kept = _with_weight(X, y, sample_weight)
    if kept is not None and is_named(estimator.metric, "precomputed"):
        raise ValueError(
            'Expected sample_weight > 0 with metric="precomputed", where new points have '
            "distances to all training points; got weights of zero. Leave these points out of X "
            "and y."
        )
    X, labels = check_training_data(estimator, X, y)
    weights = apply_class_weight(estimator.class_weight, estimator.classes_, labels, weights)
    is_one = weights is None or bool((weights == 1.0).all())
    return WeightedData(X, labels, None if is_one else weights, kept)


def apply_class_weight(
    class_weight: Any,
    classes: NDArray[Any],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Multiply the weights of points, if any, by those of their classes.

    ``"balanced"`` makes the classes weigh the same, and all points together as much as before.
    """
    if class_weight is None:
        return weights
    weights = np.ones(len(labels)) if weights is None else weights
    totals = np.bincount(labels, weights)
    if is_named(class_weight, "balanced"):
        factors = totals.sum() / (len(classes) * totals)
    elif isinstance(class_weight, Mapping):
        names = classes.tolist()
        unknown = [name for name in class_weight if name not in names]
        factors = np.array([class_weight.get(name, 1.0) for name in names], dtype=np.float64)
        if unknown or not ((factors > 0.0) & (factors < np.inf)).all():
            raise ValueError(
                f"Expected class_weight with finite numbers above zero for classes among {names}; "
                f"got {class_weight!r}. Name the classes as in y, and leave out the points of a "
                "class that is not to count."
            )
    else:
        raise ValueError(
            'Expected class_weight as None, "balanced" or a dict of classes and weights; got '
            f"class_weight={class_weight!r}. Choose one of them."
        )
    return weights * factors[labels]


def _with_weight(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Any]:
    """Leave out the points of weight zero; give X, y, the weights and the rows that are left."""
    if sample_weight is None:
        return X, y, None, None
    weights, n_points = np.asarray(sample_weight, dtype=np.float64), _num_samples(X)
    if weights.shape != (n_points,):
        raise ValueError(
            f"Expected sample_weight with one number for each point, shape ({n_points},); got "
            f"shape {weights.shape}. Give as many."
        )
    if not ((weights >= 0.0) & (weights < np.inf)).all() or not weights.any():
        raise ValueError(
            "Expected sample_weight of finite numbers >= 0, some of them above zero; got them "
            f"from {weights.min():g} to {weights.max():g}. A weight of zero leaves a point out."
        )
    if weights.all():
        return X, y, weights, None
    check_consistent_length(X, y)
    kept = np.flatnonzero(weights)
    return _safe_indexing(X, kept), _safe_indexing(y, kept), weights[kept], kept


def check_further_weights(
    X: Any, y: Any, sample_weight: Any, known: NDArray[np.float64] | None, n_known: int
) -> tuple[Any, Any, NDArray[np.float64] | None]:
    """Accept the weights of further points; give these points and the weights of all.

    Parameters
    ----------
    X, y, sample_weight
        Of the further points; those of weight zero are left out.
    known : ndarray, shape (n_known,), or None
        The weights of the points that the estimator was fitted to.
    n_known : int
    """
    X, y, weights, _ = _with_weight(X, y, sample_weight)
    if weights is None and known is None:
        return X, y, None
    parts = (known, n_known), (weights, _num_samples(X))
    return X, y, np.concatenate([np.ones(n) if part is None else part for part, n in parts])


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
        with _sums_may_overflow():
            return validate_data(estimator, X, reset=False, **options)
    if is_table(X):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        X = np.column_stack([as_numbers(column) for column in raw_columns(X)])
        return np.where(np.isnan(X), fill, X)
    options["ensure_all_finite"] = "allow-nan"
    with _sums_may_overflow():
        X = validate_data(estimator, X, reset=False, **options)
    return np.where(np.isnan(X), fill, X) if np.isnan(X).any() else X


def _sums_may_overflow() -> np.errstate:
    """Let scikit-learn look for infinities by a sum, in which very large values may cancel."""
    return np.errstate(invalid="ignore")


def to_dense(X: Any) -> Any:
    """Make sparse features dense; refuse more than two gigabytes of them."""
    if not sp.issparse(X):
        return X
    if X.shape[0] * X.shape[1] > _MAX_DENSE_VALUES:
        raise ValueError(
            "Expected sparse features that fit into 2 GB when they are made dense, which the "
            f"metrics of NearfieldClassifier need; got shape {X.shape}, "
            f"{8e-9 * X.shape[0] * X.shape[1]:.3g} GB. Use "
            'DistanceNeighborsClassifier(metric="cosine"), which keeps them sparse, or reduce the '
            "features first, for instance by sklearn.decomposition.TruncatedSVD."
        )
    return X.toarray()


def missing_values(X: Any) -> NDArray[np.bool_] | None:
    """Tell which values are missing, shape (n_samples, n_features); None if there are all."""
    if sp.issparse(X):
        return None
    if is_table(X):
        is_gap = np.column_stack([is_missing(column) for column in raw_columns(X)])
    else:
        is_gap = np.asarray(pd.isna(np.asarray(X)))
    return is_gap if is_gap.any() else None


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


def check_groups(
    groups: ArrayLike | None,
    n_points: int,
    kept: NDArray[np.intp] | None = None,
    *,
    has_folds: bool,
) -> Any:
    """Accept groups of points as 0..n_groups-1, or none; refuse them where there are no folds.

    `kept` are the rows that are left where points of weight zero were left out.
    """
    if groups is None:
        return None
    if not has_folds:
        raise ValueError(
            'Expected groups with averaging="stacking" and at most 2,000 points, where points are '
            f"held out in folds; got {n_points} points. Fit to one point of each group."
        )
    checked = column_or_1d(groups, warn=True)
    if kept is not None and len(checked) > kept.max():
        checked = checked[kept]
    if len(checked) != n_points:
        raise ValueError(
            f"Expected one group for each of {n_points} points; got {len(checked)}. Give as many."
        )
    codes = np.unique(checked, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError("Expected at least two groups; got one. Leave groups out.")
    return codes


def warn_of_lone_groups(
    codes: NDArray[np.int64], labels: NDArray[np.int64], classes: NDArray[Any]
) -> None:
    """Tell of classes of several points that lie in one group each."""
    pairs = np.unique(np.column_stack([labels, codes]), axis=0)
    n_groups, n_points = np.bincount(pairs[:, 0]), np.bincount(labels)
    lone = classes[(n_groups == 1) & (n_points > 1)].tolist()
    if lone:
        warnings.warn(
            f"Expected points of every class in two groups or more; got one group of each of "
            f"{lone}: where it is held out, the class is unknown, and the model takes it for hard "
            "to predict. Supply more groups, or leave groups out.",
            stacklevel=3,
        )
