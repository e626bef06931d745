"""Distances between any two sets of points by one metric."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nearfield.distances import distance_matrix
from nearfield.prediction import euclidean_distances_to

_EUCLIDEAN = ("euclidean", "l2")
_MANHATTAN = ("manhattan", "cityblock", "l1")


@dataclass(frozen=True)
class Ruler:
    """A metric, and how to measure with it.

    Attributes
    ----------
    metric : str or callable
    params : mapping
        Further arguments of the metric.
    """

    metric: str | Callable[..., float] = "euclidean"
    params: Mapping[str, Any] = field(default_factory=dict)

    def power(self, points: Any) -> int | None:
        """Tell whether compiled sums know the metric: 2 if Euclidean, 1 if Manhattan, else None."""
        if not isinstance(self.metric, str) or self.params or sp.issparse(points):
            return None
        return 2 if self.metric in _EUCLIDEAN else 1 if self.metric in _MANHATTAN else None

    def distances(self, points: Any, others: Any) -> NDArray[np.float64]:
        """Measure from each point to each other, shape (m, n)."""
        if self.power(others) == 2:
            return euclidean_distances_to(points, others)
        return distance_matrix(points, others, metric=self.metric, metric_params=self.params)

    def longest(self, points: Any) -> float:
        """Find about the largest distance between points: from the one farthest from the first."""
        farthest = int(np.argmax(self._from(points, 0)))
        return float(self._from(points, farthest).max())

    def _from(self, points: Any, row: int) -> NDArray[np.float64]:
        # One row against all, turned round: callers keep millions of points, and one column.
        n_at_once = 2**16
        return np.concatenate(
            [
                self.distances(points[row : row + 1], points[start : start + n_at_once])[0]
                for start in range(0, points.shape[0], n_at_once)
            ]
        )
