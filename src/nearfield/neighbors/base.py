"""What all search indexes share: the queries that they answer, and the lists that they find."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.neighbors.kernels.pair_sort import merge_pairs

_N_AT_ONCE = 512  # queries: between two looks at whether to stop


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


def merge_lists(others: Sequence[ShortLists], n_queries: int, n_neighbors: int) -> NeighborLists:
    """Merge the lists of several shards, by distance and then by row; fill up with infinity."""
    distances = np.full((n_queries, n_neighbors), np.inf)
    rows = np.full((n_queries, n_neighbors), -1)
    for other in others:
        merge_pairs(distances, rows, *other)
    return NeighborLists(distances, rows)


class Index(ABC):
    """An index over n points: ``len(index)`` is n."""

    @abstractmethod
    def __len__(self) -> int: ...

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """An order of the points in which queries are fast, shape (n,)."""
        return np.arange(len(self))

    def query_order(self, points: Any) -> NDArray[np.int64]:
        """Give an order of queries in which they are fast."""
        return np.arange(points.shape[0])

    def query(
        self,
        points: Any,
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> NeighborLists:
        """Find the nearest points of each query, nearest first.

        Parameters
        ----------
        points : ndarray or sparse matrix, shape (m, n_features)
            With precomputed distances, those to all points, shape (m, n).
        n_neighbors : int
        n_jobs : int, optional
            Threads; the result does not depend on it.
        advance : callable, optional
            Called with the number of queries done, now and then.
        """

        def find_some(start: int) -> NeighborLists:
            chunk = points[start : start + _N_AT_ONCE]
            found = self.query_within(chunk, n_neighbors, np.full(chunk.shape[0], np.inf))
            if advance is not None:
                advance(chunk.shape[0])
            return found

        starts = range(0, points.shape[0], _N_AT_ONCE)
        if len(starts) == 1:
            return find_some(0)
        parts = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(find_some)(s) for s in starts)
        return NeighborLists(*map(np.concatenate, zip(*parts, strict=True)))

    @abstractmethod
    def query_within(
        self, points: Any, n_neighbors: int, limits: NDArray[np.float64]
    ) -> NeighborLists:
        """Find the nearest points that are no farther than a limit, shape (m,), of each query.

        Missing ones are rows -1 at infinity. An index that gains nothing by a limit may return
        points beyond it.
        """

    @abstractmethod
    def points_at(self, rows: NDArray[np.int64]) -> Any:
        """Give some of its points, as queries."""

    @abstractmethod
    def reverse(self, reaches: NDArray[np.float64]) -> "ReverseIndex":
        """Prepare reverse queries, given how far each point reaches, shape (n,)."""


class ReverseIndex(NamedTuple):
    """Reverse queries on an index, given how far each of its points reaches."""

    query: Callable[[Any], ReverseNeighbors]
    """Find, for each query, all points that have it within their reach."""
