"""Directed weights: how much each point listens to each other one.

Each function takes distances, shape (n, n), and one parameter, and gives the weights, shape
(n, n): rows sum to one, the diagonal is zero. They are formed in log space, relative to the
nearest neighbour, so that a parameter far too small or too large gives the limit (the nearest
neighbour, or all alike), never 0/0. The diagonal of the distances plays no part.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole

RADIUS_EPSILON = 1e-10
"""What a point outside the radius weighs; the paper's value for d-nn2."""

TIE_TOLERANCE = 1e-10
"""Distances that differ by less than this, relative to them, count as equal in k-nn."""


def gaussian_weights(distances: ArrayLike, sigma: float) -> NDArray[np.float64]:
    r"""Weigh every other point by its closeness, falling off as a Gaussian.

    .. math:: w_{ij} \propto \exp(-d_{ij}^2 / 2\sigma^2), \qquad w_{ii} = 0

    Friel and Pettitt (2011), section 3, d-nn1. The nearest neighbour as sigma tends to zero,
    uniform as it grows.
    """
    return gaussian_excess(distances).weights(check_positive(sigma, "sigma"))


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
    r"""Weigh the k nearest neighbours alike, and nobody else.

    .. math:: w_{ij} = 1/k \text{ if } j \text{ is one of the } k \text{ nearest of } i

    Cucala et al. (2009). Points that tie at the k-th distance, up to rounding, share what is left
    of the weight: the mean over all ways to break the tie, so that neither the order of the rows
    nor the last digits of the distances matter.

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
    is_closer = others < kth_distance * (1.0 - TIE_TOLERANCE)
    is_tied = (others * (1.0 - TIE_TOLERANCE) <= kth_distance) & ~is_closer
    n_left = k - is_closer.sum(axis=1, keepdims=True)
    n_tied = is_tied.sum(axis=1, keepdims=True)
    return (is_closer + is_tied * (n_left / n_tied)) / k


class Ranks(NamedTuple):
    """The others of each point by closeness, and who ties with whom: k-nn at every k.

    A caller that asks for the weights at many k keeps it. All have shape (n, n - 1).
    """

    order: NDArray[np.intp]  # the others, nearest first
    n_closer: NDArray[np.int32]  # how many are closer than each of these
    n_tied: NDArray[np.int32]  # how many are as close, each with itself

    def weights(self, k: int) -> NDArray[np.float64]:
        """Give the weights at a k: what those who tie share is what the closer ones leave."""
        n_points = len(self.order)
        n_near = int((self.n_closer[:, k - 1] + self.n_tied[:, k - 1]).max())
        near = np.s_[:, :n_near]
        shares = np.clip((k - self.n_closer[near]) / self.n_tied[near], 0.0, 1.0) / k
        weights = np.zeros((n_points, n_points))
        np.put_along_axis(weights, self.order[near], shares, axis=1)
        return weights

    def add_shares(
        self, k: int, classes: NDArray[np.int64], both_ways: bool, sums: NDArray[np.float64]
    ) -> None:
        """Add what the weights at k, times k, have more than those at k - 1, times that.

        To the `sums` by class, shape (n, G): of the others' classes to each point and, if
        `both_ways`, of its class to theirs.
        """
        n_points, n_classes = sums.shape
        points = np.arange(n_points)
        n_closer, n_tied = self.n_closer[:, k - 1], self.n_tied[:, k - 1]
        shares = None
        others = self.order[:, k - 1]
        if n_tied.max() > 1:
            points = np.repeat(points, n_tied)
            before = np.cumsum(n_tied) - n_tied
            others = self.order[points, np.arange(len(points)) + (n_closer - before)[points]]
            shares = (1.0 / n_tied)[points]
        places = [points * n_classes + classes[others]]
        if both_ways:
            places.append(others * n_classes + classes[points])
        for place in places:
            more = np.bincount(place, shares, minlength=sums.size)
            sums += more.reshape(sums.shape)


def neighbor_ranks(distances: ArrayLike) -> Ranks:
    """Prepare `knn_weights`: rank the others of each point, those that tie together."""
    others, _ = _others_and_nearest(distances)
    n_others = len(others) - 1
    order = np.argsort(others, axis=1, kind="stable")[:, :n_others]
    in_order = np.take_along_axis(others, order, axis=1)
    first, stop = tie_groups(in_order)
    return Ranks(order, first, stop - first)


def tie_groups(rising: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Find with whom each of rising distances, shape (m, n), ties: where its group starts and ends.

    Returns
    -------
    first, stop : ndarray of int32, shape (m, n)
        How many are closer, and how many are as close or closer.
    """
    n_others = rising.shape[1]
    is_first = np.ones(rising.shape, dtype=bool)
    is_first[:, 1:] = rising[:, 1:] * (1.0 - TIE_TOLERANCE) > rising[:, :-1]
    position = np.arange(n_others, dtype=np.int32)
    first = np.maximum.accumulate(np.where(is_first, position, np.int32(0)), axis=1)
    next_first = np.where(np.roll(is_first, -1, axis=1), position + 1, np.int32(n_others))
    next_first[:, -1] = n_others
    stop = np.minimum.accumulate(next_first[:, ::-1], axis=1)[:, ::-1]
    return first.astype(np.int32), stop.astype(np.int32)


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
