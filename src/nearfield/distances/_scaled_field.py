"""The Gaussian-kernel field at given squared distances: its pseudolikelihood and best strength."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PRIOR_SD_BETA = 50.0
"""The paper's prior of beta, here for beta > 0."""

MAX_BETA = 200.0
MIN_BETA = 0.05
N_LENGTHS = 8
NEIGHBORING = np.exp(np.linspace(-0.6, 0.6, 4))
"""Lengths around one that was best before, relative to it."""


def spread_lengths(squared: NDArray[Any]) -> Floats:
    """Give lengths between those of near neighbours and the largest."""
    farthest = float(np.sqrt(squared.max()))
    others = np.where(np.eye(len(squared), dtype=bool), np.inf, squared)
    nearest = float(np.mean(np.sqrt(others.min(axis=1))))
    low, high = np.log([max(0.1 * nearest, 1e-4 * farthest), farthest])
    return np.exp(np.linspace(low, high, N_LENGTHS))


def squared_distances(points: Floats, log_scales: Floats) -> Floats:
    """Give the squared distances between points whose features are scaled."""
    scaled = points * np.exp(log_scales)
    norms = np.einsum("if,if->i", scaled, scaled)
    return np.maximum(norms[:, None] + norms - 2.0 * scaled @ scaled.T, 0.0)


def field_gradient(squared: Floats, is_class: Floats, beta: float) -> tuple[float, Floats, float]:
    r"""Evaluate the log pseudolikelihood at length one, and its derivatives.

    With the residual :math:`e_{ig} = 1[y_i = g] - p(y_i = g \mid y_{-i})`,
    :math:`b_{ij} = \beta (e_{i y_j} + e_{j y_i})` and :math:`\log \kappa_{ij} = -d_{ij}^2 / 2`:

    .. math:: \frac{\partial}{\partial \log \kappa_{ij}}
              = w_{ij} \Big(b_{ij} - \sum_l w_{il} b_{il}\Big)

    Returns
    -------
    value : float
    by_kernel : ndarray, shape (n, n)
        The derivatives by the log kernel; rows sum to zero.
    by_beta : float
    """
    weights = gaussian_rows(squared)
    support = (weights + weights.T) @ is_class
    own = np.einsum("ig,ig->i", support, is_class)
    log_odds = beta * (support - own[:, None])
    top = log_odds.max(axis=1, keepdims=True)
    odds = np.exp(log_odds - top)
    total = odds.sum(axis=1, keepdims=True)
    value = -float(np.sum(top + np.log(total)))
    residual = is_class - odds / total
    by_coupling = beta * (residual @ is_class.T)
    by_weight = by_coupling + by_coupling.T
    mean = np.einsum("ij,ij->i", weights, by_weight)
    return value, weights * (by_weight - mean[:, None]), float(np.sum(residual * support))


def best_beta(gains: Floats, start: float) -> tuple[float, float]:
    """Maximise over beta > 0 by Newton's method, given support relative to one's own class."""
    beta, precision = start, PRIOR_SD_BETA**-2
    for _ in range(30):
        log_odds = beta * gains
        top = log_odds.max(axis=1, keepdims=True)
        odds = np.exp(log_odds - top)
        total = odds.sum(axis=1, keepdims=True)
        odds /= total
        mean = np.einsum("ig,ig->i", odds, gains)
        slope = -mean.sum() - precision * beta
        curvature = np.einsum("ig,ig,ig->", odds, gains, gains) - mean @ mean + precision
        log_mass = -np.sum(top + np.log(total)) - 0.5 * precision * beta**2
        log_mass -= 0.5 * np.log(curvature)
        step = np.clip(slope / curvature, -5.0, 5.0)
        previous, beta = beta, float(np.clip(beta + step, MIN_BETA, MAX_BETA))
        if abs(beta - previous) < 1e-2 * beta:
            break
    return beta, float(log_mass)


def gaussian_rows(squared: Floats) -> Floats:
    """Directed weights at length one, in log space."""
    log_kernel = -0.5 * squared
    np.fill_diagonal(log_kernel, -np.inf)
    log_kernel -= log_kernel.max(axis=1, keepdims=True)
    weights = np.exp(log_kernel, out=log_kernel)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
