"""Scales of path sampling, placed where the posterior is: close together where it is large.

Smooth families take panels of nodes. The radius changes in steps: its scales are cut into cells
at the steps, and cells are merged into stretches.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from nearfield.inference._problem import PathSettings, Problem
from nearfield.inference._quadrature import ScaleRule, gauss_nodes, gauss_rule, scale_rule

Floats = NDArray[np.float64]

_PRIOR_LEVELS = ndtr(np.linspace(-4.0, 4.0, 33))


def tilted_log_density(problem: Problem, rule: ScaleRule, log_totals: Floats) -> Floats:
    """Log density in the log of the scale (for k, in k), tilted towards far scales.

    `log_totals` are the log posterior masses of the rows of the rule.
    """
    is_discrete = problem.family.is_discrete
    log_widths = rule.log_weights - (0.0 if is_discrete else np.log(rule.scales))
    return log_totals - log_widths + tilt(rule.scales, log_totals)


def tilt(scales: Floats, log_masses: Floats) -> Floats:
    r"""How much more far scales count: they matter for the standard deviation.

    .. math:: \log(1 + (\sigma - \bar\sigma)^2 / \mathrm{var}(\sigma))
    """
    weight = np.exp(log_masses - log_masses.max())
    mean = np.average(scales, weights=weight)
    variance = np.average((scales - mean) ** 2, weights=weight)
    return np.log1p((scales - mean) ** 2 / max(variance, 1e-300))


def _flattened(settings: PathSettings, log_density: Floats) -> Floats:
    """Give the density, flattened, that scales are placed by."""
    below = np.maximum(log_density - log_density.max(), -settings.lowest)
    return np.exp(settings.flattened * below)


def panel_rule(
    problem: Problem,
    rule: ScaleRule,
    log_totals: Floats,
    bounds: tuple[float, float],
    n_scales: int,
) -> ScaleRule:
    """Place scales by Gauss-Legendre in their logarithm, on panels of equal flattened mass."""
    settings, log_density = problem.settings, tilted_log_density(problem, rule, log_totals)
    logs, ends = np.log(rule.scales), np.log(bounds)
    knots = np.unique(np.clip(np.concatenate([ends, logs]), *ends))
    fine = np.unique(np.linspace(knots[:-1], knots[1:], settings.n_fine))
    density = _flattened(settings, np.interp(fine, logs, log_density))
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(fine)
    cumulative = np.concatenate([[0.0], np.cumsum(steps)])
    n_panels = int(np.ceil(n_scales / settings.nodes_a_panel))
    edges = np.interp(np.linspace(0.0, cumulative[-1], n_panels + 1), cumulative, fine)
    nodes, widths = gauss_nodes(edges, settings.nodes_a_panel)
    return gauss_rule(problem.family, problem.priors, nodes, widths, bounds[0])


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


def merged_rule(problem: Problem, cells: ScaleRule, log_totals: Floats, n_scales: int) -> ScaleRule:
    """Merge cells into stretches of equal flattened mass, with one scale to stand for each.

    It is the one in the middle of the stretch, and its weight that of the whole, by what is
    roughly known of the density of the cells: exact where one cell is a stretch.
    """
    log_density = tilted_log_density(problem, cells, log_totals)
    mass = _flattened(problem.settings, log_density) * np.exp(cells.log_weights) / cells.scales
    stretch = np.floor(n_scales * (np.cumsum(mass) - 0.5 * mass) / mass.sum()).astype(int)
    middles, changes, lasts = [], [], []
    for index in np.unique(stretch):
        members = np.flatnonzero(stretch == index)
        total = logsumexp(log_totals[members])
        shares = np.cumsum(np.exp(log_totals[members] - total))
        middle = members[np.flatnonzero(shares >= 0.5 * shares[-1])[0]]
        middles.append(middle)
        changes.append(total - log_totals[middle])
        lasts.append(members[-1])
    return ScaleRule(
        cells.scales[middles],
        cells.log_weights[middles] + changes,
        cells.log_priors[middles] + changes,
        cells.edges[np.append(0, np.add(lasts, 1))],
    )
