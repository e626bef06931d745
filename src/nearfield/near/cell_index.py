"""An exact index of points in cells: for distances that a tree would measure nearly all of."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nearfield.distances.neighbors import in_chunks
from nearfield.near._hashing import sample_rows
from nearfield.near.cells import n_cells, sort_into_cells
from nearfield.sampling.cell_search import cell_neighbors
from nearfield.sampling.cell_table import CellTable

_CENTRE_STREAM = 6
_N_AT_ONCE = 2**16


@dataclass(frozen=True, eq=False)
class CellIndex:
    """An index over points in cells that finds the nearest of them, by Euclid or Manhattan.

    Cells whose nearest point cannot count are passed over, of the others all points are measured:
    beside brute force, in less than half the time.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
    order : ndarray of int, shape (n,)
        The points in the order of the table.
    table : CellTable
    radii : ndarray of float32, shape (n_cells,)
        How far the points of each cell are from its centre at most.
    """

    points: NDArray[np.float64] = field(repr=False)
    order: NDArray[np.int64] = field(repr=False)
    table: CellTable = field(repr=False)
    radii: NDArray[np.float32] = field(repr=False)

    @classmethod
    def of(
        cls,
        points: NDArray[np.float64],
        cells: tuple[NDArray[np.int64], CellTable] | None = None,
        *,
        power: int = 2,
    ) -> "CellIndex":
        """Sort points into cells, unless they are.

        Parameters
        ----------
        points : ndarray, shape (n, n_features)
        cells : tuple, optional
            From `sort_into_cells`, of all these points.
        power : int
            2 for Euclidean distances, 1 for Manhattan distances.
        """
        if cells is None:
            centres = points[sample_rows(len(points), n_cells(len(points)), 0, _CENTRE_STREAM)]
            cells = sort_into_cells(points, centres, points[:0], 0, power=power)
        return cls(points, *cells, _radii(points, *cells))

    def query(
        self,
        points: NDArray[np.float64],
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the nearest points, as `NeighborIndex.query`; of equally far ones the first rows."""

        def find(some: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            shape = len(some), n_neighbors
            distances, index = np.empty(shape), np.empty(shape, dtype=np.int64)
            targets = np.ascontiguousarray(some, dtype=np.float64)
            cell_neighbors(
                targets, self.table, self.radii, self.points, self.order, distances, index
            )
            return distances, index

        return in_chunks(find, points, n_jobs=n_jobs, advance=advance)


def _radii(
    points: NDArray[np.float64], order: NDArray[np.int64], table: CellTable
) -> NDArray[np.float32]:
    """Find how far the points of each cell are from its centre, rounded up."""
    cell_of = np.repeat(np.arange(len(table.centres)), np.diff(table.starts))
    radii = np.zeros(len(table.centres))
    for start in range(0, len(order), _N_AT_ONCE):
        cells = cell_of[start : start + _N_AT_ONCE]
        gaps = points[order[start : start + _N_AT_ONCE]] - table.centres[cells]
        lengths = np.abs(gaps).sum(axis=1) if table.power == 1 else np.linalg.norm(gaps, axis=1)
        np.maximum.at(radii, cells, lengths)
    with np.errstate(over="ignore"):
        return np.nextafter((radii * (1.0 + 1e-12)).astype(np.float32), np.float32(np.inf))
