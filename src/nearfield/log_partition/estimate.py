"""Log z and E[S] at any beta of any scale, by reweighting a pool of draws (MBAR)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from nearfield.log_partition.bonds import bar_estimates
from nearfield.log_partition.mbar import make_mixture
from nearfield.log_partition.pool import N_GROUPS, Pool
from nearfield.log_partition.reweighting import fill_weights
from nearfield.log_partition.stein import regression_weights

Floats = NDArray[np.float64]

N_ESTIMATES = 1 + N_GROUPS + 2
"""From all draws, without each group, and from the forward and the backward visits alone."""

_WORST_OVERLAP = 3.0  # times the error of overlapping states; without overlap it is hundreds
_CONTRADICTION = 0.1  # divergence of the draws of a state: 0.2 to 5 with two modes
_BY_CHANCE = 8.0  # over the number of draws: at most 6 in 2,000 states with one mode
_LEAST_WIDTH = 0.3  # of a restraint


class Estimates(NamedTuple):
    """Log z and E[S] at some betas, estimated from N_ESTIMATES parts of the draws."""

    log_z: Floats  # shape (N_ESTIMATES, B)
    slopes: Floats  # of the same shape
    n_effective: Floats  # shape (B,): effective number of draws

    def at_least(self, rough: "Estimates", enough: float) -> "Estimates":
        """Take rough estimates where they are larger and fewer than `enough` draws are effective.

        Draws of other states hold nothing of a state that they do not overlap with: log z from
        them is far too small, and its likelihood too large.
        """
        is_too_small = (self.n_effective < enough) & (rough.log_z[0] > self.log_z[0])
        return Estimates(
            np.where(is_too_small, rough.log_z, self.log_z),
            np.where(is_too_small, rough.slopes, self.slopes),
            self.n_effective,
        )


class Reweighting(NamedTuple):
    """Draws with what turns them into draws at any state: their weights and mixture densities."""

    log_density: Floats  # shape (M,)
    columns: Floats  # shape (M, N_ESTIMATES)
    draws: NDArray[np.int64]  # shape (M,): those of the pool that are used
    bonds_from: float  # the lowest beta with a BAR estimate; infinite for none
    is_connected: bool  # False where neighbouring states hardly overlap: no error can be trusted

    def at(self, betas: Floats, agreements: Floats) -> Estimates:
        """Estimate log z and E[S] at betas, from the agreements of the whole pool at the scale."""
        agreements = agreements[self.draws]
        terms = np.empty((len(betas), len(agreements)))
        log_largest, n_effective = np.empty((2, len(betas)))
        fill_weights(betas, agreements, self.log_density, terms, log_largest, n_effective)
        columns = self.columns
        both = terms @ np.concatenate([columns, columns * agreements[:, None]], axis=1)
        sums, moments = np.split(both, 2, axis=1)
        sums = np.maximum(sums, 1e-300)  # a part of the draws may hold none that count
        log_z = np.log(sums) + log_largest[:, None]
        return Estimates(log_z.T, (moments / sums).T, n_effective)


def reweight(pool: Pool, agreements: Floats, log_z_at_zero: float) -> Reweighting:
    """Solve for log z of all states of a pool.

    Restrained states whose draws contradict those of all others are left out: their restraint is
    too weak, and leaves two modes, of which chains visit one.

    Parameters
    ----------
    agreements : ndarray, shape (M, K)
        At the scales of the pool's states.
    log_z_at_zero : float
        Of the pool's first state.
    """
    n_states = len(pool.betas)
    counts = np.bincount(pool.states, minlength=n_states).astype(float)
    log_potentials = pool.log_potentials(agreements)
    guess = _log_z_from_nearest(pool, log_potentials, counts, log_z_at_zero)
    weights = _weights_of_parts(pool, n_states)
    bar = bar_estimates(
        pool.states, pool.groups, pool.conditional, pool.free, pool.log_highest, N_GROUPS
    )
    solution = make_mixture(log_potentials, pool.states, guess).solve(weights, bar.repeated(2))
    log_density = solution.log_densities[:, 0]
    is_wrong = _contradicts_others(pool, agreements, log_potentials, log_density)
    if is_wrong.any():
        kept = np.flatnonzero(~is_wrong[pool.states])
        rest = reweight(pool.without(is_wrong), agreements[kept][:, ~is_wrong], log_z_at_zero)
        return rest._replace(draws=kept[rest.draws])
    columns = weights * np.exp(log_density[:, None] - solution.log_densities)
    bonds_from = float(pool.betas[bar.is_known].min(initial=np.inf))
    usual_error = n_states / np.sqrt(len(log_density))  # of a chain of overlapping states
    is_overlapping = bool(solution.independent_error < _WORST_OVERLAP * usual_error)
    is_connected = is_overlapping and solution.is_found
    return Reweighting(log_density, columns, np.arange(len(columns)), bonds_from, is_connected)


def _contradicts_others(
    pool: Pool, agreements: Floats, log_potentials: Floats, log_density: Floats
) -> NDArray[np.bool_]:
    """Tell which restrained states drew other agreements than reweighting gives them, shape (K,).

    By the Kullback-Leibler divergence of the normals with the two means and variances; a part of
    the width of the restraint is added to these, for labels that are nearly all the same.
    """
    restrained = np.flatnonzero(pool.stiffness)
    agreements = agreements[:, restrained]
    log_ratios = log_potentials[:, restrained] - log_density[:, None]
    is_drawn = (pool.states[:, None] == restrained).astype(float)
    ratios = np.exp(log_ratios - log_ratios.max(axis=0))
    drawn, reweighted = (_moments(weights, agreements) for weights in (is_drawn, ratios))
    least = _LEAST_WIDTH**2 / pool.stiffness[restrained]
    ratio = (drawn[1] + least) / (reweighted[1] + least)
    divergences = 0.5 * (
        ratio - 1.0 - np.log(ratio) + (drawn[0] - reweighted[0]) ** 2 / (reweighted[1] + least)
    )
    contradicts = np.zeros(len(pool.stiffness), dtype=bool)
    contradicts[restrained] = divergences > _CONTRADICTION + _BY_CHANCE / is_drawn.sum(axis=0)
    return contradicts


def _moments(weights: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of each column."""
    totals = weights.sum(axis=0)
    means = (weights * values).sum(axis=0) / totals
    return means, (weights * (values - means) ** 2).sum(axis=0) / totals


