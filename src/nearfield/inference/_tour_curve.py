r"""Log z along beta from the draws of touring chains.

All draws together give log z from its value at zero (`_mbar`), weighed so that what must be zero
on average is (`_calibration`). Above zero every rung has an anchor of its own: random ties, whose
z is known (`nearfield.sampling.tied_groups`). Close to zero log z rests on zero, where beta is
large on the anchors, and between them on both, as their variances have it.

A chain that is slow to follow beta lags behind: on the way out its agreements are too close to
those at zero, on the way back too far. Log z is between what the two ways say (as work is more
than free energy on any way), so that they show what the errors leave out.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nearfield.field import LabelField
from nearfield.inference._calibration import calibrated_weights
from nearfield.inference._flat import LogPartition, largest_agreement, log_partition_at_zero
from nearfield.inference._mbar import left_out_error, mixture_of
from nearfield.inference._touring import N_GROUPS, TouringChains, Tours

_N_CELLS = 2_000  # of agreements; the draws of one stand for each other
_N_FIRST = 12  # draws a visit on the first tour
_MOST_A_VISIT = 48
_MIN_OVERLAP = 20.0  # effective draws that an anchor rests on
_SURE = 3.0  # standard errors
_MAX_SLOWNESS = 20.0
_MAX_POINTS = 1_000  # their pairs are sorted
_MAX_CLASSES = 127  # labels of chains are of one byte
_FARTHEST = 1e4  # beta; beyond it every field is frozen
_LEFT = 0.1  # of the spread of agreements, that weights leave where drifts tell all
_EXACT = 1e-10  # the variance of what is known


def touring_log_partition(
    rng: np.random.Generator,
    field: LabelField,
    betas: NDArray[np.float64],
    target_error: float,
    max_draws: int,
) -> LogPartition | None:
    """Estimate log z at betas; None where chains do not follow beta well enough for that.

    None too for fields and betas that are too large to try, and where nothing is coupled.
    """
    if (
        field.n_points > _MAX_POINTS
        or field.n_classes > _MAX_CLASSES
        or np.abs(betas).max() > _FARTHEST
        or largest_agreement(field) == 0.0
    ):
        return None
    chains = TouringChains.start(rng, field, min(betas.min(), 0.0), max(betas.max(), 0.0))
    tours = chains.tour(rng, np.full(len(chains.betas), _N_FIRST))
    while True:
        stage = evaluate(field, tours, betas)
        found, n_done = stage.log_partition, len(tours.points)
        worst = found.error.max()
        if stage.doubt > worst or stage.slowness > _MAX_SLOWNESS:
            return None
        if found.is_good(target_error) or n_done >= max_draws:
            return found
        n_wanted = n_done * np.clip((1.1 * worst / target_error) ** 2, 1.5, 2.5)
        a_visit = stage.needs * (min(n_wanted, max_draws) - n_done) / (2 * N_GROUPS)
        chains.is_tied = stage.is_anchored
        n_tours = int(np.ceil(a_visit.max() / _MOST_A_VISIT))
        for _ in range(n_tours):
            tours = tours + chains.tour(rng, np.ceil(a_visit / n_tours).astype(int))


class Stage(NamedTuple):
    """What the draws so far tell."""

    log_partition: LogPartition
    doubt: float  # how far apart two ways to log z are at least, where they are most
    slowness: float  # the variance between chains over that of independent draws
    needs: NDArray[np.float64]  # shape (K,): of more draws, adding up to one
    is_anchored: NDArray[np.bool_]  # shape (K,)


def evaluate(field: LabelField, tours: Tours, betas: NDArray[np.float64]) -> Stage:
    """Estimate log z at betas, with its error, and see how well the chains do."""
    weights = calibrated_weights(tours)
    log_z, n_draws = _from_zero(field, tours, weights, np.concatenate([betas, tours.betas]))
    at_betas, at_rungs = log_z[:, : len(betas)], log_z[:, len(betas) :]
    anchors = _tie_anchors(field, tours, weights, at_rungs[0])
    corrected, spreads = _corrected_agreements(tours)
    integrals = _integral_weights(tours.betas)
    shares = _shares_of_anchors(tours, spreads, anchors)
    gaps = anchors.log_z - at_rungs
    moves = gaps @ shares.T
    order = np.argsort(tours.betas)
    at_betas = at_betas + [np.interp(betas, tours.betas[order], move[order]) for move in moves]
    lag, slowness = _lag(tours, corrected, spreads, integrals)
    mismatch = (np.abs(moves[0]) - _SURE * left_out_error(moves[1:])).max()
    found = LogPartition(at_betas[0], left_out_error(at_betas[1:]), n_draws[: len(betas)])
    needs = _needs(spreads, anchors, integrals, shares, tours.counts)
    return Stage(found, float(max(lag, mismatch)), slowness, needs, np.isfinite(anchors.variance))


def _from_zero(
    field: LabelField, tours: Tours, draw_weights: NDArray[np.float64], betas: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate log z from its value at zero, shape (1 + N_GROUPS, B), and count what it rests on.

    Agreements are put into cells, so that many draws take no longer than a few.
    """
    low, high = tours.agreements.min(), tours.agreements.max()
    cells = ((tours.agreements - low) * (_N_CELLS / max(high - low, 1e-300))).astype(int)
    cells = np.unique(cells, return_inverse=True)[1]
    sizes = np.bincount(cells)
    agreements = np.bincount(cells, tours.agreements) / sizes
    weights = np.stack([np.bincount(cells, w) for w in draw_weights.T], axis=1).astype(float)
    means = np.bincount(tours.points, tours.agreements) / tours.counts
    guess = log_partition_at_zero(field) + _integral_weights(tours.betas) @ means
    mixture = mixture_of(agreements[:, None] * tours.betas, tours.counts.astype(float), guess)
    log_densities = mixture.solve(weights).log_densities
    columns = weights * np.exp(log_densities[:, :1] - log_densities)
    terms = betas[:, None] * agreements - log_densities[:, 0]
    log_largest = terms.max(axis=1)
    terms = np.exp(terms - log_largest[:, None])
    log_z = np.log(np.maximum(terms @ columns, 1e-300)) + log_largest[:, None]
    return log_z.T, (terms @ sizes) ** 2 / (terms**2 @ sizes)


