"""Training points dealt out to shards of whole cells, each on some worker."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.near.cells import nearest_centre

_MAX_SHARDS = 256
_LEAST_POINTS = 100  # in a shard, on average


class Shard(NamedTuple):
    """Some training points, where distances are taken, with their labels and row numbers."""

    points: NDArray[np.float64]  # shape (n, n_features)
    labels: NDArray[np.int64]  # shape (n,)
    rows: NDArray[np.int64]  # shape (n,), among all training points; they rise

    def part(self, chosen: NDArray[Any]) -> "Shard":
        """Take some of the points."""
        return Shard(*(array[chosen] for array in self))


def joined(parts: Sequence[Shard]) -> Shard:
    """Put points together, in the order of their rows."""
    whole = Shard(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return whole.part(np.argsort(whole.rows, kind="stable"))


def collect_rows(parts: Sequence[Delayed], rows: NDArray[np.int64]) -> Delayed:
    """Bring some rows to one worker, in the order of their numbers in `rows`."""
    ascending = np.sort(rows)
    return delayed(_in_order)([delayed(_with_rows)(part, ascending) for part in parts], rows)


def _with_rows(part: Shard, ascending: NDArray[np.int64]) -> Shard:
    return part.part(is_among(part.rows, ascending))


def _in_order(parts: list[Shard], rows: NDArray[np.int64]) -> Shard:
    found = joined(parts)
    return found.part(np.searchsorted(found.rows, rows))


def is_among(rows: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which rows are in a list of rising numbers, which may be of any length."""
    if len(ascending) == 0:
        return np.zeros(rows.shape, dtype=bool)
    places = np.minimum(np.searchsorted(ascending, rows), len(ascending) - 1)
    return ascending[places] == rows


def deal_out(
    blocks: Sequence[Delayed], centres: Delayed, n_points: int, n_cells: int
) -> list[Delayed]:
    """Make shards of neighbouring cells from blocks of points, as many as there are blocks.

    Fewer, if these are many or small: each shard meets others.

    Parameters
    ----------
    blocks : sequence of Delayed Shard
    centres : Delayed ndarray, shape (n_cells, n_features)
    n_points, n_cells : int
    """
    n_shards = min(len(blocks), n_cells, _MAX_SHARDS, max(n_points // _LEAST_POINTS, 1))
    cells = [delayed(_cells_of)(block, centres) for block in blocks]
    sizes = delayed(_total_sizes)(cells, n_cells)
    group_of = delayed(group_cells)(centres, sizes, n_shards)
    split = [
        delayed(_split, nout=n_shards)(block, cell_of, group_of, n_shards)
        for block, cell_of in zip(blocks, cells, strict=True)
    ]
    return [delayed(joined)([parts[s] for parts in split]) for s in range(n_shards)]


def _cells_of(block: Shard, centres: NDArray[np.float64]) -> NDArray[np.int64]:
    return nearest_centre(block.points, centres)


def _total_sizes(cells: list[NDArray[np.int64]], n_cells: int) -> NDArray[np.int64]:
    return np.bincount(np.concatenate(cells), minlength=n_cells)


def _split(
    block: Shard, cell_of: NDArray[np.int64], group_of: NDArray[np.int64], n_groups: int
) -> tuple[Shard, ...]:
    groups = group_of[cell_of]
    return tuple(block.part(groups == g) for g in range(n_groups))


def group_cells(
    centres: NDArray[np.float64], sizes: NDArray[np.int64], n_groups: int
) -> NDArray[np.int64]:
    """Put neighbouring cells together, in groups of about equally many points.

    Halves of halves, each cut across the feature in which the centres are farthest apart.

    Parameters
    ----------
    centres : ndarray, shape (n_cells, n_features)
    sizes : ndarray of int, shape (n_cells,)
    n_groups : int
        At most n_cells.

    Returns
    -------
    group_of : ndarray of int, shape (n_cells,)
    """
    group_of = np.zeros(len(sizes), dtype=np.int64)

    def divide(cells: NDArray[np.int64], first: int, n_parts: int) -> None:
        if n_parts == 1:
            group_of[cells] = first
            return
        n_left = n_parts // 2
        feature = np.argmax(np.ptp(centres[cells], axis=0))
        cells = cells[np.argsort(centres[cells, feature], kind="stable")]
        n_up_to = np.cumsum(sizes[cells])
        cut = int(np.searchsorted(n_up_to, n_up_to[-1] * n_left / n_parts)) + 1
        cut = min(max(cut, n_left), len(cells) - (n_parts - n_left))  # no group without a cell
        divide(cells[:cut], first, n_left)
        divide(cells[cut:], first + n_left, n_parts - n_left)

    divide(np.arange(len(sizes)), 0, n_groups)
    return group_of
