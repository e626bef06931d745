"""Stacking: mixture weights under which held-out labels are most probable."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-5
_MAX_ITER = 5_000


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

    Concave, and solved by EM. c spreads the weights where there are too few points to tell
    candidates apart: a Dirichlet prior with parameters 1 + c.

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
    n_points, n_candidates = densities.shape
    weights = np.full(n_candidates, 1.0 / n_candidates)
    for _ in range(_MAX_ITER):
        shares = densities * weights
        shares /= shares.sum(axis=1, keepdims=True)
        previous = weights
        weights = shares.sum(axis=0) + concentration
        weights /= n_points + n_candidates * concentration
        if np.abs(weights - previous).max() < _TOLERANCE:
            break
    return weights
