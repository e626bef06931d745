"""Indexes over points: exact by a tree of boxes or by scikit-learn, or approximate."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from nearfield._hashing import sample_rows
from nearfield.distances import canonical_metric, distance_matrix
from nearfield.neighbors.base import Index, NeighborLists, ReverseIndex, ReverseNeighbors
from nearfield.neighbors.boxes import BoxIndex

SearchName = Literal["exact", "approximate"]
SEARCHES: tuple[SearchName, ...] = get_args(SearchName)

_ONE_AT_A_TIME = Lock()
_EUCLIDEAN = ("euclidean", "l2")
_MANHATTAN = ("manhattan", "cityblock", "l1")
_N_MEASURED = 16  # queries whose neighbours, measured again, stay in the cache
_VALUES_AT_ONCE = 2**22  # distances of reverse queries by brute force: 32 MB

_MANY_FEATURES = 15  # above, matrix products may be faster than boxes
_N_PROBES, _N_PROBE_NEIGHBORS = 32, 64
_MOST_BOXES = 0.5  # they are faster if a query visits a larger share of the boxes
_PROBE_STREAM = 5


def make_index(
    points: Any,
    *,
    metric: str | Callable[..., float] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    search: str = "exact",
) -> Index:
    """Build an index over points.

    Exact search is by a tree of boxes for Euclidean and Manhattan distances, and by scikit-learn
    for other metrics. With many features and no structure in them a search visits nearly all
    boxes, and brute force by matrix products is faster; how many boxes are visited is measured
    for a few of the points.

    Parameters
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
        With ``metric="precomputed"`` their number alone counts.
    metric : str or callable
    metric_params : mapping, optional
    search : {"exact", "approximate"}
    """
    if isinstance(metric, str) and metric == "precomputed":
        return PrecomputedIndex(points.shape[0])
    power = box_power(points, metric, metric_params)
    if search == "approximate":
        if power != 2:
            raise ValueError(
                'Expected Euclidean distances between dense points for search="approximate"; '
                f"got metric={metric!r} and {type(points).__name__}. "
                'Use search="exact", or a learned metric, which is Euclidean after a map.'
            )
        from nearfield.neighbors.approximate import ApproximateIndex

        return ApproximateIndex.from_points(points)
    if power is not None:
        boxes = BoxIndex.from_points(points, power=power)
        n_points, n_features = points.shape
        if power == 1 or n_features <= _MANY_FEATURES:
            return boxes
        probes = points[sample_rows(n_points, _N_PROBES, 0, _PROBE_STREAM)]
        if boxes.share_in_reach(probes, min(_N_PROBE_NEIGHBORS, n_points)) < _MOST_BOXES:
            return boxes
    return MetricIndex.from_points(points, metric, metric_params)


def box_power(
    points: Any, metric: str | Callable[..., float], metric_params: Mapping[str, Any] | None
) -> int | None:
    """Return 2 for Euclidean and 1 for Manhattan distances of dense points, None for others."""
    if not isinstance(metric, str) or metric_params or sp.issparse(points):
        return None
    return 2 if metric in _EUCLIDEAN else 1 if metric in _MANHATTAN else None


@dataclass(frozen=True, eq=False)
class MetricIndex(Index):
    """scikit-learn's choice of a tree or brute force, for any metric.

    Attributes
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
    metric : str or callable
    metric_params : dict
    index : NearestNeighbors
    """

    points: Any = field(repr=False)
    metric: str | Callable[..., float]
    metric_params: Mapping[str, Any]
    index: NearestNeighbors = field(repr=False)

    @classmethod
    def from_points(
        cls,
        points: Any,
        metric: str | Callable[..., float],
        metric_params: Mapping[str, Any] | None = None,
    ) -> "MetricIndex":
        """Fit scikit-learn's index."""
        params = dict(metric_params or {})
        index = NearestNeighbors(metric=canonical_metric(metric), metric_params=params or None)
        return cls(points, metric, params, index.fit(points))

    def __len__(self) -> int:
        return self.points.shape[0]

    def query_within(
        self, points: Any, n_neighbors: int, limits: NDArray[np.float64]
    ) -> NeighborLists:
        """Find the nearest points at any distance."""
        # scikit-learn's trees share one buffer for Mahalanobis distances among all threads.
        is_shared = self.index.metric == "mahalanobis"
        with _ONE_AT_A_TIME if is_shared else nullcontext():
            found = NeighborLists(*self.index.kneighbors(points, n_neighbors))
        return self._measured_again(points, found).in_order()

    def points_at(self, rows: NDArray[np.int64]) -> Any:
        """Give some of its points."""
        return self.points[rows]

    def reverse(self, reaches: NDArray[np.float64]) -> ReverseIndex:
        """Prepare reverse queries by brute force."""
        return ReverseIndex(partial(query_reverse, distances_of=self._distances, reaches=reaches))

    def _distances(self, points: Any) -> NDArray[np.float64]:
        """Measure from each query to each point, shape (m, n)."""
        return distance_matrix(
            points, self.points, metric=self.metric, metric_params=self.metric_params
        )

    def _measured_again(self, points: Any, found: NeighborLists) -> NeighborLists:
        """Measure Euclidean distances again by subtraction.

        Brute force expands the square, by which a point is not at distance zero from itself.
        """
        is_expanded = self.index._fit_method == "brute" and not sp.issparse(self.points)
        if not is_expanded or box_power(self.points, self.metric, self.metric_params) != 2:
            return found
        return measured_again(points, found, self.points)


