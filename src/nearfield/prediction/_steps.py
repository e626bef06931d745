"""Averages over the posterior where the support jumps with the scale: radius kernel, and k."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfield.families import DistanceFamily, NeighborFamily
from nearfield.prediction._rules import Floats, Measure, beta_basis, cells
from nearfield.sampling.listening import N_JUMPS, Listening, fill_listening
from nearfield.sampling.nearest import average_scales, nearest_others, neighbor_support
from nearfield.sampling.radius import (
    RadiusTables,
    lookup_table,
    radius_probabilities,
    radius_support,
)
from nearfield.sampling.steps import StepMass
from nearfield.weights import RADIUS_EPSILON

_N_EXACT_NODES = 32
_N_EXACT_SCALES = 128
_N_BINS = 96
_N_BINS_A_FOLD = 16  # where the points reached grow e-fold
_N_CUTS_A_BIN = 2
_N_CELLS_A_BIN = 8  # of the table by which the bin of a distance is found
_N_GROUPS = 8
_N_PROBES = 64
_JOINED = 5e-4  # mass x (change of beta x support)^3 that is averaged as one


def gather(measure: Measure) -> StepMass:
    """Gather the nodes or draws of a posterior by scale."""
    scales, index = np.unique(measure.scales, return_inverse=True)
    is_exact = len(measure.weights) <= _N_EXACT_NODES
    if is_exact:
        grid, place = np.unique(measure.betas, return_inverse=True)
        basis = np.eye(len(grid))[place]
    else:
        groups = cells(measure.scales, measure.weights, _N_GROUPS)
        grid, basis = beta_basis(measure, groups)
    mass = np.zeros((len(scales) + 1, len(grid)))
    np.add.at(mass[1:], index, basis * measure.weights[:, None])
    sums = np.zeros((3, len(scales) + 1))
    for power in range(3):
        sums[power, 1:] = np.bincount(index, measure.weights * measure.betas**power)
    return StepMass(
        scales,
        grid,
        np.cumsum(mass, axis=0),
        np.cumsum(sums, axis=1),
        0.0 if is_exact else _JOINED,
    )


@dataclass(frozen=True, eq=False)
class RadiusAverage:
    """The posterior average of class probabilities with the radius kernel."""

    family: DistanceFamily
    labels: NDArray[np.int64]
    external_field: Floats
    is_joint: bool
    posterior: StepMass
    tables: RadiusTables

    @classmethod
    def of(
        cls,
        measure: Measure,
        family: DistanceFamily,
        labels: NDArray[np.int64],
        external_field: Floats,
        is_joint: bool,
    ) -> "RadiusAverage":
        """Prepare the tables of the training points."""
        posterior = gather(measure)
        weights = np.diff(posterior.sums[0])
        bins = _bins(posterior.scales, weights, family)
        tables = radius_tables(family, labels, posterior.scales, weights, is_joint, bins)
        return cls(family, labels, external_field, is_joint, posterior, tables)

    def probabilities(self, distances: Floats) -> Floats:
        """Average the class probabilities of new points, shape (m, G)."""
        probabilities = np.empty((len(distances), len(self.external_field)))
        radius_probabilities(
            distances, self.tables, self.posterior, self.external_field, probabilities
        )
        return probabilities

    def at(self, scales: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Prepare the support at other scales, which rise; no interpolation follows it."""
        n_scales = len(scales)
        bins, weights = np.arange(n_scales + 1), np.ones(n_scales)
        tables = radius_tables(self.family, self.labels, scales, weights, self.is_joint, bins)

        def support(distances: Floats) -> tuple[Floats, Floats]:
            values = np.empty((len(distances), n_scales, len(self.external_field)))
            radius_support(distances, tables, values)
            return values, np.empty((n_scales, 0))

        return support


