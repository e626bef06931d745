r"""Log z over (beta, scale): a chain at each scale, linked to its neighbours.

Every row, a scale, has its own estimate of log z along beta, anchored at beta = 0. Rows close to
each other are also compared directly: labels drawn in one are looked at with the other's eyes,

.. math:: \log \frac{z_{r+1}}{z_r} \approx \frac{E_r[u] + E_{r+1}[u]}{2}
          - \frac{V_{r+1}[u] - V_r[u]}{12}, \qquad u(y) = \beta (S_{r+1}(y) - S_r(y)),

which is far more exact than the difference of two estimates. Least squares along the rows brings
both together, so that all chains inform every row. What is left of the noise is measured by
leaving out each block of all runs in turn.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.linalg import solveh_banded

from nearfield.field import LabelField
from nearfield.inference._flat import (
    AgreementWeight,
    FlatChain,
    Ladder,
    LogPartition,
    jackknife_error,
    largest_agreement,
    learn_weight,
    log_partition_at_zero,
    n_crossings,
    reweighted_log_partition,
)
from nearfield.sampling.multicanonical import snapshot_agreements

N_BLOCKS = 20
_MAX_ATTEMPTS = 4
N_THIN = 10
"""Sweeps between the labelings that are looked at with another row's eyes."""


