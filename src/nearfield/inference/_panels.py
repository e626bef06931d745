"""Scales placed where the posterior is: close together where its density is large."""

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from nearfield.inference._path_settings import PathSettings
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule, gauss_rule


def scale_bounds(
    problem: Problem, rule: ScaleRule, log_totals: NDArray[np.float64], drop: float
) -> tuple[float, float]:
    """Return the scales between which the tilted log density is within `drop` of the largest.

    Parameters
    ----------
    log_totals : ndarray, shape (R,)
        Log posterior masses of the rows of the rule.
    """
    log_density = tilted_log_density(problem, rule, log_totals)
    inside = np.flatnonzero(log_density > log_density.max() - drop)
    padded = np.concatenate([[rule.low], rule.scales, [rule.high]])
    return float(padded[inside[0]]), float(padded[inside[-1] + 2])


def tilted_log_density(
    problem: Problem, rule: ScaleRule, log_totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log density in the log of the scale (for k, in k), tilted towards far scales."""
    is_discrete = problem.family.is_discrete
    log_widths = rule.log_weights - (0.0 if is_discrete else np.log(rule.scales))
    return log_totals - log_widths + tilt(rule.scales, log_totals)


def tilt(scales: NDArray[np.float64], log_masses: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""How much more far scales count: they matter for the standard deviation.

    .. math:: \log(1 + (\sigma - \bar\sigma)^2 / \mathrm{var}(\sigma))
    """
    weight = np.exp(log_masses - log_masses.max())
    mean = np.average(scales, weights=weight)
    variance = np.average((scales - mean) ** 2, weights=weight)
    return np.log1p((scales - mean) ** 2 / max(variance, 1e-300))


def flattened(settings: PathSettings, log_density: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the density, flattened, that scales are placed by."""
    largest = log_density.max()
    return np.exp(
        settings.flattened * (np.maximum(log_density, largest - settings.lowest) - largest)
    )


def panel_rule(
    problem: Problem,
    rule: ScaleRule,
    log_totals: NDArray[np.float64],
    bounds: tuple[float, float],
    n_scales: int,
) -> ScaleRule:
    """Place scales by Gauss-Legendre in their logarithm, on panels of equal flattened mass."""
    settings, log_density = problem.settings, tilted_log_density(problem, rule, log_totals)
    logs, ends = np.log(rule.scales), np.log(bounds)
    knots = np.unique(np.clip(np.concatenate([ends, logs]), *ends))
    fine = np.unique(np.linspace(knots[:-1], knots[1:], settings.n_fine))
    density = flattened(settings, np.interp(fine, logs, log_density))
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(fine)
    cumulative = np.concatenate([[0.0], np.cumsum(steps)])
    n_panels = int(np.ceil(n_scales / settings.nodes_a_panel))
    edges = np.interp(np.linspace(0.0, cumulative[-1], n_panels + 1), cumulative, fine)
    points, weights = leggauss(settings.nodes_a_panel)
    half = 0.5 * np.diff(edges)[:, None]
    middles = 0.5 * (edges[1:] + edges[:-1])[:, None] + half * points
    widths = half * weights
    return gauss_rule(problem.family, problem.priors, middles.ravel(), widths.ravel(), bounds[0])
