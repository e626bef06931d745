"""What pictures take out of a fitted estimator, alone or at the end of a pipeline."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nearfield.inference import Posterior


def split_pipeline(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the last step of a pipeline and the features as it sees them; else both as given."""
    check_is_fitted(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, X
    if X is not None and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return estimator[-1], X


class Voice(NamedTuple):
    """A classifier with one posterior, its weight in the mixture, and new points as it sees them.

    A classifier that is not a mixture is its only component.
    """

    weight: float
    classifier: Any
    points: Any

    @property
    def posterior(self) -> Posterior:
        """The posterior of beta and the scale."""
        return self.classifier.posterior_


def voices_of(estimator: Any, X: Any = None) -> list[Voice]:
    """Return the classifiers that a fitted estimator mixes, the weightiest first."""
    final, X = split_pipeline(estimator, X)
    if hasattr(final, "estimators_"):
        points = None if X is None else np.asarray(X, dtype=np.float64)
        for transform in (final.preprocess_, final.power_transform_):  # at most one of them
            if points is not None and transform is not None:
                points = transform.transform(points)
        order = np.argsort(-final.weights_, kind="stable")
        return [
            Voice(float(final.weights_[i]), final.estimators_[i], points)
            for i in order
            if final.weights_[i] > 0.0
        ]
    if not hasattr(final, "posterior_"):
        raise ValueError(
            f"Expected an estimator with a posterior_; got {type(final).__name__}. Give a "
            "DistanceNeighborsClassifier, another with a posterior, or a NearfieldClassifier."
        )
    return [Voice(1.0, final, X)]


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
