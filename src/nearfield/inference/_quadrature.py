"""Quadrature over (beta, scale): rows of betas at scales, both placed where the posterior is."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.interpolate import Akima1DInterpolator, interp1d
from scipy.special import logsumexp, softmax

from nearfield.field import FieldFamily
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors

Floats = NDArray[np.float64]
LogLikelihood = Callable[[Floats], Floats]

_NEGLIGIBLE = 10.0  # a scale whose posterior density is exp(-10) of the largest is left out
_CORE = 4.0  # most scales are placed where the density is above exp(-4) of the largest
_TAIL = 1e-10  # prior mass beyond which no node is placed
_LOW_MASS = 1e-4  # of the prior of sigma, that may be left out where the field is constant
_FEW_POINTS = 16  # have few distances, so that cells can end at the steps of the field
_BETA_DROP = 30.0  # a row ends where its log density has fallen by so much
_N_BETA_SEARCH = 48
_N_BETA_AGAIN = 24  # in a range that is about known
_N_A_PANEL = 10  # betas

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


def supports(
    family: FieldFamily, scales: list[float], labels: NDArray[np.int64]
) -> Iterator[Floats]:
    """Give the support at rising scales, as the family does it best: one by one, or all in a row.

    A family whose support changes little from one scale to the next has a method of this name.
    """
    in_a_row = getattr(family, "supports", None)
    if in_a_row is not None:
        return in_a_row(scales, labels)
    return (family.support(scale, labels) for scale in scales)


class Row(NamedTuple):
    """The betas at one scale, their log weights, and the log integral over them."""

    betas: Floats  # shape (B,)
    log_masses: Floats  # shape (B,)
    log_total: float
    edges: Floats  # shape (B + 1,), of the cells of the betas


def integrate_row(log_likelihood: LogLikelihood, priors: Priors, hint: Row | None = None) -> Row:
    """Integrate over beta at one scale by Gauss-Legendre panels around the mode.

    Parameters
    ----------
    log_likelihood : callable
        Of an array of betas.
    hint : Row, optional
        A row nearby, whose range is tried first.
    """

    def log_density(betas: Floats) -> Floats:
        return log_likelihood(betas) + priors.log_beta(betas)

    edges = _panel_edges(log_density, priors, hint)
    betas, widths = gauss_nodes(edges, _N_A_PANEL)
    log_masses = log_density(betas) + np.log(widths)
    largest = log_masses.max()
    log_total = float(largest + np.log(np.exp(log_masses - largest).sum()))
    return Row(betas, log_masses, log_total, edges[0] + np.append(0.0, np.cumsum(widths)))


def _panel_edges(log_density: LogLikelihood, priors: Priors, hint: Row | None) -> Floats:
    """Cut the betas that matter into panels: two flanks and what is near the mode."""
    support = priors.beta_range
    low, high = support
    if hint is not None:
        width = hint.betas[-1] - hint.betas[0]
        low = max(support[0], hint.betas[0] - 0.2 * width)
        high = min(support[1], hint.betas[-1] + 0.2 * width)
    for _ in range(8):
        n_search = _N_BETA_SEARCH if hint is None else _N_BETA_AGAIN
        # Dense near zero, where the posterior usually is, and out to the tails of the prior; of
        # a heavy-tailed one the whole posterior would else be lost between two betas.
        unit = min(0.05 * (high - low) / n_search + 1e-3, 1.0)
        first, last = np.arcsinh(low / unit), np.arcsinh(high / unit)
        betas = np.sinh(np.linspace(first, last, n_search)) * unit
        betas[0], betas[-1] = low, high
        values = log_density(betas)
        values[np.isnan(values)] = -np.inf
        is_heavy = np.flatnonzero(values > values.max() - _BETA_DROP)
        first, last = max(is_heavy[0] - 1, 0), min(is_heavy[-1] + 1, len(betas) - 1)
        if hint is not None and (
            (is_heavy[0] == 0 and low > support[0])
            or (is_heavy[-1] == len(betas) - 1 and high < support[1])
        ):
            (low, high), hint = support, None  # the hint was wrong
            continue
        is_narrow_enough = last - first > n_search // (2 if hint is None else 4)
        low, high = float(betas[first]), float(betas[last])
        if is_narrow_enough:
            break
    is_near = np.flatnonzero(values > values.max() - 3.0)
    inner_low, inner_high = betas[max(is_near[0] - 1, first)], betas[min(is_near[-1] + 1, last)]
    # Cut at the mode: a density that rises at once and falls slowly needs short panels first.
    margin = 0.05 * (inner_high - inner_low)
    mode = np.clip(betas[np.argmax(values)], inner_low + margin, inner_high - margin)
    return np.unique([low, inner_low, mode, inner_high, high])


def row_totals(rule: ScaleRule, rows: list[Row]) -> Floats:
    """Return the log posterior mass of each row, up to the evidence."""
    totals = np.array([row.log_total for row in rows])
    return totals + rule.log_priors


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


def assemble(
    family: FieldFamily, rule: ScaleRule, rows: list[Row], outside_mass: float
) -> Posterior:
    """Make the posterior record of the nodes of all rows; drop those without weight."""
    log_weight = np.concatenate(
        [row.log_masses + log_prior for row, log_prior in zip(rows, rule.log_priors, strict=True)]
    )
    n_betas = [len(row.betas) for row in rows]
    betas = np.concatenate([row.betas for row in rows])
    beta_cells = np.concatenate([[row.edges[:-1], row.edges[1:]] for row in rows], axis=1)
    scale_cells = np.repeat([rule.edges[:-1], rule.edges[1:]], n_betas, axis=1)
    beta_means = np.array([np.exp(r.log_masses - r.log_total) @ r.betas for r in rows])
    log_evidence = logsumexp(log_weight)
    weight = np.exp(log_weight - log_evidence)
    keep = weight > 1e-9
    return Posterior.from_nodes(
        betas[keep],
        np.repeat(rule.scales, n_betas)[keep],
        weight[keep] / weight[keep].sum(),
        family.scale_name,
        log_evidence=float(log_evidence),
        mean_error=rule_error(family, rule, row_totals(rule, rows), beta_means),
        outside_mass=outside_mass,
        beta_cells=beta_cells[:, keep],
        scale_cells=scale_cells[:, keep],
    )
