"""Training points by what an estimator learns from them before any distance is taken."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class TrainingPoints(NamedTuple):
    """Training points in one place.

    `nearfield.dask` has training points in blocks, with the same methods.
    """

    points: Any  # ndarray or csr_matrix, shape (n, n_features)
    labels: NDArray[np.int64]  # shape (n,)

    @property
    def n_points(self) -> int:
        """The number of points."""
        return self.points.shape[0]

    @property
    def none(self) -> Any:
        """No points, but all features: shape (0, n_features)."""
        return self.points[:0]

    def map(self, function: Callable[[Any], Any]) -> "TrainingPoints":
        """Replace points by a function of them, row by row."""
        return self._replace(points=function(self.points))

    def total(self, function: Callable[[Any], Any]) -> Any:
        """Give a function of the points whose values over blocks of points add up."""
        return function(self.points)

    def largest(self, function: Callable[[Any], Any]) -> Any:
        """Give a function of the points of which the largest value over blocks counts."""
        return function(self.points)

    def of_labels(self, function: Callable[[NDArray[np.int64]], Any]) -> Any:
        """Give a function of all labels."""
        return function(self.labels)

    def apply(self, function: Callable[[Any, Any], Any], rows: NDArray[np.int64]) -> Any:
        """Give a function of some points and their labels."""
        return function(self.points[rows], self.labels[rows])
