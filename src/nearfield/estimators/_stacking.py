"""Stacking: mixture weights under which held-out labels are most probable."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-5
_MAX_ITER = 100
_LEAST_BARRIER = 1e-6


class Fold(NamedTuple):
    """Which points train and which are held out."""

    training: NDArray[np.intp]
    held_out: NDArray[np.intp]


def deal_folds(rng: np.random.Generator, labels: NDArray[np.int64], n_folds: int) -> list[Fold]:
    """Deal the points, class by class, to folds, so that each fold has its share of each class.

    A class of one point is held out like any other: its fold then trains without it.
    """
    shuffled = rng.permutation(len(labels))
    in_order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    number = np.empty(len(labels), dtype=np.intp)
    number[in_order] = np.arange(len(labels)) % n_folds
    return [Fold(np.flatnonzero(number != k), np.flatnonzero(number == k)) for k in range(n_folds)]


def stacking_weights(
    log_densities: NDArray[np.float64], concentration: float
) -> NDArray[np.float64]:
    r"""Find the most probable mixture weights.

    .. math:: \max_w \sum_i \log \sum_k w_k p_k(y_i) + c \sum_k \log w_k

    c spreads the weights where there are too few points to tell candidates apart: a Dirichlet
    prior with parameters 1 + c. It is also the barrier of an interior point method: Newton steps
    on the simplex, with c one to begin with and then ever smaller until it is what was asked for.

    Parameters
    ----------
    log_densities : ndarray, shape (n, K)
        log p_k(y_i): of held-out labels under each candidate.
    concentration : float
        c, at least zero.

    Returns
    -------
    weights : ndarray, shape (K,)
    """
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    n_candidates = densities.shape[1]
    weights, barrier = np.full(n_candidates, 1.0 / n_candidates), 1.0
    for _ in range(_MAX_ITER):
        aim = max(barrier, concentration, _LEAST_BARRIER)
        move = _newton_move(densities, weights, aim)
        weights = weights + move
        barrier *= 0.3
        if aim > barrier and np.abs(move).max() < _TOLERANCE:
            break
    return weights / weights.sum()


def _newton_move(densities, weights, barrier):
    """Step towards the maximum among weights that sum to one, not out of the positive ones."""
    ratios = densities / (densities @ weights)[:, None]
    gradient = ratios.sum(axis=0) + barrier / weights
    curvature = ratios.T @ ratios + np.diag(barrier / weights**2)
    along = np.linalg.solve(curvature, np.column_stack([gradient, np.ones(len(weights))]))
    move = along[:, 0] - along[:, 1] * along[:, 0].sum() / along[:, 1].sum()
    shrinking = move < 0.0
    room = np.min(-weights[shrinking] / move[shrinking], initial=np.inf)
    return min(1.0, 0.9 * room) * move
