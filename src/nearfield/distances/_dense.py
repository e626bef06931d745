"""Dense distances between feature vectors, by any metric, with the zeros exact."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import norm as sparse_norm
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS
from sklearn.utils import check_array

# What only some parts of scikit-learn understand, in a word that all of them do.
_SYNONYMS = {
    "cityblock": "manhattan",
    "infinity": "chebyshev",
    "l1": "manhattan",
    "l2": "euclidean",
    "p": "minkowski",
    "sokalmichener": "rogerstanimoto",  # the same formula
}
_SPARSE_METRICS = ("cosine", "euclidean", "manhattan")
_SCALED_METRICS = {"mahalanobis": "VI", "seuclidean": "V"}
_PRECOMPUTED = "precomputed distances"


def canonical_metric(metric: Any) -> Any:
    """Replace a synonym by the name that scikit-learn knows a metric by; leave others alone."""
    return _SYNONYMS.get(metric, metric) if isinstance(metric, str) else metric


def distance_matrix(
    X: Any,
    Y: Any = None,
    *,
    metric: str | Callable[..., float] = "euclidean",
    metric_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Measure the distance from every row of `X` to every row of `Y`.

    Identical rows are at distance exactly zero. Without `Y` the result is exactly symmetric.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n, n_features)
        The points; with ``metric="precomputed"`` their distances, shape (n, n), or (n, m) to the
        m points of `Y`.
    Y : array-like or sparse matrix, shape (m, n_features), optional
        The points to measure to; `X` itself by default. With precomputed distances, anything with
        m rows.
    metric : str or callable
        A name that scikit-learn or SciPy knows, ``"precomputed"``, or a function of two vectors,
        which is asked about both orders of each pair.
    metric_params : mapping, optional
        Further arguments of the metric, such as ``{"p": 3}`` for ``"minkowski"``. With `Y`,
        ``"seuclidean"`` needs ``"V"`` and ``"mahalanobis"`` needs ``"VI"``: without, they take
        their scale from the points at hand.
    n_jobs : int, optional
        Parallel threads for the metrics that scikit-learn computes, as in scikit-learn.

    Returns
    -------
    distances : ndarray, shape (n, m)

    Notes
    -----
    Near points keep their digits, however far from the origin. The exceptions: the squares of
    ``"nan_euclidean"`` are off by about 1e-15 of the squared norms, and ``"cosine"``,
    ``"correlation"`` and the square of ``"jensenshannon"`` by about 1e-15.

    Sparse input stays sparse for the Euclidean, Manhattan and cosine distances (without
    `metric_params`); for the others it is made dense.

    Examples
    --------
    >>> from nearfield.distances import distance_matrix
    >>> distance_matrix([[0.0, 0.0], [3.0, 4.0]])
    array([[0., 5.],
           [5., 0.]])
    >>> distance_matrix([[0.0, 0.0]], [[3.0, 4.0]], metric="manhattan")
    array([[7.]])
    """
    if isinstance(metric, str) and metric == "precomputed":
        return check_distances(X) if Y is None else _check_distances_to(X, Y)
    source = f"metric {getattr(metric, '__name__', metric)!r}"
    params = dict(metric_params or {})
    metric = canonical_metric(metric)
    if isinstance(metric, str) and Y is not None:
        _check_scale(metric, params)
    is_sparse = (sp.issparse(X) or sp.issparse(Y)) and metric in _SPARSE_METRICS and not params
    points = _check_points(X, "X", metric, is_sparse)
    others = points if Y is None else _check_points(Y, "Y", metric, is_sparse)
    if points.shape[1] != others.shape[1]:
        raise ValueError(
            f"Expected X and Y with the same number of features; got {points.shape[1]} and "
            f"{others.shape[1]}. Measure both on the same features."
        )
    try:
        distances = _measure(points, others, metric, params, n_jobs)
    except (TypeError, ValueError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]  # the others may repeat all the points
        raise ValueError(f"{source} could not measure these points: {reason}") from error
    is_same = _row_identity(points, others)
    if not isinstance(metric, str):
        return _as_distances(distances, is_same, Y is None, source)
    # Where a metric with a name is not one, that is rounding, 0/0 or (russellrao) its definition.
    distances[is_same] = 0.0
    _check_range(np.maximum(distances, 0.0, out=distances), 0.0, source)
    return np.maximum(distances, distances.T) if Y is None else distances