@dataclass(frozen=True, eq=False)
class NeighborAverage:
    """The posterior average of class probabilities with k nearest neighbours."""

    labels: NDArray[np.int64]
    external_field: Floats
    is_joint: bool
    posterior: StepMass
    nearest: Floats
    n_as_near: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        measure: Measure,
        family: NeighborFamily,
        labels: NDArray[np.int64],
        external_field: Floats,
        is_joint: bool,
    ) -> "NeighborAverage":
        """Sort the neighbours of the training points."""
        posterior = gather(measure)
        nearest = np.empty((family.n_points, int(posterior.scales[-1])))
        n_as_near = np.empty(family.n_points, dtype=np.int64)
        nearest_others(family.distances, nearest, n_as_near)
        return cls(labels, external_field, is_joint, posterior, nearest, n_as_near)

    def probabilities(self, distances: Floats) -> Floats:
        """Average the class probabilities of new points, shape (m, G)."""
        probabilities = np.empty((len(distances), len(self.external_field)))
        support, _ = self.at(self.posterior.scales)(distances)
        average_scales(support, self.posterior, self.external_field, probabilities)
        return probabilities

    def at(self, scales: Floats) -> Callable[[Floats], tuple[Floats, Floats]]:
        """Prepare the support at some k of the posterior, which rise; no interpolation follows."""
        ks = np.append(scales, np.inf)  # never reached: an end for the search

        def support(distances: Floats) -> tuple[Floats, Floats]:
            values = np.empty((len(distances), len(scales), len(self.external_field)))
            neighbor_support(
                distances, self.labels, ks, self.nearest, self.n_as_near, self.is_joint, values
            )
            return values, np.empty((len(scales), 0))

        return support


def radius_tables(
    family: DistanceFamily,
    labels: NDArray[np.int64],
    scales: Floats,
    weights: Floats,
    is_joint: bool,
    bins: NDArray[np.int64],
) -> RadiusTables:
    """Gather what the support of new points needs to know of the training points."""
    n_points, n_bins = family.n_points, len(bins) - 1
    jump_scales = np.full((n_points, N_JUMPS), len(scales))
    jump_sizes = np.zeros((n_points, N_JUMPS))
    gains, slopes, out, out_slopes = np.zeros((4, n_points, n_bins))
    listening = Listening(gains, slopes, out, out_slopes, jump_scales, jump_sizes)
    if is_joint:
        fill_listening(family.distances, scales, weights, bins, RADIUS_EPSILON, listening)
    is_class = (labels[:, None] == np.arange(family.n_classes)).astype(np.float64)
    # Lines over bins are no better than their six digits, which are read twice as fast.
    kind = np.float64 if n_bins == len(scales) else np.float32
    bin_of = np.repeat(np.arange(n_bins), np.diff(bins))
    before = np.append(0.0, np.cumsum(weights))
    last_scales = scales[bins[1:] - 1]
    return RadiusTables(
        labels,
        is_class.sum(axis=0),
        scales,
        bins,
        _cuts(bins),
        (before[:-1] - before[bins[:-1]][bin_of]) / np.diff(before[bins])[bin_of] - 0.5,
        last_scales,
        lookup_table(last_scales, _N_CELLS_A_BIN * n_bins),
        gains.astype(kind),
        slopes.astype(kind),
        jump_scales,
        jump_sizes,
        np.where(jump_scales < len(scales), jump_scales, -1).max(axis=1),
        (is_class.T @ out).astype(kind),
        (is_class.T @ out_slopes).astype(kind),
        RADIUS_EPSILON,
    )


def _cuts(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut each bin of scales in some pieces, and return where they end."""
    parts = np.arange(1, _N_CUTS_A_BIN + 1) / _N_CUTS_A_BIN
    return np.unique((bins[:-1, None] + np.ceil(parts * np.diff(bins)[:, None])).astype(np.int64))


def _bins(scales: Floats, weights: Floats, family: DistanceFamily) -> NDArray[np.int64]:
    """Cut rising scales into bins; each has its own where there are not many.

    Elsewhere bins are narrow where there is much mass, and where the training points reach ever
    more others.
    """
    if len(scales) <= _N_EXACT_SCALES:
        return np.arange(len(scales) + 1)
    some = np.linspace(0, family.n_points - 1, _N_PROBES).astype(np.int64)
    reached = np.mean(
        [np.log(np.searchsorted(np.sort(row), scales)) for row in family.distances[some]], axis=0
    )
    n_bins = min(_N_BINS, 16 + int(_N_BINS_A_FOLD * np.ptp(reached)))
    sizes = [len(cell) for cell in cells(reached, weights, n_bins)]
    return np.concatenate([[0], np.cumsum(sizes)])
