"""Scales at which the support is computed, and how it follows from there at others."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.prediction._rules import (
    Floats,
    Measure,
    gauss_nodes,
    lagrange_basis,
    local_basis,
)

_N_AROUND = 8
_BEND = 0.7  # beyond 1 / _BEND sds knots lie ever farther apart, as the draws do


class Interpolation(NamedTuple):
    """Values at some scales as sums of those at the knots from the first one of each on."""

    first: NDArray[np.int64]
    coefficients: Floats

    @classmethod
    def none(cls, n_scales: int) -> "Interpolation":
        """Take the values at the knots as they are."""
        return cls(np.arange(n_scales), np.ones((n_scales, 1)))


@dataclass(frozen=True, eq=False)
class Knots:
    """A few log scales of a posterior, for what changes smoothly with the scale.

    Up to eight are nodes of a Gauss rule, with one polynomial through all of them. A polynomial
    through many would be right at nearly all draws, and wild at a far one beside a knot. So more
    of them are a grid, even in arsinh of the log scale, with polynomials through the eight around.

    Attributes
    ----------
    log_scales : ndarray, shape (n_knots,)
    centre, spread : float
        Mean and standard deviation of the log scales of the posterior.
    """

    log_scales: Floats
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, measure: Measure, n_knots: int) -> "Knots":
        """Place so many knots, or fewer where there are not so many scales."""
        if n_knots <= _N_AROUND:
            return cls(gauss_nodes(measure.scales, measure.weights, n_knots))
        centre = float(np.average(measure.scales, weights=measure.weights))
        variance = float(np.average((measure.scales - centre) ** 2, weights=measure.weights))
        spread = float(np.sqrt(variance))
        start, stop = _bent(np.sort(measure.scales)[[0, -1]], centre, spread)
        grid = np.sinh(np.linspace(start, stop, n_knots)) / _BEND
        return cls(centre + spread * grid, centre, spread)

    def interpolation(self, log_scales: Floats) -> Interpolation:
        """Write values at other scales as sums of those at the knots."""
        n_knots = len(self.log_scales)
        if n_knots <= _N_AROUND:
            first = np.zeros(len(log_scales), dtype=np.int64)
            return Interpolation(first, lagrange_basis(self.log_scales, log_scales))
        start, stop = _bent(self.log_scales[[0, -1]], self.centre, self.spread)
        places = (_bent(log_scales, self.centre, self.spread) - start) / (stop - start)
        return Interpolation(*local_basis(places * (n_knots - 1), n_knots, _N_AROUND))


def _bent(log_scales: Floats, centre: float, spread: float) -> Floats:
    return np.arcsinh(_BEND * (log_scales - centre) / spread)
