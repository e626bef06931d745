"""Features in units of their standard deviation, and those that never vary left out."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Standardization:
    r"""The mean and standard deviation of the training points, and their use on any points.

    .. math:: z = (x - \bar x) / s

    A constant feature becomes zero, in new points too: it carries no distance. Sparse points are
    divided but not shifted, which leaves their differences as they are and them sparse.

    Attributes
    ----------
    center : ndarray, shape (n_features,)
    factor : ndarray, shape (n_features,)
        1/s, and zero for a constant feature.
    """

    center: NDArray[np.float64]
    factor: NDArray[np.float64]

    @classmethod
    def fit(cls, X: Any) -> Self:
        """Learn from the training points; missing values (NaN) are passed over."""
        columns = X.toarray() if sp.issparse(X) else X
        unit = largest_values(columns)
        n_values, sums = scaled_sums(columns, unit, np.zeros(len(unit)), 1)
        mean = sums / np.maximum(n_values, 1)
        squares = scaled_sums(columns, unit, mean, 2)[1]
        return cls.of_moments(unit, mean, squares / np.maximum(n_values, 1))

    @classmethod
    def of_moments(
        cls,
        unit: NDArray[np.float64],
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
    ) -> Self:
        """Make it of the mean and variance of the features in units of their largest values."""
        sd = np.sqrt(variance)
        is_known = (unit > 0.0) & np.isfinite(unit)
        rounding, smallest = np.finfo(np.float64).eps, np.finfo(np.float64).tiny
        is_varying = is_known & (sd > 8.0 * rounding) & (sd * unit > smallest)
        factor = np.where(is_varying, 1.0 / np.where(is_varying, sd * unit, 1.0), 0.0)
        return cls(mean * np.where(is_known, unit, 1.0), factor)

    def apply(self, X: Any) -> Any:
        """Standardize points, shape (m, n_features)."""
        if sp.issparse(X):
            return sp.csr_matrix(X.multiply(self.factor))
        with np.errstate(over="ignore", invalid="ignore"):  # the metric tells of an infinity
            return (X - self.center) * self.factor


def largest_values(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the largest absolute value of each feature: of shards, the largest is that of all.

    In units of these, squares of very large or small features are numbers.
    """
    return np.fmax.reduce(np.abs(columns), axis=0, initial=0.0)


def scaled_sums(
    columns: NDArray[np.float64], unit: NDArray[np.float64], mean: NDArray[np.float64], power: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count the values of each feature, and add up powers of (x / unit - mean): over shards, too.

    Missing values (NaN) are passed over.
    """
    scaled = columns / np.where((unit > 0.0) & np.isfinite(unit), unit, 1.0)
    return np.isfinite(scaled).sum(axis=0), np.nansum((scaled - mean) ** power, axis=0)
