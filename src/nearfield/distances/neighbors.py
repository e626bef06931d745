"""The nearest of many points: by trees or brute force, exactly, or by an approximate index."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from nearfield.distances._dense import _SYNONYMS

SEARCHES = ("exact", "approximate")

_ONE_AT_A_TIME = Lock()

_N_AT_ONCE = 512  # queries: between two looks at whether to stop
_N_MEASURED = 16  # queries whose neighbours, measured again, stay in the cache
_EUCLIDEAN = ("euclidean", "l2")
_N_PROBES, _N_USUAL = 32, 64  # lists that are looked at for as many neighbours
_MAX_LISTS = 4_096
_TRAINING_POINTS_A_LIST = 64


@dataclass(frozen=True, eq=False)
class NeighborIndex:
    """An index over points, shape (n, n_features), that finds the nearest of them.

    Attributes
    ----------
    search : {"exact", "approximate"}
        ``"exact"`` is scikit-learn's choice of a tree or brute force. ``"approximate"`` is an
        inverted file of faiss (``pip install nearfield[ann]``), many times faster, for Euclidean
        distances; a few in a hundred neighbours are missed.
    index : object
        Of scikit-learn or faiss.
    points : ndarray, shape (n, n_features), or None
        For Euclidean distances that the index knows to seven digits only, or not at all between
        points that are all but the same: they are measured again.
    """

    search: str
    index: Any = field(repr=False)
    points: NDArray[np.float64] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        points: Any,
        *,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        search: str = "exact",
    ) -> "NeighborIndex":
        """Build the index.

        Parameters
        ----------
        points : ndarray or sparse matrix, shape (n, n_features)
        metric : str or callable
        metric_params : mapping, optional
        search : {"exact", "approximate"}
        """
        is_euclidean = isinstance(metric, str) and metric in _EUCLIDEAN and not metric_params
        is_euclidean = is_euclidean and not sp.issparse(points)
        if search == "approximate":
            if not is_euclidean:
                raise ValueError(
                    'Expected Euclidean distances between dense points for search="approximate"; '
                    f"got metric={metric!r} and {type(points).__name__}. "
                    'Use search="exact", or a learned metric, which is Euclidean after a map.'
                )
            return cls(search, _inverted_file(points), points)
        name = _SYNONYMS.get(metric, metric) if isinstance(metric, str) else metric
        index = NearestNeighbors(metric=name, metric_params=dict(metric_params or {}) or None)
        index.fit(points)
        # Brute force expands the square, by which a point is not at distance zero from itself.
        is_expanded = is_euclidean and index._fit_method == "brute"
        return cls(search, index, points if is_expanded else None)

    def query(
        self,
        points: Any,
        n_neighbors: int,
        *,
        n_jobs: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Find the nearest points of the index, a chunk of queries at a time.

        Parameters
        ----------
        points : ndarray or sparse matrix, shape (m, n_features)
        n_neighbors : int
            K
        n_jobs : int, optional
            Threads; the result does not depend on it.
        advance : callable, optional
            Called with the number of points done, now and then.

        Returns
        -------
        distances : ndarray, shape (m, K)
        index : ndarray of int, shape (m, K)
        """
        return in_chunks(
            lambda some: self._find(some, n_neighbors), points, n_jobs=n_jobs, advance=advance
        )

    def _find(self, points: Any, n_neighbors: int) -> tuple[Any, Any]:
        distances, index = self._search(points, n_neighbors)
        if self.points is None:
            return distances, index
        squares = np.empty(index.shape)
        for start in range(0, len(index), _N_MEASURED):
            some = slice(start, start + _N_MEASURED)
            gaps = np.take(self.points, index[some], axis=0)
            gaps -= points[some, None]
            squares[some] = np.einsum("ikf,ikf->ik", gaps, gaps)
        return np.sqrt(squares), index

    def _search(self, points: Any, n_neighbors: int) -> tuple[Any, Any]:
        if self.search == "exact":
            # The Mahalanobis distance of scikit-learn's trees has one buffer for all threads.
            is_shared = self.index.metric == "mahalanobis"
            with _ONE_AT_A_TIME if is_shared else nullcontext():
                return self.index.kneighbors(points, n_neighbors)
        single = np.ascontiguousarray(points, dtype=np.float32)
        squares, index = _search_lists(self.index, single, n_neighbors, _n_probes(n_neighbors))
        is_short = (index < 0).any(axis=1)  # the lists that were looked at had no more
        if is_short.any():
            squares[is_short], index[is_short] = _search_lists(
                self.index, single[is_short], n_neighbors, self.index.nlist
            )
        return squares, index.astype(np.int64)


def in_chunks(
    find: Callable[[Any], tuple[NDArray[np.float64], NDArray[np.int64]]],
    points: Any,
    *,
    n_jobs: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Apply a search of distances and rows to a chunk of queries at a time, in threads."""

    def find_some(start: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        chunk = points[start : start + _N_AT_ONCE]
        found = find(chunk)
        if advance is not None:
            advance(chunk.shape[0])
        return found

    parts = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(find_some)(start) for start in range(0, points.shape[0], _N_AT_ONCE)
    )
    distances, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return distances, index


def _n_probes(n_neighbors: int) -> int:
    """Choose how many lists to look at, so that about as large a part of more is found."""
    return int(_N_PROBES * max(n_neighbors / _N_USUAL, 1.0) ** (1.0 / 3.0))


def _search_lists(
    index: Any, points: NDArray[np.float32], n_neighbors: int, n_lists: int
) -> tuple[Any, Any]:
    import faiss

    some = faiss.SearchParametersIVF(nprobe=min(n_lists, index.nlist))  # type: ignore[call-arg, unused-ignore]
    return index.search(points, n_neighbors, params=some)


def _inverted_file(points: NDArray[np.float64]) -> Any:
    try:
        import faiss
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Expected faiss for search="approximate"; it is not installed. '
            'Install it by `pip install nearfield[ann]`, or use search="exact".'
        ) from error
    n_points, n_features = points.shape
    n_lists = int(np.clip(np.sqrt(n_points) * 4.0, 1, min(_MAX_LISTS, max(n_points // 39, 1))))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_features), n_features, n_lists)
    index.cp.max_points_per_centroid = _TRAINING_POINTS_A_LIST
    single = np.ascontiguousarray(points, dtype=np.float32)
    index.train(single)
    index.add(single)
    return index