def check_distances(distances: ArrayLike) -> NDArray[np.float64]:
    """Accept a square matrix of distances, or say what is wrong with it.

    Parameters
    ----------
    distances : array-like, shape (n, n)
        At least zero, symmetric, with a zero diagonal, up to rounding: the square root of the
        precision of their type, times the largest of them.

    Returns
    -------
    distances : ndarray of float64, shape (n, n)
        A copy, exactly symmetric, with an exactly zero diagonal.
    """
    checked = _check_matrix(distances, min_points=2)
    if checked.shape[0] != checked.shape[1]:
        raise ValueError(
            f"Expected a square matrix of distances; got shape {checked.shape}. "
            "Give the distance from every training point to every training point."
        )
    is_same = np.eye(len(checked), dtype=bool)
    return _as_distances(checked, is_same, True, _PRECOMPUTED)


def _check_distances_to(distances: Any, others: Any) -> NDArray[np.float64]:
    checked = _check_matrix(distances, min_points=1)
    n_others = np.shape(others)[0]
    if checked.shape[1] != n_others:
        raise ValueError(
            f"Expected precomputed distances to {n_others} points; got shape {checked.shape}. "
            "Give a row for each new point and a column for each training point."
        )
    return _as_distances(checked, np.zeros(checked.shape, bool), False, _PRECOMPUTED)


def _check_matrix(distances: Any, min_points: int) -> NDArray[np.floating]:
    return check_array(
        distances,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_samples=min_points,
        input_name="distances",
    )


def _check_points(X: Any, input_name: str, metric: Any, is_sparse: bool) -> Any:
    points = check_array(
        X,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan" if metric == "nan_euclidean" else True,
        input_name=input_name,
    )
    if not is_sparse:
        return points.toarray() if sp.issparse(points) else points
    # A copy, in the one form of each row: scikit-learn sorts in place, and wants short indices.
    rows = sp.csr_array(points)
    rows = sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _check_scale(metric: str, params: Mapping[str, Any]) -> None:
    scale = _SCALED_METRICS.get(metric)
    if scale is not None and scale not in params:
        raise ValueError(
            f"Expected {scale!r} in metric_params; got none. Metric {metric!r} takes its scale "
            "from the points at hand, and would measure new points by another scale than the "
            "training points. Compute it once, from the training points."
        )


def _measure(points: Any, others: Any, metric: Any, params: dict[str, Any], n_jobs: Any) -> Any:
    if metric == "euclidean":
        if sp.issparse(points):
            return _sparse_euclidean(points, others, n_jobs)
        # scikit-learn's own expands the square; SciPy's subtracts first and keeps the digits.
        return np.sqrt(_measure(points, others, "sqeuclidean", params, n_jobs))
    if metric == "jensenshannon":
        return _jensen_shannon(points, others, params)
    if metric == "mahalanobis" and not params:
        white = _whitened(points)
        return _measure(white, white, "euclidean", params, n_jobs)
    if metric in PAIRWISE_BOOLEAN_FUNCTIONS and _is_binary(points) and _is_binary(others):
        points, others = points.astype(bool), others.astype(bool)
    return pairwise_distances(
        points,
        others[:] if callable(metric) else others,  # were Y its X, it would ask one order only
        metric=metric,
        n_jobs=n_jobs,
        ensure_all_finite=False,
        **params,
    )


def _sparse_euclidean(points: Any, others: Any, n_jobs: Any) -> Any:
    r"""Expand :math:`|x|^2 + |y|^2 - 2xy`, and subtract first where that loses three digits."""
    distances = pairwise_distances(points, others, n_jobs=n_jobs)
    squared_norms = sparse_norm(points, axis=1)[:, None] ** 2 + sparse_norm(others, axis=1) ** 2
    pairs = np.nonzero(distances**2 < 1e-3 * squared_norms)
    n_batches = 1 + len(pairs[0]) // 4096
    for i, j in zip(*(np.array_split(index, n_batches) for index in pairs), strict=True):
        distances[i, j] = sparse_norm(points[i] - others[j], axis=1)
    return distances


