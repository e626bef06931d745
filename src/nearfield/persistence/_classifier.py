"""What any model that is read from a file can do."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Classifier(Protocol):
    """A classifier of nearfield, or a pipeline that ends in one.

    ``isinstance(model, NearfieldClassifier)`` tells a type checker of the rest.
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, shape (n_classes,)."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to points, shape (n_samples, n_features), and their classes, shape (n_samples,)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class of each point, shape (n_samples,)."""

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, shape (n_samples, n_classes)."""

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the log probability of each class, shape (n_samples, n_classes)."""

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Give the share of points whose class is predicted."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the arguments of the constructor by name."""

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor."""
