"""The posterior by quadrature, from log z at the scales of a rule; improved as draws come in."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.inference._plan import plan_draws
from nearfield.inference._posterior import Posterior
from nearfield.inference._problem import Problem, Spacing
from nearfield.inference._quadrature import Nodes
from nearfield.inference._rows import (
    ScaleRow,
    estimate_at_knots,
    integrate,
    place_knots,
    read_knots,
    row_between,
    rows_of,
    scan_scales,
)
from nearfield.inference._scale_rules import (
    ScaleRule,
    cell_rule,
    every_k,
    merged_rule,
    panel_rule,
    scan_rule,
    tilted_log_density,
)
from nearfield.log_partition import (
    AgreementTable,
    Pool,
    States,
    jackknife_error,
    reweight,
    standard_error,
)

Floats = NDArray[np.float64]

_SAME = 1e-6  # agreements that differ by less are the same
_MOST_CHANGE = -6.0, 3.0  # of the log mass of a cell, which is only roughly known


class ScaleRows(NamedTuple):
    """Log z at the scales of a rule, as far as it is known."""

    problem: Problem
    rule: ScaleRule
    rows: list[ScaleRow]
    rough: list[ScaleRow]  # the same, from the scan alone
    agreements: Floats  # of the observed labels, shape (R,)

    def at(self, rule: ScaleRule) -> "ScaleRows":
        """Move to other scales, with what is known there by interpolation."""
        rows, rough = (
            [row_between(self.rule.scales, known, scale) for scale in rule.scales]
            for known in (self.rows, self.rough)
        )
        return ScaleRows(self.problem, rule, rows, rough, _observed(self.problem, rule))

    def plan(self, spacing: Spacing, row_needs: Floats | None = None) -> States:
        """Plan draws over the posterior, as far as it is known."""
        return plan_draws(self.problem, self.rule, self.rows, spacing, row_needs)

    def improved(self, pool: Pool, table: AgreementTable) -> "PosteriorEstimate":
        """Estimate log z anew from a pool of draws.

        A first-order transition is a kink of log z, which is as narrow as the posterior around
        it: there knots are placed a second time, by the estimates at the first.
        """
        n_rows = len(self.rule.scales)
        at_all = table.at(pool.labelings, np.concatenate([self.rule.scales, pool.scales]))
        reweighting = reweight(pool, at_all[:, n_rows:], self.problem.log_z_at_zero)
        rows = self.rows
        for _ in range(1 + any(row.curve.gap is not None for row in rows)):
            knots = place_knots(self.problem, rows)
            estimates = estimate_at_knots(reweighting, at_all[:, :n_rows], knots).at_least(
                read_knots(knots, self.rough), self.problem.settings.few_effective
            )
            rows = rows_of(knots, estimates, self.agreements, self.rough)
        nodes = integrate(self.problem, self.rule, self.agreements, knots, estimates)
        return PosteriorEstimate(
            self._replace(rows=rows),
            nodes,
            estimates.n_effective[knots.lefts].repeat(len(nodes.betas) // len(knots.lefts)),
            reweighting.bonds_from,
            reweighting.is_connected,
        )


class PosteriorEstimate(NamedTuple):
    """Log z at the scales of a rule, and the posterior that follows."""

    scale_rows: ScaleRows
    nodes: Nodes
    n_effective: Floats  # shape (N,): effective draws that the knot left of each node rests on
    bonds_from: float  # the lowest beta with a BAR estimate
    is_connected: bool  # whether the sampled states overlap

    def narrowed(self, density: float) -> tuple[ScaleRows, float]:
        """Move to scales placed where the posterior is; return also the mass left outside."""
        problem, settings = self.scale_rows.problem, self.scale_rows.problem.settings
        bounds = self._bounds(settings.scale_drop)
        if problem.family.is_discrete or problem.family.is_smooth:
            rule = self._rule_within(bounds, int(np.ceil(settings.n_smooth_scales * density)))
        else:
            cells = cell_rule(problem, bounds)
            n_scales = int(np.ceil(settings.n_step_scales * density))
            rule = merged_rule(problem, cells, self._cell_totals(cells), n_scales)
        outside = self.scale_rows.rule.mass_outside(self.nodes.row_totals(), *bounds)
        return self.scale_rows.at(rule), outside

    def widened(self) -> ScaleRows:
        """Move to scales where the posterior may be, as far as a scan knows."""
        settings = self.scale_rows.problem.settings
        bounds = self._bounds(settings.rough_scale_drop)
        return self.scale_rows.at(self._rule_within(bounds, settings.n_rough_scales))

    def _bounds(self, drop: float) -> tuple[float, float]:
        rule, totals = self.scale_rows.rule, self.nodes.row_totals()
        return rule.interval_above(tilted_log_density(self.scale_rows.problem, rule, totals), drop)

    def _rule_within(self, bounds: tuple[float, float], n_scales: int) -> ScaleRule:
        problem = self.scale_rows.problem
        if problem.family.is_discrete:
            return every_k(problem.family, problem.priors, *bounds)
        return panel_rule(problem, self.scale_rows.rule, self.nodes.row_totals(), bounds, n_scales)

    def _cell_totals(self, cells: ScaleRule) -> Floats:
        """Guess the log mass of cells.

        Log z is interpolated between two rows; the agreement of the observed labels, which jumps
        at every step, is exact.
        """
        problem, rule, _, _, known = self.scale_rows
        position = np.interp(np.log(cells.scales), np.log(rule.scales), np.arange(len(known)))
        below = np.minimum(position.astype(int), max(len(known) - 2, 0))
        above = np.minimum(below + 1, len(known) - 1)
        share = position - below
        excess = _observed(problem, cells) - ((1.0 - share) * known[below] + share * known[above])
        totals = cells.log_priors.copy()
        for near, part in ((below, 1.0 - share), (above, share)):
            for row in np.unique(near):
                members, is_row = near == row, self.nodes.rows == row
                log_masses = self.nodes.log_masses[0, is_row] - rule.log_priors[row]
                tilted = log_masses + excess[members][:, None] * self.nodes.betas[is_row]
                total = logsumexp(log_masses)
                change = np.clip(logsumexp(tilted, axis=1) - total, *_MOST_CHANGE)
                totals[members] += part[members] * (total + change)
        return totals

    def row_needs(self) -> Floats:
        """Return how much more each row needs draws than it has, shape (R,); one for enough."""
        log_masses = self.nodes.log_masses[0]
        heavy = log_masses > log_masses.max() - self.scale_rows.problem.settings.heavy
        enough = self.scale_rows.problem.settings.min_effective
        n_effective = np.full(len(self.scale_rows.rule.scales), np.inf)
        np.minimum.at(n_effective, self.nodes.rows[heavy], self.n_effective[heavy])
        return np.sqrt(enough / np.clip(n_effective, 1.0, enough))

    def relative_errors(self) -> tuple[float, float]:
        """Return the larger error of the two means, as a part of the standard deviation.

        First by the jackknife alone, then with hysteresis.
        """
        _, weights, means = self.nodes.moments()
        places = np.stack([self.nodes.betas, self.nodes.scales], axis=1)
        variances = weights[0] @ (places - means[0]) ** 2
        is_single = variances <= 1e-20 * means[0] ** 2  # rounding, of one k alone
        sds = np.sqrt(np.where(is_single, np.inf, variances))
        by_jackknife, with_hysteresis = jackknife_error(means), standard_error(means)
        return float((by_jackknife / sds).max()), float((with_hysteresis / sds).max())

    def is_crossed(self) -> bool:
        """Tell whether all transitions that were found at these scales were crossed."""
        return all(row.curve.is_crossed for row in self.scale_rows.rows)

    def mass_below(self) -> float:
        """Bound the posterior mass at betas below those looked at.

        Log z is convex, so that the likelihood of a row, if it falls towards the lowest beta, is
        at most what it is there by a straight continuation of log z.
        """
        problem, rule, rows, *_ = self.scale_rows
        if problem.mass_below == 0.0:
            return 0.0
        low = problem.beta_support[0]
        log_bounds = [
            row.log_likelihood(np.array([low]))[0]
            if row.agreement > row.curve.log_partition.slopes[0] - _SAME
            else 0.0  # a probability
            for row in rows
        ]
        log_rows = rule.log_priors + problem.log_external
        log_evidence = logsumexp(self.nodes.log_masses[0])
        log_ratio = logsumexp(log_rows + log_bounds) - log_evidence
        return float(min(problem.mass_below * np.exp(min(log_ratio, 700.0)), 1.0))

    def highest_log_likelihood_below_zero(self) -> float:
        """Return the largest log likelihood at beta < 0 where the posterior is.

        Above zero it is impossible; -infinity if the posterior is not there.
        """
        log_masses = self.nodes.log_masses[0]
        heavy = log_masses > log_masses.max() - self.scale_rows.problem.settings.heavy
        heavy &= self.nodes.betas < 0.0
        rows, betas = self.nodes.rows[heavy], self.nodes.betas[heavy]
        largest = max(
            (
                float(self.scale_rows.rows[row].log_likelihood(betas[rows == row]).max())
                for row in np.unique(rows)
            ),
            default=-np.inf,
        )
        return largest + self.scale_rows.problem.log_external

    def posterior(self, outside_mass: float) -> Posterior:
        """Make the record, with errors from leaving out each group of draws."""
        log_evidence, _, means = self.nodes.moments()
        return self.nodes.posterior(
            self.scale_rows.problem.family,
            outside_mass,
            float(standard_error(log_evidence)),
            standard_error(means),
        )


def scan_posterior(rng: np.random.Generator, problem: Problem, n_jobs: int | None) -> ScaleRows:
    """Scan all scales roughly, and place scales where the posterior may be."""
    rule = scan_rule(problem.family, problem.priors, problem.settings.n_scan)
    rows = scan_scales(rng, problem, rule.scales, n_jobs)
    agreements = np.array([row.agreement for row in rows])
    knots = place_knots(problem, rows)
    estimates = read_knots(knots, rows)
    nodes = integrate(problem, rule, agreements, knots, estimates)
    scale_rows = ScaleRows(problem, rule, rows, rows, agreements)
    return PosteriorEstimate(
        scale_rows, nodes, np.full(len(nodes.betas), np.nan), np.inf, True
    ).widened()


def _observed(problem: Problem, rule: ScaleRule) -> Floats:
    """Return the agreements of the observed labels at the scales of a rule."""
    return np.array([problem.family.at(s).agreement(problem.labels) for s in rule.scales])
