"""What pictures take out of a fitted estimator, alone or at the end of a pipeline."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.estimators import split_pipeline


def weightiest(estimator: Any) -> tuple[Any, float]:
    """Return the classifier with a posterior, of several the one of the largest weight; its weight.

    A classifier that averages over no others has a weight of one.
    """
    final, _ = split_pipeline(estimator)
    if hasattr(final, "estimators_"):
        first = int(np.argmax(final.weights_))
        return final.estimators_[first], float(final.weights_[first])
    if not hasattr(final, "posterior_"):
        raise ValueError(
            f"Expected an estimator with a posterior_; got {type(final).__name__}. Give a "
            "DistanceNeighborsClassifier, another with a posterior, or a NearfieldClassifier."
        )
    return final, 1.0


def one_point(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier, out of its pipeline, and the one point that it is to predict."""
    n_points = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_points != 1:
        raise ValueError(
            f"Expected one point, shape (1, n_features); got {n_points}. Give one row at a time."
        )
    return split_pipeline(estimator, X)


def class_codes(classes: NDArray[Any], y: Any) -> NDArray[np.int64]:
    """Turn classes into their positions in ``classes_``."""
    y = np.asarray(y)
    codes = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
    is_unknown = classes[codes] != y
    if is_unknown.any():
        raise ValueError(
            f"Expected y to hold classes that the estimator was fitted to, "
            f"{[str(name) for name in classes]}; got {str(y[is_unknown][0])!r}. Leave such out."
        )
    return codes
