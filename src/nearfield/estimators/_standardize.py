"""Features in units of their standard deviation, and those that never vary left out."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nearfield.distances import FeatureView

_CONSTANT = 1e-9  # a standard deviation of less, relative to the largest value, is noise


@dataclass(frozen=True, eq=False)
class Standardization:
    r"""The mean and standard deviation of the training points, and their use on any points.

    .. math:: z = (x - \bar x) / s

    A constant feature becomes zero, in new points too: it carries no distance. One is constant
    if it varies by less than 1e-9 of its largest value. Sparse points are
    divided but not shifted, which leaves their differences as they are and them sparse.

    Attributes
    ----------
    center : ndarray, shape (n_features,)
    factor : ndarray, shape (n_features,)
        1/s, and zero for a constant feature.
    columns : ndarray of int, shape (n_features,), or None
        Which columns of the points are features; all by default.
    """

    center: NDArray[np.float64]
    factor: NDArray[np.float64]
    columns: NDArray[np.int64] | None = None

    @classmethod
    def unscaled(cls, view: FeatureView) -> Self:
        """Choose the columns of a view, and leave them as they are."""
        n_columns = len(view.columns)
        return cls(np.zeros(n_columns), np.ones(n_columns), view.columns)

    @classmethod
    def fit(cls, training: Any, view: FeatureView | None = None) -> Self:
        """Learn from `TrainingPoints`, or alike; missing values (NaN) are passed over.

        `view` says which columns count, and which of these have their scale already.
        """
        if view is not None:
            chosen = cls.fit(training.map(partial(_take_columns, columns=view.columns)))
            factor = np.where(view.is_scaled, 1.0, chosen.factor)
            return cls(chosen.center, factor, view.columns)
        unit = training.largest(_largest_values)

        def mean_power(centre: NDArray[np.float64], power: int) -> NDArray[np.float64]:
            sums = partial(_scaled_sums, unit=unit, centre=centre, power=power)
            n_values, total = training.total(sums)
            return total / np.maximum(n_values, 1)

        mean = mean_power(np.zeros(len(unit)), 1)
        sd = np.sqrt(mean_power(mean, 2))
        is_known = (unit > 0.0) & np.isfinite(unit)
        smallest = np.finfo(np.float64).tiny
        is_varying = is_known & (sd > _CONSTANT) & (sd * unit > smallest)
        factor = np.where(is_varying, 1.0 / np.where(is_varying, sd * unit, 1.0), 0.0)
        return cls(mean * np.where(is_known, unit, 1.0), factor)

    def apply(self, X: Any) -> Any:
        """Standardize points, shape (m, n_features), or (m, n_columns) where some are chosen."""
        if self.columns is not None:
            X = X[:, self.columns]
        if sp.issparse(X):
            return sp.csr_matrix(X.multiply(self.factor))
        with np.errstate(over="ignore", invalid="ignore"):  # the metric tells of an infinity
            return (X - self.center) * self.factor


def _take_columns(points: Any, columns: NDArray[np.int64]) -> Any:
    return points[:, columns]


def _largest_values(points: Any) -> NDArray[np.float64]:
    """Find the largest absolute value of each feature.

    In units of these, squares of very large or small features are numbers.
    """
    columns = points.toarray() if sp.issparse(points) else points
    return np.fmax.reduce(np.abs(columns), axis=0, initial=0.0)


def _scaled_sums(
    points: Any, unit: NDArray[np.float64], centre: NDArray[np.float64], power: int
) -> NDArray[np.float64]:
    """Count the values of each feature, and add up powers of (x / unit - centre), shape (2, f).

    Missing values (NaN) are passed over.
    """
    columns = points.toarray() if sp.issparse(points) else points
    scaled = columns / np.where((unit > 0.0) & np.isfinite(unit), unit, 1.0)
    return np.stack(
        [np.isfinite(scaled).sum(axis=0), np.nansum((scaled - centre) ** power, axis=0)]
    )
