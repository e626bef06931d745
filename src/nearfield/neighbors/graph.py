"""The k-nearest-neighbour graph of the training points."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.neighbors.base import Index, NeighborLists
from nearfield.neighbors.kernels.box_search import fill_distances

TIE_TOLERANCE = 1e-10
"""Distances that differ by less than this, relative to them, count as equal."""

_N_WITH_ALL_TIES = 2_000
_MIN_TIES = 64
_N_BATCH = 2**16


@dataclass(frozen=True, eq=False)
class NeighborGraph:
    """The nearest neighbours of every point, nearest first.

    The first k columns are the graph of any k up to `n_neighbors`. Where points tie with the last
    of these neighbours there are further columns, so that the ties can share their weight.

    Attributes
    ----------
    distances : ndarray, shape (n, n_columns)
    rows : ndarray of int32, shape (n, n_columns)
        The row number of each neighbour.
    n_neighbors : int
        The largest k.
    """

    distances: NDArray[np.float64] = field(repr=False)
    rows: NDArray[np.int32] = field(repr=False)
    n_neighbors: int

    @classmethod
    def from_index(
        cls,
        index: Index,
        points: Any,
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> "NeighborGraph":
        """Search the neighbours of all points of an index.

        Parameters
        ----------
        index : Index
        points : ndarray or sparse matrix, shape (n, n_features)
            The points of the index, in their order.
        n_neighbors : int
            At most n - 1.
        n_jobs : int, optional
            Threads; the result does not depend on it.
        advance : callable, optional
            Called with the number of points done, now and then.
        """
        order = index.order  # neighbours in turn: what one query reads serves the next

        def search(rows: NDArray[np.int64], n_columns: int) -> NeighborLists:
            found = index.query(points[rows], n_columns + 1, n_jobs=n_jobs, advance=advance)
            return found.without(rows)

        return build_graph(search, order, n_neighbors)

    @classmethod
    def from_distances(cls, distances: NDArray[np.float64], n_neighbors: int) -> "NeighborGraph":
        """Sort the distances between all points, shape (n, n); the diagonal plays no part."""
        others = np.array(distances, dtype=np.float64)
        np.fill_diagonal(others, np.inf)
        order = np.argsort(others, axis=1, kind="stable")

        def search(rows: NDArray[np.int64], n_columns: int) -> NeighborLists:
            nearest = order[rows, :n_columns] if n_columns < len(order) else order[rows, :-1]
            return NeighborLists(np.take_along_axis(others[rows], nearest, axis=1), nearest)

        return build_graph(search, np.arange(len(others)), n_neighbors)

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return len(self.rows)

    def extended(self, index: Index, points: Any, *, n_jobs: int | None = None) -> "NeighborGraph":
        """Add points: search their neighbours, and those of the points that they reach.

        The result is the graph of all points.

        Parameters
        ----------
        index : Index
            Over all points.
        points : ndarray or sparse matrix, shape (n + m, n_features)
            The points of this graph, and then the new ones.
        n_jobs : int, optional
        """
        n_points, n_all = self.n_points, points.shape[0]
        new = np.arange(n_points, n_all)
        reaches = np.full(n_all, -1.0)
        reaches[:n_points] = past_ties(self.distances[:, -1])
        reached = np.unique(index.reverse(reaches).query(points[new]).rows)
        changed = np.concatenate([reached, new]).astype(np.int64)
        n_columns = self.rows.shape[1]
        n_searched = min(n_columns + 1, most_columns(self.n_neighbors, n_all - 1))
        found = index.query(points[changed], n_searched + 1, n_jobs=n_jobs).without(changed)
        if last_tie(found.distances, self.n_neighbors) > n_columns:  # all lists become longer
            return NeighborGraph.from_index(index, points, self.n_neighbors, n_jobs=n_jobs)
        found = found.first(n_columns)
        distances = np.concatenate([self.distances, np.empty((len(new), n_columns))])
        rows = np.concatenate([self.rows, np.empty((len(new), n_columns), dtype=np.int32)])
        distances[changed], rows[changed] = found
        return NeighborGraph(distances, rows, self.n_neighbors)

    def without_distances(self) -> "NeighborGraph":
        """Leave out what follows from the points."""
        return NeighborGraph(np.empty((0, 0)), self.rows, self.n_neighbors)

    def with_distances(self, points: NDArray[np.float64], power: int) -> "NeighborGraph":
        """Measure the distances anew: Euclidean ones (2) or Manhattan ones (1), bit for bit."""
        distances = np.empty(self.rows.shape)
        fill_distances(points, self.rows, power, distances)
        return NeighborGraph(distances, self.rows, self.n_neighbors)

    def first(self, n_neighbors: int) -> "NeighborGraph":
        """Give the graph of fewer neighbours, with the ties of the last of them."""
        n_columns = last_tie(self.distances, n_neighbors)
        return NeighborGraph(
            np.ascontiguousarray(self.distances[:, :n_columns]),
            np.ascontiguousarray(self.rows[:, :n_columns]),
            n_neighbors,
        )


def build_graph(
    search: Callable[[NDArray[np.int64], int], NeighborLists],
    order: NDArray[np.int64],
    n_neighbors: int,
) -> NeighborGraph:
    """Build the graph from a search for the neighbours of training points.

    Parameters
    ----------
    search : callable
        Takes row numbers and a number of columns and returns the lists of these points.
    order : ndarray of int, shape (n,)
        The order in which to search.
    n_neighbors : int
    """
    n_points = len(order)
    most = most_columns(n_neighbors, n_points - 1)
    n_columns = n_neighbors
    while True:
        distances = np.empty((n_points, n_columns))
        rows = np.empty((n_points, n_columns), dtype=np.int32)
        n_needed = n_neighbors
        for start in range(0, n_points, _N_BATCH):  # so that nothing is held twice
            some = order[start : start + _N_BATCH]
            found = search(some, min(n_columns + 1, most))  # one more tells whether ties are cut
            n_needed = max(n_needed, last_tie(found.distances, n_neighbors))
            if n_needed > n_columns:
                break
            distances[some], rows[some] = found.first(n_columns)
        else:
            graph = NeighborGraph(distances, rows, n_neighbors)
            return graph if n_needed == n_columns else graph.first(n_neighbors)
        n_columns = min(2 * n_columns, most)


def search_with_ties(
    search: Callable[[int], NeighborLists], n_neighbors: int, n_others: int
) -> NeighborLists:
    """Search for neighbours and for the points that tie with the last of them.

    Ties are complete up to 2,000 points. With more points a list has at most four times as many
    columns as neighbours, or 64: of more points at the same distance the first ones count.

    Parameters
    ----------
    search : callable
        Takes a number of columns, and returns as many or more.
    n_neighbors : int
    n_others : int
        The number of points that can be neighbours.
    """
    most = most_columns(n_neighbors, n_others)
    found = search(min(n_neighbors + 1, most))
    while (n_columns := found.rows.shape[1]) < most:
        if last_tie(found.distances, n_neighbors) < n_columns:
            break
        found = search(min(2 * n_columns, most))
    return found.first(last_tie(found.distances, n_neighbors))


def most_columns(n_neighbors: int, n_others: int) -> int:
    """Give the largest number of columns that ties may make a list have."""
    if n_others <= _N_WITH_ALL_TIES:
        return n_others
    return min(n_others, max(4 * n_neighbors, _MIN_TIES))


def past_ties(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give distances just beyond all that tie with the given ones."""
    return distances * (1.0 + 4.0 * TIE_TOLERANCE)


def last_tie(distances: NDArray[np.float64], n_neighbors: int) -> int:
    """Count the columns up to the last one that ties with neighbour k in some row.

    Entries at infinity, which fill up lists, do not tie.
    """
    n_columns = n_neighbors
    is_tied: Any = np.ones(len(distances), dtype=bool)
    while n_columns < distances.shape[1]:
        below = distances[:, n_columns] * (1.0 - TIE_TOLERANCE)
        is_tied = is_tied & (below <= distances[:, n_columns - 1]) & np.isfinite(below)
        if not is_tied.any():
            break
        n_columns += 1
    return n_columns
