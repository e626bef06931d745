"""One chain over all agreements of a field, and what it says about every beta.

The chain is weighted so that it visits every agreement between disorder and order about equally
(multicanonical sampling). Reweighting its agreements then gives log z at any beta. With three or
more classes and long-range weights a field jumps from disorder to order (a first-order
transition); chains at one beta each, even with replica exchange, hardly cross that gap, while
this one is drawn across.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.sampling._random import draw_key
from nearfield.sampling._support import coupling_arrays, stored_support
from nearfield.sampling.multicanonical import multicanonical_sweeps

FROZEN = 1e-3
"""A field whose agreement varies less than this is frozen; a walk in beta need not go on."""

MIN_DRAWS = 100.0
"""Log z at a beta must be worth so many draws."""

_N_CELLS = 256  # of the table of the weight; finer than any feature of it
_ANNEAL_SWEEPS = 30
_MIN_CROSSINGS = 4  # a round of learning
_MAX_CHUNKS = 40
_MAX_GROWTH = 0.35  # a rung is at most this part of (1 + |beta|) from the last


class AgreementWeight(NamedTuple):
    """W(S): linear between equally spaced agreements, with fixed slopes beyond them."""

    table: NDArray[np.float64]
    start: float
    cells_per_unit: float
    end_slopes: NDArray[np.float64]

    def __call__(self, agreements: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate W."""
        cells = np.arange(len(self.table))
        position = (agreements - self.start) * self.cells_per_unit
        below = np.minimum(position, 0.0) / self.cells_per_unit
        above = np.maximum(position - cells[-1], 0.0) / self.cells_per_unit
        inside = np.interp(position, cells, self.table)
        return inside + self.end_slopes[0] * below + self.end_slopes[1] * above


