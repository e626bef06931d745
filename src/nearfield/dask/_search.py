"""The nearest of all training points: sought on every shard, and merged exactly."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._shards import Shard, is_among
from nearfield.distances.neighbors import NeighborIndex
from nearfield.near._measure import Ruler
from nearfield.near.box_index import BoxIndex
from nearfield.near.normalizers import Normalizers
from nearfield.near.quick_index import quick_index

_N_MERGED = 8  # lists at once


class Found(NamedTuple):
    """The nearest training points of some others, nearest first."""

    distances: NDArray[np.float64]  # shape (m, K), or fewer where a shard has no more
    rows: NDArray[np.int64]  # of the same shape


class RowTable(NamedTuple):
    """What the support of a point needs to know of some training points."""

    rows: NDArray[np.int64]  # shape (n,), rising
    labels: NDArray[np.int64]  # shape (n,)
    nearest: NDArray[np.float64]  # shape (n,)
    log_totals: NDArray[np.float32]  # shape (n, n_scales)


def find_nearest(
    shards: Sequence[Delayed], indexes: Sequence[Delayed], points: Delayed, n_neighbors: Any
) -> Delayed:
    """Find the nearest of all training points, as `Found`.

    Parameters
    ----------
    shards : sequence of Delayed Shard
    indexes : sequence of Delayed indexes
        Of the shards.
    points : Delayed ndarray, shape (m, n_features)
    n_neighbors : int or Delayed int
    """
    lists = [
        delayed(_search)(shard, index, points, n_neighbors)
        for shard, index in zip(shards, indexes, strict=True)
    ]
    while len(lists) > 1:
        lists = [
            delayed(merge)(lists[start : start + _N_MERGED], n_neighbors)
            for start in range(0, len(lists), _N_MERGED)
        ]
    return lists[0]


def gather_table(
    shards: Sequence[Delayed], normalizers: Sequence[Delayed], rows: Sequence[Any]
) -> Delayed:
    """Bring to one place what is to be known of some training points, as `RowTable`.

    Parameters
    ----------
    shards : sequence of Delayed Shard
    normalizers : sequence of Delayed Normalizers
        Of the shards.
    rows : sequence of Delayed ndarray of int
        Of any shape; a row may come more than once.
    """
    wanted = delayed(_rising)(list(rows))
    parts = [
        delayed(_pick)(shard, totals, wanted)
        for shard, totals in zip(shards, normalizers, strict=True)
    ]
    return delayed(stack)(parts)


def build_index(shard: Shard, ruler: Ruler, search: str) -> NeighborIndex | BoxIndex | None:
    """Build the index of a shard; none if it is empty."""
    if len(shard.rows) == 0:
        return None
    return quick_index(shard.points, metric=ruler.metric, metric_params=ruler.params, search=search)


def _search(
    shard: Shard,
    index: NeighborIndex | BoxIndex | None,
    points: NDArray[np.float64],
    n_neighbors: int,
) -> Found:
    n_found = min(n_neighbors, len(shard.rows))
    if index is None or len(points) == 0:
        shape = len(points), n_found
        return Found(np.empty(shape), np.empty(shape, dtype=np.int64))
    distances, places = index.query(points, n_found)
    return Found(distances, shard.rows[places])


def merge(lists: Sequence[Found], n_neighbors: int) -> Found:
    """Keep the nearest of several lists; which ones of equally near last ones is left open."""
    distances, rows = (np.concatenate(arrays, axis=1) for arrays in zip(*lists, strict=True))
    if distances.shape[1] > n_neighbors:
        chosen = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
        distances, rows = (np.take_along_axis(a, chosen, axis=1) for a in (distances, rows))
    order = np.lexsort((rows, distances), axis=1)
    return Found(*(np.take_along_axis(array, order, axis=1) for array in (distances, rows)))


def _rising(rows: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.unique(np.concatenate([some.ravel() for some in rows]))


def _pick(shard: Shard, normalizers: Normalizers, wanted: NDArray[np.int64]) -> RowTable:
    chosen = is_among(shard.rows, wanted)
    return RowTable(
        shard.rows[chosen],
        shard.labels[chosen],
        normalizers.nearest[chosen],
        normalizers.log_totals[chosen],
    )


def stack(parts: Sequence[RowTable]) -> RowTable:
    """Put tables together, in the order of the rows, each once."""
    rows, first = np.unique(np.concatenate([part.rows for part in parts]), return_index=True)
    labels, nearest, log_totals = (
        np.concatenate([part[column] for part in parts])[first] for column in (1, 2, 3)
    )
    return RowTable(rows, labels, nearest, log_totals)
