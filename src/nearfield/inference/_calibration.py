r"""Weights of draws, close to one, that take out what their drifts show to be off.

The drifts L of draws at one point are zero on average, but their mean over N draws is not. With

.. math:: w_m = 1 - \bar L^T \mathrm{cov}(L)^{-1} (L_m - \bar L)

the weighted mean is zero, and the weighted mean of whatever else varies with L comes as close to
its expectation as a regression on L can bring it (control variates; in surveys, calibration).
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_LEAST, _MOST = 0.1, 3.0
_N_DOUBTED = 10.0  # with so many effective draws go half of the way
_FROZEN = 1e-9  # a drift whose standard deviation is less says nothing
_RIDGE = 1e-5  # of the variance of a drift: two may be the same


class Drawn(Protocol):
    """Draws at some points, in independent groups."""

    @property
    def points(self) -> NDArray[np.int64]:
        """The point of each draw, shape (M,)."""

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each draw, shape (M,)."""

    @property
    def drifts(self) -> NDArray[np.float64]:
        """What is zero on average at every point, shape (M, D)."""

    @property
    def betas(self) -> NDArray[np.float64]:
        """Of the points, shape (K,)."""


def calibrated_weights(pool: Drawn) -> NDArray[np.float64]:
    """Weigh all draws, and then all but those of each group, shape (M, 1 + groups).

    The weights of the draws at a point add up to their number.
    """
    points = pool.points
    counts, means, covariances = _moments(pool)
    variances = np.maximum(np.einsum("...jj->...j", covariances), 0.0)  # rounding may leave less
    spreads = np.sqrt(variances) + _FROZEN
    correlations = covariances / (spreads[..., None] * spreads[..., None, :])
    correlations += _RIDGE * np.eye(spreads.shape[-1])
    slopes = np.linalg.solve(correlations, (means / spreads)[..., None])[..., 0] / spreads
    slopes *= _trust(pool, spreads[:, 0])[:, None, None]
    weights = (1.0 + (means * slopes).sum(axis=2))[points]
    for drift, slope in zip(pool.drifts.T, np.moveaxis(slopes, 2, 0), strict=True):
        weights -= drift[:, None] * slope[points]
    weights = np.clip(weights, _LEAST, _MOST)
    weights[np.arange(len(points)), 1 + pool.groups] = 0.0
    totals = _by_point(points, weights, len(pool.betas))
    return weights * (counts / np.maximum(totals, 1e-300))[points]


def _trust(pool: Drawn, spreads: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far to go at each point: less where the drifts are those of a few draws alone."""
    squares = ((pool.drifts / spreads[pool.points]) ** 2).sum(axis=1)
    terms = np.stack([squares, squares**2], axis=1)
    sums, sums_of_squares = _by_point(pool.points, terms, len(spreads)).T
    n_effective = sums**2 / np.maximum(sums_of_squares, 1e-300)
    return n_effective / (n_effective + _N_DOUBTED)


def _moments(pool: Drawn):
    """Count, mean and covariance of the drifts at each point, of all and without each group."""
    n_points, n_drifts = len(pool.betas), pool.drifts.shape[1]
    n_groups = int(pool.groups.max()) + 1
    cells = pool.points * n_groups + pool.groups
    products = (pool.drifts[:, :, None] * pool.drifts[:, None, :]).reshape(len(cells), -1)
    terms = np.concatenate([np.ones((len(cells), 1)), pool.drifts, products], axis=1)
    by_group = _by_point(cells, terms, n_points * n_groups).reshape(n_points, n_groups, -1)
    every = by_group.sum(axis=1, keepdims=True)
    sums = np.concatenate([every, every - by_group], axis=1)
    counts = sums[..., 0]
    averages = sums[..., 1:] / np.maximum(counts, 1.0)[..., None]
    means = averages[..., :n_drifts]
    squares = averages[..., n_drifts:].reshape(*means.shape, n_drifts)
    return counts, means, squares - means[..., :, None] * means[..., None, :]


def _by_point(points, terms, n_points):
    """Add up terms, shape (M, T), by point."""
    return np.stack([np.bincount(points, term, n_points) for term in terms.T], axis=1)
