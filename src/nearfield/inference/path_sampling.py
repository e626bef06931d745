"""Path sampling: the posterior by quadrature, with log z from draws along paths from beta = 0.

1. A rough scan at a few scales (`_rows`): chains annealed from beta = 0, where z is known.
2. States (beta, scale) over the posterior as far as it is known, with a ladder down to beta = 0
   (`_plan`), visited by eight independent groups of chains.
3. All draws together give log z (`nearfield.log_partition`) at scales and betas placed anew where
   the posterior is (`_scale_rules`, `_rows`).
4. More draws where log z rests on too few effective ones, or where the posterior means are not
   known to the tolerance (`_posterior_estimate`); then the posterior, the evidence, and the errors
   of both (`_quadrature`).
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nearfield._checks import check_positive, check_whole
from nearfield._progress import progress
from nearfield._threads import one_blas_thread
from nearfield.inference._engine import Engine
from nearfield.inference._posterior import Posterior
from nearfield.inference._posterior_estimate import PosteriorEstimate, ScaleRows, scan_posterior
from nearfield.inference._problem import Problem, Spacing
from nearfield.inference._target import Target
from nearfield.log_partition import N_GROUPS, AgreementTable, Pool, States, draw_pool


@dataclass(frozen=True)
class PathSampling(Engine):
    r"""Settings of path sampling; nothing needs to be set.

    .. math:: \log z(\beta, \sigma) = \log z(0) + \int_0^\beta E[S] \, d\beta'

    taken literally needs a ladder of betas at every sigma. Here draws at states over the
    posterior, linked to beta = 0 by one ladder on each side of it, are pooled: every draw tells
    about every state by reweighting (MBAR), so that a few thousand draws give the posterior, the
    evidence and the errors of both. Where beta is large, log z is known from random bonds too
    (Fortuin and Kasteleyn). First-order transitions are crossed by harmonically restrained
    states. The same posterior as `Exchange`, without a chain over the parameters.

    Parameters
    ----------
    n_draws : int
        Draws at each visit of a state; each of eight groups of chains visits it twice.
    tolerance : float
        Draws go on, up to four times as many, until the Monte Carlo errors of the posterior means
        are below this part of the posterior standard deviations, or so little above it that a
        few more draws would do; up to 32 times as many while an error is above 0.03 of them.
        Above 1,000 points both bounds grow as the square root of their number.
    scale_density : float
        How densely scales are placed; 1 is enough, and 2 shows that it was.
    beta_density : float
        The same for betas.

    Warns
    -----
    ConvergenceWarning
        Where, after several rounds of draws, log z still rests on too few of them; where much of
        the posterior may be outside of what was looked at; where a first-order transition was not
        crossed; and where chains at negative beta froze.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import PathSampling
    >>> points = np.random.default_rng(0).normal(size=(20, 2))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> posterior = PathSampling().infer(np.random.default_rng(1), family, labels)
    >>> bool(posterior.log_evidence_error < 0.05)
    True
    """

    n_draws: int = 4
    tolerance: float = 0.013
    scale_density: float = 1.0
    beta_density: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self.n_draws, "n_draws", minimum=1)
        check_positive(self.tolerance, "tolerance")
        check_positive(self.scale_density, "scale_density")
        check_positive(self.beta_density, "beta_density")

    def _infer(
        self, rng: np.random.Generator, target: Target, n_jobs: int | None, verbose: int
    ) -> Posterior:
        problem = Problem(target.family, target.labels, target.priors)
        _check_reach(problem)
        with (
            one_blas_thread(),
            progress(problem.settings.max_rounds + 2, type(self).__name__, verbose) as advance,
        ):
            return self.run(rng, problem, n_jobs, advance)

    def run(
        self,
        rng: np.random.Generator,
        problem: Problem,
        n_jobs: int | None = None,
        advance: Callable[[], None] = lambda: None,
    ) -> Posterior:
        """Compute the posterior of a problem, which has been checked; see `infer`."""
        settings = problem.settings
        table = AgreementTable(problem.family.at, n_jobs)

        def draw(
            scale_rows: ScaleRows, plan: States, n_draws: int, n_rung_draws: int, bonds_from: float
        ) -> Pool:
            counts, scales = np.where(plan.is_rung, n_rung_draws, n_draws), scale_rows.rule.scales
            return draw_pool(rng, problem.family.at, scales, plan, counts, bonds_from, n_jobs)

        scale_rows = scan_posterior(rng, problem, n_jobs)
        advance()
        pool = draw(scale_rows, scale_rows.plan(settings.rough), 1, 1, 0.0)
        estimate = scale_rows.improved(pool, table)
        scale_rows, outside = estimate.narrowed(self.scale_density)
        advance()
        table = AgreementTable(problem.family.at, n_jobs)  # of the draws from here on
        spacing = self._spacing(problem)
        plan = scale_rows.plan(spacing)
        bonds_from = estimate.bonds_from
        n_rough, n_rung_draws = len(pool.states) / (2 * N_GROUPS * len(plan.betas)), self.n_draws
        if np.isfinite(bonds_from):
            n_rough *= settings.held_back
            n_rung_draws = int(np.ceil(0.5 * n_rung_draws))  # log z depends less on the ladder
        n_drawn = min(self._n_wanted(estimate, n_rough), settings.most_at_first * self.n_draws)
        pool = draw(scale_rows, plan, n_drawn, n_rung_draws, bonds_from)
        for _ in range(settings.max_rounds):
            estimate = scale_rows.improved(pool, table)
            scale_rows, needs = estimate.scale_rows, estimate.row_needs()
            advance()
            n_more = self._n_wanted(estimate, n_drawn) - n_drawn
            if needs.max() > 1.0:
                elsewhere = scale_rows.plan(spacing, needs)
                pool = pool + draw(scale_rows, elsewhere, self.n_draws, n_rung_draws, bonds_from)
            elif n_more > settings.worth_a_round * n_drawn:
                pool = pool.extended(draw(scale_rows, plan, n_more, n_rung_draws, bonds_from))
                n_drawn += n_more
            else:
                break
        outside = min(outside + estimate.mass_below(), 1.0)
        complaints = list(_complaints(estimate, float(needs.max()), outside))
        for message in complaints or _doubts(estimate):
            warnings.warn(message, ConvergenceWarning, stacklevel=4)  # whoever called infer
        return estimate.posterior(outside)

    def _n_wanted(self, estimate: PosteriorEstimate, n_drawn: float) -> int:
        """Return the draws a visit that bring the errors of an estimate below the tolerance."""
        problem = estimate.scale_rows.problem
        settings, n_wanted = problem.settings, self.n_draws
        by_jackknife, with_hysteresis = estimate.relative_errors()
        # Posterior sds fall as 1 / sqrt(n): from here on the absolute error is what stays.
        looser = max(1.0, np.sqrt(problem.family.n_points / settings.many_points))
        for error, enough, most in (
            (by_jackknife, self.tolerance, settings.most_draws),
            (with_hysteresis, settings.largest_error, settings.most_of_all),
        ):
            short = max(error / (looser * enough), 1.0)
            wanted = np.ceil(n_drawn * (1.1 * short**2 if short > 1.0 else 1.0))
            n_wanted = max(n_wanted, int(min(wanted, most * self.n_draws)))
        return n_wanted

    def _spacing(self, problem: Problem) -> Spacing:
        settings = problem.settings
        n_rows = settings.n_smooth_rows if problem.family.is_smooth else settings.n_step_rows
        spacing = settings.spacing / self.beta_density
        n_rows = int(np.ceil(n_rows * self.scale_density))
        return Spacing(n_rows, settings.beta_drop, spacing)


def _check_reach(problem: Problem) -> None:
    """Refuse a prior of beta that is far below zero: no chain finds the labels there."""
    lowest, limit = problem.beta_support[0], problem.settings.lowest_beta
    if lowest < limit:
        raise ValueError(
            f"Expected a prior of beta that ends above {limit:g} but for a hundredth of "
            f"its mass; got {problem.priors.beta.dist.name}, which reaches down to {lowest:.3g}. "
            "Give a narrower one or cut it at zero, or use Pseudolikelihood."
        )


def _complaints(estimate: PosteriorEstimate, need: float, outside_mass: float) -> Iterator[str]:
    """Say why a posterior may be wrong by more than its errors, and what to do."""
    settings = estimate.scale_rows.problem.settings
    if need > 1.0:
        yield (
            f"After {settings.max_rounds} rounds of draws log z still rests on too few of them, by "
            f"a factor of {need**2:.1f}, at some scale where the posterior is; its errors may be "
            "too small. Raise n_draws, or compare with Exchange."
        )
    if outside_mass > settings.most_outside:
        low = estimate.scale_rows.problem.beta_support[0]
        yield (
            f"Up to {outside_mass:.2g} of the posterior may be outside of the scales and of "
            f"beta >= {low:.3g} that were sampled. Give priors with lighter tails."
        )
    if estimate.highest_log_likelihood_below_zero() > settings.impossible:
        yield (
            "The likelihood comes out above one at some beta below zero: chains froze there "
            "without finding labels that agree as little as the given ones, and the posterior is "
            "wrong. Give a prior of beta that is narrower or cut at zero."
        )
    elif not (estimate.is_connected and estimate.is_crossed()):
        yield (
            "The field has a first-order transition that the chains did not cross: log z beyond "
            "it, and with it the posterior, may be wrong by more than the errors say. Raise "
            "n_draws, or give a prior of beta on one side of the transition."
        )


def _doubts(estimate: PosteriorEstimate) -> Iterator[str]:
    """Say that the errors are large, where nothing else is wrong."""
    error = estimate.relative_errors()[1]
    if error > estimate.scale_rows.problem.settings.worth_a_warning:
        yield (
            f"The posterior means are known to {error:.1g} posterior sds only, by the spread over "
            "groups of chains and the difference between forward and backward visits. Raise "
            "n_draws, or compare with Exchange."
        )
