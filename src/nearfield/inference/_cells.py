"""Scales of a family that changes in steps, the radius: cells, and stretches of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from nearfield.inference._panels import flattened, tilted_log_density
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule, scale_rule

_PRIOR_LEVELS = ndtr(np.linspace(-4.0, 4.0, 33))
_MOST_CHANGE = -6.0, 3.0  # of a log mass that is only roughly known


class RowMasses(NamedTuple):
    """Log posterior masses over beta at one scale, up to its own prior and weight."""

    betas: NDArray[np.float64]
    log_masses: NDArray[np.float64]
    agreement: float  # of the observed labels


def cell_rule(problem: Problem, bounds: tuple[float, float]) -> ScaleRule:
    """Cut scales at the steps of the field, or at some of them if there are very many."""
    low, high = bounds
    steps = problem.family.scale_steps
    steps = steps[(steps > low) & (steps < high)]
    # Half of the edges at most are steps; the others cut what is left wide.
    n_kept = min(len(steps), problem.settings.max_cells // 2)
    kept = steps[np.linspace(0, len(steps) - 1, n_kept).round().astype(int)] if n_kept else steps
    edges = np.concatenate([[low], kept, [high]])
    n_parts = np.ceil(np.diff(np.log(edges)) / problem.settings.widest_cell).clip(1).astype(int)
    parts = [
        np.geomspace(a, b, n + 1)[:-1]
        for a, b, n in zip(edges[:-1], edges[1:], n_parts, strict=True)
    ]
    quantiles = problem.priors.scale.ppf(_PRIOR_LEVELS)  # a narrow prior needs narrow cells
    quantiles = quantiles[(quantiles > low) & (quantiles < high)]
    edges = np.unique(np.concatenate([*parts, quantiles, [high]]))
    middles, log_widths = 0.5 * (edges[1:] + edges[:-1]), np.log(np.diff(edges))
    return scale_rule(problem.family, problem.priors, middles, log_widths, edges)


def cell_totals(
    problem: Problem,
    cells: ScaleRule,
    agreements: NDArray[np.float64],
    scales: NDArray[np.float64],
    rows: list[RowMasses],
) -> NDArray[np.float64]:
    """Guess the log mass of cells from rows at some scales.

    Log z is interpolated between two rows; the agreement of the observed labels, which jumps at
    every step, is exact.

    Parameters
    ----------
    agreements : ndarray, shape (C,)
        Of the observed labels at the scales of the cells.
    scales, rows : ndarray and list, of length R
    """
    position = np.interp(np.log(cells.scales), np.log(scales), np.arange(len(scales)))
    below = np.minimum(position.astype(int), max(len(scales) - 2, 0))
    above = np.minimum(below + 1, len(scales) - 1)
    share = position - below
    known = np.array([row.agreement for row in rows])
    excess = agreements - ((1.0 - share) * known[below] + share * known[above])
    totals = cells.log_priors.copy()
    for near, part in ((below, 1.0 - share), (above, share)):
        for index in np.unique(near):
            members = near == index
            row = rows[index]
            tilted = row.log_masses + excess[members][:, None] * row.betas
            total = logsumexp(row.log_masses)
            change = np.clip(logsumexp(tilted, axis=1) - total, *_MOST_CHANGE)
            totals[members] += part[members] * (total + change)
    return totals


def merged_rule(
    problem: Problem, cells: ScaleRule, log_totals: NDArray[np.float64], n_scales: int
) -> ScaleRule:
    """Merge cells into stretches of equal flattened mass, with one scale to stand for each.

    It is the one in the middle of the stretch, and its weight that of the whole, by what is
    roughly known of the density of the cells: exact where one cell is a stretch.
    """
    log_density = tilted_log_density(problem, cells, log_totals)
    mass = flattened(problem.settings, log_density) * np.exp(cells.log_weights) / cells.scales
    stretch = np.floor(n_scales * (np.cumsum(mass) - 0.5 * mass) / mass.sum()).astype(int)
    scales, log_weights, log_priors, edges = [], [], [], [cells.low]
    for index in np.unique(stretch):
        members = np.flatnonzero(stretch == index)
        total = logsumexp(log_totals[members])
        shares = np.cumsum(np.exp(log_totals[members] - total))
        middle = members[np.flatnonzero(shares >= 0.5 * shares[-1])[0]]
        scales.append(cells.scales[middle])
        change = total - log_totals[middle]
        log_weights.append(cells.log_weights[middle] + change)
        log_priors.append(cells.log_priors[middle] + change)
        edges.append(cells.edges[members[-1] + 1])
    return ScaleRule(*map(np.array, (scales, log_weights, log_priors, edges)))
