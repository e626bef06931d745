"""How far a point is from all training points, in the metric and at the scale of the posterior."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfield.field import DistanceFamily
from nearfield.inference import Posterior
from nearfield.prediction._dense import kernel_rates, training_normalizers
from nearfield.prediction._quadrature import Floats
from nearfield.prediction.kernels.smooth import log_kernel_sums

_N_SCALES = 8


@dataclass(frozen=True, eq=False)
class KernelOutliers:
    r"""Scores by a smooth kernel: how much less all training points weigh than on a typical one.

    .. math:: \mathrm{E}\Big[\operatorname{median}_j \log \sum_{l \ne j} \kappa(d_{jl})
              - \log \sum_l \kappa(d^*_l)\Big]

    at a few scales that share the posterior evenly. Zero for a typical training point; it rises
    without bound as all the distances rise.

    Attributes
    ----------
    is_squared : bool
        Whether the kernel is one of the squared distance.
    rates, typical_sums : ndarray, shape (n_scales,)
    """

    is_squared: bool
    rates: Floats
    typical_sums: Floats

    def score(self, distances: Floats) -> Floats:
        """Score new points by their distances to the training points, shape (m, n)."""
        sums, kernel = np.empty((len(distances), len(self.rates))), np.empty(distances.shape[1])
        log_kernel_sums(distances, self.rates, self.is_squared, kernel, sums)
        return (self.typical_sums - sums).mean(axis=1)


@dataclass(frozen=True, eq=False)
class RankOutliers:
    """Scores by the distance to the k-th neighbour in units of what is typical, less one.

    For the radius kernel and for k neighbours, whose weights do not tell far from farther. The
    unit is the radius, or the median of the k-th distance among the training points; k is for the
    radius the number of neighbours that is typical. A kernel of one's own, which may have compact
    support, is scored as the radius kernel is.

    Attributes
    ----------
    ranks : ndarray of int, shape (n_scales,)
        k - 1.
    units : ndarray, shape (n_scales,)
    """

    ranks: NDArray[np.int64]
    units: Floats

    @classmethod
    def from_radii(cls, radii: Floats, kth_distances: Floats) -> "RankOutliers":
        """Take the number of neighbours within each radius, by the median k-th distances."""
        return cls(np.maximum(np.searchsorted(kth_distances, radii) - 1, 0), radii)

    @classmethod
    def from_ks(cls, ks: Floats, kth_distances: Floats) -> "RankOutliers":
        """Take for each k what is typical as the unit; for zero, the next larger distance."""
        ranks = ks.astype(np.int64) - 1
        reaches, positive = kth_distances[ranks], kth_distances[kth_distances > 0.0]
        unit = positive[0] if positive.size else 1.0
        return cls(ranks, np.where(reaches > 0.0, reaches, unit))

    def score(self, distances: Floats) -> Floats:
        """Score new points by their distances to the training points, shape (m, n)."""
        kth_distances = np.partition(distances, np.unique(self.ranks), axis=1)[:, self.ranks]
        return (kth_distances / self.units).mean(axis=1) - 1.0


def outliers_of(posterior: Posterior, family: DistanceFamily) -> KernelOutliers | RankOutliers:
    """Take what is usual among the training points at scales of the posterior."""
    scales = typical_scales(posterior)
    if family.is_smooth and not family.is_custom:
        is_squared, rates = kernel_rates(family, scales)
        return KernelOutliers(is_squared, rates, _typical_sums(family, rates, is_squared))
    # The first column is the distance of a point to itself.
    kth_distances = np.median(np.sort(family.distances, axis=1), axis=0)[1:]
    return RankOutliers.from_radii(scales, kth_distances)


def typical_scales(posterior: Posterior) -> Floats:
    """Choose a few scales that share the posterior evenly."""
    levels = (np.arange(_N_SCALES) + 0.5) / _N_SCALES
    return np.unique(posterior.quantile(levels)[posterior.scale_name].to_numpy())


def _typical_sums(family: DistanceFamily, rates: Floats, is_squared: bool) -> Floats:
    """Take the median over the training points of the log sum of the kernel at the others."""
    nearest, log_normalizers = training_normalizers(family, rates, is_squared)
    powers = nearest**2 if is_squared else nearest
    return np.median(log_normalizers - rates[:, None] * powers, axis=1)
