"""Path sampling: log z along beta from its known value at zero, and the posterior from it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from nearfield._checks import check_positive, check_whole
from nearfield.families import FieldFamily
from nearfield.field import LabelField
from nearfield.inference._border import check_problem
from nearfield.inference._flat import (
    FROZEN,
    FlatChain,
    Ladder,
    anneal,
    first_weight,
    jackknife_error,
    joined,
    largest_agreement,
    learn_weight,
    reweighted_log_partition,
)
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._progress import progress
from nearfield.inference._quadrature import (
    NEGLIGIBLE,
    Row,
    assemble,
    final_rule,
    integrate_row,
    mass_outside,
    row_totals,
    scale_interval,
    scan_rule,
)
from nearfield.inference._surface import estimate_surface, run_row, scan_curve

_PILOT_SWEEPS = 1_000
_N_SCAN = 24
_LEARNING = 5  # sweeps to learn a weight, a squared number of rungs
_MAX_PASSES = 3
_SCAN_DROP = 20.0  # the scan of a row ends where the log density has fallen by so much
_MAX_SWEEPS = 1_000_000


def log_partition_curve(
    rng: np.random.Generator,
    field: LabelField,
    betas: ArrayLike,
    *,
    target_error: float = 0.03,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Estimate log z at each beta, with a standard error.

    .. math:: \log z(\beta) = \log z(0) + \log E_0[\exp(\beta S)]

    by one chain that wanders over all agreements from beta = 0 to the last beta, reweighted
    (`nearfield.inference._flat` says why). The standard error is a jackknife over blocks of the
    run.

    Parameters
    ----------
    rng : numpy.random.Generator
    field : LabelField
    betas : array-like, shape (m,)
        Any real numbers, in any order.
    target_error : float
        The standard error aimed at; the run ends at that, or after a million sweeps.

    Returns
    -------
    log_z, standard_error : ndarrays, shape (m,)
    """
    betas = np.asarray(betas, dtype=np.float64)
    if betas.ndim != 1 or betas.size == 0 or not np.isfinite(betas).all():
        raise ValueError(
            f"Expected finite betas of shape (m,) with m >= 1; got {betas!r}. Give a list of betas."
        )
    check_positive(target_error, "target_error")
    chain = flat_chain(rng, field, float(betas.min()), float(betas.max()))
    agreements = chain.run(rng, 2 * _PILOT_SWEEPS)[0]
    while True:
        estimate = reweighted_log_partition(field, chain.weight, agreements, betas)
        n_done, worst = len(agreements), estimate.error.max()
        if worst <= target_error or n_done >= _MAX_SWEEPS:
            return estimate.log_z, estimate.error
        n_wanted = n_done * np.clip((1.1 * worst / target_error) ** 2, 2.0, 8.0)
        n_more = int(min(n_wanted, _MAX_SWEEPS)) - n_done
        agreements = np.concatenate([agreements, chain.run(rng, n_more)[0]])


def flat_chain(
    rng: np.random.Generator, field: LabelField, beta_low: float, beta_high: float
) -> FlatChain:
    """Make a chain that wanders over the agreements of all betas in a range around zero."""
    labels = rng.integers(field.n_classes, size=field.n_points)
    ladder = beta_ladder(rng, field, labels, beta_low, beta_high)
    chain = FlatChain.start(field, first_weight(ladder, largest_agreement(field)), labels)
    learn_weight(rng, chain, _LEARNING * len(ladder.betas) ** 2)
    return chain


def beta_ladder(
    rng: np.random.Generator,
    field: LabelField,
    labels: NDArray[np.int64],
    beta_low: float,
    beta_high: float,
) -> Ladder:
    """Anneal from zero to both ends of a range, or to where the field is frozen."""

    def is_high_enough(beta: float, mean: float, spread: float) -> bool:
        return beta >= beta_high or spread < FROZEN

    def is_low_enough(beta: float, mean: float, spread: float) -> bool:
        return beta <= beta_low or spread < FROZEN

    ladder = anneal(rng, field, labels, is_high_enough)
    if beta_low < 0.0:
        ladder = joined(anneal(rng, field, labels, is_low_enough, sign=-1), ladder)
    return ladder


