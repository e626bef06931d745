r"""Log z along beta from the draws of touring chains: of all labelings, or of some of them.

All draws together give log z from its value at zero (`_mbar`), weighed so that what must be zero
on average is (`_calibration`). Above zero every rung has an anchor of its own: random ties, whose
z is known (`nearfield.sampling.tied_groups`). Close to zero log z rests on zero, where beta is
large on the anchors, and between them on both, as their variances have it.

The same holds for the labelings on one side of a cut in the agreement, if their drifts stay there
(`nearfield.sampling.reflection`); the sum over them has an anchor where there are no others.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.inference._anchors import Anchors, tie_anchors
from nearfield.inference._calibration import calibrated_weights
from nearfield.inference._mbar import left_out_error, mixture_of
from nearfield.inference._touring import N_GROUPS, Tours

_N_CELLS = 2_000  # of agreements; the draws of one stand for each other
_SURE = 3.0  # standard errors
_LEFT = 0.1  # of the spread of agreements, that weights leave where drifts tell all
_EXACT = 1e-10  # the variance of what is known


class Branch(NamedTuple):
    """Log z, as the draws so far tell it, and how well the chains do."""

    log_z: NDArray[np.float64]  # shape (1 + N_GROUPS, B), of all draws and without each group
    n_draws: NDArray[np.float64]  # shape (B,): effective ones
    doubts: NDArray[np.float64]  # shape (K,): how far apart two ways to log z are at least
    slownesses: NDArray[np.float64]  # shape (K,): variance between chains / of independent draws
    variances: NDArray[np.float64]  # shape (K, K): of log z of a rung, by a draw at each
    counts: NDArray[np.int64]  # shape (K,)
    is_anchored: NDArray[np.bool_]  # shape (K,)

    def needs(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """See where more draws lower the variance of log z most, for what they cost.

        `shares`, shape (K,), says how much of z the branch is at each rung.
        """
        at_rungs = shares**2 * (self.variances @ (1.0 / self.counts))
        return np.sqrt(at_rungs @ self.variances)


def branch_of(
    tours: Tours, betas: NDArray[np.float64], at_zero: float | None, largest_agreement: float
) -> Branch | None:
    """Estimate log z at betas; None where it is known nowhere.

    `at_zero` is log z at the first rung, zero; None if that is not one, or log z not known there.
    """
    weights = calibrated_weights(tours)
    all_betas = np.concatenate([betas, tours.betas])
    is_rooted = at_zero is not None
    log_z, n_draws = _along_rungs(tours, weights, all_betas, at_zero if is_rooted else 0.0)
    at_betas, at_rungs = log_z[:, : len(betas)], log_z[:, len(betas) :]
    anchors = tie_anchors(tours, N_GROUPS, tours.betas * largest_agreement)
    is_anchored = anchors.is_known
    if not (is_rooted or is_anchored.any()):
        return None
    corrected, spreads = _corrected_agreements(tours)
    integrals = _integral_weights(tours.betas)
    shares = _shares_of_anchors(tours, spreads, anchors, is_rooted=is_rooted)
    moves = (anchors.log_z - at_rungs) @ shares.T
    order = np.argsort(tours.betas)
    at_betas = at_betas + [np.interp(betas, tours.betas[order], move[order]) for move in moves]
    from_known = integrals if is_rooted else integrals - integrals[-1]
    doubts, slownesses = _lag(tours, corrected, spreads, from_known)
    if is_rooted:  # else the anchors have nothing to contradict
        mismatch = np.abs(moves[0]) - _SURE * left_out_error(moves[1:])
        doubts = np.maximum(doubts, mismatch)
    doubts = np.maximum(doubts, 0.0)
    along = (np.eye(len(spreads)) - shares) @ integrals
    known = np.where(is_anchored, anchors.variance, 0.0)
    variances = along**2 * spreads**2 + shares**2 * known
    return Branch(
        at_betas,
        n_draws[: len(betas)],
        doubts,
        slownesses,
        variances,
        tours.counts,
        is_anchored,
    )


def _along_rungs(tours: Tours, draw_weights, betas, log_z_of_first):
    """Estimate log z from its value at the first rung, and count the draws that it rests on.

    Agreements are put into cells, so that many draws take no longer than a few.
    """
    low, high = tours.agreements.min(), tours.agreements.max()
    cells = ((tours.agreements - low) * (_N_CELLS / max(high - low, 1e-300))).astype(int)
    cells = np.unique(cells, return_inverse=True)[1]
    sizes = np.bincount(cells)
    agreements = np.bincount(cells, tours.agreements) / sizes
    weights = np.stack([np.bincount(cells, w) for w in draw_weights.T], axis=1).astype(float)
    counts = tours.counts.astype(float)
    means = np.bincount(tours.points, tours.agreements) / counts
    guess = log_z_of_first + _integral_weights(tours.betas) @ means
    mixture = mixture_of(agreements[:, None] * tours.betas, counts, guess)
    log_densities = mixture.solve(weights).log_densities
    columns = weights * np.exp(log_densities[:, :1] - log_densities)
    terms = betas[:, None] * agreements - log_densities[:, 0]
    log_largest = terms.max(axis=1)
    terms = np.exp(terms - log_largest[:, None])
    log_z = np.log(np.maximum(terms @ columns, 1e-300)) + log_largest[:, None]
    return log_z.T, (terms @ sizes) ** 2 / (terms**2 @ sizes)


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
    """Pair each rung with the one before it, on the way from the first."""
    sides = np.flatnonzero(betas >= 0.0), np.flatnonzero(betas <= 0.0)
    return [pair for side in sides for pair in pairwise(side)]


def _integral_weights(betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each rung counts in the integral from the first to each, by trapezoids, (K, K)."""
    weights = np.zeros((len(betas), len(betas)))
    for before, here in _steps(betas):
        weights[here] = weights[before]
        weights[here, [before, here]] += 0.5 * (betas[here] - betas[before])
    return weights


