"""What all search indexes share: queries in chunks, and any order where none is faster."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.neighbors.lists import NeighborLists, ReverseNeighbors

_N_AT_ONCE = 512  # queries: between two looks at whether to stop


class ReverseIndex(ABC):
    """Reverse queries on an index, given how far each of its points reaches."""

    @abstractmethod
    def query(self, points: Any) -> ReverseNeighbors:
        """Find, for each query, all points that have it within their reach."""


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
    def reverse(self, reaches: NDArray[np.float64]) -> ReverseIndex:
        """Prepare reverse queries, given how far each point reaches, shape (n,)."""
