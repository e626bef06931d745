"""The nearest of all training points: exact, from the indexes of all shards.

Points are first queried on the shard of their own region. The distance of the last neighbour
there is the limit of the queries on other shards, of which those beyond the limit are left out.
Neighbours travel as codes, n_classes * row + label, since a shard knows its own labels alone.
"""

from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._shards import Cuts, Shard, Shards, places_of
from nearfield.neighbors import TIE_TOLERANCE, NeighborLists, ShortLists, merge_lists

WITH_TIES = 1.0 + 4.0 * TIE_TOLERANCE
"""Times a distance: past all that may tie with it."""


class Queries(NamedTuple):
    """Some of the points that are queried, for one shard."""

    places: NDArray[np.int64]  # shape (m,), among all of these points
    points: NDArray[np.float64]  # shape (m, n_features)
    limits: NDArray[np.float64]  # shape (m,)


class HomeLists(NamedTuple):
    """Points with their neighbours on the shard of their own region."""

    points: NDArray[np.float64]  # shape (m, n_features)
    codes: NDArray[np.int64]  # shape (m,): of training points; -1 for new points
    homes: NDArray[np.int64]  # shape (m,): the shard
    lists: NeighborLists  # of codes


def search_training(
    shards: Shards, n_neighbors: int, sites: NDArray[np.int64] | None = None
) -> list[tuple[Delayed, Delayed]]:
    """Search the neighbours of training points, all or some: `HomeLists`, and merged lists.

    Parameters
    ----------
    shards : Shards
    n_neighbors : int
    sites : ndarray of int, shape (n_sites,), optional
        Row numbers.
    """
    homes = [
        delayed(_search_home)(shard, s, n_neighbors, sites) for s, shard in enumerate(shards.shards)
    ]
    return [(home, _search_elsewhere(shards, home, n_neighbors)) for home in homes]


def search_new(shards: Shards, points: Delayed, n_neighbors: int) -> Delayed:
    """Search the nearest training points of new points, as `NeighborLists` of codes."""
    n_shards, cuts = len(shards.shards), shards.cuts
    split = delayed(_split_by_home, nout=n_shards)(points, cuts, n_shards)
    home = delayed(_merge_home)(points, cuts, _answers(shards, split, n_neighbors), n_neighbors)
    return _search_elsewhere(shards, home, n_neighbors)


def _search_elsewhere(shards: Shards, home: Delayed, n_neighbors: int) -> Delayed:
    """Query points on the shards that are not their own, and merge the lists."""
    n_shards = len(shards.shards)
    asked = delayed(_select, nout=n_shards)(home, shards.boxes, n_neighbors, shards.power)
    return delayed(_merge)(home, _answers(shards, asked, n_neighbors), n_neighbors)


def _answers(shards: Shards, asked: Delayed, n_neighbors: int) -> list[Delayed]:
    pairs = zip(shards.shards, asked, strict=True)
    return [delayed(answer)(shard, queries, n_neighbors) for shard, queries in pairs]


def answer(shard: Shard, queries: Queries, n_neighbors: int) -> ShortLists:
    """Find the nearest points of a shard, within the limits of the queries."""
    places, points, limits = queries
    if shard.index is None or len(places) == 0:
        none = np.empty(0, dtype=np.int64)
        return ShortLists(none, np.zeros(1, dtype=np.int64), np.empty(0), none)
    n_found = min(n_neighbors, len(shard.codes))
    distances, rows = shard.index.query_within(points, n_found, limits)
    return ShortLists.from_lists(places, NeighborLists(distances, shard.codes[rows]))


def _search_home(
    shard: Shard, number: int, n_neighbors: int, sites: NDArray[np.int64] | None
) -> HomeLists:
    points, _, rows = shard.block
    # Neighbours in turn: what one query reads serves the next.
    chosen = np.arange(0) if shard.index is None else shard.index.order
    if sites is not None:
        chosen = chosen[np.isin(chosen, places_of(rows, sites))]
    homes = np.full(len(chosen), number)
    if shard.index is None or len(chosen) == 0:
        return HomeLists(points[chosen], shard.codes[chosen], homes, merge_lists([], 0, 1))
    n_found = min(n_neighbors + 1, len(rows))
    distances, local = shard.index.query(points[chosen], n_found).without(chosen)
    lists = NeighborLists(distances, shard.codes[local])
    return HomeLists(points[chosen], shard.codes[chosen], homes, lists)


def _split_by_home(points: NDArray[np.float64], cuts: Cuts, n_shards: int) -> tuple[Queries, ...]:
    homes = cuts.shard_of(points)
    places = [np.flatnonzero(homes == s) for s in range(n_shards)]
    return tuple(Queries(some, points[some], np.full(len(some), np.inf)) for some in places)


def _merge_home(
    points: NDArray[np.float64], cuts: Cuts, answers: list[ShortLists], n_neighbors: int
) -> HomeLists:
    lists = merge_lists(answers, len(points), n_neighbors)
    return HomeLists(points, np.full(len(points), -1), cuts.shard_of(points), lists)


def _select(
    home: HomeLists, boxes: NDArray[np.float64], n_neighbors: int, power: int | None
) -> list[Queries]:
    """Choose for each shard the points that may have neighbours there."""
    points, _, homes, lists = home
    limits = np.full(len(points), np.inf)
    if lists.distances.shape[1] == n_neighbors:
        limits = lists.distances[:, -1] * WITH_TIES
    asked = []
    for number, (low, high) in enumerate(boxes):
        is_near = homes != number
        if power is not None:
            gaps = np.maximum(np.maximum(low - points, points - high), 0.0)
            distances = gaps.sum(axis=1) if power == 1 else np.linalg.norm(gaps, axis=1)
            is_near &= distances <= limits
        places = np.flatnonzero(is_near)
        asked.append(Queries(places, points[places], limits[places]))
    return asked


def _merge(home: HomeLists, answers: list[ShortLists], n_neighbors: int) -> NeighborLists:
    return merge_lists(answers, len(home.points), n_neighbors, home.lists)
