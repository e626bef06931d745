"""A rough look at the posterior: log z along beta at a few scales, by annealing from zero."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.inference._interpolant import LogPartition
from nearfield.inference._problem import Problem
from nearfield.sampling.canonical import FieldStack, Walk, stack_fields, walk_chains

_N_CHAINS = 4
_N_SETTLING = 1  # sweeps at each beta
_N_SEEN = 4  # sweeps whose agreements are averaged
_STEP = 2.0  # of a rung, in standard deviations of the agreement
_MAX_GROWTH = 0.8  # a rung is at most this part of (1 + |beta|) from the last
_ENOUGH = 25.0  # a scan ends where the log posterior density has fallen by so much


class ScaleRow(NamedTuple):
    """Log z along beta at one scale, and the agreement of the observed labels there."""

    log_partition: LogPartition
    agreement: float

    def log_likelihood(self, betas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate the log likelihood, but for the external field."""
        return betas * self.agreement - self.log_partition(betas)


def scan_scales(
    rng: np.random.Generator, problem: Problem, scales: NDArray[np.float64], n_jobs: int | None
) -> list[ScaleRow]:
    """Anneal at each scale; a stream each, so that the answer does not depend on `n_jobs`."""
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        return parallel(
            delayed(_scan_scale)(stream, problem, scale)
            for stream, scale in zip(rng.spawn(len(scales)), scales, strict=True)
        )


def _scan_scale(rng, problem: Problem, scale: float) -> ScaleRow:
    """Anneal at one scale, up and down from beta = 0 as far as the posterior goes."""
    field = problem.family.at(scale)
    agreement = field.agreement(problem.labels)
    stack = stack_fields([field])
    low, high = problem.beta_support
    highest = -np.inf
    sides = []
    for end in (max(high, 0.0), min(low, 0.0)):
        side = []
        for rung in annealed(rng, field, stack, end):
            side.append(rung)
            beta, log_z, _ = rung
            log_density = beta * agreement - log_z + float(problem.priors.log_beta(beta))
            highest = max(highest, log_density)
            if log_density < highest - _ENOUGH:
                break
        sides.append(side)
    up, down = sides
    return ScaleRow(LogPartition(*np.array(down[:0:-1] + up).T), agreement)


def annealed(
    rng: np.random.Generator, field: LabelField, stack: FieldStack, end: float
) -> Iterator[tuple[float, float, float]]:
    """Go from beta = 0 to an end; give (beta, log z, mean agreement) on the way, all rough.

    The field is the first of the stack.
    """
    log_z, mean, spread = moments_at_zero(field)
    labels = labels_at_zero(rng, field, _N_CHAINS)
    beta = 0.0
    yield beta, log_z, mean
    while beta != end:
        step = min(_STEP / max(spread, 1e-9), _MAX_GROWTH * (1.0 + abs(beta)))
        last_beta, last_mean = beta, mean
        beta = float(np.sign(end)) * min(abs(beta) + step, abs(end))
        mean, spread = _moments(rng, stack, beta, labels)
        log_z += 0.5 * (beta - last_beta) * (mean + last_mean)
        yield beta, log_z, mean


def labels_at_zero(rng, field: LabelField, n_labelings: int) -> NDArray[np.int8]:
    """Draw labelings at beta = 0, where all labels are independent."""
    size = n_labelings, field.n_points
    p = class_probabilities(field)
    return rng.choice(field.n_classes, size=size, p=p).astype(np.int8)


def class_probabilities(field: LabelField) -> NDArray[np.float64]:
    """Give the probability of each class at beta = 0."""
    p = np.exp(field.external_field - field.external_field.max())
    return p / p.sum()


def moments_at_zero(field: LabelField) -> tuple[float, float, float]:
    """Log z, E[S] and about sd(S) at beta = 0."""
    agree = float((class_probabilities(field) ** 2).sum())
    coupling = field.to_dense().coupling
    variance = 0.5 * float((coupling**2).sum()) * agree * (1.0 - agree)
    log_z = field.n_points * float(logsumexp(field.external_field))
    return log_z, 0.5 * float(coupling.sum()) * agree, float(np.sqrt(variance))


def _moments(rng, stack: FieldStack, beta, labels):
    n_sweeps = np.ones(_N_SEEN, dtype=np.int64)
    n_sweeps[0] += _N_SETTLING
    walk = Walk(np.full(_N_SEEN, beta), np.zeros(_N_SEEN, dtype=np.int64), n_sweeps)
    keys = rng.integers(0, 2**64, dtype=np.uint64, size=len(labels))
    _, agreements, _ = walk_chains(stack, walk, labels, keys)
    return float(agreements.mean()), float(agreements.std())


def row_between(scales, rows: list[ScaleRow], scale: float) -> ScaleRow:
    """Mix the two rows next to a scale, evenly in its logarithm."""
    position = np.interp(np.log(scale), np.log(scales), np.arange(len(scales)))
    below = min(int(position), max(len(scales) - 2, 0))
    if below == position:
        return rows[below]
    share = position - below
    first, second = (row.log_partition for row in rows[below : below + 2])
    betas = np.union1d(first.betas, second.betas)
    slopes = [np.interp(betas, curve.betas, curve.slopes) for curve in (first, second)]
    return ScaleRow(
        LogPartition(
            betas,
            (1.0 - share) * first(betas) + share * second(betas),
            (1.0 - share) * slopes[0] + share * slopes[1],
        ),
        (1.0 - share) * rows[below].agreement + share * rows[below + 1].agreement,
    )
