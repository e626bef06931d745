"""Directed weights: how much weight each point gives to each other one.

Each function takes distances, shape (n, n), and one parameter, and gives the weights, shape
(n, n): rows sum to one, the diagonal is zero. They are formed in log space, relative to the
nearest neighbour, so that a parameter far too small or too large gives the limit (the nearest
neighbour, or all alike), never 0/0. The diagonal of the distances plays no part.
"""

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.neighbors import TIE_TOLERANCE

RADIUS_EPSILON = 1e-10
"""What a point outside the radius weighs; the paper's value for d-nn2."""


def gaussian_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh every other point by its closeness, falling off as a Gaussian.

    .. math:: w_{ij} \propto \exp(-d_{ij}^2 / 2\sigma^2), \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn1. The nearest neighbour as sigma tends to zero,
    uniform as it grows.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import gaussian_weights
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    >>> gaussian_weights(distances, 1.0).round(2)
    array([[0.  , 0.98, 0.02],
           [0.82, 0.  , 0.18],
           [0.08, 0.92, 0.  ]])
    """
    return gaussian_excess(distances).weights(check_positive(sigma, "sigma"))


def radius_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh alike all points within a radius, and next to nothing the others.

    .. math:: w_{ij} \propto \epsilon + (1 - \epsilon)\, 1[d_{ij} < \sigma], \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn2, with their epsilon = 1e-10. A point with no
    neighbour within the radius weighs all others alike.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import radius_weights
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    >>> radius_weights(distances, 1.5).round(2)
    array([[0. , 1. , 0. ],
           [1. , 0. , 0. ],
           [0.5, 0.5, 0. ]])
    """
    is_inside = _check_distances(distances) < check_positive(sigma, "sigma")
    return _normalized(np.where(is_inside, 1.0, RADIUS_EPSILON))


def exponential_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh every other point by its closeness, falling off exponentially.

    .. math:: w_{ij} \propto \exp(-d_{ij} \sigma), \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn3. Here sigma is an inverse length: uniform as it
    tends to zero, the nearest neighbour as it grows.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import exponential_weights
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    >>> exponential_weights(distances, 1.0).round(2)
    array([[0.  , 0.88, 0.12],
           [0.73, 0.  , 0.27],
           [0.27, 0.73, 0.  ]])
    """
    return exponential_excess(distances).weights(check_positive(sigma, "sigma"))


class Excess(NamedTuple):
    """What the weights at every sigma are made of: how much further than the nearest others are.

    A caller that asks for the weights at many sigmas keeps it.
    """

    values: NDArray[np.float64]  # shape (n, n)
    unit: float  # of sigma
    power: int  # of 1 / sigma: 2, or -1 for an inverse length

    def weights(self, sigma: float) -> NDArray[np.float64]:
        """Give the weights at a sigma, normalized exp(-excess (unit / sigma)^power)."""
        ratio = min(max(self.unit / sigma, 1e-150), 1e150)  # so that its square is a number
        with np.errstate(over="ignore"):  # an overflow is a weight of zero
            exponent = self.values * -(ratio**self.power)
        return _normalized(np.exp(exponent, out=exponent))


def gaussian_excess(distances: ArrayLike) -> Excess:
    """Prepare `gaussian_weights`: half the difference of squares, in units of a usual distance."""
    others, nearest = _others_and_nearest(distances)
    positive = others[(others > 0.0) & (others < np.inf)]
    middle = positive.size // 2
    unit = float(np.partition(positive, middle)[middle]) if positive.size else 1.0
    with np.errstate(over="ignore"):
        # d^2 - nearest^2 as a product: a far outlier's two squares would cancel to noise.
        total = np.minimum(others / unit + nearest / unit, np.finfo(np.float64).max)  # no 0 * inf
        return Excess(0.5 * ((others - nearest) / unit) * total, unit, 2)


def exponential_excess(distances: ArrayLike) -> Excess:
    """Prepare `exponential_weights`: the difference of the distances."""
    others, nearest = _others_and_nearest(distances)
    return Excess(others - nearest, 1.0, -1)


def knn_weights(distances: ArrayLike, k: int) -> NDArray[np.float64]:
    r"""Weigh the k nearest neighbours alike, and no other points.

    .. math:: w_{ij} = 1/k \text{ if } j \text{ is one of the } k \text{ nearest of } i

    Cucala et al. (2009). Points that tie at the k-th distance, up to rounding, share what is left
    of the weight: the mean over all ways to break the tie, so that neither the order of the rows
    nor the last digits of the distances matter.

    Parameters
    ----------
    distances : array-like, shape (n, n)
    k : int
        From 1 to n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import knn_weights
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    >>> knn_weights(distances, 1)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 1., 0.]])
    """
    others, _ = _others_and_nearest(distances)
    k, n_points = check_whole(k, "k", minimum=1), len(others)
    if k >= n_points:
        raise ValueError(
            f"Expected k < n_points; got k={k}, n_points={n_points}. Lower k or supply more points."
        )
    kth_distance = np.partition(others, k - 1, axis=1)[:, k - 1, None]
    is_closer = others < kth_distance * (1.0 - TIE_TOLERANCE)
    is_tied = (others * (1.0 - TIE_TOLERANCE) <= kth_distance) & ~is_closer
    n_left = k - is_closer.sum(axis=1, keepdims=True)
    n_tied = is_tied.sum(axis=1, keepdims=True)
    return (is_closer + is_tied * (n_left / n_tied)) / k


KernelName = Literal["gaussian", "radius", "exponential"]
"""The distance kernels: d-nn1, d-nn2 and d-nn3."""

LogKernel = Callable[[NDArray[np.float64], float], NDArray[np.float64]]
"""A kernel of one's own: a function of (distances, sigma) that gives its log."""