class RowRun(NamedTuple):
    """What a chain at one scale left behind."""

    field: LabelField
    weight: AgreementWeight
    beta_range: tuple[float, float]
    agreements: NDArray[np.float64]
    snapshots: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Surface:
    """Log z at each scale along common betas, each row within its own range of them."""

    betas: NDArray[np.float64]
    is_covered: NDArray[np.bool_]  # (rows, betas)
    log_z: NDArray[np.float64]  # (rows, betas)
    left_out: NDArray[np.float64]  # (blocks, rows, betas)
    end_slopes: NDArray[np.float64]  # (rows, 2), beyond the range

    def curve(self, row: int) -> "Curve":
        """Return log z along beta at one scale."""
        covered = self.is_covered[row]
        return Curve(self.betas[covered], self.log_z[row, covered], self.end_slopes[row])

    def deviations(self, row: int, betas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how leaving out each block changes log z of a row, shape (blocks, m)."""
        covered = self.is_covered[row]
        own = self.betas[covered]
        change = self.left_out[:, row, covered] - self.log_z[row, covered]
        return CubicSpline(own, change, axis=1)(np.clip(betas, own[0], own[-1]))


class Curve:
    """Log z along beta: a spline, and a straight line beyond its ends."""

    def __init__(
        self,
        betas: NDArray[np.float64],
        log_z: NDArray[np.float64],
        end_slopes: NDArray[np.float64],
    ):
        self._ends = betas[0], betas[-1]
        self._spline = CubicSpline(betas, log_z)
        self._end_slopes = end_slopes

    def __call__(self, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate log z."""
        low, high = self._ends
        below, above = np.minimum(beta - low, 0.0), np.maximum(beta - high, 0.0)
        beyond = self._end_slopes[0] * below + self._end_slopes[1] * above
        return self._spline(np.clip(beta, low, high)) + beyond


def run_row(
    rng: np.random.Generator, chain: FlatChain, beta_range: tuple[float, float], n_sweeps: int
) -> RowRun:
    """Run the chain of a row with its weight fixed; again, and longer, if it hardly crossed."""
    n_snapshots = N_BLOCKS * max(n_sweeps // (N_THIN * N_BLOCKS), 5)
    for _ in range(_MAX_ATTEMPTS):
        drawn = chain.run(rng, N_THIN * n_snapshots, n_snapshots)
        if n_crossings(chain.weight, drawn[0]) >= N_BLOCKS:
            break
        learn_weight(rng, chain, n_snapshots)
        n_snapshots *= 2
    return RowRun(chain.field, chain.weight, beta_range, *drawn)


def estimate_surface(runs: list[RowRun], betas: NDArray[np.float64], n_jobs: int | None) -> Surface:
    """Bring the rows' own estimates and the comparisons of neighbours together."""
    parallel = Parallel(n_jobs=n_jobs, prefer="threads")
    rows: list[LogPartition] = parallel(
        delayed(reweighted_log_partition)(r.field, r.weight, r.agreements, betas, N_BLOCKS)
        for r in runs
    )
    links = parallel(delayed(_link)(first, second, betas) for first, second in pairwise(runs))
    own = np.stack([row.leave_one_out for row in rows], axis=1)
    steps = np.stack(links, axis=1) if links else np.empty((N_BLOCKS + 1, 0, len(betas)))
    ranges = np.array([run.beta_range for run in runs])
    is_covered = (betas >= ranges[:, :1] - 1e-9) & (betas <= ranges[:, 1:] + 1e-9)
    is_shared = is_covered[1:] & is_covered[:-1]
    log_z, left_out = np.empty((len(rows), len(betas))), np.empty_like(own)
    for j in range(len(betas)):
        full_own = np.array([row.log_z[j] for row in rows])
        values = np.vstack([full_own, own[:, :, j]]).T
        precision_own = _precision(own[:, :, j], is_covered[:, j])
        precision_steps = _precision(steps[1:, :, j], is_shared[:, j])
        solved = _least_squares(values, steps[:, :, j].T, precision_own, precision_steps)
        log_z[:, j], left_out[:, :, j] = solved[:, 0], solved[:, 1:].T
    first = np.argmax(is_covered, axis=1)
    end_slopes = np.stack([_end_slopes(r, betas[b]) for r, b in zip(runs, first, strict=True)])
    return Surface(betas, is_covered, log_z, left_out, end_slopes)


def _precision(left_out: NDArray[np.float64], is_valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return 1 / variance, and next to nothing for what is beyond the range of a row."""
    return np.where(is_valid, 1.0 / np.maximum(jackknife_error(left_out), 1e-4) ** 2, 1e-12)


def _link(first: RowRun, second: RowRun, betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate log z of the second row over that of the first: all blocks, then one less each."""
    gains = [
        _gain(first, second.field, 1.0),
        _gain(second, first.field, -1.0),
    ]
    steps = np.empty((N_BLOCKS + 1, len(betas)))
    for j, beta in enumerate(betas):
        moments = []
        for run, gain in zip((first, second), gains, strict=True):
            moments.append(_moments(run, beta, gain))
        (mean_1, variance_1), (mean_2, variance_2) = moments
        steps[:, j] = 0.5 * (mean_1 + mean_2) - (variance_2 - variance_1) / 12.0
    return steps


def _gain(run: RowRun, other: LabelField, sign: float) -> NDArray[np.float64]:
    """How the agreement of a run's labels changes from its own field to another's."""
    seen = snapshot_agreements(other.to_dense().coupling, run.snapshots)
    return sign * (seen - run.agreements[N_THIN - 1 :: N_THIN])


def _moments(run, beta, gain):
    """Mean and variance of beta * gain at beta: all blocks first, then one less each."""
    agreements = run.agreements[N_THIN - 1 :: N_THIN]
    log_p = beta * agreements - run.weight(agreements)
    p = np.exp(log_p - log_p.max()).reshape(N_BLOCKS, -1)
    u = beta * gain.reshape(N_BLOCKS, -1)
    sums = np.stack([p.sum(axis=1), (p * u).sum(axis=1), (p * u * u).sum(axis=1)])
    mass, first, second = sums @ np.column_stack([np.ones(N_BLOCKS), 1.0 - np.eye(N_BLOCKS)])
    mass = np.maximum(mass, 1e-300)
    mean = first / mass
    return mean, second / mass - mean**2


def _least_squares(own, steps, precision_own, precision_steps):
    """Solve for the rows, shape (rows, replicates), from their own values and their steps."""
    diagonal = precision_own.copy()
    diagonal[:-1] += precision_steps
    diagonal[1:] += precision_steps
    right = precision_own[:, None] * own
    right[:-1] -= precision_steps[:, None] * steps
    right[1:] += precision_steps[:, None] * steps
    bands = np.vstack([np.concatenate([[0.0], -precision_steps]), diagonal])
    return solveh_banded(bands, right)


def _end_slopes(run: RowRun, first_beta: float) -> NDArray[np.float64]:
    """Return the mean agreement at the first beta, and the largest possible, its limit."""
    log_p = first_beta * run.agreements - run.weight(run.agreements)
    first = np.average(run.agreements, weights=np.exp(log_p - log_p.max()))
    return np.array([first, largest_agreement(run.field)])


def scan_curve(ladder: Ladder, field: LabelField) -> Curve:
    """Integrate the mean agreements of an annealed ladder: log z along beta, roughly.

    Above the ladder the slope is the largest agreement there is: a walk that froze short of it
    must not make a large beta look likely.
    """
    betas, means = ladder
    path = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(betas) * (means[1:] + means[:-1]))])
    path += log_partition_at_zero(field) - path[np.searchsorted(betas, 0.0)]
    return Curve(betas, path, np.array([means[0], largest_agreement(field)]))