class Run(NamedTuple):
    """The agreement after each sweep, and whether all labels were the same."""

    agreements: NDArray[np.float64]
    is_same: NDArray[np.bool_]

    def __add__(self, other: "Run") -> "Run":  # type: ignore[override]
        """Put another run behind this one."""
        return Run(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Ladder(NamedTuple):
    """Betas in ascending order, and roughly the mean agreement at each."""

    betas: NDArray[np.float64]
    means: NDArray[np.float64]


@dataclass
class FlatChain:
    """A chain with its weight; it goes on from where it is."""

    field: LabelField
    weight: AgreementWeight
    labels: NDArray[np.int64]
    support: NDArray[np.float64]
    agreement: float

    @classmethod
    def start(
        cls, field: LabelField, weight: AgreementWeight, labels: NDArray[np.int64]
    ) -> "FlatChain":
        """Start at given labels."""
        labels = labels.copy()
        return cls(field, weight, labels, stored_support(field, labels), field.agreement(labels))

    def run(self, rng: np.random.Generator, n_sweeps: int, learning_rate: float = 0.0) -> "Run":
        """Sweep on; return what was seen after each sweep."""
        run = Run(np.empty(n_sweeps), np.empty(n_sweeps, dtype=np.bool_))
        self.agreement = multicanonical_sweeps(
            coupling_arrays(self.field),
            self.field.total_coupling,
            self.field.external_field,
            *self.weight,
            learning_rate,
            self.labels,
            self.support,
            self.agreement,
            draw_key(rng),
            *run,
        )
        return run


def anneal(
    rng: np.random.Generator,
    field: LabelField,
    labels: NDArray[np.int64],
    is_enough: Callable[[float, float, float], bool],
    sign: int = 1,
) -> Ladder:
    """Walk away from beta = 0, each step about one standard deviation of the agreement.

    Parameters
    ----------
    labels : ndarray, shape (n,)
        Where to start; a draw at beta = 0.
    is_enough : callable
        Of (beta, mean agreement, its standard deviation): True ends the walk.
    sign : int
        1 to walk up, -1 to walk down.
    """
    chain = FlatChain.start(field, _linear_weight(0.0), labels)
    beta, betas, means = 0.0, [], []
    while True:
        chain.weight = _linear_weight(beta)
        agreements = chain.run(rng, _ANNEAL_SWEEPS).agreements[_ANNEAL_SWEEPS // 3 :]
        mean, spread = float(agreements.mean()), float(agreements.std())
        betas.append(beta)
        means.append(mean)
        if is_enough(beta, mean, spread):
            order = slice(None, None, sign)
            return Ladder(np.array(betas)[order], np.array(means)[order])
        longest = _MAX_GROWTH * (1.0 + abs(beta))
        beta += sign * min(1.0 / max(spread, 1e-9), longest)


def joined(low: Ladder, high: Ladder) -> Ladder:
    """Put a ladder below zero and one above it together."""
    return Ladder(*(np.concatenate([a[:-1], b]) for a, b in zip(low, high, strict=True)))


def first_weight(ladder: Ladder, most: float) -> AgreementWeight:
    """Build the weight whose slope at the mean agreement of a beta is that beta.

    It reaches up to the largest agreement there is, that of labels all the same: a walk in beta
    can freeze short of it, and it is an anchor for log z.
    """
    means, betas = _strictly_rising(ladder)
    grid = np.linspace(means[0], max(most, means[-1]), _N_CELLS)
    slopes = np.interp(0.5 * (grid[1:] + grid[:-1]), means, betas)
    width = grid[1] - grid[0]
    table = np.concatenate([[0.0], np.cumsum(slopes) * width])
    return AgreementWeight(table, grid[0], 1.0 / width, betas[[0, -1]])


def learn_weight(rng: np.random.Generator, chain: FlatChain, n_sweeps: int) -> None:
    """Flatten the chain's weight, ever more gently, and leave it fixed.

    Each round goes on until the chain has crossed from end to end and back, so that the next,
    with its smaller corrections, never inherits a gap that it cannot close.
    """
    for learning_rate in (0.3, 0.1, 0.03, 0.01):
        agreements = np.empty(0)
        for _ in range(_MAX_CHUNKS):
            part = chain.run(rng, n_sweeps, learning_rate=learning_rate).agreements
            agreements = np.concatenate([agreements, part])
            if n_crossings(chain.weight, agreements) >= _MIN_CROSSINGS:
                break


def n_crossings(weight: AgreementWeight, agreements: NDArray[np.float64]) -> int:
    """Count how often a run went from one end of its agreements to the other."""
    position = (agreements - weight.start) * weight.cells_per_unit / (len(weight.table) - 1)
    side = np.where(position < 0.2, -1, np.where(position > 0.8, 1, 0))
    visits = side[side != 0]
    return int(np.count_nonzero(np.diff(visits)))


def _linear_weight(beta: float) -> AgreementWeight:
    return AgreementWeight(np.array([0.0, beta]), 0.0, 1.0, np.array([beta, beta]))


def _strictly_rising(ladder: Ladder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Drop the rungs where noise makes the mean agreement fall."""
    highest = np.maximum.accumulate(ladder.means)
    tolerance = 1e-6 * max(highest[-1] - highest[0], 1e-6)
    keep = np.concatenate([[True], np.diff(highest) > tolerance])
    if keep.sum() < 2:  # a field whose agreement hardly varies
        return np.array([highest[0] - 1.0, highest[0] + 1.0]), ladder.betas[[0, -1]]
    return highest[keep], ladder.betas[keep]


class LogPartition(NamedTuple):
    """Log z at some betas, its standard error, and how many draws it rests on."""

    log_z: NDArray[np.float64]
    error: NDArray[np.float64]
    n_draws: NDArray[np.float64]

    def is_good(self, target_error: float) -> bool:
        """Tell whether all errors are small enough, and rest on enough draws to be trusted."""
        return bool(self.error.max() <= target_error and self.n_draws.min() >= MIN_DRAWS)


def reweighted_log_partition(
    field: LabelField,
    weight: AgreementWeight,
    run: Run,
    betas: NDArray[np.float64],
    n_blocks: int = 20,
) -> LogPartition:
    r"""Estimate log z from a run with a fixed weight, anchored at both ends.

    .. math:: z(\beta) = Z_W\, E_W[\exp(\beta S - W)]

    The unknown Z_W follows from beta = 0, where z is known, and again from how often all labels
    were the same, a state whose weight is known. The two are averaged so that the jackknife
    variance is least: near disorder the first counts, near order the second.
    """
    length = len(run.agreements) // n_blocks
    agreements = run.agreements[-length * n_blocks :]
    is_same = run.is_same[-length * n_blocks :].reshape(n_blocks, length)
    log_weights = -weight(agreements)
    sums = np.empty((n_blocks, len(betas) + 1))
    log_largest, n_draws = np.empty((2, len(betas) + 1))
    for column, beta in enumerate([0.0, *betas]):
        terms = beta * agreements + log_weights
        largest = terms.max()
        np.exp(np.subtract(terms, largest, out=terms), out=terms)
        sums[:, column] = terms.reshape(n_blocks, length).sum(axis=1)
        n_draws[column] = sums[:, column].sum() ** 2 / np.square(terms, out=terms).sum()
        log_largest[column] = largest
    n_same = is_same.sum(axis=1)
    log_same = logsumexp(field.n_points * field.external_field)
    log_same += weight(np.array(largest_agreement(field)))

    def estimates(sums: NDArray[np.float64], n_same: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate from sums over blocks, shape (..., 1 + m), by both anchors."""
        with np.errstate(divide="ignore"):
            log_sums = np.log(np.maximum(sums, 1e-300)) + log_largest
            from_zero = log_partition_at_zero(field) + log_sums[..., 1:] - log_sums[..., :1]
            from_same = log_same + log_sums[..., 1:] - np.log(n_same)[..., None]
        return np.stack([from_zero, from_same], axis=-2)

    full = estimates(sums.sum(axis=0), n_same.sum())
    left_out = estimates(sums.sum(axis=0) - sums, n_same.sum() - n_same)
    log_z, combined = least_variance(full, left_out)
    return LogPartition(log_z, jackknife_error(combined), n_draws[1:])


def largest_agreement(field: LabelField) -> float:
    """Return the agreement of labels that are all the same."""
    return 0.5 * float(field.total_coupling.sum())


def log_partition_at_zero(field: LabelField) -> float:
    """Return log z at beta = 0, known exactly."""
    return field.n_points * float(logsumexp(field.external_field))


def least_variance(
    full: NDArray[np.float64], left_out: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average two estimates, shape (2, m), so that the jackknife variance is least.

    Parameters
    ----------
    left_out : ndarray, shape (blocks, 2, m)
        The same without each block. Where any of them is infinite the first one alone counts.

    Returns
    -------
    average : ndarray, shape (m,)
    left_out : ndarray, shape (blocks, m)
    """
    if not np.isfinite(left_out).all():
        return full[0], left_out[:, 0]
    share = _share_of_second(left_out)
    weights = np.stack([1.0 - share, share])
    return (weights * full).sum(axis=0), (weights * left_out).sum(axis=1)


def _share_of_second(left_out: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of the second of two estimates, shape (blocks, 2, m), makes the best mean."""
    first, second = np.moveaxis(left_out - left_out.mean(axis=0), 1, 0)
    difference = first - second
    spread = (difference**2).sum(axis=0)
    return np.clip((first * difference).sum(axis=0) / np.maximum(spread, 1e-300), 0.0, 1.0)


def jackknife_error(left_out: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error from leaving out each block, the larger of singles and pairs.

    Blocks that still remember each other show in the pairs.
    """
    influences = (len(left_out) - 1.0) * (left_out.mean(axis=0) - left_out)
    pairs = 0.5 * (influences[0::2] + influences[1::2])
    return np.maximum(*(v.std(axis=0, ddof=1) / np.sqrt(len(v)) for v in (influences, pairs)))
