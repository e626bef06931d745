"""The total weight that every training point gives away, at many scales: linear in n."""

from dataclasses import dataclass, field

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.inference._progress import progress
from nearfield.near.cells import n_whole, sort_into_cells, target_shifts
from nearfield.near.scales import TabulatedScales
from nearfield.sampling.cell_sums import cell_sums
from nearfield.sampling.cell_table import CellTable

_N_TARGETS = 1_024  # at once


@dataclass(frozen=True, eq=False)
class Normalizers:
    r"""The totals of the kernel over the other training points, at tabulated scales.

    .. math:: \log R_j = \log \sum_{l \ne j} \kappa(d_{jl}) / \kappa(r_j), \qquad
              r_j \approx \min_{l \ne j} d_{jl}

    For the radius kernel the log of the number of others within each radius, at least log 1.

    Attributes
    ----------
    scales : TabulatedScales
    nearest : ndarray, shape (n,)
        r_j
    log_totals : ndarray of float32, shape (n, n_scales)
    """

    scales: TabulatedScales
    nearest: NDArray[np.float64] = field(repr=False)
    log_totals: NDArray[np.float32] = field(repr=False)

    @classmethod
    def of(
        cls, sums: NDArray[np.float64], minima: NDArray[np.float32], scales: TabulatedScales
    ) -> "Normalizers":
        """Make them of complete sums and minima, by `add_cell_sums`."""
        powers = minima.astype(np.float64)
        return cls.given(sums, np.sqrt(powers) if scales.is_squared else powers, scales)

    @classmethod
    def given(
        cls, sums: NDArray[np.float64], nearest: NDArray[np.float64], scales: TabulatedScales
    ) -> "Normalizers":
        """Make them of complete sums relative to distances that were given."""
        return cls(scales, nearest, np.log(np.maximum(sums, 1.0)).astype(np.float32))

    def at(
        self, sigmas: NDArray[np.float64], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Interpolate the log totals of some points, or all, at any sigmas.

        Returns
        -------
        log_totals : ndarray, shape (n_sigmas, n_rows)
        """
        first, coefficients = self.scales.interpolation(self.scales.values_of(sigmas))
        table = self.log_totals if rows is None else self.log_totals[rows]
        n_terms = coefficients.shape[1]
        return np.stack(
            [
                np.einsum("rc,c->r", table[:, start : start + n_terms], some)
                for start, some in zip(first, coefficients, strict=True)
            ]
        )


def sum_normalizers(
    points: NDArray[np.float64],
    order: NDArray[np.int64],
    table: CellTable,
    scales: TabulatedScales,
    seed: int,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Normalizers:
    """Compute the normalisers of all points from their cells.

    Parameters
    ----------
    points : ndarray, shape (n, n_features)
    order, table
        From `sort_into_cells`, of all points.
    scales : TabulatedScales
    seed : int
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int
    """
    n_points = len(points)
    nearest = np.empty(n_points)
    log_totals = np.empty((n_points, scales.n_scales), dtype=np.float32)

    def fill(start: int) -> None:
        places = np.arange(start, min(start + _N_TARGETS, n_points))
        rows = order[places]
        minima = np.full(len(rows), np.inf, dtype=np.float32)
        sums = np.zeros((len(rows), scales.n_scales))
        add_cell_sums(points[rows], rows, places, table, scales, seed, minima, sums)
        part = Normalizers.of(sums, minima, scales)
        nearest[rows], log_totals[rows] = part.nearest, part.log_totals
        advance(len(rows))

    with progress(n_points, "normalisers", verbose) as advance:
        Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(
            delayed(fill)(start) for start in range(0, n_points, _N_TARGETS)
        )
    return Normalizers(scales, nearest, log_totals)


def add_cell_sums(
    targets: NDArray[np.float64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    table: CellTable,
    scales: TabulatedScales,
    seed: int,
    minima: NDArray[np.float32],
    sums: NDArray[np.float64],
    *,
    is_given: bool = False,
    is_exact: bool = False,
) -> None:
    """Lower the minima of targets, and add to their sums, over the points of a table, in place.

    Over shards: first the minima of all (`sums` without columns), then, with their minimum given,
    the sums of all, which add up.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    rows : ndarray of int, shape (m,)
        Their numbers among the points of all shards.
    places : ndarray of int, shape (m,)
        Where they are in the table, -1 for those of another shard.
    table : CellTable
        With the sizes of the cells over all shards.
    scales : TabulatedScales
    seed : int
    minima : ndarray of float32, shape (m,)
        Infinite, or complete and given.
    sums : ndarray, shape (m, n_scales) or (m, 0)
    is_given : bool
        Whether the minima are complete.
    is_exact : bool
        Whether to sum over all points, whatever their number.
    """
    n_points = int(table.sizes.sum())
    for_sums = scales.for_sums(table.power)
    cell_sums(
        np.ascontiguousarray(targets),
        places,
        target_shifts(rows, seed),
        table,
        n_points if is_exact else n_whole(n_points),
        for_sums,
        is_given,
        minima,
        sums,
    )


def exact_sums(
    targets: NDArray[np.float64],
    rows: NDArray[np.int64],
    nearest: NDArray[np.float64],
    points: NDArray[np.float64],
    scales: TabulatedScales,
    seed: int,
    *,
    power: int,
    source_rows: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Sum over all points as they are, or over all of a shard, shape (m, n_scales).

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    rows : ndarray of int, shape (m,)
        Their numbers; none counts as its own source.
    nearest : ndarray, shape (m,)
        The distances that the sums are relative to.
    points : ndarray, shape (n, n_features)
    scales : TabulatedScales
    seed : int
    power : int
        2 for Euclidean distances, 1 for Manhattan distances.
    source_rows : ndarray of int, shape (n,), optional
        The numbers of the points, rising; for a shard.
    """
    if source_rows is None:
        source_rows = np.arange(len(points))
    order, table = sort_into_cells(
        points, targets[:1], targets[:0], seed, power=power, rows=source_rows
    )
    found = np.minimum(np.searchsorted(source_rows, rows), len(points) - 1)
    places = np.where(source_rows[found] == rows, np.argsort(order)[found], -1)
    minima = (nearest ** (2 if scales.is_squared else 1)).astype(np.float32)
    sums = np.zeros((len(rows), scales.n_scales))
    add_cell_sums(
        targets, rows, places, table, scales, seed, minima, sums, is_given=True, is_exact=True
    )
    return sums
