r"""Stein control variates: the generator of Gibbs sampling applied to an agreement.

.. math:: L_f(y) = \sum_i \big( E[f(y') \mid y_{-i}] - f(y) \big), \qquad E[L_f] = 0

with y' the labels once label i is drawn anew from its conditional in the state that is sampled,
and f any function of the labels. Where the mean of L_f over draws is not zero, that of f is off
too, by about as much as a regression of f on L_f tells. With

.. math:: w_m = 1 - \bar L^T \mathrm{cov}(L)^{-1} (L_m - \bar L)

the weighted mean of L is zero, and the weighted mean of f is the regression estimate.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import exp_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LEAST, _MOST = 0.1, 3.0  # bounds of a weight: no draw may dominate or count against
_SHRINKAGE = 10.0  # effective draws at which half of the regression is used
_FROZEN = 1e-9  # a control variate with a smaller standard deviation is left out
_RIDGE = 1e-5  # of its variance: two control variates may be the same


@compiled(fastmath={"contract"})
def fill_stein(
    external_field: Floats,
    tilt: float,
    stiffness: float,
    labels: Ints,
    support: Floats,
    other_support: Floats,
    scratch: Floats,
    stein: Floats,
) -> None:
    """Fill in L of the agreement of the sampled field and of another one, shape (2,).

    Parameters
    ----------
    tilt : float
        Beta, less kappa (S - s) under a restraint.
    support, other_support : shape (G, n)
        Of the sampled field and of the other one.
    scratch : shape (6, n)
        Overwritten.
    """
    n_classes, n_points = support.shape
    largest, weights, total, first, second, own = (
        scratch[0],
        scratch[1],
        scratch[2],
        scratch[3],
        scratch[4],
        scratch[5],
    )
    for i in range(n_points):
        largest[i], total[i], first[i], second[i] = -np.inf, 0.0, 0.0, 0.0
        own[i] = support[labels[i], i]
    half = 0.5 * stiffness
    # One thing a loop, and no max(): all of these go through the vector registers.
    for g in range(n_classes):
        alpha = external_field[g]
        for i in range(n_points):
            delta = support[g, i] - own[i]
            log_weight = alpha + (tilt - half * delta) * delta
            largest[i] = log_weight if log_weight > largest[i] else largest[i]
    for g in range(n_classes):
        alpha = external_field[g]
        for i in range(n_points):
            delta = support[g, i] - own[i]
            weights[i] = alpha + (tilt - half * delta) * delta - largest[i]
        for i in range(n_points):
            weights[i] = exp_of(weights[i])
        for i in range(n_points):
            total[i] += weights[i]
            first[i] += weights[i] * support[g, i]
            second[i] += weights[i] * other_support[g, i]
    sum_of_first, sum_of_second = 0.0, 0.0
    for i in range(n_points):
        sum_of_first += first[i] / total[i] - own[i]
        sum_of_second += second[i] / total[i] - other_support[labels[i], i]
    stein[0], stein[1] = sum_of_first, sum_of_second


def regression_weights(states: Ints, groups: Ints, steins: Floats, n_states: int) -> Floats:
    """Weigh all draws, and then all but those of each group, shape (M, 1 + groups).

    The weights of the draws at a state add up to their number.

    Parameters
    ----------
    states, groups : ndarrays, shape (M,)
        The state and the independent group of each draw.
    steins : ndarray, shape (M, D)
        Control variates.
    """
    counts, means, covariances = _moments(states, groups, steins, n_states)
    variances = np.maximum(np.einsum("...jj->...j", covariances), 0.0)  # rounding may leave less
    spreads = np.sqrt(variances) + _FROZEN
    correlations = covariances / (spreads[..., None] * spreads[..., None, :])
    correlations += _RIDGE * np.eye(spreads.shape[-1])
    slopes = np.linalg.solve(correlations, (means / spreads)[..., None])[..., 0] / spreads
    slopes *= _shrinkage(states, steins, spreads[:, 0])[:, None, None]
    weights = (1.0 + (means * slopes).sum(axis=2))[states]
    for stein, slope in zip(steins.T, np.moveaxis(slopes, 2, 0), strict=True):
        weights -= stein[:, None] * slope[states]
    weights = np.clip(weights, _LEAST, _MOST)
    weights[np.arange(len(states)), 1 + groups] = 0.0
    totals = _sum_by_state(states, weights, n_states)
    return weights * (counts / np.maximum(totals, 1e-300))[states]


def _shrinkage(states: Ints, steins: Floats, spreads: Floats) -> Floats:
    """How much of the regression to use: less where few draws carry most of the variance."""
    squares = ((steins / spreads[states]) ** 2).sum(axis=1)
    terms = np.stack([squares, squares**2], axis=1)
    sums, sums_of_squares = _sum_by_state(states, terms, len(spreads)).T
    n_effective = sums**2 / np.maximum(sums_of_squares, 1e-300)
    return n_effective / (n_effective + _SHRINKAGE)


def _moments(
    states: Ints, groups: Ints, steins: Floats, n_states: int
) -> tuple[Floats, Floats, Floats]:
    """Count, mean and covariance at each state, of all draws and without each group."""
    n_steins, n_groups = steins.shape[1], int(groups.max()) + 1
    cells = states * n_groups + groups
    products = (steins[:, :, None] * steins[:, None, :]).reshape(len(cells), -1)
    terms = np.concatenate([np.ones((len(cells), 1)), steins, products], axis=1)
    by_group = _sum_by_state(cells, terms, n_states * n_groups).reshape(n_states, n_groups, -1)
    every = by_group.sum(axis=1, keepdims=True)
    sums = np.concatenate([every, every - by_group], axis=1)
    counts = sums[..., 0]
    averages = sums[..., 1:] / np.maximum(counts, 1.0)[..., None]
    means = averages[..., :n_steins]
    squares = averages[..., n_steins:].reshape(*means.shape, n_steins)
    return counts, means, squares - means[..., :, None] * means[..., None, :]


def _sum_by_state(states: Ints, terms: Floats, n_states: int) -> Floats:
    """Add up terms, shape (M, T), by state."""
    return np.stack([np.bincount(states, term, n_states) for term in terms.T], axis=1)
