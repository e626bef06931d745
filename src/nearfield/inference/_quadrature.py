"""Quadrature over (beta, scale): rows of betas at scales, both placed where the posterior is."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import FieldFamily
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors

NEGLIGIBLE = 10.0
"""A scale whose posterior density is exp(-10) of the largest is left out."""

_CORE = 4.0  # most scales are placed where the density is above exp(-4) of the largest
_TAIL = 1e-10  # prior mass beyond which no node is placed
_LOW_MASS = 1e-4  # of the prior of sigma, that may be left out where the field is constant
_BETA_DROP = 30.0  # a row ends where its log density has fallen by so much
_N_BETA_SEARCH = 48
_N_BETA_AGAIN = 24  # in a range that is about known
_PANEL = leggauss(10)

LogLikelihood = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class ScaleRule(NamedTuple):
    """Scales and the log weights that turn a sum over them into an integral (for k, a sum)."""

    scales: NDArray[np.float64]
    log_weights: NDArray[np.float64]
    low: float
    high: float


class Row(NamedTuple):
    """The betas at one scale, their log weights, and the log integral over them."""

    betas: NDArray[np.float64]
    log_masses: NDArray[np.float64]
    log_total: float


def scale_interval(family: FieldFamily, priors: Priors) -> tuple[float, float]:
    """Return the scales between which the posterior can vary: below, the field is constant."""
    low, high = priors.scale.ppf(_TAIL), priors.scale.ppf(1.0 - _TAIL)
    if family.is_discrete:
        return max(float(low), 1.0), min(float(high), family.scale_range[1])
    below_zero = priors.scale.cdf(0.0)
    first = priors.scale.ppf(below_zero + _LOW_MASS * (1.0 - below_zero))
    floor = min(0.1 * family.scale_range[0], float(first))
    return max(float(low), floor), float(high)


def scan_rule(family: FieldFamily, low: float, high: float, n_scales: int) -> ScaleRule:
    """Place scales evenly in the log over an interval, to see where the posterior is.

    For k all whole numbers, or, if there are more than `n_scales`, some that stand for a stretch
    of them.
    """
    if family.is_discrete:
        edges = np.unique(np.round(np.geomspace(low, high + 1, n_scales + 1))).astype(int)
        if edges[-1] - edges[0] <= n_scales:
            edges = np.arange(edges[0], edges[-1] + 1)
        scales = (edges[1:] + edges[:-1] - 1) // 2
        return ScaleRule(scales.astype(float), np.log(np.diff(edges)), low, high)
    return _panel_rule(np.array([low, high]), [n_scales], is_smooth=False)


def final_rule(
    family: FieldFamily, scan: ScaleRule, log_totals: NDArray[np.float64], density: float = 1.0
) -> ScaleRule:
    """Place scales where a scan found the posterior: most of them where it is largest.

    `log_totals` are the log posterior masses of the scan's rows, with its weights.
    """
    low, high = _interval_above(scan, log_totals, NEGLIGIBLE)
    if family.is_discrete:
        every = np.arange(int(low), int(high) + 1, dtype=float)
        return ScaleRule(every, np.zeros(len(every)), low, high)
    core_low, core_high = _interval_above(scan, log_totals, _CORE)
    edges = np.unique([low, core_low, core_high, high])
    n_core, n_flank = (24, 8) if family.is_smooth else (64, 12)
    is_core = (edges[:-1] >= core_low) & (edges[1:] <= core_high)
    n_scales = np.ceil(density * np.where(is_core, n_core, n_flank)).astype(int)
    return _panel_rule(edges, list(n_scales), family.is_smooth)


def _interval_above(rule, log_totals, drop):
    """Return the ends of where the density is within `drop` of the largest, and a bit more."""
    log_widths = rule.log_weights - np.log(rule.scales)
    density = log_totals - log_widths
    heavy = np.flatnonzero(density > density.max() - drop)
    padded = np.concatenate([[rule.low], rule.scales, [rule.high]])
    return padded[heavy[0]], padded[heavy[-1] + 2]


def _panel_rule(edges, n_scales, is_smooth):
    """Gauss-Legendre in log sigma on each panel; midpoints where the field is rough."""
    log_scales, log_weights = [], []
    for low, high, n in zip(np.log(edges[:-1]), np.log(edges[1:]), n_scales, strict=True):
        if is_smooth:
            points, weights = leggauss(n)
        else:
            points, weights = (2.0 * np.arange(n) + 1.0) / n - 1.0, np.full(n, 2.0 / n)
        half = 0.5 * (high - low)
        log_scales.append(0.5 * (low + high) + half * points)
        log_weights.append(np.log(half * weights))
    logs = np.concatenate(log_scales)
    return ScaleRule(np.exp(logs), np.concatenate(log_weights) + logs, edges[0], edges[-1])


def mass_outside(rule: ScaleRule, log_totals: NDArray[np.float64], inner: ScaleRule) -> float:
    """Estimate from a scan the posterior mass beyond the scales of another rule."""
    is_outside = (rule.scales < inner.scales[0]) | (rule.scales > inner.scales[-1])
    return float(np.exp(log_totals - logsumexp(log_totals))[is_outside].sum())


def supports(
    family: FieldFamily, scales: list[float], labels: NDArray[np.int64]
) -> Iterator[NDArray[np.float64]]:
    """Give the support at rising scales, as the family does it best: one by one, or all in a row.

    A family whose support changes little from one scale to the next has a method of this name.
    """
    in_a_row = getattr(family, "supports", None)
    if in_a_row is not None:
        return in_a_row(scales, labels)
    return (family.support(scale, labels) for scale in scales)


def integrate_row(log_likelihood: LogLikelihood, priors: Priors, hint: Row | None = None) -> Row:
    """Integrate over beta at one scale by Gauss-Legendre panels around the mode.

    Parameters
    ----------
    log_likelihood : callable
        Of an array of betas.
    hint : Row, optional
        A row nearby, whose range is tried first.
    """

    def log_density(betas: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_likelihood(betas) + priors.log_beta(betas)

    edges = _panel_edges(log_density, priors, hint)
    points, weights = _PANEL
    half = 0.5 * np.diff(edges)[:, None]
    betas = (0.5 * (edges[1:] + edges[:-1])[:, None] + half * points).ravel()
    log_masses = log_density(betas) + np.log(half * weights).ravel()
    largest = log_masses.max()
    return Row(betas, log_masses, float(largest + np.log(np.exp(log_masses - largest).sum())))


def _panel_edges(log_density, priors, hint):
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
        low, high = betas[first], betas[last]
        if is_narrow_enough:
            break
    is_near = np.flatnonzero(values > values.max() - 3.0)
    inner_low, inner_high = betas[max(is_near[0] - 1, first)], betas[min(is_near[-1] + 1, last)]
    # Cut at the mode: a density that rises at once and falls slowly needs short panels first.
    margin = 0.05 * (inner_high - inner_low)
    mode = np.clip(betas[np.argmax(values)], inner_low + margin, inner_high - margin)
    return np.unique([low, inner_low, mode, inner_high, high])


def row_totals(rule: ScaleRule, rows: list[Row], priors: Priors) -> NDArray[np.float64]:
    """Return the log posterior mass of each row, up to the evidence."""
    totals = np.array([row.log_total for row in rows])
    return totals + rule.log_weights + priors.log_scale(rule.scales)


def assemble(
    rule: ScaleRule, rows: list[Row], priors: Priors, scale_name: str, **details
) -> Posterior:
    """Make the posterior record of the nodes of all rows; drop those without weight."""
    log_rows = rule.log_weights + priors.log_scale(rule.scales)
    log_weight = np.concatenate(
        [row.log_masses + log_row for row, log_row in zip(rows, log_rows, strict=True)]
    )
    betas = np.concatenate([row.betas for row in rows])
    scales = np.repeat(rule.scales, [len(row.betas) for row in rows])
    log_evidence = logsumexp(log_weight)
    weight = np.exp(log_weight - log_evidence)
    keep = weight > 1e-9
    return Posterior.from_nodes(
        betas[keep],
        scales[keep],
        weight[keep] / weight[keep].sum(),
        scale_name,
        log_evidence=float(log_evidence),
        **details,
    )
