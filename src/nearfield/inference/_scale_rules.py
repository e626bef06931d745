"""Scales of a quadrature: placed where the posterior is, each standing for a cell of scales.

A scan (`scan_rule`) shows where the posterior is; `final_rule` (pseudolikelihood), `panel_rule` and
`merged_rule` (path sampling) place scales there. Smooth families take panels of Gauss-Legendre
nodes in log sigma. The radius changes in steps: its scales are cut into cells at the steps, and
cells are merged into stretches. Of k every one is taken.
"""

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.interpolate import Akima1DInterpolator, interp1d
from scipy.special import logsumexp, ndtr, softmax

from nearfield.field import FieldFamily
from nearfield.inference._priors import Priors
from nearfield.inference._problem import PathSettings, Problem

Floats = NDArray[np.float64]

_NEGLIGIBLE = 10.0  # a scale whose posterior density is exp(-10) of the largest is left out
_CORE = 4.0  # most scales are placed where the density is above exp(-4) of the largest
_TAIL = 1e-10  # prior mass beyond which no node is placed
_LOW_MASS = 1e-4  # of the prior of sigma, that may be left out where the field is constant
_FEW_POINTS = 16  # have few distances, so that cells can end at the steps of the field
_PRIOR_LEVELS = ndtr(np.linspace(-4.0, 4.0, 33))

_legendre = cache(leggauss)


class ScaleRule(NamedTuple):
    """Scales that each stand for a cell of them (for k, for some whole numbers).

    A sum with the prior masses is an integral over the prior; one with the weights is over sigma.
    """

    scales: Floats  # shape (R,)
    log_weights: Floats  # shape (R,): log widths of the cells, or numbers of k
    log_priors: Floats  # shape (R,): log prior masses of the cells
    edges: Floats  # shape (R + 1,), of the cells; those of k lie half way

    def interval_above(self, log_density: Floats, drop: float) -> tuple[float, float]:
        """Return the scales around those whose log density is within `drop` of the largest."""
        heavy = np.flatnonzero(log_density > log_density.max() - drop)
        padded = np.concatenate([self.edges[:1], self.scales, self.edges[-1:]])
        return float(padded[heavy[0]]), float(padded[heavy[-1] + 2])

    def mass_outside(self, log_totals: Floats, low: float, high: float) -> float:
        """Estimate from the log masses of all rows the posterior mass beyond two scales."""
        is_outside = (self.scales < low) | (self.scales > high)
        return float(np.exp(log_totals - logsumexp(log_totals))[is_outside].sum())


def scale_rule(
    family: FieldFamily, priors: Priors, scales: Floats, log_weights: Floats, edges: Floats
) -> ScaleRule:
    """Make a rule: where the field is constant on a cell, the prior mass of the cell is exact.

    Density times weight is as good as the rule only where the prior is smooth on that scale; a
    step of the field can be much wider than the prior.
    """
    if family.is_smooth:
        log_priors = log_weights + priors.log_scale(scales)
    else:
        log_priors = _log_masses_between(priors.scale, edges)
    return ScaleRule(scales, log_weights, log_priors, edges)


def _log_masses_between(prior: Any, edges: Floats) -> Floats:
    """Return the log mass of a prior between each two edges; that of none is a number too."""
    below, above = prior.cdf(edges), prior.sf(edges)
    # Each difference in the tail that it is in, where it is not lost to rounding.
    masses = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.log(np.maximum(masses, 1e-300))


def every_k(family: FieldFamily, priors: Priors, low: float, high: float) -> ScaleRule:
    """Take every k between two bounds."""
    every = np.arange(np.ceil(low), np.floor(high) + 1.0)
    edges = np.append(every, every[-1] + 1.0) - 0.5
    return scale_rule(family, priors, every, np.zeros(len(every)), edges)


def _scale_interval(family: FieldFamily, priors: Priors) -> tuple[float, float]:
    """Return the scales between which the posterior can vary: below, the field is constant."""
    low, high = priors.scale.ppf(_TAIL), priors.scale.ppf(1.0 - _TAIL)
    if family.is_discrete:
        return max(float(low), 1.0), min(float(high), family.scale_range[1])
    below_zero = priors.scale.cdf(0.0)
    first = priors.scale.ppf(below_zero + _LOW_MASS * (1.0 - below_zero))
    floor = min(0.1 * family.scale_range[0], float(first))
    return max(float(low), floor), float(high)


