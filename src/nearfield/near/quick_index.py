"""An exact index for very many searches: a tree where that saves most distances, else cells."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from nearfield.distances.neighbors import NeighborIndex
from nearfield.near._hashing import sample_rows
from nearfield.near._measure import Ruler
from nearfield.near.cell_index import CellIndex
from nearfield.sampling.cell_table import CellTable

_N_PROBES = 32
_N_NEIGHBORS = 64
_WORTH = 16  # distances in cells take so many times less than those by a tree
_MAX_OFFSET = 10.0  # standard deviations: with larger means no cell could be passed over
_PROBE_STREAM = 5


def quick_index(
    points: Any,
    *,
    metric: str | Callable[..., float] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    search: str = "exact",
    cells: tuple[NDArray[np.int64], CellTable] | None = None,
) -> NeighborIndex | CellIndex:
    """Build an index as `NeighborIndex.of`, but by cells where a tree takes longer.

    With eight or ten features a tree measures a tenth to a half of all distances, one by one.
    Of points in cells all of them are measured in less time. How many a tree would measure is
    counted for a few of the points, so that the choice is the same each time.

    Parameters
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
    metric, metric_params, search
        As in `NeighborIndex.of`.
    cells : tuple, optional
        From `sort_into_cells`, if the points are sorted.
    """
    found = NeighborIndex.of(points, metric=metric, metric_params=metric_params, search=search)
    power = Ruler(metric, metric_params or {}).power(points)
    is_by_tree = search == "exact" and getattr(found.index, "_tree", None) is not None
    if power is None or not (is_by_tree and _is_near_zero(points)):
        return found
    if _share_measured(found.index, points) * _WORTH < 1.0:
        return found
    return CellIndex.of(points, cells, power=power)


def _is_near_zero(points: Any) -> bool:
    return bool((np.abs(points.mean(axis=0)) <= _MAX_OFFSET * points.std(axis=0)).all())


def _share_measured(index: NearestNeighbors, points: Any) -> float:
    """Count which part of all distances the tree measures to find the neighbours of some points."""
    n_points = len(points)
    rows = sample_rows(n_points, _N_PROBES, 0, _PROBE_STREAM)
    index._tree.reset_n_calls()
    index.kneighbors(points[rows], min(_N_NEIGHBORS, n_points))
    return index._tree.get_n_calls() / (len(rows) * n_points)