def _jensen_shannon(points: Any, others: Any, params: dict[str, Any]) -> Any:
    distances = cdist(points, others, "jensenshannon", **params)
    are_histograms = all(
        (rows >= 0.0).all() and rows.any(axis=1).all() for rows in (points, others)
    )
    # SciPy takes the root of a rounding error below zero where two histograms nearly agree.
    return np.nan_to_num(distances, nan=0.0) if are_histograms else distances


def _whitened(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn Mahalanobis distances by the points' own covariance into Euclidean ones."""
    centred = points - points.mean(axis=0)
    scale = centred.std(axis=0)
    standardized = centred / np.where(scale > 0.0, scale, 1.0)  # the units must not set the rank
    rank, n_features = np.linalg.matrix_rank(standardized), points.shape[1]
    if rank < n_features:
        raise ValueError(
            f"their covariance has rank {rank} in {n_features} features. "
            "Give 'VI' in metric_params, drop features, or supply more points."
        )
    return np.sqrt(len(points) - 1) * np.linalg.svd(standardized, full_matrices=False)[0]


def _is_binary(points: NDArray[np.float64]) -> bool:
    return bool((points == points.astype(bool)).all())


def _as_distances(
    given: NDArray[np.floating], is_same: NDArray[np.bool_], is_symmetric: bool, source: str
) -> NDArray[np.float64]:
    """Free what a person computed from its rounding errors, and refuse larger ones."""
    slack = float(np.sqrt(np.finfo(given.dtype).eps) * given.max())
    distances = given.astype(np.float64)
    _check_range(distances, slack, source)
    is_wrong = is_same & (distances > slack)
    if is_wrong.any():
        i, j = np.argwhere(is_wrong)[0]
        raise ValueError(
            f"Expected distance 0 from a point to itself; {source}: got {distances[i, j]:g} "
            f"from point {i} to point {j}. Are these similarities?"
        )
    distances[is_same] = 0.0
    np.maximum(distances, 0.0, out=distances)
    if not is_symmetric:
        return distances
    asymmetry = np.abs(distances - distances.T)
    if asymmetry.max() > slack:
        i, j = np.unravel_index(np.argmax(asymmetry), asymmetry.shape)
        raise ValueError(
            f"Expected symmetric distances; {source}: got {distances[i, j]:g} from point {i} to "
            f"point {j} and {distances[j, i]:g} back. Symmetrize them, for instance by their mean."
        )
    return np.maximum(distances, distances.T)


def _check_range(distances: NDArray[np.float64], slack: float, source: str) -> None:
    is_bad = ~np.isfinite(distances) | (distances < -slack)
    if is_bad.any():
        i, j = np.argwhere(is_bad)[0]
        advice = "Check the features, and whether the metric suits them."
        if source == _PRECOMPUTED:
            advice = "Give distances, not similarities."
        raise ValueError(
            f"Expected finite distances >= 0; {source}: got {distances[i, j]:g} "
            f"from point {i} to point {j}. {advice}"
        )


def _row_identity(points: Any, others: Any) -> NDArray[np.bool_]:
    """Which rows of the two arrays are the same, to the last bit, shape (n, m)."""
    number_of: dict[bytes, int] = {}
    ids = [
        np.array([number_of.setdefault(row, len(number_of)) for row in _row_bytes(array)])
        for array in (points, others)
    ]
    return ids[0][:, None] == ids[1][None, :]


def _row_bytes(array: Any) -> list[bytes]:
    if not sp.issparse(array):
        return [row.tobytes() for row in array + 0.0]  # + 0.0: -0.0 and 0.0 are one number
    bounds = zip(array.indptr[:-1], array.indptr[1:], strict=True)
    return [array.indices[a:b].tobytes() + array.data[a:b].tobytes() for a, b in bounds]