def _shares_of_anchors(
    tours: Tours, spreads, anchors: Anchors, *, is_rooted: bool
) -> NDArray[np.float64]:
    r"""By how much of the gap at each anchor to move log z of each rung, shape (K, K).

    The moves m that are most probable if the gaps are normal with the variances of the anchors,
    and the steps of log z from rung to rung with those of the agreements:

    .. math:: \sum_k \frac{(m_k - m_{k-1})^2}{\mathrm{var}(\text{step}_k)}
              + \sum_k \frac{(m_k - \text{gap}_k)^2}{\mathrm{var}(\text{anchor}_k)} \to \min
    """
    counts, betas = tours.counts, tours.betas
    matrix = np.diag(counts / anchors.variance)
    matrix[0, 0] += is_rooted / _EXACT
    for before, here in _steps(betas):
        mean_variance = 0.5 * (spreads**2 / counts)[[before, here]].sum()
        link = 1.0 / ((betas[here] - betas[before]) ** 2 * mean_variance + _EXACT)
        matrix[[before, here, before, here], [before, here, here, before]] += link * np.array(
            [1.0, 1.0, -1.0, -1.0]
        )
    return np.asarray(np.linalg.solve(matrix, np.diag(counts / anchors.variance)))


def _lag(tours: Tours, corrected, spreads, integrals):
    """See how far behind chains are at each rung, at least, and how slow they are.

    A chain that is slow to follow beta lags behind: on the way out its agreements are too close to
    those at zero, on the way back too far. Log z is between what the two ways say (as work is more
    than free energy on any way), so that they show what the errors leave out.
    """
    is_unknown = tours.betas != 0.0
    out, back = (tours.means_by_way(corrected) * is_unknown) @ integrals.T
    lags = 0.5 * (back - out) * np.sign(integrals.sum())
    surely = lags.mean(axis=0) - _SURE * lags.std(axis=0, ddof=1) / np.sqrt(N_GROUPS)
    between = (0.5 * (out + back)).var(axis=0, ddof=1)
    expected = integrals**2 @ (is_unknown * spreads**2 * N_GROUPS / tours.counts)
    return surely, between / np.maximum(expected, 1e-300)
