"""The support of some training points at all scales: what inference asks for again and again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.near.scales import TabulatedScales
from nearfield.near.sums import FieldSums, Support
from nearfield.sampling.near_terms import Neighborhood

Floats = NDArray[np.float64]

_SCALES_AT_ONCE = 8
_POINTS_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class SupportTable:
    """The support of some points at tabulated scales; at others it is interpolated.

    Attributes
    ----------
    scales : TabulatedScales
    support : Support
        At these.
    near_distances : ndarray, shape (m, K)
        To the nearest training points.
    """

    scales: TabulatedScales
    support: Support = field(repr=False)
    near_distances: Floats = field(repr=False)

    def part(self, rows: slice) -> "SupportTable":
        """Take some of the points."""
        support = Support(*(array[rows] for array in self.support))
        return SupportTable(self.scales, support, self.near_distances[rows])

    def at(self, sigmas: Floats, is_joint: bool = True) -> Floats:
        """Give the support at some sigmas, shape (m, n_sigmas, G)."""
        values = self.scales.values_of(sigmas)
        out = self._interpolated(self.support.out, values)
        return out + self._interpolated(self.support.back, values) if is_joint else out

    def farther(self, sigmas: Floats, factor: float) -> Floats:
        """Give it as if all distances were so many times as large, of what points give alone.

        What they get is next to nothing there. Of a smooth kernel.
        """
        rates = self.scales.values_of(sigmas) * factor ** (2 if self.scales.is_squared else 1)
        return self._interpolated(self.support.out, rates)

    def log_sums(self, sigmas: Floats) -> Floats:
        """Give the log of a smooth kernel summed over all training points, shape (m, n_sigmas)."""
        rates = self.scales.values_of(sigmas)
        powers = self.near_distances.min(axis=1) ** (2 if self.scales.is_squared else 1)
        return self._interpolated(self.support.log_sums, rates) - rates * powers[:, None]

    def _interpolated(self, table: Floats, values: Floats) -> Floats:
        first, coefficients = self.scales.interpolation(values)
        columns = first[:, None] + np.arange(coefficients.shape[1])
        return np.einsum("sc,msc...->ms...", coefficients, table[:, columns])


def batches(sigmas: Floats) -> Iterator[Floats]:
    """Cut scales into batches: the totals of all training points take room at each scale."""
    for start in range(0, len(sigmas), _SCALES_AT_ONCE):
        yield sigmas[start : start + _SCALES_AT_ONCE]


def n_batches(scales: TabulatedScales) -> int:
    """Count these batches."""
    return -(-scales.n_scales // _SCALES_AT_ONCE)


def tabulate(
    neighborhood: Neighborhood,
    scales: TabulatedScales,
    sums_at: Callable[[Floats], FieldSums],
    *,
    n_jobs: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> SupportTable:
    """Compute the support of some points at all scales.

    Parameters
    ----------
    neighborhood : Neighborhood
        Of the points.
    scales : TabulatedScales
    sums_at : callable
        Prepares sums at some sigmas, by `NearField.sums_at`.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    advance : callable, optional
        Called with how many points are done, now and then, as often as there are batches.
    """
    parts = []
    for sigmas in batches(scales.sigmas):
        sums = sums_at(sigmas)

        def part(start: int, sums: FieldSums = sums) -> Support:
            some = neighborhood.part(slice(start, start + _POINTS_AT_ONCE))
            if advance is not None:
                advance(len(some.sites))
            return sums.support(some)

        chunks = Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
            delayed(part)(start) for start in range(0, len(neighborhood.sites), _POINTS_AT_ONCE)
        )
        parts.append(Support(*(np.concatenate(arrays) for arrays in zip(*chunks, strict=True))))
    support = Support(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))
    return SupportTable(scales, support, neighborhood.near_distances)
