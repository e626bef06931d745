"""The maximum of the pseudolikelihood: a quick comparison of families, such as those of k."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import FieldFamily
from nearfield.inference._quadrature import supports

_N_SCALES = 12
_N_ROUNDS = 3  # of five scales around the best, each a third as far apart
_N_NEWTON = 12
_MAX_BETA = 300.0


class ProfileMaximum(NamedTuple):
    """Where the log pseudolikelihood is largest, and how large it is there."""

    log_pseudolikelihood: float
    beta: float
    scale: float


def maximize_pseudolikelihood(family: FieldFamily, labels: NDArray[np.int64]) -> ProfileMaximum:
    r"""Maximise the pseudolikelihood over beta >= 0 and the scale sigma.

    .. math:: \max_{\beta, \sigma} \sum_i \log p(y_i \mid y_{-i}, \beta, \sigma)

    By a grid over the range of scales and refinements around its best, with Newton's method in
    beta, in which the log pseudolikelihood is concave.

    Parameters
    ----------
    family : FieldFamily
        With the scale sigma.
    labels : ndarray of int, shape (n,)
    """
    low, high = np.log(family.scale_range)
    best = ProfileMaximum(-np.inf, 1.0, float(np.exp(low)))
    log_scales = np.linspace(low, high, _N_SCALES)
    step = log_scales[1] - log_scales[0]
    for _ in range(1 + _N_ROUNDS):
        scales = np.exp(log_scales).tolist()
        for scale, support in zip(scales, supports(family, scales, labels), strict=True):
            value, beta = _maximize_beta(support, labels, best.beta, family.multiplicities)
            if value > best.log_pseudolikelihood:
                best = ProfileMaximum(value, beta, scale)
        step /= 3.0
        log_scales = np.log(best.scale) + step * np.array([-2.0, -1.0, 1.0, 2.0])
    return best


def _maximize_beta(
    support: NDArray[np.float64],
    labels: NDArray[np.int64],
    start: float,
    multiplicities: NDArray[np.float64] | None = None,
) -> tuple[float, float]:
    """Maximise over beta at one scale, by Newton's method kept between zero and a bound."""
    sites = np.arange(len(labels))
    gains = support - support[sites, labels][:, None]
    counts = np.ones(len(labels)) if multiplicities is None else multiplicities
    beta, value = start, -np.inf
    for _ in range(_N_NEWTON):
        largest = (beta * gains).max(axis=1, keepdims=True)
        conditionals = np.exp(beta * gains - largest)
        totals = conditionals.sum(axis=1, keepdims=True)
        value = -float(counts @ (largest + np.log(totals))[:, 0])
        conditionals /= totals
        means = (conditionals * gains).sum(axis=1)
        curvature = float(counts @ ((conditionals * gains**2).sum(axis=1) - means**2))
        move = -float(counts @ means) / max(curvature, 1e-12)
        # No more than a factor of three at a time: far out the curvature vanishes.
        moved = float(np.clip(beta + move, beta / 3.0, 3.0 * beta + 0.1))
        moved = min(max(moved, 0.0), _MAX_BETA)
        if abs(moved - beta) < 1e-3 * (1.0 + beta):
            break
        beta = moved
    return value, beta
