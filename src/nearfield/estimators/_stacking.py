"""Stacking: mixture weights under which held-out labels are most probable."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = 1e-5
_MAX_ITER = 100
_LEAST_BARRIER = 1e-6


class Fold(NamedTuple):
    """Which points train, sorted by class, and which are held out."""

    training: NDArray[np.intp]
    held_out: NDArray[np.intp]


def deal_folds(
    rng: np.random.Generator,
    labels: NDArray[np.int64],
    n_folds: int,
    groups: NDArray[np.int64] | None = None,
) -> list[Fold]:
    """Deal the points, class by class, to folds, so that each fold has its share of each class.

    A class of one point is held out like any other: its fold then trains without it. Points of
    one group, 0..n_groups-1, go to one fold: groups are dealt by the class that most of their
    points have.
    """
    if groups is not None:
        counts = np.zeros((groups.max() + 1, labels.max() + 1), dtype=np.int64)
        np.add.at(counts, (groups, labels), 1)
        dealt = _deal(rng, counts.argmax(axis=1), min(n_folds, len(counts)))
        number = dealt[groups]
    else:
        number = _deal(rng, labels, n_folds)
    by_class = np.argsort(labels, kind="stable")
    return [
        Fold(by_class[number[by_class] != k], np.flatnonzero(number == k))
        for k in range(int(number.max()) + 1)
    ]


def _deal(rng: np.random.Generator, labels: NDArray[np.int64], n_folds: int) -> NDArray[np.intp]:
    """Give each label the number of its fold, shape (n,)."""
    shuffled = rng.permutation(len(labels))
    in_order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    number = np.empty(len(labels), dtype=np.intp)
    number[in_order] = np.arange(len(labels)) % n_folds
    return number


def stacking_weights(
    log_densities: NDArray[np.float64],
    concentration: float,
    counts: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    r"""Find the most probable mixture weights.

    .. math:: \max_w \sum_i s_i \log \sum_k w_k p_k(y_i) + c \sum_k \log w_k

    c spreads the weights where there are too few points to tell estimators apart: a Dirichlet
    prior with parameters 1 + c. It is also the barrier of an interior point method: Newton steps
    on the simplex, with c one to begin with and then ever smaller until it is what was asked for.

    Parameters
    ----------
    log_densities : ndarray, shape (n, K)
        log p_k(y_i): of held-out labels under each estimator.
    concentration : float
        c, at least zero.
    counts : ndarray, shape (n,), optional
        s, how often each label counts; once by default.

    Returns
    -------
    weights : ndarray, shape (K,)
    """
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    n_labels, n_estimators = densities.shape
    counts = np.ones(n_labels) if counts is None else counts
    weights, barrier = np.full(n_estimators, 1.0 / n_estimators), 1.0
    for _ in range(_MAX_ITER):
        aim = max(barrier, concentration, _LEAST_BARRIER)
        move = _newton_move(densities, counts, weights, aim)
        weights = weights + move
        barrier *= 0.3
        if aim > barrier and np.abs(move).max() < _TOLERANCE:
            break
    return weights / weights.sum()


def _newton_move(
    densities: NDArray[np.float64],
    counts: NDArray[np.float64],
    weights: NDArray[np.float64],
    barrier: float,
) -> NDArray[np.float64]:
    """Step towards the maximum among weights that sum to one, not out of the positive ones."""
    ratios = densities / (densities @ weights)[:, None]
    gradient = counts @ ratios + barrier / weights
    curvature = ratios.T @ (counts[:, None] * ratios) + np.diag(barrier / weights**2)
    along = np.linalg.solve(curvature, np.column_stack([gradient, np.ones(len(weights))]))
    move = along[:, 0] - along[:, 1] * along[:, 0].sum() / along[:, 1].sum()
    shrinking = move < 0.0
    room = np.min(-weights[shrinking] / move[shrinking], initial=np.inf)
    return min(1.0, 0.9 * room) * move
