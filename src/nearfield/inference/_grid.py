"""Log z at betas of every row of a rule, from a pool of draws, and the posterior from that."""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from nearfield.inference._anchors import tie_anchors
from nearfield.inference._calibration import calibrated_weights
from nearfield.inference._interpolant import LogPartition, cubic
from nearfield.inference._ladder import density_ranges
from nearfield.inference._mbar import mixture_of
from nearfield.inference._pool import N_GROUPS, Pool
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule
from nearfield.inference._scan import ScaleRow
from nearfield.sampling.reweighting import fill_weights

_KNOT_DROP = 14.0  # knots go to where the log density of a row has fallen by so much
_KNOT_SPACING = 0.8  # in what one draw can tell apart
_FEW_ROWS = 16  # with fewer, nodes stand closer: quantiles are read between nodes of all rows


class Knots(NamedTuple):
    """Betas of all rows, one row after the other."""

    betas: NDArray[np.float64]  # shape (B,)
    rows: NDArray[np.int64]  # shape (B,)

    def row(self, row: int) -> slice:
        """Where the betas of a row are."""
        first, last = np.searchsorted(self.rows, [row, row + 1])
        return slice(int(first), int(last))

    @property
    def lefts(self) -> NDArray[np.int64]:
        """The knots that have another of the same row to their right."""
        return np.flatnonzero(self.rows[1:] == self.rows[:-1])


class Estimates(NamedTuple):
    """Log z and E[S] at knots, from all draws and then with each group left out."""

    log_z: NDArray[np.float64]  # shape (1 + N_GROUPS, B); (1, B) if they are not from draws
    slopes: NDArray[np.float64]  # of the same shape
    n_effective: NDArray[np.float64]  # shape (B,): how many draws an estimate is worth
    anchored_from: float  # the lowest beta that has an anchor; infinite for none


def place_knots(problem: Problem, rows: list[ScaleRow]) -> Knots:
    """Place the betas of each row where its density is, as far as known."""
    found = density_ranges(problem, rows, *problem.beta_support, _KNOT_DROP)
    parts = []
    for row, (low, high, _) in zip(rows, found, strict=True):
        if low == high:  # a peak between two betas of the search
            low, high = problem.beta_support
        betas = row.log_partition.evenly(low, high, _KNOT_SPACING, frozen=2.0, n_least=8)
        parts.append(np.unique(betas))
    return Knots(
        np.concatenate(parts), np.repeat(np.arange(len(rows)), [len(part) for part in parts])
    )


def estimate(
    pool: Pool,
    at_points: NDArray[np.float64],
    at_rows: NDArray[np.float64],
    log_z_at_zero: float,
    knots: Knots,
) -> Estimates:
    """Reweight the pool to all knots.

    Parameters
    ----------
    at_points : ndarray, shape (M, K)
        Agreements at the scales of the pool's points.
    at_rows : ndarray, shape (M, R)
        Agreements at the scales of the rule.
    log_z_at_zero : float
        Of the pool's first point.
    """
    counts = np.bincount(pool.points, minlength=len(pool.betas)).astype(float)
    log_potentials = at_points * pool.betas
    guess = _log_z_along(pool, log_potentials, counts, log_z_at_zero)
    weights = calibrated_weights(pool)
    anchors = tie_anchors(pool, N_GROUPS, pool.log_highest)
    solution = mixture_of(log_potentials, counts, guess).solve(weights, anchors)
    log_densities = solution.log_densities
    log_density = log_densities[:, 0]
    columns = weights * np.exp(log_density[:, None] - log_densities)
    parts = [
        _reweight(knots.betas[knots.row(row)], at_rows[:, row], log_density, columns)
        for row in range(at_rows.shape[1])
    ]
    log_z, slopes, n_effective = (np.concatenate(p, axis=-1) for p in zip(*parts, strict=True))
    anchored_from = pool.betas[anchors.is_known].min(initial=np.inf)
    return Estimates(log_z, slopes, n_effective, float(anchored_from))


def _log_z_along(pool, log_potentials, counts, log_z_at_zero):
    r"""Guess log z of each point from the one before it.

    .. math:: \log z_b - \log z_a \approx \tfrac12 \big(E_a + E_b\big)[\log q_b - \log q_a]
    """
    order = np.argsort(pool.points, kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int)
    means = np.add.reduceat(log_potentials[order], starts) / counts[:, None]  # shape (K, K)
    each, parents = np.arange(len(counts)), pool.parents
    steps = 0.5 * (
        means[parents, each] - means[parents, parents] + means[each, each] - means[each, parents]
    )
    log_z = np.full(len(counts), log_z_at_zero)
    for point in each[1:]:
        log_z[point] = log_z[parents[point]] + steps[point]
    return log_z


def _reweight(betas, agreements, log_density, columns):
    """Estimate log z and E[S] at betas of one row, for each column of weights of the draws."""
    terms = np.empty((len(betas), len(agreements)))
    log_largest, n_effective = np.empty((2, len(betas)))
    fill_weights(betas, agreements, log_density, terms, log_largest, n_effective)
    both = terms @ np.concatenate([columns, columns * agreements[:, None]], axis=1)
    sums, moments = np.split(both, 2, axis=1)
    sums = np.maximum(sums, 1e-300)  # a group may hold all that there is
    return (np.log(sums) + log_largest[:, None]).T, (moments / sums).T, n_effective


def read_knots(knots: Knots, rows: list[ScaleRow]) -> Estimates:
    """Read off at knots what is known of rows."""
    log_z, slopes = np.empty((2, 1, len(knots.betas)))
    for row, known in enumerate(rows):
        part, curve = knots.row(row), known.log_partition
        log_z[0, part] = curve(knots.betas[part])
        slopes[0, part] = np.interp(knots.betas[part], curve.betas, curve.slopes)
    return Estimates(log_z, slopes, np.full(len(knots.betas), np.nan), np.inf)


def rows_of(
    knots: Knots, estimates: Estimates, agreements: NDArray[np.float64], rough: list[ScaleRow]
) -> list[ScaleRow]:
    """Give what is now known of each row: the estimates, and what is rough beyond the knots."""
    rows = []
    for row, (agreement, beyond) in enumerate(zip(agreements, rough, strict=True)):
        p = knots.row(row)
        curve = LogPartition(knots.betas[p], estimates.log_z[0, p], estimates.slopes[0, p])
        rows.append(ScaleRow(curve.continued(beyond.log_partition), agreement))
    return rows


class Nodes(NamedTuple):
    """Nodes of the quadrature, with the log posterior mass of each, up to the evidence."""

    betas: NDArray[np.float64]  # shape (N,)
    rows: NDArray[np.int64]  # shape (N,)
    knots: NDArray[np.int64]  # shape (N,): the knot to the left
    log_masses: NDArray[np.float64]  # shape (1 + N_GROUPS, N), or (1, N)


def integrate(
    problem: Problem,
    rule: ScaleRule,
    agreements: NDArray[np.float64],
    knots: Knots,
    estimates: Estimates,
) -> Nodes:
    """Turn log z at knots into the posterior: Gauss-Legendre between each two of them."""
    left = knots.lefts
    rows = knots.rows[left]
    step = (knots.betas[left + 1] - knots.betas[left])[:, None]
    points, point_weights = leggauss(2 if len(rule.scales) >= _FEW_ROWS else 4)
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
