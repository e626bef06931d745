"""Points in cells, so that sums over all points can take near ones whole and far ones by a sample.

For each target the nearest cells count point by point, those around them by a quarter of their
points, and the rest by reference points. Cells, like the sums over them, are made for all the
points of one machine, or for a shard of them.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.near._hashing import row_uniforms
from nearfield.prediction import euclidean_distances_to
from nearfield.sampling.cell_sums import CellTable

N_WHOLE = 4_096
"""So many of the nearest points, about, are sources as they are."""

MAX_EXACT = 16_384
"""Up to so many points all are."""

_POINTS_A_CELL = 128
_MAX_CELLS = 2_048
_SOURCE_STREAM, _SHIFT_STREAM = 10, 11
_VALUES_AT_ONCE = 2**22


def n_cells(n_points: int) -> int:
    """Choose how many cells to have."""
    return int(np.clip(n_points // _POINTS_A_CELL, 1, _MAX_CELLS))


def n_whole(n_points: int) -> int:
    """Choose how many of the nearest points to take as they are, of the points of all shards."""
    return n_points if n_points <= MAX_EXACT else N_WHOLE


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
    n_jobs : int, optional

    Returns
    -------
    order : ndarray of int, shape (n,)
        The points in the order of the table.
    table : CellTable
        Its sizes are those of these points; for sums over shards, replace them by their sum.
    """
    cell_of = nearest_centre(points, centres, n_jobs)
    rows = np.arange(len(points)) if rows is None else rows
    keys = cell_of + row_uniforms(rows, seed, _SOURCE_STREAM)
    order = np.argsort(keys, kind="stable")
    starts = np.searchsorted(cell_of[order], np.arange(len(centres) + 1))
    table = CellTable(
        centres=np.ascontiguousarray(centres),
        centre_columns=_as_columns(centres),
        sizes=np.diff(starts),
        starts=starts,
        keys=keys[order],
        columns=_cell_columns(points, centres, order, starts),
        reference_columns=_as_columns(references),
        reference_cells=nearest_centre(references, centres, n_jobs),
        power=power,
    )
    return order, table


def _cell_columns(points, centres, order, starts) -> NDArray[np.float32]:
    """Lay the points out by cell and feature, relative to the centres.

    No digits go for where a cell is, and what is read together lies together.
    """
    columns = np.empty(points.size, dtype=np.float32)
    n_features = points.shape[1]
    for cell, (start, end) in enumerate(pairwise(starts)):
        relative = points[order[start:end]] - centres[cell]
        columns[start * n_features : end * n_features] = relative.T.ravel()
    return columns


def _as_columns(points: Any) -> NDArray[np.float32]:
    return np.asarray(points).T.astype(np.float32).ravel()