def scan_rule(family: FieldFamily, priors: Priors, n_scales: int) -> ScaleRule:
    """Place scales evenly in the log where the posterior can be, to see where it is.

    For k all whole numbers, or, if there are more than `n_scales`, some that stand for a stretch
    of them.
    """
    low, high = _scale_interval(family, priors)
    if family.is_discrete:
        firsts = np.unique(np.round(np.geomspace(low, high + 1, n_scales + 1)))
        if firsts[-1] - firsts[0] <= n_scales:
            return every_k(family, priors, low, high)
        scales, log_widths = (firsts[1:] + firsts[:-1] - 1) // 2, np.log(np.diff(firsts))
        return scale_rule(family, priors, scales, log_widths, firsts - 0.5)
    edges = np.geomspace(low, high, n_scales + 1)
    return _midpoint_rule(family, priors, edges)


def final_rule(
    family: FieldFamily, priors: Priors, scan: ScaleRule, log_totals: Floats, density: float = 1.0
) -> ScaleRule:
    """Place scales where a scan found the posterior: most of them where it is largest.

    `log_totals` are the log posterior masses of the scan's rows.
    """
    log_density = log_totals - (scan.log_weights - np.log(scan.scales))
    low, high = scan.interval_above(log_density, _NEGLIGIBLE)
    if family.is_discrete:
        return every_k(family, priors, low, high)
    core_low, core_high = scan.interval_above(log_density, _CORE)
    edges = np.unique([low, core_low, core_high, high])
    n_core, n_flank = (24, 8) if family.is_smooth else (64, 12)
    is_core = (edges[:-1] >= core_low) & (edges[1:] <= core_high)
    n_scales = np.ceil(density * np.where(is_core, n_core, n_flank)).astype(int)
    panels = list(zip(pairwise(edges), n_scales, strict=True))
    if family.is_smooth:
        nodes, widths = zip(*(gauss_nodes(np.log(ends), n) for ends, n in panels), strict=True)
        return gauss_rule(family, priors, np.concatenate(nodes), np.concatenate(widths), low)
    cuts = [np.geomspace(*ends, n + 1) for ends, n in panels]
    if family.n_points <= _FEW_POINTS:
        steps = family.scale_steps
        cuts.append(steps[(steps > low) & (steps < high)])
    return _midpoint_rule(family, priors, np.unique(np.concatenate(cuts)))


def _midpoint_rule(family: FieldFamily, priors: Priors, edges: Floats) -> ScaleRule:
    """Take the middle of each cell, in log sigma."""
    scales = np.sqrt(edges[1:] * edges[:-1])
    return scale_rule(family, priors, scales, np.log(np.diff(edges)), edges)


def gauss_nodes(edges: Floats, n_nodes: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss-Legendre on each of the panels between edges."""
    points, weights = _legendre(n_nodes)
    half = 0.5 * np.diff(edges)[:, None]
    nodes = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * points
    return nodes.ravel(), (half * weights).ravel()


def gauss_rule(
    family: FieldFamily, priors: Priors, log_scales: Floats, weights: Floats, low: float
) -> ScaleRule:
    """Make the rule of nodes and weights of a quadrature in log sigma from `low` on.

    A weight is the width of a cell around its node: their sums are between the nodes.
    """
    edges = low * np.exp(np.concatenate([[0.0], np.cumsum(weights)]))
    return scale_rule(family, priors, np.exp(log_scales), np.log(weights) + log_scales, edges)


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


def rule_error(
    family: FieldFamily, rule: ScaleRule, log_totals: Floats, beta_means: Floats
) -> Floats:
    """Estimate the errors of the means of beta and the scale that the rule over scales makes.

    They are how far the means move if every second row is filled in from the others: by Akima's
    interpolation of the log density where the field is smooth, else by straight lines. Every k is
    a row of its own, without an error. The rule over beta is far better than that over scales.

    Parameters
    ----------
    log_totals, beta_means : ndarray, shape (R,)
        Log posterior masses of the rows, and the means of beta there.

    Returns
    -------
    errors : ndarray, shape (2,)
    """
    if family.is_discrete or len(rule.scales) < 8:
        return np.zeros(2)
    logs = np.log(rule.scales)
    rows = np.stack([log_totals - rule.log_weights, beta_means])
    interpolate = Akima1DInterpolator if family.is_smooth else interp1d

    def means(log_density: Floats, betas: Floats) -> Floats:
        weight = softmax(log_density + rule.log_weights)
        return np.array([weight @ betas, weight @ rule.scales])

    changes = []
    for first in (0, 1):
        kept = np.unique([0, *range(first, len(logs), 2), len(logs) - 1])
        filled = interpolate(logs[kept], rows[:, kept], axis=1)(logs)
        changes.append(means(*filled) - means(*rows))
    return np.sqrt(np.mean(np.square(changes), axis=0))
