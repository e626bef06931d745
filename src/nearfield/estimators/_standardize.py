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
        # In units of the largest value: squares of very large or small features are no numbers.
        unit = np.fmax.reduce(np.abs(columns), axis=0, initial=0.0)
        is_known = (unit > 0.0) & np.isfinite(unit)
        scaled = columns / np.where(is_known, unit, 1.0)
        n_values = np.maximum(np.isfinite(scaled).sum(axis=0), 1)
        mean = np.nansum(scaled, axis=0) / n_values
        sd = np.sqrt(np.nansum((scaled - mean) ** 2, axis=0) / n_values)
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