class Anchors(NamedTuple):
    """Log z of each rung by itself; that from zero where there is no other."""

    log_z: NDArray[np.float64]  # shape (1 + N_GROUPS, K), of all draws and without each group
    variance: NDArray[np.float64]  # shape (K,), of one draw; infinite for none


def _tie_anchors(field: LabelField, tours: Tours, draw_weights, at_rungs) -> Anchors:
    r"""Estimate log z of rungs above zero relative to random ties (Bennett, 1976).

    .. math:: z = e^{\beta S_{\max} + c}\,
              \frac{E_\text{free}[\sigma(u - c)]}{E_\text{field}[\sigma(c - u)]}

    with u the log weight of the groups that ties make, and for any c; best is where this gives c.
    """
    log_z = np.repeat(at_rungs[None], 1 + N_GROUPS, axis=0)
    variance = np.full(len(tours.betas), np.inf)
    log_known = tours.betas * largest_agreement(field)
    for point in np.flatnonzero(tours.betas > 0.0):
        here = np.flatnonzero((tours.points == point) & ~np.isnan(tours.tied))
        c = at_rungs[point] - log_known[point]
        tied, free = expit(c - tours.tied[here]), expit(tours.free[here] - c)
        if min(_n_effective(tied), _n_effective(free)) < _MIN_OVERLAP:
            continue
        is_left = (tours.groups[here][:, None] != np.arange(-1, N_GROUPS)).astype(float)
        weights = draw_weights[here]
        ratio = (free @ is_left / is_left.sum(axis=0)) / (tied @ weights / weights.sum(axis=0))
        log_z[:, point] = log_known[point] + c + np.log(ratio)
        seen = tied.var() / tied.mean() ** 2 + free.var() / free.mean() ** 2
        variance[point] = seen + 1.0 / len(here)  # something rarer may be unseen
    return Anchors(log_z, variance)


def _n_effective(terms: NDArray[np.float64]) -> float:
    return float(terms.sum() ** 2 / max((terms**2).sum(), 1e-300))