@dataclass(frozen=True)
class PathSampling:
    r"""Settings of path sampling: the posterior by quadrature, with z estimated over (beta, scale).

    The same posterior as the exchange algorithm's, without a chain in the parameters: an annealed
    scan finds the scales that matter, a chain over all agreements runs at each of them
    (`nearfield.inference._surface`), and everything else is a sum over nodes. The evidence comes
    with it, and the Monte Carlo error of each.

    Parameters
    ----------
    n_sweeps : int
        Sweeps over all points, shared among the scales.
    scale_density, beta_density : float
        How densely scales and betas are placed; 1 is enough, and 2 shows that it was.
    """

    n_sweeps: int = 250_000
    scale_density: float = 1.0
    beta_density: float = 1.0

    def __post_init__(self) -> None:
        check_whole(self.n_sweeps, "n_sweeps", minimum=1_000)
        check_positive(self.scale_density, "scale_density")
        check_positive(self.beta_density, "beta_density")

    def infer(
        self,
        rng: np.random.Generator,
        family: FieldFamily,
        labels: ArrayLike,
        priors: Priors | None = None,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Posterior:
        """Compute the posterior of beta and the scale.

        Parameters are those of every engine; see `Exchange.infer`.
        """
        labels, priors = check_problem(family, labels, priors)
        problem = _Problem(family, labels, priors)
        rule = scan_rule(family, *scale_interval(family, priors), _N_SCAN)
        ladders = _scan(rng, problem, rule, n_jobs)
        rows = [
            _integrate(problem, scale, scan_curve(ladder, family.at(scale)))
            for scale, ladder in zip(rule.scales, ladders, strict=True)
        ]
        outside = 0.0
        for _ in range(_MAX_PASSES):
            totals = row_totals(rule, rows, priors)
            finer = final_rule(family, rule, totals, self.scale_density)
            outside += mass_outside(rule, totals, finer)
            surface, rows = self._estimate(rng, problem, rule, rows, finer, n_jobs, verbose)
            previous, rule = rule, finer
            if not _is_cut(rule, row_totals(rule, rows, priors), previous):
                break
        return _posterior(problem, rule, rows, surface, outside)

    def _estimate(self, rng, problem, scan, scan_rows, rule, n_jobs, verbose):
        """Run a chain at each scale of a rule, where a scan has shown which betas matter."""
        ranges = _beta_ranges(scan, scan_rows, problem.priors, rule.scales)
        n_sweeps = max(self.n_sweeps // len(rule.scales), 1_000)
        with progress(len(rule.scales), "path sampling", verbose) as advance:

            def run(stream, scale, beta_range):
                chain = flat_chain(stream, problem.family.at(scale), *beta_range)
                advance()
                return run_row(stream, chain, beta_range, n_sweeps)

            jobs = zip(rng.spawn(len(rule.scales)), rule.scales, ranges, strict=True)
            parallel = Parallel(n_jobs=n_jobs, prefer="threads")
            runs = parallel(delayed(run)(*job) for job in jobs)
        betas = _common_betas(rng, runs, int(np.ceil(2 * self.beta_density)))
        surface = estimate_surface(runs, betas, n_jobs)
        rows = [_integrate(problem, scale, surface.curve(r)) for r, scale in enumerate(rule.scales)]
        return surface, rows


class _Problem(NamedTuple):
    family: FieldFamily
    labels: NDArray[np.int64]
    priors: Priors


def _scan(rng, problem, rule, n_jobs):
    """Anneal at each scale, as far to both sides as the posterior may reach."""

    def anneal_row(stream, scale):
        field = problem.family.at(scale)
        observed = field.agreement(problem.labels)
        start = stream.integers(field.n_classes, size=field.n_points)
        sides = [
            anneal(stream, field, start, _Enough(problem.priors, observed), sign)
            for sign in (-1, 1)
        ]
        return joined(*sides)

    jobs = zip(rng.spawn(len(rule.scales)), rule.scales, strict=True)
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    return parallel(delayed(anneal_row)(stream, scale) for stream, scale in jobs)


class _Enough:
    """End a walk in beta where the posterior has died away, or where the field is frozen."""

    def __init__(self, priors, observed):
        self.priors = priors
        self.observed = observed
        self.log_likelihood = 0.0
        self.best = -np.inf
        self.last: tuple[float, float] | None = None

    def __call__(self, beta: float, mean: float, spread: float) -> bool:
        if self.last is not None:
            slope = self.observed - 0.5 * (mean + self.last[1])
            self.log_likelihood += (beta - self.last[0]) * slope
        self.last = beta, mean
        log_prior = float(self.priors.log_beta(beta))
        log_density = self.log_likelihood + log_prior
        self.best = max(self.best, log_density)
        beyond = self.priors.beta.sf(beta) if beta > 0.0 else self.priors.beta.cdf(beta)
        return log_density < self.best - _SCAN_DROP or spread < FROZEN or beyond < 1e-10


def _integrate(problem, scale, curve) -> Row:
    """Integrate the likelihood of the observed labels over beta at one scale."""
    field = problem.family.at(scale)
    observed = field.agreement(problem.labels)
    external = float(field.external_field[problem.labels].sum())
    return integrate_row(lambda b: external + b * observed - curve(b), problem.priors)


def _beta_ranges(scan, rows, priors, scales):
    """Return, for each scale, the betas that matter at the nearest rows of a scan, and zero."""
    totals = row_totals(scan, rows, priors)
    threshold = totals.max() - NEGLIGIBLE
    ends = []
    for row, total in zip(rows, totals, strict=True):
        shares = row.log_masses - row.log_total
        heavy = row.betas[shares > min(threshold - total, -3.0)]
        ends.append((min(heavy.min(), 0.0), max(heavy.max(), 0.0)))
    after = np.clip(np.searchsorted(scan.scales, scales), 1, len(ends) - 1)
    return [(min(ends[k - 1][0], ends[k][0]), max(ends[k - 1][1], ends[k][1], 0.1)) for k in after]


def _common_betas(rng, runs, n_parts):
    """Place betas over the ranges of all rows, as densely as the agreement varies."""
    low = min(run.beta_range[0] for run in runs)
    high = max(run.beta_range[1] for run in runs)
    lowest = min(runs, key=lambda run: run.beta_range[0])
    highest = max(runs, key=lambda run: run.beta_range[1])
    labels = rng.integers(lowest.field.n_classes, size=lowest.field.n_points)
    below = beta_ladder(rng, lowest.field, labels, low, 0.0).betas
    above = beta_ladder(rng, highest.field, labels, 0.0, high).betas
    rungs = np.unique(np.concatenate([below[below <= 0.0], above[above >= 0.0]]))
    positions = np.linspace(0.0, len(rungs) - 1.0, n_parts * (len(rungs) - 1) + 1)
    return np.interp(positions, np.arange(len(rungs)), rungs)


def _is_cut(rule, totals, scan):
    """Whether the scales end where there still is mass though the interval went on."""
    log_share = totals - np.logaddexp.reduce(totals)
    ends_inside = rule.low > scan.low * 1.001, rule.high < scan.high / 1.001
    return any(
        inside and share > np.log(1e-3)
        for inside, share in zip(ends_inside, log_share[[0, -1]], strict=True)
    )


def _posterior(problem, rule, rows, surface, outside) -> Posterior:
    """Sum up the nodes, and see what leaving out each block of the runs makes of it."""
    log_rows = rule.log_weights + problem.priors.log_scale(rule.scales)
    log_weight = np.concatenate([r.log_masses + w for r, w in zip(rows, log_rows, strict=True)])
    change = np.concatenate(
        [surface.deviations(r, row.betas) for r, row in enumerate(rows)], axis=1
    )
    betas = np.concatenate([row.betas for row in rows])
    scales = np.repeat(rule.scales, [len(row.betas) for row in rows])
    replicates = log_weight - change
    evidences = logsumexp(replicates, axis=1)
    weights = np.exp(replicates - evidences[:, None])
    means = np.stack([weights @ betas, weights @ scales], axis=1)
    return assemble(
        rule,
        rows,
        problem.priors,
        problem.family.scale_name,
        outside_mass=outside,
        log_evidence_error=float(jackknife_error(evidences[:, None])[0]),
        mean_error=jackknife_error(means),
    )
