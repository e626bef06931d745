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
from scipy.linalg import cho_factor, cho_solve, lu_factor, lu_solve

from nearfield.log_partition.bonds import BarEstimates

Floats = NDArray[np.float64]

_N_FIRST = 2_500  # about so many draws find a first solution
_MAX_STEPS = 100
_MAX_STEP = 3.0  # in log z
_TOLERANCE = 1e-4  # of the draws, that a state may have too many or too few at first
_RIDGE = 1e-9
_MAX_CORRECTIONS = 30  # 4 to 13 are usual
_CORRECTED = 1e-4  # in log z
_SLOW = 0.3  # a step that is longer than so much of the last one
_LEAST_GAIN = 0.2  # of a step: a whole one must leave less than 0.8 of what was left before
_LEAST_LEFT = 0.1  # of the draws of a state, at least
_LEAST_VARIANCE = 20.0  # of a BAR estimate, times the draws at its state


@dataclass(frozen=True, eq=False)
class Mixture:
    """What each state contributes to the mixture at each draw, up to the unknown z.

    Made by `make_mixture`; `solve` finds log z.
    """

    ratios: Floats  # shape (M, K): N_k q_k(y_m) / (z_k exp(offset_m)), z as guessed
    counts: Floats  # shape (K,)
    offsets: Floats  # shape (M,)
    guess: Floats  # shape (K,)
    some: NDArray[np.int64]  # draws that are enough for a rough answer

    def solve(self, weights: Floats, bar: BarEstimates | None = None) -> "Solution":
        r"""Find log z of all states, for each column of weights of the draws, shape (M, C).

        Newton's method on the convex :math:`\sum_m \log D_m + \sum_k N_k \log z_k` of some of the
        draws; from there all columns in steps of the same curvature. They end when log z moves no
        more: an excess of draws that looks small can stand for a large error of log z where
        states hardly overlap.

        With BAR estimates, log z maximises the joint likelihood of both; without them if they
        contradict the draws so much that no maximum is found.
        """
        first = self._first_shift(weights[:, 0])
        if bar is not None and bar.is_known.any():
            penalty = _penalty_from_bar(bar, self.counts, self.guess)
            start = np.where(bar.is_known, penalty.targets[:, 0], first)
            solution = self._corrected(start, weights, penalty)
            if solution.is_found:
                return solution
        return self._corrected(first, weights, _no_penalty(len(first)))

    def _corrected(self, first: Floats, weights: Floats, penalty: "_Penalty") -> "Solution":
        """Go from log z for some of the draws to that for all."""
        parts = weights.sum(axis=0) / self.counts.sum()
        shifts = np.repeat(first[:, None], weights.shape[1], axis=1)
        factor, is_found = None, False
        last, taken, damping = np.full((3, weights.shape[1]), [[np.inf], [0.0], [1.0]])
        for _ in range(_MAX_CORRECTIONS):
            counts = penalty.counts(self.counts, shifts)
            inverse = np.exp(-shifts) * (counts / self.counts[:, None])
            sums = self.ratios @ inverse
            excess = inverse * (self.ratios.T @ (weights / sums)) - counts * parts
            if not np.isfinite(excess).all():
                break
            if factor is None:
                mixed = self.ratios[self.some] * inverse[:, 0]
                some_weights = weights[self.some, 0]
                some_weights = some_weights * (counts[:, 0].sum() / some_weights.sum())
                factor = lu_factor(penalty.curvature(mixed, some_weights, counts[:, 0]))
            steps = lu_solve(factor, excess[1:]) / parts
            largest = np.abs(steps).max(axis=0, initial=0.0)
            is_found = bool(largest.max() <= _CORRECTED)
            if is_found:
                break
            is_slow = largest > (1.0 - _LEAST_GAIN * taken) * last
            damping = np.where(is_slow, 0.5 * damping, np.minimum(2.0 * damping, 1.0))
            if largest.max() > _SLOW * np.max(last):
                factor = None  # by now a better one is known
            taken = damping / np.maximum(largest, 1.0)
            shifts[1:] += steps * taken
            last = largest
        log_densities = self.offsets[:, None] + np.log(sums) + np.log(parts)
        independent_error = self._independent_error(shifts[:, 0])
        return Solution(shifts, log_densities, independent_error, is_found)

    def _independent_error(self, shift: Floats) -> float:
        """Return the largest standard error of log z that independent draws would have.

        It is large where neighbouring states hardly overlap, which no jackknife shows.
        """
        ratios = self.ratios[self.some]
        totals, products = _moments(ratios * np.exp(-shift), np.ones(len(ratios)))
        variances = np.diag(np.linalg.inv(_hessian(totals, products))) if len(shift) > 1 else 0.0
        return float(np.sqrt(np.max(variances) * len(ratios) / len(self.ratios)))

    def _first_shift(self, weights: Floats) -> Floats:
        """Solve for some of the draws, from anywhere."""
        ratios, weights = self.ratios[self.some], weights[self.some]
        counts = self.counts * (weights.sum() / self.counts.sum())
        shift = np.zeros(len(counts))
        value = _objective(ratios, counts, weights, shift)
        for _ in range(_MAX_STEPS):
            totals, products = _moments(ratios * np.exp(-shift), weights)
            excess = (totals - counts)[1:]
            if np.abs(excess).max(initial=0.0) <= _TOLERANCE * counts.sum():
                break
            step = cho_solve(cho_factor(_hessian(totals, products)), excess)
            shift, value = _descend(ratios, counts, weights, shift, value, step)
        return shift


