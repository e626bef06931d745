r"""Log z of many fields at once, from the pooled draws of all (MBAR: Shirts and Chodera, 2008).

The pool is taken as draws from the mixture of all states that were sampled. With N_k draws of
state k, whose unnormalized density is q_k,

.. math:: z_k = \sum_m \frac{q_k(y_m)}{D_m}, \qquad D_m = \sum_l N_l \frac{q_l(y_m)}{z_l}

and the same sum gives z of any state that was not sampled. One state is known, and fixes the
unit.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

_MAX_STEPS = 100
_MAX_STEP = 3.0  # in log z
_TOLERANCE = 1e-6  # of the draws, that a state may have too many or too few
_RIDGE = 1e-9
_MAX_CORRECTIONS = 12
_CORRECTED = 1e-4


@dataclass(frozen=True, eq=False)
class Mixture:
    """What each state contributes to the mixture at each draw, up to the unknown z.

    Made by `mixture_of`; `solve` finds log z.
    """

    ratios: NDArray[np.float64]  # shape (M, K): N_k q_k(y_m) / (z_k exp(offset_m)), z as guessed
    counts: NDArray[np.float64]  # shape (K,)
    offsets: NDArray[np.float64]  # shape (M,)

    def solve(self) -> "Solution":
        r"""Find log z of all states.

        Newton's method on the convex :math:`\sum_m \log D_m + \sum_k N_k \log z_k`.
        """
        ratios, counts = self.ratios, self.counts
        shift = np.zeros(len(counts))
        value = _objective(ratios, counts, shift)
        for _ in range(_MAX_STEPS):
            shares = ratios * np.exp(-shift)
            shares /= shares.sum(axis=1, keepdims=True)
            totals = shares.sum(axis=0)
            excess = (totals - counts)[1:]
            hessian = (np.diag(totals) - shares.T @ shares)[1:, 1:]
            hessian[np.diag_indices_from(hessian)] += _RIDGE * len(ratios)
            factor = cho_factor(hessian)
            if np.abs(excess).max(initial=0.0) <= _TOLERANCE * len(ratios):
                break
            shift, value = _descend(self, shift, value, cho_solve(factor, excess))
        return Solution(self, shift, factor)


class Solution(NamedTuple):
    """Log z of all states, as how far it is from the guess, and the curvature there."""

    mixture: Mixture
    shift: NDArray[np.float64]  # shape (K,); zero for the first state
    factor: Any

    def log_density(self) -> NDArray[np.float64]:
        """Return log D of every draw, shape (M,)."""
        return self.mixture.offsets + np.log(self.mixture.ratios @ np.exp(-self.shift))

    def without(self, is_left_out: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return log D of every draw that log z of the other draws alone would give.

        The solution is close, so that its curvature will do for all steps.
        """
        kept = self.mixture.ratios[~is_left_out]
        part = len(kept) / len(is_left_out)
        counts = part * self.mixture.counts
        shift = self.shift
        for _ in range(_MAX_CORRECTIONS):
            inverse = np.exp(-shift)
            excess = (inverse * (kept.T @ (1.0 / (kept @ inverse))) - counts)[1:]
            if np.abs(excess).max(initial=0.0) <= _CORRECTED * len(kept):
                break
            step = cho_solve(self.factor, excess) / part
            step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))
            shift = shift + np.concatenate([[0.0], step])
        # The mixture has fewer draws of every state, in proportion.
        log_density = self._replace(shift=shift).log_density() + np.log(part)
        return np.where(is_left_out, np.inf, log_density)


def _descend(mixture, shift, value, step):
    """Make one step of Newton's method, shorter where the objective would rise."""
    step = step * min(1.0, _MAX_STEP / max(np.abs(step).max(), 1e-300))
    for _ in range(30):
        trial = shift + np.concatenate([[0.0], step])
        trial_value = _objective(mixture.ratios, mixture.counts, trial)
        if trial_value <= value + 1e-9 * abs(value):
            return trial, trial_value
        step = 0.5 * step
    return shift, value


def _objective(ratios, counts, shift):
    return np.log(ratios @ np.exp(-shift)).sum() + counts @ shift


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
