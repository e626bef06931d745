"""One chain over all agreements of a field, and what it says about every beta.

The chain is weighted so that it visits every agreement between disorder and order about equally
(multicanonical sampling). Reweighting its agreements then gives log z at any beta. With three or
more classes and long-range weights a field jumps from disorder to order (a first-order
transition); chains at one beta each, even with replica exchange, hardly cross that gap, while
this one is drawn across. Tried on uniform fields of 150 points and five classes, replica exchange
needed ten times as long for the same error.
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

_N_CELLS = 256  # of the table of the weight; finer than any feature of it
_ANNEAL_SWEEPS = 30
_MAX_GROWTH = 0.35  # a rung is at most this part of (1 + |beta|) from the last


class AgreementWeight(NamedTuple):
    """W(S): linear between equally spaced agreements, and along the end cells beyond them."""

    table: NDArray[np.float64]
    start: float
    cells_per_unit: float

    def __call__(self, agreements: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate W."""
        position = (agreements - self.start) * self.cells_per_unit
        cell = np.clip(position, 0.0, len(self.table) - 2.0).astype(np.int64)
        low, high = self.table[cell], self.table[cell + 1]
        return low + (position - cell) * (high - low)


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

    def run(
        self, rng: np.random.Generator, n_sweeps: int, n_snapshots: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
        """Sweep on; return the agreement after each sweep, and some labelings at equal distance."""
        agreements = np.empty(n_sweeps)
        snapshots = np.empty((n_snapshots, self.field.n_points), dtype=np.int8)
        self.agreement = multicanonical_sweeps(
            coupling_arrays(self.field),
            self.field.total_coupling,
            self.field.external_field,
            *self.weight,
            self.labels,
            self.support,
            self.agreement,
            draw_key(rng),
            agreements,
            snapshots,
        )
        return agreements, snapshots


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
        agreements = chain.run(rng, _ANNEAL_SWEEPS)[0][_ANNEAL_SWEEPS // 3 :]
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


def first_weight(ladder: Ladder) -> AgreementWeight:
    """Build the weight whose slope at the mean agreement of a beta is that beta.

    It is flat to the left of the ladder and to the right goes on with the last slope, so that
    the chain keeps to the agreements of its betas.
    """
    means, betas = _strictly_rising(ladder)
    span = means[-1] - means[0]
    grid = np.linspace(means[0] - 0.02 * span, means[-1] + 0.02 * span, _N_CELLS)
    return _weight_from_slopes(grid, np.interp(0.5 * (grid[1:] + grid[:-1]), means, betas))


def flattened(
    weight: AgreementWeight, ladder: Ladder, agreements: NDArray[np.float64]
) -> AgreementWeight:
    """Lower the weight where a run has been often, and raise it where it has not."""
    means, betas = _strictly_rising(ladder)
    counts, edges = np.histogram(agreements, bins=means)
    smooth = counts / counts.mean() + 0.1
    centres = 0.5 * (edges[1:] + edges[:-1])
    grid = weight.start + np.arange(len(weight.table)) / weight.cells_per_unit
    table = weight.table - np.interp(grid, centres, np.log(smooth / np.diff(edges)))
    slopes = np.clip(np.diff(table) * weight.cells_per_unit, betas[0], betas[-1])
    slopes[0], slopes[-1] = betas[0], betas[-1]
    return _weight_from_slopes(grid, slopes)


def _linear_weight(beta: float) -> AgreementWeight:
    return AgreementWeight(np.array([0.0, beta]), 0.0, 1.0)


def _weight_from_slopes(grid: NDArray[np.float64], slopes: NDArray[np.float64]) -> AgreementWeight:
    width = grid[1] - grid[0]
    return AgreementWeight(np.concatenate([[0.0], np.cumsum(slopes) * width]), grid[0], 1.0 / width)


def _strictly_rising(ladder: Ladder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Drop the rungs where noise makes the mean agreement fall."""
    highest = np.maximum.accumulate(ladder.means)
    tolerance = 1e-6 * max(highest[-1] - highest[0], 1e-6)
    keep = np.concatenate([[True], np.diff(highest) > tolerance])
    if keep.sum() < 2:  # a field whose agreement hardly varies
        return np.array([highest[0] - 1.0, highest[0] + 1.0]), ladder.betas[[0, -1]]
    return highest[keep], ladder.betas[keep]


class Reweighting:
    """What a run says about any beta: a weighted sample of agreements."""

    def __init__(self, agreements: NDArray[np.float64], weight: AgreementWeight):
        self.agreements = agreements
        self.log_weights = -weight(agreements)

    def log_ratio(self, betas: NDArray[np.float64], blocks=slice(None)) -> NDArray[np.float64]:
        r"""Estimate log z(beta) - log z(0) from all or some of the run."""
        agreements, log_weights = self.agreements[blocks], self.log_weights[blocks]
        at_beta = [logsumexp(beta * agreements + log_weights) for beta in betas]
        return np.array(at_beta) - logsumexp(log_weights)

    def probabilities(self, beta: float) -> NDArray[np.float64]:
        """Weights of the run's labelings as draws at beta; they sum to one."""
        log_p = beta * self.agreements + self.log_weights
        p = np.exp(log_p - log_p.max())
        return p / p.sum()