def _corrected_agreements(tours: Tours):
    """Take out of agreements what drifts tell; return also what spread is left at each rung."""
    corrected, spreads = np.empty_like(tours.agreements), np.empty(len(tours.betas))
    for point in range(len(tours.betas)):
        here = np.flatnonzero(tours.points == point)
        drifts, agreements = tours.drifts[here], tours.agreements[here]
        centred = drifts - drifts.mean(axis=0)
        slopes = np.linalg.lstsq(centred, agreements - agreements.mean(), rcond=1e-6)[0]
        corrected[here] = agreements - drifts @ slopes
        # The weights do not take out quite as much.
        spreads[point] = np.hypot(corrected[here].std(), _LEFT * agreements.std())
    return corrected, spreads


def _steps(betas: NDArray[np.float64]) -> list[tuple[np.int64, np.int64]]:
    """Pair each rung with the one before it, on the way from zero."""
    sides = np.flatnonzero(betas >= 0.0), np.flatnonzero(betas <= 0.0)
    return [pair for side in sides for pair in pairwise(side)]


def _integral_weights(betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each rung counts in the integral from zero to each, by trapezoids, shape (K, K)."""
    weights = np.zeros((len(betas), len(betas)))
    for before, here in _steps(betas):
        weights[here] = weights[before]
        weights[here, [before, here]] += 0.5 * (betas[here] - betas[before])
    return weights


def _shares_of_anchors(tours: Tours, spreads, anchors: Anchors) -> NDArray[np.float64]:
    r"""By how much of the gap at each anchor to move log z of each rung, shape (K, K).

    The moves m that are most probable if the gaps are normal with the variances of the anchors,
    and the steps of log z from zero with those of the agreements:

    .. math:: \sum_k \frac{(m_k - m_{k-1})^2}{\mathrm{var}(\text{step}_k)}
              + \sum_k \frac{(m_k - \text{gap}_k)^2}{\mathrm{var}(\text{anchor}_k)} \to \min
    """
    counts, betas = tours.counts, tours.betas
    matrix = np.diag(counts / anchors.variance)
    matrix[0, 0] += 1.0 / _EXACT
    for before, here in _steps(betas):
        mean_variance = 0.5 * (spreads**2 / counts)[[before, here]].sum()
        link = 1.0 / ((betas[here] - betas[before]) ** 2 * mean_variance + _EXACT)
        matrix[[before, here, before, here], [before, here, here, before]] += link * np.array(
            [1.0, 1.0, -1.0, -1.0]
        )
    return np.asarray(np.linalg.solve(matrix, np.diag(counts / anchors.variance)))


def _lag(tours: Tours, corrected, spreads, integrals) -> tuple[float, float]:
    """See how far behind chains are, at least, and how slow they are."""
    n_rungs = len(tours.betas)
    cells = (tours.is_back * N_GROUPS + tours.groups) * n_rungs + tours.points
    shape = 2, N_GROUPS, n_rungs
    counts = np.bincount(cells, minlength=np.prod(shape)).reshape(shape)
    sums = np.bincount(cells, corrected, np.prod(shape)).reshape(shape)
    means = sums / np.maximum(counts, 1)
    means[:, :, 0] = 0.0  # known there, and never on a way back
    out, back = means @ integrals.T
    lags = 0.5 * (back - out)
    surely = lags.mean(axis=0) - _SURE * lags.std(axis=0, ddof=1) / np.sqrt(N_GROUPS)
    between = (0.5 * (out + back)).var(axis=0, ddof=1)
    expected = integrals[:, 1:] ** 2 @ (spreads**2 * N_GROUPS / tours.counts)[1:]
    return float(surely.max()), float((between / np.maximum(expected, 1e-300))[1:].max(initial=0.0))


def _needs(spreads, anchors: Anchors, integrals, shares, counts) -> NDArray[np.float64]:
    """Where more draws lower the variance of log z most, for what they cost."""
    from_zero = (np.eye(len(spreads)) - shares) @ integrals
    known = np.where(np.isfinite(anchors.variance), anchors.variance, 0.0)
    by_draw = from_zero**2 * spreads**2 + shares**2 * known  # shape (K, K): of a rung, by draws
    total = by_draw @ (1.0 / counts)
    needs = np.sqrt(total @ by_draw)
    return needs / max(needs.sum(), 1e-300)