class _Penalty(NamedTuple):
    r"""What BAR estimates a_k, with variances v_k of one draw, do to the mixture.

    The joint likelihood of the draws and of normal estimates a_k is largest for

    .. math:: D_m = \sum_k \lambda_k \frac{q_k(y_m)}{z_k}, \qquad
              \lambda_k = N_k + \frac{N_k}{v_k} (\log z_k - a_k)

    so that a state counts for more draws than it has where log z is above its BAR estimate; the
    known state's count balances the sum.
    """

    strengths: Floats  # shape (K,): N_k / v_k, or zero
    targets: Floats  # shape (K, C): a_k, from the guess of log z

    def counts(self, counts: Floats, shifts: Floats) -> Floats:
        """Return lambda for each column of shifts, shape (K, C), bounded below."""
        counted = counts[:, None] + self.strengths[:, None] * (shifts - self.targets)
        counted[0] += counts.sum() - counted.sum(axis=0)
        return np.maximum(counted, _LEAST_LEFT * counts[:, None])

    def curvature(self, parts: Floats, weights: Floats, counts: Floats) -> Floats:
        """Differentiate lambda - the draws that each state has, but for the first state.

        `parts`, shape (M, K), are those of the states in the mixture, `counts` their lambda.
        """
        totals, products = _moments(parts, weights)
        gains = products / counts
        from_penalty = (gains - gains[:, :1]) * self.strengths
        return np.asarray(_hessian(totals, products) + from_penalty[1:, 1:])


def _penalty_from_bar(bar: BarEstimates, counts: Floats, guess: Floats) -> _Penalty:
    known = bar.is_known
    # A penalty of three standard errors must not be worth more draws than there are.
    variances = np.maximum(bar.variance, _LEAST_VARIANCE / counts)
    targets = np.where(known, bar.log_z - guess, 0.0).T
    return _Penalty(np.where(known, counts / variances, 0.0), targets)


def _no_penalty(n_states: int) -> _Penalty:
    return _Penalty(np.zeros(n_states), np.zeros((n_states, 1)))


class Solution(NamedTuple):
    """Log z of all states, as how far it is from the guess, and what follows for the draws."""

    shifts: Floats  # shape (K, C); zero for the first state
    log_densities: Floats  # shape (M, C): log D of every draw
    independent_error: float  # of log z, if all draws were independent
    is_found: bool  # False if log z still moved when the steps ran out


def _moments(parts: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return how many draws each state has, and the products of their shares in the draws."""
    shares = parts / parts.sum(axis=1, keepdims=True)
    weighted = shares * weights[:, None]
    return weighted.sum(axis=0), weighted.T @ shares


def _hessian(totals: Floats, products: Floats) -> Floats:
    """Return the second derivatives but for the first state."""
    hessian = (np.diag(totals) - products)[1:, 1:]
    hessian[np.diag_indices_from(hessian)] += _RIDGE * totals.sum()
    return hessian


def _descend(
    ratios: Floats, counts: Floats, weights: Floats, shift: Floats, value: float, step: Floats
) -> tuple[Floats, float]:
    """Make one step of Newton's method, shorter where the objective would rise."""
    step = step * min(1.0, _MAX_STEP / max(np.abs(step).max(), 1e-300))
    for _ in range(30):
        trial = shift + np.concatenate([[0.0], step])
        trial_value = _objective(ratios, counts, weights, trial)
        if trial_value <= value + 1e-9 * abs(value):
            return trial, trial_value
        step = 0.5 * step
    return shift, value


def _objective(ratios: Floats, counts: Floats, weights: Floats, shift: Floats) -> float:
    return float(weights @ np.log(ratios @ np.exp(-shift)) + counts @ shift)


def make_mixture(log_potentials: Floats, states: NDArray[np.int64], guess: Floats) -> Mixture:
    """Prepare the mixture.

    Parameters
    ----------
    log_potentials : ndarray, shape (M, K)
        Of each draw in each state.
    states : ndarray, shape (M,)
        Where each was drawn. A rough answer needs the same share of the draws of every state:
        too many here and too few there add up to nats along a path of dozens of states.
    guess : ndarray, shape (K,)
        Log z of each state, roughly; exact for the first.
    """
    counts = np.bincount(states, minlength=len(guess)).astype(float)
    some = np.argsort(states, kind="stable")[:: max(len(states) // _N_FIRST, 1)]
    log_ratios = log_potentials + (np.log(counts) - guess)
    offsets = log_ratios.max(axis=1)
    log_ratios -= offsets[:, None]
    return Mixture(np.exp(log_ratios, out=log_ratios), counts, offsets, guess, some)
