"""Points in cells, so that sums over all points can take near ones whole and far ones by a sample.

For each target the nearest cells count point by point, those around them by a quarter of their
points, and the rest by reference points. Cells, like the sums over them, are made for all the
points of one machine, or for a shard of them.
"""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.near._hashing import row_uniforms
from nearfield.near.drawn import n_references
from nearfield.prediction import euclidean_distances_to
from nearfield.sampling.cell_table import BLOCK, CellTable
from nearfield.sampling.near_terms import NEGLIGIBLE, Vicinity

N_WHOLE = 4_096
"""So many of the nearest points, about, are sources as they are."""

MAX_EXACT = 16_384
"""Up to so many points all are."""

N_SEEN = 20_480
"""So many, about, are looked at in the sums that are made for single points."""

REACH = 6.0
"""Of these, all count as they are whose kernel is above exp(-6) of the largest, over how many
points a reference stands for: less has less of a say than what chance makes of the references."""

N_SEEN_FIT = 8_192
"""So many in the sums that fit the parameters, where errors of single points average out."""

N_SEEN_WIDE = 2_048
"""So many in these where the kernel is as wide as all points are apart."""

_POINTS_A_CELL = 32
_MAX_CELLS = 4_096
_SOURCE_STREAM, _SHIFT_STREAM = 10, 11
_VALUES_AT_ONCE = 2**22
_FAR_AWAY = 1e15  # its square is still a float32


def n_cells(n_points: int) -> int:
    """Choose how many cells to have."""
    return int(np.clip(n_points // _POINTS_A_CELL, 1, _MAX_CELLS))


def n_whole(n_points: int) -> int:
    """Choose how many of the nearest points to take as they are, of the points of all shards."""
    return n_points if n_points <= MAX_EXACT else N_WHOLE


def seen_from_one(n_points: int) -> Vicinity:
    """Choose what a single point sees as it is."""
    if n_points <= N_SEEN:
        return Vicinity(n_points, NEGLIGIBLE)
    return Vicinity(N_SEEN, min(REACH + np.log(n_points / n_references(n_points)), NEGLIGIBLE))


def seen_from_many(n_points: int, is_wide: bool) -> Vicinity:
    """Choose what points see as it is where their errors average out.

    Where the kernel is wide, near points are no more important than others.
    """
    return Vicinity(min(n_points, N_SEEN, N_SEEN_WIDE if is_wide else N_SEEN_FIT), NEGLIGIBLE)


def target_shifts(rows: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Give each target the number that its sources are drawn by, so that errors are independent."""
    return row_uniforms(rows, seed, _SHIFT_STREAM)


def nearest_centre(
    points: NDArray[np.float64], centres: NDArray[np.float64], n_jobs: int | None = None
) -> NDArray[np.int64]:
    """Find the centre nearest to each point in Euclidean distance, shape (n,)."""
    n_rows = max(1, _VALUES_AT_ONCE // len(centres))

    def find(start: int) -> NDArray[np.int64]:
        return np.argmin(euclidean_distances_to(points[start : start + n_rows], centres), axis=1)

    parts = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(find)(start) for start in range(0, len(points), n_rows)
    )
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def sort_into_cells(
    points: NDArray[np.float64],
    centres: NDArray[np.float64],
    references: NDArray[np.float64],
    seed: int,
    *,
    power: int = 2,
    rows: NDArray[np.int64] | None = None,
    cell_of: NDArray[Any] | None = None,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int64], CellTable]:
    """Sort points by cell, and in each cell by a uniform number that belongs to the row.

    Parameters
    ----------
    points : ndarray, shape (n, n_features)
        All, or a shard.
    centres : ndarray, shape (n_cells, n_features)
    references : ndarray, shape (n_references, n_features)
        That stand for far cells; in all but one of the shards, none.
    seed : int
    power : int
        2 for Euclidean distances, 1 for Manhattan distances.
    rows : ndarray of int, shape (n,), optional
        The numbers of the points among those of all shards.
    cell_of : ndarray of int, shape (n,), optional
        By `nearest_centre`, if it is known.
    n_jobs : int, optional

    Returns
    -------
    order : ndarray of int, shape (n,)
        The points in the order of the table.
    table : CellTable
        Its sizes are those of these points; for sums over shards, replace them by their sum.
    """
    if cell_of is None:
        cell_of = nearest_centre(points, centres, n_jobs)
    rows = np.arange(len(points)) if rows is None else rows
    keys = cell_of + row_uniforms(rows, seed, _SOURCE_STREAM)
    order = np.argsort(keys, kind="stable")
    starts = np.searchsorted(cell_of[order], np.arange(len(centres) + 1))
    blocks, block_starts = _cell_blocks(points, centres, order, starts)
    table = CellTable(
        centres=np.ascontiguousarray(centres),
        centre_columns=_as_columns(centres),
        sizes=np.diff(starts),
        starts=starts,
        keys=keys[order],
        blocks=blocks,
        block_starts=block_starts,
        reference_columns=_as_columns(references),
        reference_cells=nearest_centre(references, centres, n_jobs),
        power=power,
    )
    return order, table


def without_cells(n_points: int, n_references: int, n_features: int) -> CellTable:
    """Make the table of a metric that cells do not know: all points are far."""
    none = np.empty(0, dtype=np.float32)
    return CellTable(
        centres=np.zeros((1, n_features)),
        centre_columns=none,
        sizes=np.array([n_points]),
        starts=np.zeros(2, dtype=np.int64),
        keys=np.empty(0),
        blocks=none.reshape(0, n_features, BLOCK),
        block_starts=np.zeros(2, dtype=np.int64),
        reference_columns=none,
        reference_cells=np.zeros(n_references, dtype=np.int64),
        power=1,
    )


def _cell_blocks(points, centres, order, starts) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Lay the points out by cell, eight at a time and feature by feature, relative to the centres.

    No digits go for where a cell is, and what is read together lies together. What fills the last
    block of a cell is far from everything.
    """
    block_starts = np.concatenate([[0], np.cumsum(-(-np.diff(starts) // BLOCK))])
    cell_of = np.repeat(np.arange(len(centres)), np.diff(starts))
    slots = np.arange(len(order)) - starts[cell_of] + BLOCK * block_starts[cell_of]
    padded = np.full((BLOCK * block_starts[-1], points.shape[1]), _FAR_AWAY, dtype=np.float32)
    padded[slots] = points[order] - centres[cell_of]
    blocks = padded.reshape(-1, BLOCK, points.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(blocks), block_starts


def _as_columns(points: Any) -> NDArray[np.float32]:
    return np.asarray(points).T.astype(np.float32).ravel()