def log_kernel_weights(
    distances: ArrayLike, log_kernel: LogKernel, sigma: float
) -> NDArray[np.float64]:
    r"""Weigh every other point by a kernel of one's own, given by its log.

    .. math:: w_{ij} \propto \kappa(d_{ij}; \sigma), \qquad w_{ii} = 0

    Each row is taken relative to its largest value, so that a constant of the kernel has no part.
    """
    matrix = _check_distances(distances).copy()
    np.fill_diagonal(matrix, np.inf)
    log_values = log_kernel_values(matrix, log_kernel, check_positive(sigma, "sigma"))
    return _normalized(np.exp(log_values - log_values.max(axis=1, keepdims=True)))


def check_log_kernel(distances: NDArray[np.float64], log_kernel: LogKernel) -> None:
    """Tell of a function that gives a kernel where its log is expected.

    Values between 0 and 1 at a length like the distances: as logs they weigh near and far points
    almost alike.
    """
    is_apart = distances > 0.0
    if not is_apart.any():
        return
    with np.errstate(all="ignore"):
        given = np.asarray(log_kernel(distances.copy(), float(np.median(distances[is_apart]))))
    if given.shape != distances.shape:  # refused where it is used
        return
    values = given[is_apart]
    if 0.0 <= values.min() < values.max() <= 1.0:
        warnings.warn(
            "Expected the log of a kernel; the function gives values between 0 and 1, as a kernel "
            "itself has them. Return its log, such as -(d**2) / (2 * sigma**2).",
            stacklevel=2,
        )


def log_kernel_values(
    distances: NDArray[np.float64], log_kernel: Any, sigma: float
) -> NDArray[np.float64]:
    """Evaluate the log of a kernel of one's own at distances to neighbours, shape (m, n).

    Infinite distances are no neighbours: the function gets zeros there, and their log kernel is
    -infinity.
    """
    is_neighbor = distances < np.inf
    with np.errstate(divide="ignore", over="ignore"):
        given = log_kernel(np.where(is_neighbor, distances, 0.0), sigma)
    values = np.array(given, dtype=np.float64)  # a copy: the function may keep its own
    if values.shape != distances.shape:
        raise ValueError(
            f"Expected log kernel values of shape {distances.shape}, one a distance; got shape "
            f"{values.shape} from {log_kernel!r}. Compute them element by element."
        )
    values[~is_neighbor] = -np.inf
    largest = values.max(axis=1)  # nan if there is one
    if not np.isfinite(largest).all():
        raise ValueError(
            "Expected a log kernel below infinity, and above -infinity for some neighbour of every "
            f"point; got a row with the largest value {largest[~np.isfinite(largest)][0]} from "
            f"{log_kernel!r} at sigma={sigma:g}. Give the log of the kernel, in log space."
        )
    return values


def kernel_weights(
    distances: ArrayLike, kernel: KernelName, sigma: float, n_neighbors: int | None = None
) -> NDArray[np.float64]:
    r"""Weigh the k nearest neighbours by a kernel of the distance; all points by default.

    .. math:: w_{ij} = \frac{\kappa(d_{ij}; \sigma)}{\sum_{l \in N_k(i)} \kappa(d_{il}; \sigma)},
              \qquad j \in N_k(i)

    Points that tie at the k-th distance share the rest of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import kernel_weights
    >>> distances = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    >>> kernel_weights(distances, "gaussian", 1.0, n_neighbors=1).round(2)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 1., 0.]])
    """
    check_kernel(kernel)
    weights = KERNELS[kernel](distances, sigma)
    if n_neighbors is None:
        return weights
    return _normalized(weights * knn_weights(distances, n_neighbors))


KERNELS: Mapping[str, Callable[[ArrayLike, float], NDArray[np.float64]]] = MappingProxyType(
    {
        "gaussian": gaussian_weights,
        "radius": radius_weights,
        "exponential": exponential_weights,
    }
)
"""The distance kernels by name: d-nn1, d-nn2 and d-nn3."""


def check_kernel(kernel: Any) -> None:
    """Accept the name of a distance kernel."""
    if kernel not in list(KERNELS):
        raise ValueError(
            f"Expected a kernel among {sorted(KERNELS)}; got kernel={kernel!r}. Choose one of them."
        )


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
