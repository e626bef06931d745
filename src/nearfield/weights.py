"""Directed weights: how much each point listens to each other one.

Each function takes distances, shape (n, n), and one parameter, and gives the weights, shape
(n, n): rows sum to one, the diagonal is zero. They are formed in log space, relative to the
nearest neighbour, so that a parameter far too small or too large gives the limit (the nearest
neighbour, or all alike), never 0/0. The diagonal of the distances plays no part.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole

RADIUS_EPSILON = 1e-10
"""What a point outside the radius weighs; the paper's value for d-nn2."""


def gaussian_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh every other point by its closeness, falling off as a Gaussian.

    .. math:: w_{ij} \propto \exp(-d_{ij}^2 / 2\sigma^2), \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn1. The nearest neighbour as sigma tends to zero,
    uniform as it grows.
    """
    others, nearest = _others_and_nearest(distances)
    sigma = check_positive(sigma, "sigma")
    with np.errstate(over="ignore"):  # an overflow is a weight of zero
        # d^2 - nearest^2 as a product: a far outlier's two squares would cancel to noise.
        difference = (others - nearest) / sigma
        total = np.minimum((others + nearest) / sigma, np.finfo(np.float64).max)  # 0 * inf is nan
        return _normalized(np.exp(-0.5 * difference * total))


def radius_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh alike all points within a radius, and next to nothing the others.

    .. math:: w_{ij} \propto \epsilon + (1 - \epsilon)\, 1[d_{ij} < \sigma], \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn2, with their epsilon = 1e-10. A point with no
    neighbour within the radius weighs all others alike.
    """
    is_inside = _check_distances(distances) < check_positive(sigma, "sigma")
    return _normalized(np.where(is_inside, 1.0, RADIUS_EPSILON))


def exponential_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh every other point by its closeness, falling off exponentially.

    .. math:: w_{ij} \propto \exp(-d_{ij} \sigma), \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn3. Here sigma is an inverse length: uniform as it
    tends to zero, the nearest neighbour as it grows.
    """
    others, nearest = _others_and_nearest(distances)
    sigma = check_positive(sigma, "sigma")
    with np.errstate(over="ignore"):  # an overflow is a weight of zero
        return _normalized(np.exp(-(others - nearest) * sigma))


def knn_weights(distances: ArrayLike, k: int) -> NDArray[np.float64]:
    r"""Weigh the k nearest neighbours alike, and nobody else.

    .. math:: w_{ij} = 1/k \text{ if } j \text{ is one of the } k \text{ nearest of } i

    Cucala et al. (2009). Points that tie at the k-th distance share what is left of the weight:
    the mean over all ways to break the tie, so that the order of the rows never matters.

    Parameters
    ----------
    distances : array-like, shape (n, n)
    k : int
        From 1 to n - 1.
    """
    others, _ = _others_and_nearest(distances)
    k, n_points = check_whole(k, "k", minimum=1), len(others)
    if k >= n_points:
        raise ValueError(
            f"Expected k < n_points; got k={k}, n_points={n_points}. Lower k or supply more points."
        )
    kth_distance = np.partition(others, k - 1, axis=1)[:, k - 1, None]
    is_closer = others < kth_distance
    is_tied = others == kth_distance
    n_left = k - is_closer.sum(axis=1, keepdims=True)
    n_tied = is_tied.sum(axis=1, keepdims=True)
    return (is_closer + is_tied * (n_left / n_tied)) / k


KERNELS: Mapping[str, Callable[[ArrayLike, float], NDArray[np.float64]]] = MappingProxyType(
    {
        "gaussian": gaussian_weights,
        "radius": radius_weights,
        "exponential": exponential_weights,
    }
)
"""The distance kernels by name: d-nn1, d-nn2 and d-nn3."""


def _check_distances(distances: ArrayLike) -> NDArray[np.float64]:
    matrix = np.asarray(distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 2:
        raise ValueError(
            f"Expected distances of shape (n, n) with n >= 2; got shape {matrix.shape}. "
            "Give the distance from every point to every point."
        )
    smallest, largest = matrix.min(), matrix.max()  # nan if there is one
    if not (smallest >= 0.0 and largest < np.inf):
        raise ValueError(
            f"Expected finite distances >= 0; got them from {smallest:g} to {largest:g}. "
            "Check the features, or the metric."
        )
    return matrix


def _others_and_nearest(distances: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put each point out of its own running, and find the distance of its nearest neighbour."""
    others = _check_distances(distances).copy()
    np.fill_diagonal(others, np.inf)
    return others, others.min(axis=1, keepdims=True)


def _normalized(kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn kernel values, in place, into rows that sum to one, with a zero diagonal."""
    np.fill_diagonal(kernel, 0.0)
    kernel /= kernel.sum(axis=1, keepdims=True)
    return kernel
