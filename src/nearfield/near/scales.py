"""The scales at which totals are tabulated, and how others follow from them."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nearfield.prediction._rules import local_basis
from nearfield.sampling.scale_sums import SumScales

_N_RADII = 192  # counts of few points jump: many steps, so that few jumps fall into one
_ROUNDING = 1e-6  # what brute force gets wrong of the distances between sparse points
_N_SEQUENCES = 2  # rates an octave
_MAX_OCTAVES = 48
_N_NEIGHBORS = 8  # tabulated scales that an interpolated one is made of
_N_RADIUS_NEIGHBORS = 2  # counts jump: nothing beyond a line


@dataclass(frozen=True)
class TabulatedScales:
    r"""Scales in geometric progression, as rates of a smooth kernel or as radii.

    A smooth kernel is :math:`\exp(-\lambda d^p)`, with :math:`\lambda = 1 / 2 \sigma^2` and p = 2,
    or :math:`\lambda = \sigma` and p = 1. There are two rates an octave.

    Attributes
    ----------
    kernel : str
    first : float
        The smallest rate or radius.
    ratio : float
        Of each to the last.
    n_scales : int
    """

    kernel: str
    first: float
    ratio: float
    n_scales: int

    @classmethod
    def covering(cls, kernel: str, low: float, high: float) -> "TabulatedScales":
        """Cover the sigmas between two; beyond them the weights are all but constant."""
        if kernel == "radius":
            ratio = (high / low) ** (1.0 / (_N_RADII - 1))
            return cls(kernel, low, max(ratio, 1.0 + 1e-9), _N_RADII)
        rates = np.sort(_rates(kernel, np.array([low, high])))
        n_needed = int(np.ceil(np.log2(rates[1] / rates[0]))) + 1
        n_octaves = min(max(n_needed, _N_NEIGHBORS), _MAX_OCTAVES)
        ratio, n_scales = 2.0 ** (1.0 / _N_SEQUENCES), _N_SEQUENCES * n_octaves
        return cls(kernel, float(rates[1] / ratio ** (n_scales - 1)), ratio, n_scales)

    def within(self, low: float, high: float) -> "TabulatedScales":
        """Leave out the scales that are not needed between two sigmas, but for one at each end."""
        ends = np.log(self.values_of(np.array([low, high])) / self.first) / np.log(self.ratio)
        start = int(np.clip(np.floor(ends.min()), 0, self.n_scales - _N_NEIGHBORS))
        stop = int(np.clip(np.ceil(ends.max()) + 1, start + _N_NEIGHBORS, self.n_scales))
        return replace(self, first=self.first * self.ratio**start, n_scales=stop - start)

    @property
    def sigmas(self) -> NDArray[np.float64]:
        """The same scales as sigmas."""
        return np.sqrt(0.5 / self.values) if self.kernel == "gaussian" else self.values

    @property
    def is_squared(self) -> bool:
        """Whether kernel and radius go by the square of the distance."""
        return self.kernel != "exponential"

    @property
    def values(self) -> NDArray[np.float64]:
        """The rates or radii."""
        return self.first * self.ratio ** np.arange(float(self.n_scales))

    def exponent(self, power: int) -> float:
        """Give the exponent by which the kernel takes distances, as they are (1) or squared (2)."""
        return (2.0 if self.is_squared else 1.0) / power

    def for_sums(self, power: int) -> SumScales:
        """Describe the scales for sums over distances that come as they are (1) or squared (2)."""
        is_radius = self.kernel == "radius"
        thresholds = (self.values**2 if is_radius else np.empty(0)).astype(np.float32)
        return SumScales(is_radius, self.exponent(power), self.first, _N_SEQUENCES, thresholds)

    def values_of(self, sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn sigmas into rates, or leave them as radii."""
        return sigmas if self.kernel == "radius" else _rates(self.kernel, sigmas)

    def interpolation(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        r"""Write log totals at some rates or radii as sums of tabulated ones.

        .. math:: \log T(\lambda) \approx \sum_c a_c \log T(\lambda_{f + c})

        By the polynomial through the eight tabulated scales around it, in the log of the scale; for
        radii by a line. Outside the table the last value holds.

        Returns
        -------
        first : ndarray of int, shape (n_values,)
        coefficients : ndarray, shape (n_values, n_coefficients)
        """
        n_neighbors = _N_RADIUS_NEIGHBORS if self.kernel == "radius" else _N_NEIGHBORS
        places = np.log(values / self.first) / np.log(self.ratio)
        places = np.clip(places, 0.0, self.n_scales - 1.0)
        return local_basis(places, self.n_scales, n_neighbors)


def _rates(kernel: str, sigmas: NDArray[np.float64]) -> NDArray[np.float64]:
    return sigmas if kernel == "exponential" else 0.5 / sigmas / sigmas


def usual_scales(kernel: str, nearest: NDArray[np.float64], longest: float) -> tuple[float, float]:
    """Find the sigmas between which the field changes; as `DistanceFamily.scale_range`.

    Parameters
    ----------
    kernel : str
    nearest : ndarray
        Distances of some points to the nearest other one that is not in the same place.
    longest : float
    """
    if longest == 0.0:  # all points identical: every scale gives the uniform field
        return 0.5, 2.0
    nearest = nearest[nearest > _ROUNDING * longest]
    shortest = float(np.quantile(nearest, 0.05)) if nearest.size else 1e-3 * longest
    if kernel == "exponential":
        return 0.05 / longest, 20.0 / shortest
    if kernel == "radius":
        return float(nearest.min(initial=shortest)), 1.001 * longest
    return 0.1 * shortest, 5.0 * longest


def nearest_elsewhere(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the smallest distance of each row that is not zero, where there is one."""
    nearest = np.where(distances > 0.0, distances, np.inf).min(axis=1)
    return nearest[np.isfinite(nearest)]
