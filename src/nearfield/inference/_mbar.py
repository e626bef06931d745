r"""Log z of many fields at once, from the pooled draws of all (MBAR: Shirts and Chodera, 2008).

The pool is taken as draws from the mixture of all states that were sampled. With N_k draws of
state k, whose unnormalized density is q_k,

.. math:: z_k = \sum_m \frac{q_k(y_m)}{D_m}, \qquad D_m = \sum_l N_l \frac{q_l(y_m)}{z_l}

and the same sum gives z of any state that was not sampled. One state is known, and fixes the
unit. Draws may have weights, each then counts as so many.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

_N_FIRST = 2_500  # about so many draws find a first solution
_MAX_STEPS = 100
_MAX_STEP = 3.0  # in log z
_TOLERANCE = 1e-4  # of the draws, that a state may have too many or too few at first
_RIDGE = 1e-9
_MAX_CORRECTIONS = 50
_CORRECTED = 1e-4  # in log z


@dataclass(frozen=True, eq=False)
class Mixture:
    """What each state contributes to the mixture at each draw, up to the unknown z.

    Made by `mixture_of`; `solve` finds log z.
    """

    ratios: NDArray[np.float64]  # shape (M, K): N_k q_k(y_m) / (z_k exp(offset_m)), z as guessed
    counts: NDArray[np.float64]  # shape (K,)
    offsets: NDArray[np.float64]  # shape (M,)

    def solve(self, weights: NDArray[np.float64]) -> "Solution":
        r"""Find log z of all states, for each column of weights of the draws, shape (M, C).

        Newton's method on the convex :math:`\sum_m \log D_m + \sum_k N_k \log z_k` of some of the
        draws; from there all columns in steps of the same curvature. They end when log z moves no
        more: an excess of draws that looks small can stand for a large error of log z where
        states hardly overlap.
        """
        first = self._first_shift(weights[:, 0])
        parts = weights.sum(axis=0) / self.counts.sum()
        factor = cho_factor(_curvature(self.ratios, first, weights[:, 0])[1])
        shifts = np.repeat(first[:, None], weights.shape[1], axis=1)
        last, damping = np.inf, np.ones(weights.shape[1])
        for _ in range(_MAX_CORRECTIONS):
            inverse = np.exp(-shifts)
            totals = inverse * (self.ratios.T @ (weights / (self.ratios @ inverse)))
            excess = totals - self.counts[:, None] * parts
            steps = cho_solve(factor, excess[1:]) / parts
            largest = np.abs(steps).max(axis=0, initial=0.0)
            if largest.max() <= _CORRECTED:
                break
            damping = np.where(largest > 0.8 * last, 0.5 * damping, damping)
            shifts[1:] += steps * (damping / np.maximum(largest, 1.0))
            last = largest
        log_sums = np.log(self.ratios @ np.exp(-shifts))
        return Solution(shifts, self.offsets[:, None] + log_sums + np.log(parts))

    def _first_shift(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve for some of the draws, from anywhere."""
        some = slice(None, None, max(len(self.ratios) // _N_FIRST, 1))
        ratios, weights = self.ratios[some], weights[some]
        counts = self.counts * (weights.sum() / self.counts.sum())
        shift = np.zeros(len(counts))
        value = _objective(ratios, counts, weights, shift)
        for _ in range(_MAX_STEPS):
            totals, hessian = _curvature(ratios, shift, weights)
            excess = (totals - counts)[1:]
            if np.abs(excess).max(initial=0.0) <= _TOLERANCE * counts.sum():
                break
            step = cho_solve(cho_factor(hessian), excess)
            shift, value = _descend(ratios, counts, weights, shift, value, step)
        return shift


class Solution(NamedTuple):
    """Log z of all states, as how far it is from the guess, and what follows for the draws."""

    shifts: NDArray[np.float64]  # shape (K, C); zero for the first state
    log_densities: NDArray[np.float64]  # shape (M, C): log D of every draw


def left_out_error(left_out: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of what was solved for, from it without each group (jackknife)."""
    return np.sqrt(len(left_out) - 1.0) * left_out.std(axis=0)


def _curvature(ratios, shift, weights):
    """Return how many draws each state has, and the second derivatives but for the first state."""
    shares = ratios * np.exp(-shift)
    shares /= shares.sum(axis=1, keepdims=True)
    weighted = shares * weights[:, None]
    totals = weighted.sum(axis=0)
    hessian = (np.diag(totals) - weighted.T @ shares)[1:, 1:]
    hessian[np.diag_indices_from(hessian)] += _RIDGE * weights.sum()
    return totals, hessian


def _descend(ratios, counts, weights, shift, value, step):
    """Make one step of Newton's method, shorter where the objective would rise."""
    step = step * min(1.0, _MAX_STEP / max(np.abs(step).max(), 1e-300))
    for _ in range(30):
        trial = shift + np.concatenate([[0.0], step])
        trial_value = _objective(ratios, counts, weights, trial)
        if trial_value <= value + 1e-9 * abs(value):
            return trial, trial_value
        step = 0.5 * step
    return shift, value


def _objective(ratios, counts, weights, shift):
    return weights @ np.log(ratios @ np.exp(-shift)) + counts @ shift


def mixture_of(
    log_potentials: NDArray[np.float64], counts: NDArray[np.float64], guess: NDArray[np.float64]
) -> Mixture:
    """Prepare the mixture.

    Parameters
    ----------
    log_potentials : ndarray, shape (M, K)
        Of each draw in each state.
    counts : ndarray, shape (K,)
        How many of the draws are of each state.
    guess : ndarray, shape (K,)
        Log z of each state, roughly; exact for the first.
    """
    log_ratios = log_potentials + (np.log(counts) - guess)
    offsets = log_ratios.max(axis=1)
    log_ratios -= offsets[:, None]
    return Mixture(np.exp(log_ratios, out=log_ratios), counts, offsets)
