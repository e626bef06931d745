"""What the compiled sums over near points and references need to know, in plain arrays."""

import numpy as np
from numpy.typing import NDArray

from nearfield.near.normalizers import Normalizers
from nearfield.sampling.near_support import ScaleTable, TrainingTable
from nearfield.weights import RADIUS_EPSILON


def training_table(
    n_points: int,
    labels: NDArray[np.int64],
    normalizers: Normalizers,
    references: NDArray[np.int64],
    n_classes: int,
) -> TrainingTable:
    """Gather what compiled sums need to know of some rows of the training points.

    Parameters
    ----------
    n_points : int
        The number of all training points.
    labels, normalizers
        Of the rows at hand.
    references : ndarray of int, shape (R,)
        Among the rows at hand.
    n_classes : int
    """
    by_class = np.argsort(labels[references], kind="stable")
    place = np.full(len(labels), -1, dtype=np.int32)
    place[references] = np.arange(len(references))
    return TrainingTable(
        n_points,
        labels,
        normalizers.nearest,
        normalizers.log_totals,
        references,
        by_class,
        np.searchsorted(labels[references][by_class], np.arange(n_classes + 1)),
        place,
        labels[references],
        normalizers.nearest[references],
    )


def scale_table(
    sigmas: NDArray[np.float64],
    n_points: int,
    normalizers: Normalizers,
    references: NDArray[np.int64],
) -> ScaleTable:
    """Prepare sums at some sigmas; the parameters are those of `training_table`."""
    scales = normalizers.scales
    values = scales.values_of(sigmas)
    first, coefficients = scales.interpolation(values)
    totals = normalizers.at(sigmas, references)
    if scales.kernel == "radius":
        is_reached = normalizers.nearest[references] < sigmas[:, None]
        counts = np.where(is_reached, np.exp(totals), 0.0)
        totals = (1.0 - RADIUS_EPSILON) * counts + RADIUS_EPSILON * (n_points - 1)
    return ScaleTable(values, scales.is_squared, first, coefficients, totals)
