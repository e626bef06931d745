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
class OutlierScale:
    r"""What is usual among the training points, at a few scales that share the posterior evenly.

    With a smooth kernel the score is how much less all training points weigh on the point than
    on a typical one of themselves,

    .. math:: \mathrm{E}\Big[\operatorname{median}_j \log \sum_{l \ne j} \kappa(d_{jl})
              - \log \sum_l \kappa(d^*_l)\Big]

    With the radius kernel and with k neighbours, whose weights do not tell far from farther, it
    is the distance to the k-th neighbour in units of the radius, or of what is typical among the
    training points, less one; k is for the radius the number of neighbours that is typical. A
    kernel of one's own, which may have compact support, is scored as the radius kernel is.

    In either case it is zero for a typical training point, and rises without bound as all the
    distances rise.

    Attributes
    ----------
    is_squared : bool
        For a smooth kernel.
    rates, typical_sums : ndarray, shape (n_scales,)
        For the Gaussian and the exponential kernel, else empty.
    ranks, reaches : ndarray, shape (n_scales,)
        k - 1 and the unit of length, else empty.
    """

    is_squared: bool
    rates: Floats
    typical_sums: Floats
    ranks: NDArray[np.int64]
    reaches: Floats

    @classmethod
    def from_posterior(cls, posterior: Posterior, family: DistanceFamily) -> "OutlierScale":
        """Take what is usual among the training points at scales of the posterior."""
        scales = typical_scales(posterior)
        if family.is_smooth and not family.is_custom:
            is_squared, rates = kernel_rates(family, scales)
            typical_sums = _typical_sums(family, rates, is_squared)
            return cls(is_squared, rates, typical_sums, np.empty(0, dtype=np.int64), np.empty(0))
        # The first column is the distance of a point to itself.
        kth_distances = np.median(np.sort(family.distances, axis=1), axis=0)[1:]
        ranks = np.maximum(np.searchsorted(kth_distances, scales) - 1, 0)
        return cls(False, np.empty(0), np.empty(0), ranks, scales)

    @classmethod
    def from_neighbors(cls, ks: Floats, kth_distances: Floats) -> "OutlierScale":
        """Take for each k what is typical as the unit; for zero, the next larger distance."""
        ranks = ks.astype(np.int64) - 1
        reaches, positive = kth_distances[ranks], kth_distances[kth_distances > 0.0]
        unit = positive[0] if positive.size else 1.0
        units = np.where(reaches > 0.0, reaches, unit)
        return cls(False, np.empty(0), np.empty(0), ranks, units)

    def score(self, distances: Floats) -> Floats:
        """Score new points by their distances to the training points, shape (m, n)."""
        if self.rates.size:
            sums = np.empty((len(distances), len(self.rates)))
            kernel = np.empty(distances.shape[1])
            log_kernel_sums(distances, self.rates, self.is_squared, kernel, sums)
            return (self.typical_sums - sums).mean(axis=1)
        kth_distances = np.partition(distances, np.unique(self.ranks), axis=1)[:, self.ranks]
        return (kth_distances / self.reaches).mean(axis=1) - 1.0


def typical_scales(posterior: Posterior) -> Floats:
    """Choose a few scales that share the posterior evenly."""
    levels = (np.arange(_N_SCALES) + 0.5) / _N_SCALES
    return np.unique(posterior.quantile(levels)[posterior.scale_name].to_numpy())


def _typical_sums(family: DistanceFamily, rates: Floats, is_squared: bool) -> Floats:
    """Take the median over the training points of the log sum of the kernel at the others."""
    nearest, log_normalizers = training_normalizers(family, rates, is_squared)
    powers = nearest**2 if is_squared else nearest
    return np.median(log_normalizers - rates[:, None] * powers, axis=1)
