"""Log z at betas of every row of a rule, from a pool of draws, and the posterior from that."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from nearfield.inference._plan import density_ranges
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule
from nearfield.inference._rows import ScaleRow
from nearfield.log_partition import Estimates, LogPartition, Reweighting, cubic

Floats = NDArray[np.float64]


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


class Nodes(NamedTuple):
    """Nodes of the quadrature, with the log posterior mass of each, up to the evidence."""

    betas: Floats  # shape (N,)
    rows: NDArray[np.int64]  # shape (N,)
    knots: NDArray[np.int64]  # shape (N,): the knot to the left
    log_masses: Floats  # shape (N_ESTIMATES, N), or (1, N) of a scan


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
        betas.ravel(),
        np.repeat(rows, len(points)),
        np.repeat(left, len(points)),
        log_masses.reshape(len(log_masses), -1),
    )
