"""An exact index for very many searches: boxes where they save distances, else scikit-learn's."""

from collections.abc import Callable, Mapping
from typing import Any

from nearfield.distances.neighbors import NeighborIndex
from nearfield.near._hashing import sample_rows
from nearfield.near._measure import Ruler
from nearfield.near.box_index import BoxIndex

_N_PROBES = 32
_N_NEIGHBORS = 64
_MOST_FEATURES = 15  # with more, matrix products may be faster than boxes
_WORTH = 0.5  # they are if so many of the boxes have to be looked into
_PROBE_STREAM = 5


def quick_index(
    points: Any,
    *,
    metric: str | Callable[..., float] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    search: str = "exact",
) -> NeighborIndex | BoxIndex:
    """Build an index as `NeighborIndex.of`, but by boxes where that takes longer.

    With many features and no structure in them a search looks into nearly all boxes. How many is
    counted for a few of the points, so that the choice is the same each time.

    Parameters
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
    metric, metric_params, search
        As in `NeighborIndex.of`.
    """
    power = Ruler(metric, metric_params or {}).power(points)
    if search == "exact" and power is not None:
        boxes = BoxIndex.of(points, power=power)
        n_points, n_features = points.shape
        if power == 1 or n_features <= _MOST_FEATURES:
            return boxes
        probes = points[sample_rows(n_points, _N_PROBES, 0, _PROBE_STREAM)]
        if boxes.share_near(probes, min(_N_NEIGHBORS, n_points)) < _WORTH:
            return boxes
    return NeighborIndex.of(points, metric=metric, metric_params=metric_params, search=search)
