"""Approximate search by an inverted file of faiss (the extra ``nearfield[ann]``)."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield._extras import import_extra
from nearfield.neighbors.base import Index, NeighborLists, ReverseIndex, ReverseNeighbors
from nearfield.neighbors.index import measured_again

_N_PROBES, _N_USUAL = 32, 64  # cells that are searched for as many neighbours
_MAX_CELLS = 4_096
_TRAINING_POINTS_A_CELL = 64
_N_CANDIDATES = 128  # of a reverse query


@dataclass(frozen=True, eq=False)
class ApproximateIndex(Index):
    """An inverted file over points, for Euclidean distances; a few neighbours are missed.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
    index : faiss.IndexIVFFlat
    """

    points: NDArray[np.float64] = field(repr=False)
    index: Any = field(repr=False)

    @classmethod
    def from_points(cls, points: NDArray[np.float64]) -> "ApproximateIndex":
        """Build the index."""
        faiss = _import_faiss()
        n_points, n_features = points.shape
        n_cells = int(np.clip(np.sqrt(n_points) * 4.0, 1, min(_MAX_CELLS, max(n_points // 39, 1))))
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_features), n_features, n_cells)
        index.cp.max_points_per_centroid = _TRAINING_POINTS_A_CELL
        single = np.ascontiguousarray(points, dtype=np.float32)
        index.train(single)
        index.add(single)
        return cls(points, index)

    def __len__(self) -> int:
        return len(self.points)

    def query_within(
        self, points: NDArray[np.float64], n_neighbors: int, limits: NDArray[np.float64]
    ) -> NeighborLists:
        """Find nearest points, at any distance, in the cells around each query."""
        single = np.ascontiguousarray(points, dtype=np.float32)
        n_probes = int(_N_PROBES * max(n_neighbors / _N_USUAL, 1.0) ** (1.0 / 3.0))
        rows = self._search(single, n_neighbors, n_probes)
        is_short = (rows < 0).any(axis=1)  # the cells around have no more points
        if is_short.any():
            rows[is_short] = self._search(single[is_short], n_neighbors, self.index.nlist)
        lists = NeighborLists(np.empty(rows.shape), rows)
        return measured_again(points, lists, self.points).in_order()

    def points_at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give some of its points."""
        return self.points[rows]

    def reverse(self, reaches: NDArray[np.float64]) -> ReverseIndex:
        """Prepare reverse queries among the 128 nearest points of a query: others are missed."""
        return ReverseIndex(partial(self._query_reverse, reaches=reaches))

    def _query_reverse(
        self, points: NDArray[np.float64], reaches: NDArray[np.float64]
    ) -> ReverseNeighbors:
        found = self.query(points, min(_N_CANDIDATES, len(reaches)))
        starts = np.arange(0, found.rows.size + 1, found.rows.shape[1])
        rows, distances = found.rows.ravel(), found.distances.ravel()
        return ReverseNeighbors(starts, rows, distances).select(distances <= reaches[rows])

    def _search(
        self, queries: NDArray[np.float32], n_neighbors: int, n_cells: int
    ) -> NDArray[np.int64]:
        faiss = _import_faiss()
        cells = faiss.SearchParametersIVF(nprobe=min(n_cells, self.index.nlist))
        return self.index.search(queries, n_neighbors, params=cells)[1]


def _import_faiss() -> Any:
    return import_extra("faiss", ', or use search="exact".')