def query_reverse(
    points: Any,
    distances_of: Callable[[Any], NDArray[np.float64]],
    reaches: NDArray[np.float64],
) -> ReverseNeighbors:
    """Find, for each query, all points that have it within their reach, by brute force.

    Parameters
    ----------
    points : ndarray or sparse matrix, shape (m, ...)
    distances_of : callable
        Measures from queries to each point, shape (m, n).
    reaches : ndarray, shape (n,)
    """
    n_rows = max(1, _VALUES_AT_ONCE // len(reaches))
    parts = []
    for start in range(0, points.shape[0], n_rows):
        distances = distances_of(points[start : start + n_rows])
        parts.append(ReverseNeighbors.from_mask(distances <= reaches, distances))
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    return ReverseNeighbors(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.distances for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class PrecomputedIndex(Index):
    """Queries that come as their distances to all points, shape (m, n)."""

    n_points: int

    def __len__(self) -> int:
        return self.n_points

    def query_within(
        self, points: NDArray[np.float64], n_neighbors: int, limits: NDArray[np.float64]
    ) -> NeighborLists:
        """Take the smallest of the distances; of equals the first."""
        rows = np.argsort(points, axis=1, kind="stable")[:, :n_neighbors]
        return NeighborLists(np.take_along_axis(points, rows, axis=1), rows)

    def points_at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Refuse: the distances between the points are not kept."""
        raise ValueError(
            'Expected a metric of features; got metric="precomputed" and so many points that the '
            "distances between them are not kept. Give features, or fewer points."
        )

    def reverse(self, reaches: NDArray[np.float64]) -> ReverseIndex:
        """Prepare reverse queries: distances are taken as they are."""
        return ReverseIndex(partial(query_reverse, distances_of=np.asarray, reaches=reaches))


def measured_again(
    queries: NDArray[np.float64], found: NeighborLists, points: NDArray[np.float64]
) -> NeighborLists:
    """Measure Euclidean distances to the points that were found, by subtraction."""
    squares = np.empty(found.rows.shape)
    for start in range(0, len(squares), _N_MEASURED):
        some = slice(start, start + _N_MEASURED)
        gaps = np.take(points, found.rows[some], axis=0)
        gaps -= queries[some, None]
        squares[some] = np.einsum("ikf,ikf->ik", gaps, gaps)
    return NeighborLists(np.sqrt(squares), found.rows)
