r"""In-weights of new points on the graph, where a training point counts as several.

Point j then gives each neighbour a weight in proportion to :math:`s_l \kappa(d_{jl})`, and its
:math:`s_j` copies give a new point, of multiplicity one, the sum

.. math:: s_j \frac{\kappa(d^*_j)}{Z_j + \kappa(d^*_j)}, \qquad
          Z_j = \sum_{l \in N_{k-1}(j)} s_l \kappa(d_{jl})

These sums are plain NumPy: weights are rare, and the compiled kernels stay as they are.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.neighbors import TIE_TOLERANCE, ReverseNeighbors

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BELOW = 1.0 - TIE_TOLERANCE  # times a distance: what is not closer ties with it
_VALUES_AT_ONCE = 2**22
_LARGEST_EXPONENT = 700.0


class NewEdges(NamedTuple):
    """New points by the rows of the graph that they reach.

    Attributes
    ----------
    rows, queries : ndarray of int, shape (n_edges,)
        The row, and the new point, of each edge.
    distances : ndarray, shape (n_edges,)
    first, stop : ndarray of int, shape (n_edges,)
        How many neighbours of the row are closer than the new point, and closer or as close.
    tie_starts, tie_stops : ndarray of int, shape (n, n_columns)
        Where the neighbours that tie with each neighbour begin, and end.
    """

    rows: Ints
    queries: Ints
    distances: Floats
    first: Ints
    stop: Ints
    tie_starts: Ints
    tie_stops: Ints

    @classmethod
    def from_reverse(cls, reverse: ReverseNeighbors, graph_distances: Floats) -> "NewEdges":
        """Find the place of each new point among the neighbours of the rows that it reaches."""
        n_edges, n_columns = len(reverse.rows), graph_distances.shape[1]
        first, stop = np.empty((2, n_edges), dtype=np.int64)
        n_at_once = max(1, _VALUES_AT_ONCE // n_columns)
        for start in range(0, n_edges, n_at_once):
            some = slice(start, start + n_at_once)
            others, own = graph_distances[reverse.rows[some]], reverse.distances[some, None]
            first[some] = (others < own * _BELOW).sum(axis=1)
            stop[some] = (others * _BELOW <= own).sum(axis=1)
        columns = np.arange(n_columns)
        is_start = np.ones(graph_distances.shape, dtype=bool)
        is_start[:, 1:] = graph_distances[:, 1:] * _BELOW > graph_distances[:, :-1]
        starts = np.maximum.accumulate(np.where(is_start, columns, 0), axis=1)
        is_end = np.roll(is_start, -1, axis=1)
        is_end[:, -1] = True
        ends = np.where(is_end, columns + 1, n_columns)[:, ::-1]
        stops = np.minimum.accumulate(ends, axis=1)[:, ::-1]
        queries = reverse.queries
        return cls(reverse.rows, queries, reverse.distances, first, stop, starts, stops)

    def in_weights(self, values: Floats, log_ratios: Floats, k: int | None) -> Floats:
        """Give the in-weight of each new point from each row that it reaches, shape (n_edges,).

        Parameters
        ----------
        values : ndarray, shape (n, n_columns)
            Kernels of the neighbours of each row, times their multiplicities, relative to the
            kernel of the nearest.
        log_ratios : ndarray, shape (n_edges,)
            The log kernel of each new point relative to the nearest neighbour of the row.
        k : int or None
            The number of neighbours; None if a new point replaces none of them.
        """
        sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
        if k is None:
            share, rest = np.ones(len(self.rows)), sums[self.rows, -1]
        else:
            n_tied = self.stop - self.first + 1  # with the new point
            share = np.clip((k - self.first) / n_tied, 0.0, 1.0)
            before, until = sums[self.rows, self.first], sums[self.rows, self.stop]
            others = self._nearest_sums(sums, k - 1)[self.rows]
            rest = np.where(share == 1.0, others, before + share * (until - before))
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing, beside or of the new point
            gap = np.log(rest) - log_ratios - np.log(share)
        return np.where(share > 0.0, 1.0 / (1.0 + np.exp(np.minimum(gap, _LARGEST_EXPONENT))), 0.0)

    def _nearest_sums(self, sums: Floats, k: int) -> Floats:
        """Sum over the k nearest neighbours of each row; those that tie at the end share it."""
        if k == 0:
            return np.zeros(len(sums))
        start, stop = self.tie_starts[:, k - 1], self.tie_stops[:, k - 1]
        rows = np.arange(len(sums))
        before, until = sums[rows, start], sums[rows, stop]
        return before + (k - start) / (stop - start) * (until - before)


def sum_at(places: Ints, values: Floats, shape: tuple[int, ...]) -> Floats:
    """Add up values by their places in a flat array of a shape."""
    sums: Any = np.bincount(places.ravel(), weights=values.ravel(), minlength=int(np.prod(shape)))
    return sums.reshape(shape)
