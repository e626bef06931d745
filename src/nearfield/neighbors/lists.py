"""Results of neighbour queries: lists of the nearest points, and of those that are reached."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.neighbors.kernels.pair_sort import merge_pairs


class NeighborLists(NamedTuple):
    """The nearest points of some queries, nearest first."""

    distances: NDArray[np.float64]  # shape (m, K)
    rows: NDArray[np.int64]  # shape (m, K)

    def without(self, own_rows: NDArray[np.int64]) -> "NeighborLists":
        """Drop each query from its own list, or else the last entry: shape (m, K) to (m, K - 1).

        A point may be missing from its list where more than K others are at the same place.
        """
        is_own = self.rows == own_rows[:, None]
        n_columns = self.rows.shape[1]
        drop = np.where(is_own.any(axis=1), is_own.argmax(axis=1), n_columns - 1)
        kept = np.arange(n_columns) != drop[:, None]
        shape = len(own_rows), n_columns - 1
        return NeighborLists(self.distances[kept].reshape(shape), self.rows[kept].reshape(shape))

    def in_order(self) -> "NeighborLists":
        """Sort each list by distance and then by row."""
        order = np.lexsort((self.rows, self.distances), axis=1)
        return NeighborLists(
            np.take_along_axis(self.distances, order, axis=1),
            np.take_along_axis(self.rows, order, axis=1),
        )

    def first(self, n_neighbors: int) -> "NeighborLists":
        """Keep the first neighbours."""
        return NeighborLists(self.distances[:, :n_neighbors], self.rows[:, :n_neighbors])


class ReverseNeighbors(NamedTuple):
    """The points that have each of some queries within their reach.

    The entries of query i are ``starts[i] : starts[i + 1]``.
    """

    starts: NDArray[np.int64]  # shape (m + 1,)
    rows: NDArray[np.int64]  # shape (n_found,)
    distances: NDArray[np.float64]  # shape (n_found,)

    @classmethod
    def from_mask(
        cls, is_found: NDArray[np.bool_], distances: NDArray[np.float64]
    ) -> "ReverseNeighbors":
        """Take the marked entries of distances, shape (m, n)."""
        queries, rows = np.nonzero(is_found)
        starts = np.searchsorted(queries, np.arange(len(distances) + 1))
        return cls(starts, rows, distances[queries, rows])

    @property
    def queries(self) -> NDArray[np.int64]:
        """The query of each entry, shape (n_found,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def select(self, is_kept: NDArray[np.bool_]) -> "ReverseNeighbors":
        """Keep some of the entries."""
        counts = np.concatenate([[0], np.cumsum(is_kept)])
        return ReverseNeighbors(counts[self.starts], self.rows[is_kept], self.distances[is_kept])


class ShortLists(NamedTuple):
    """Points found near some of the queries, any number each, nearest first.

    Those of query ``places[t]`` are ``starts[t] : starts[t + 1]``.
    """

    places: NDArray[np.int64]  # shape (n_lists,)
    starts: NDArray[np.int64]  # shape (n_lists + 1,)
    distances: NDArray[np.float64]  # shape (n_found,)
    rows: NDArray[np.int64]  # shape (n_found,)

    @classmethod
    def from_lists(cls, places: NDArray[np.int64], lists: NeighborLists) -> "ShortLists":
        """Drop the entries at infinity."""
        is_found = np.isfinite(lists.distances)
        starts = np.concatenate([[0], np.cumsum(is_found.sum(axis=1))])
        return cls(places, starts, lists.distances[is_found], lists.rows[is_found])


def merge_lists(
    others: Sequence[ShortLists],
    n_queries: int,
    n_neighbors: int,
    start: NeighborLists | None = None,
) -> NeighborLists:
    """Merge the lists of several shards, by distance and then by row; fill up with infinity.

    Parameters
    ----------
    others : sequence of ShortLists
    n_queries, n_neighbors : int
    start : NeighborLists, optional
        To merge the others with; not longer than n_neighbors.
    """
    distances = np.full((n_queries, n_neighbors), np.inf)
    rows = np.full((n_queries, n_neighbors), -1)
    if start is not None:
        n_columns = start.rows.shape[1]
        distances[:, :n_columns], rows[:, :n_columns] = start
    for other in others:
        merge_pairs(distances, rows, *other)
    return NeighborLists(distances, rows)
