"""The posterior by quadrature, from log z at the scales of a rule; improved as draws come in."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.inference._cells import RowMasses, cell_rule, cell_totals, merged_rule
from nearfield.inference._grid import (
    Nodes,
    estimate_at_knots,
    integrate,
    place_knots,
    read_knots,
    rows_of,
)
from nearfield.inference._panels import panel_rule, scale_bounds
from nearfield.inference._path_settings import Spacing
from nearfield.inference._plan import plan_draws
from nearfield.inference._posterior import Posterior
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule, every_k, rule_error, scan_rule
from nearfield.inference._rows import ScaleRow, row_between, scan_scales
from nearfield.log_partition import (
    AgreementTable,
    Estimates,
    Pool,
    States,
    jackknife_error,
    reweight,
    standard_error,
)

_MIN_WEIGHT = 1e-9  # of a node
_SAME = 1e-6  # agreements that differ by less are the same


class ScaleRows(NamedTuple):
    """Log z at the scales of a rule, as far as it is known."""

    problem: Problem
    rule: ScaleRule
    rows: list[ScaleRow]
    rough: list[ScaleRow]  # the same, from the scan alone
    agreements: NDArray[np.float64]  # of the observed labels, shape (R,)

    def at(self, rule: ScaleRule) -> "ScaleRows":
        """Move to other scales, with what is known there by interpolation."""
        rows, rough = (
            [row_between(self.rule.scales, known, scale) for scale in rule.scales]
            for known in (self.rows, self.rough)
        )
        return ScaleRows(self.problem, rule, rows, rough, _observed(self.problem, rule))

    def plan(self, spacing: Spacing, row_needs: NDArray[np.float64] | None = None) -> States:
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
            estimates,
            nodes,
            reweighting.bonds_from,
            reweighting.is_connected,
        )


class PosteriorEstimate(NamedTuple):
    """Log z at the scales of a rule, and the posterior that follows."""

    scale_rows: ScaleRows
    estimates: Estimates
    nodes: Nodes
    bonds_from: float  # the lowest beta with a BAR estimate
    is_connected: bool  # whether the sampled states overlap

    def totals(self) -> NDArray[np.float64]:
        """Return the log posterior mass of each row, shape (R,)."""
        log_masses = self.nodes.log_masses[0]
        largest = log_masses.max()
        sums = np.bincount(
            self.nodes.rows, np.exp(log_masses - largest), len(self.scale_rows.rule.scales)
        )
        return np.log(np.maximum(sums, 1e-300)) + largest

    def narrowed(self, density: float) -> tuple[ScaleRows, float]:
        """Move to scales placed where the posterior is; return also the mass left outside."""
        problem, totals = self.scale_rows.problem, self.totals()
        bounds = scale_bounds(problem, self.scale_rows.rule, totals, problem.settings.scale_drop)
        if problem.family.is_discrete:
            rule = every_k(problem.family, problem.priors, *bounds)
        elif problem.family.is_smooth:
            n_scales = int(np.ceil(problem.settings.n_smooth_scales * density))
            rule = panel_rule(problem, self.scale_rows.rule, totals, bounds, n_scales)
        else:
            cells = cell_rule(problem, bounds)
            guessed = cell_totals(
                problem,
                cells,
                _observed(problem, cells),
                self.scale_rows.rule.scales,
                self._row_masses(),
            )
            rule = merged_rule(
                problem, cells, guessed, int(np.ceil(problem.settings.n_step_scales * density))
            )
        is_outside = (self.scale_rows.rule.scales < bounds[0]) | (
            self.scale_rows.rule.scales > bounds[1]
        )
        outside = np.exp(totals - logsumexp(totals))[is_outside].sum()
        return self.scale_rows.at(rule), float(outside)

    def _row_masses(self) -> list[RowMasses]:
        rule, agreements = self.scale_rows.rule, self.scale_rows.agreements
        masses = []
        for row, (log_prior, agreement) in enumerate(zip(rule.log_priors, agreements, strict=True)):
            is_row = self.nodes.rows == row
            log_masses = self.nodes.log_masses[0, is_row] - log_prior
            masses.append(RowMasses(self.nodes.betas[is_row], log_masses, agreement))
        return masses

    def row_needs(self) -> NDArray[np.float64]:
        """Return how much more each row needs draws than it has, shape (R,); one for enough."""
        log_masses = self.nodes.log_masses[0]
        heavy = log_masses > log_masses.max() - self.scale_rows.problem.settings.heavy
        enough = self.scale_rows.problem.settings.min_effective
        n_effective = np.full(len(self.scale_rows.rule.scales), np.inf)
        found = self.estimates.n_effective[self.nodes.knots[heavy]]
        np.minimum.at(n_effective, self.nodes.rows[heavy], found)
        return np.sqrt(enough / np.clip(n_effective, 1.0, enough))

    def moments(self) -> tuple[NDArray[np.float64], ...]:
        """Return the log evidence, weights and means of the nodes, from each part of the draws.

        Shapes (N_ESTIMATES,), (N_ESTIMATES, N) and (N_ESTIMATES, 2).
        """
        log_evidence = logsumexp(self.nodes.log_masses, axis=1)
        weights = np.exp(self.nodes.log_masses - log_evidence[:, None])
        return log_evidence, weights, weights @ self._places()

    def _places(self) -> NDArray[np.float64]:
        return np.stack([self.nodes.betas, self.scale_rows.rule.scales[self.nodes.rows]], axis=1)

    def relative_errors(self) -> tuple[float, float]:
        """Return the larger error of the two means, as a part of the standard deviation.

        First by the jackknife alone, then with hysteresis.
        """
        _, weights, means = self.moments()
        variances = weights[0] @ (self._places() - means[0]) ** 2
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

    def _rule_error(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the errors of the means that the rule over scales makes, shape (2,)."""
        rule, rows, betas = self.scale_rows.rule, self.nodes.rows, self.nodes.betas
        mass = np.maximum(np.bincount(rows, weight, len(rule.scales)), 1e-300)
        beta_means = np.bincount(rows, weight * betas, len(rule.scales)) / mass
        return rule_error(self.scale_rows.problem.family, rule, self.totals(), beta_means)

    def posterior(self, outside_mass: float) -> Posterior:
        """Make the record, with errors from leaving out each group of draws."""
        log_evidence, weights, means = self.moments()
        keep = weights[0] > _MIN_WEIGHT
        betas, scales = self._places()[keep].T
        return Posterior.from_nodes(
            betas,
            scales,
            weights[0, keep] / weights[0, keep].sum(),
            self.scale_rows.problem.family.scale_name,
            log_evidence=float(log_evidence[0]),
            log_evidence_error=float(standard_error(log_evidence)),
            mean_error=np.hypot(standard_error(means), self._rule_error(weights[0])),
            outside_mass=outside_mass,
        )


def scan_posterior(rng: np.random.Generator, problem: Problem, n_jobs: int | None) -> ScaleRows:
    """Scan all scales roughly, and place scales where the posterior may be."""
    family = problem.family
    rule = scan_rule(family, problem.priors, problem.settings.n_scan)
    rows = scan_scales(rng, problem, rule.scales, n_jobs)
    agreements = np.array([row.agreement for row in rows])
    knots = place_knots(problem, rows)
    estimates = read_knots(knots, rows)
    nodes = integrate(problem, rule, agreements, knots, estimates)
    scale_rows = ScaleRows(problem, rule, rows, rows, agreements)
    totals = PosteriorEstimate(scale_rows, estimates, nodes, np.inf, True).totals()
    bounds = scale_bounds(problem, rule, totals, problem.settings.rough_scale_drop)
    if family.is_discrete:
        return scale_rows.at(every_k(family, problem.priors, *bounds))
    return scale_rows.at(panel_rule(problem, rule, totals, bounds, problem.settings.n_rough_scales))


def _observed(problem: Problem, rule: ScaleRule) -> NDArray[np.float64]:
    """Return the agreements of the observed labels at the scales of a rule."""
    return np.array([problem.family.at(s).agreement(problem.labels) for s in rule.scales])
