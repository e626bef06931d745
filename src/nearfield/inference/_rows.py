"""Log z along beta at the scales of a rule: from a scan, then at knots from a pool of draws."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import Nodes
from nearfield.inference._scale_rules import ScaleRule
from nearfield.log_partition import (
    Estimates,
    LogPartition,
    Reweighting,
    RoughCurve,
    cubic,
    curve_between,
    scan_curve,
)

Floats = NDArray[np.float64]

_N_EXTENSION = 16
_QUARTERS = np.arange(4) / 4.0


class ScaleRow(NamedTuple):
    """Log z along beta at one scale, and the agreement of the observed labels there."""

    curve: RoughCurve
    agreement: float

    def log_likelihood(self, betas: Floats) -> Floats:
        """Evaluate the log likelihood, but for the external field."""
        return betas * self.agreement - self.curve.log_partition(betas)


def scan_scales(
    rng: np.random.Generator, problem: Problem, scales: Floats, n_jobs: int | None
) -> list[ScaleRow]:
    """Anneal at each scale; a stream each, so that the answer does not depend on `n_jobs`."""
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        return parallel(
            delayed(_scan_scale)(stream, problem, scale)
            for stream, scale in zip(rng.spawn(len(scales)), scales, strict=True)
        )


def _scan_scale(rng: np.random.Generator, problem: Problem, scale: float) -> ScaleRow:
    """Anneal at one scale, up and down from beta = 0 as far as the posterior goes."""
    field = problem.family.at(scale)
    agreement = field.agreement(problem.labels)
    low, high = problem.beta_support

    def is_enough(betas: Floats, log_z: Floats) -> bool:
        log_density = betas * agreement - log_z + problem.priors.log_beta(betas)
        return bool(log_density[-1] < log_density.max() - problem.settings.scan_drop)

    curve = scan_curve(rng, field, min(low, 0.0), max(high, 0.0), is_enough)
    return ScaleRow(curve, agreement)


def row_between(scales: Floats, rows: list[ScaleRow], scale: float) -> ScaleRow:
    """Interpolate the two rows next to a scale, linearly in its logarithm."""
    position = np.interp(np.log(scale), np.log(scales), np.arange(len(scales)))
    below = min(int(position), max(len(scales) - 2, 0))
    if below == position:
        return rows[below]
    share = float(position - below)
    first, second = rows[below : below + 2]
    agreement = (1.0 - share) * first.agreement + share * second.agreement
    return ScaleRow(curve_between((first.curve, second.curve), share), agreement)


class BetaRange(NamedTuple):
    """Where the density of a row is."""

    low: float
    high: float
    log_height: float


def density_ranges(
    problem: Problem, rows: list[ScaleRow], low: float, high: float, drop: float
) -> list[BetaRange]:
    """Find where, between two betas, the log density of each row is close to its largest."""
    grids = [_search_grid(row, low, high) for row in rows]
    found = []
    for row, grid, log_prior in zip(rows, grids, problem.log_beta(grids), strict=True):
        log_density = row.log_likelihood(grid) + log_prior
        inside = np.flatnonzero(log_density > log_density.max() - drop)
        found.append(BetaRange(grid[inside[0]], grid[inside[-1]], float(log_density.max())))
    return found


def _search_grid(row: ScaleRow, low: float, high: float) -> NDArray[np.float64]:
    """Make a fine grid of betas: as the row knows them, and beyond out to both ends."""
    known = row.curve.log_partition.betas
    parts = [(known[:-1, None] + np.diff(known)[:, None] * _QUARTERS).ravel(), known[-1:]]
    for end, start in ((low, known[0]), (high, known[-1])):
        if not known[0] <= end <= known[-1]:
            parts.append(np.sinh(np.linspace(np.arcsinh(start), np.arcsinh(end), _N_EXTENSION)))
    grid = np.concatenate([*parts, [low, high]])
    return np.unique(grid[(grid >= low) & (grid <= high)])


class Knots(NamedTuple):
    """Betas of all rows, one row after the other."""

    betas: Floats  # shape (B,)
    rows: NDArray[np.int64]  # shape (B,)

    def row(self, row: int) -> slice:
        """Where the betas of a row are."""
        first, last = np.searchsorted(self.rows, [row, row + 1])
        return slice(int(first), int(last))

    @property
    def lefts(self) -> NDArray[np.int64]:
        """The knots that have another of the same row to their right."""
        return np.flatnonzero(self.rows[1:] == self.rows[:-1])


def place_knots(problem: Problem, rows: list[ScaleRow]) -> Knots:
    """Place the betas of each row where its density is, as far as known."""
    settings = problem.settings
    found = density_ranges(problem, rows, *problem.beta_support, settings.knot_drop)
    parts = []
    for row, (low, high, _) in zip(rows, found, strict=True):
        if low == high:  # a peak between two betas of the search
            low, high = problem.beta_support
        spacing = settings.knot_spacing if row.curve.gap is None else settings.gap_knot_spacing
        betas = row.curve.log_partition.evenly(low, high, spacing, frozen=2.0, n_least=8)
        parts.append(np.unique(betas))
    return Knots(
        np.concatenate(parts), np.repeat(np.arange(len(rows)), [len(part) for part in parts])
    )


def estimate_at_knots(reweighting: Reweighting, agreements: Floats, knots: Knots) -> Estimates:
    """Reweight a pool of draws, with agreements at the scales of all rows, (M, R), to all knots."""
    parts = [
        reweighting.at(knots.betas[knots.row(row)], agreements[:, row])
        for row in range(agreements.shape[1])
    ]
    return Estimates(*(np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)))


def read_knots(knots: Knots, rows: list[ScaleRow]) -> Estimates:
    """Read off at knots what is known of rows."""
    log_z, slopes = np.empty((2, 1, len(knots.betas)))
    for row, known in enumerate(rows):
        part, curve = knots.row(row), known.curve.log_partition
        log_z[0, part] = curve(knots.betas[part])
        slopes[0, part] = np.interp(knots.betas[part], curve.betas, curve.slopes)
    return Estimates(log_z, slopes, np.full(len(knots.betas), np.nan))


def rows_of(
    knots: Knots, estimates: Estimates, agreements: Floats, rough: list[ScaleRow]
) -> list[ScaleRow]:
    """Give what is now known of each row: the estimates, and what is rough beyond the knots."""
    rows = []
    for row, (agreement, beyond) in enumerate(zip(agreements, rough, strict=True)):
        p = knots.row(row)
        curve = LogPartition(knots.betas[p], estimates.log_z[0, p], estimates.slopes[0, p])
        continued = curve.continued(beyond.curve.log_partition)
        rows.append(ScaleRow(beyond.curve._replace(log_partition=continued), agreement))
    return rows


def integrate(
    problem: Problem, rule: ScaleRule, agreements: Floats, knots: Knots, estimates: Estimates
) -> Nodes:
    """Turn log z at knots into the posterior: Gauss-Legendre between each two of them."""
    left = knots.lefts
    rows = knots.rows[left]
    step = (knots.betas[left + 1] - knots.betas[left])[:, None]
    points, point_weights = leggauss(2 if len(rule.scales) >= problem.settings.few_rows else 4)
    t = 0.5 * (1.0 + points)
    betas = knots.betas[left][:, None] + step * t
    log_z = cubic(
        t,
        step,
        (estimates.log_z[:, left, None], estimates.log_z[:, left + 1, None]),
        (estimates.slopes[:, left, None], estimates.slopes[:, left + 1, None]),
    )
    log_rows = rule.log_priors + problem.log_external
    log_measure = log_rows[rows][:, None] + np.log(0.5 * step * point_weights)
    log_prior = problem.priors.log_beta(betas)
    log_masses = betas * agreements[rows][:, None] - log_z + log_prior + log_measure
    return Nodes(
        rule, betas.ravel(), np.repeat(rows, len(points)), log_masses.reshape(len(log_masses), -1)
    )