def _weights_of_parts(pool: Pool, n_states: int) -> Floats:
    """Weigh the draws in each of N_ESTIMATES parts of them, shape (M, N_ESTIMATES)."""
    weights = regression_weights(pool.states, pool.groups, pool.steins, n_states)
    directions = regression_weights(
        pool.states, pool.is_forward.astype(np.int64), pool.steins, n_states
    )
    return np.concatenate([weights, directions[:, 1:]], axis=1)


def _log_z_from_nearest(
    pool: Pool, log_potentials: Floats, counts: Floats, log_z_at_zero: float
) -> Floats:
    r"""Guess log z of each state from the nearest one that is known.

    .. math:: \log z_b - \log z_a \approx \tfrac12 \big(E_a + E_b\big)[\log q_b - \log q_a]

    along the minimum spanning tree of the states, whose distance is the symmetrised
    Kullback-Leibler divergence :math:`(E_a - E_b)[\log q_a - \log q_b]`.
    """
    order = np.argsort(pool.states, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int)
    means = np.add.reduceat(log_potentials[order], starts) / counts[:, None]  # shape (K, K)
    gains = means - np.diag(means)[:, None]  # E_a[log q_b - log q_a]
    divergences = np.maximum(-gains - gains.T, 1e-9)  # for csgraph zero is no edge
    order, parents = breadth_first_order(minimum_spanning_tree(divergences), 0, directed=False)
    log_z = np.full(len(counts), log_z_at_zero)
    for state in order[1:]:
        parent = parents[state]
        log_z[state] = log_z[parent] + 0.5 * (gains[parent, state] - gains[state, parent])
    return log_z


def jackknife_error(values: Floats) -> Floats:
    """Return the standard error of estimates, shape (N_ESTIMATES, ...), over groups."""
    return np.sqrt(N_GROUPS - 1.0) * values[1 : 1 + N_GROUPS].std(axis=0)


def standard_error(values: Floats) -> Floats:
    """Return the standard error of estimates, shape (N_ESTIMATES, ...).

    The jackknife over independent groups, or half of the difference between forward and backward
    visits where that is larger: hysteresis is shared by all groups.
    """
    forward, backward = values[1 + N_GROUPS :]
    return np.maximum(jackknife_error(values), 0.5 * np.abs(forward - backward))
