"""Averages over the posterior where the support jumps with the scale: radius kernel, and k."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfield.families import DistanceFamily, NeighborFamily
from nearfield.prediction._rules import Floats, Measure, beta_basis, cells
from nearfield.sampling.listening import N_JUMPS, Listening, fill_listening
from nearfield.sampling.nearest import average_scales, nearest_others, neighbor_support
from nearfield.sampling.radius import RadiusTables, radius_probabilities, radius_support
from nearfield.sampling.steps import StepMass
from nearfield.weights import RADIUS_EPSILON

_N_EXACT_NODES = 32
_N_EXACT_SCALES = 128
_N_BINS = 96
_N_GROUPS = 8
_N_PROBES = 64
_JOINED = 1e-4  # mass x (change of beta x support)^2 that is averaged before the softmax


def gather(measure: Measure, bins: NDArray[np.int64] | None = None) -> StepMass:
    """Gather the nodes or draws of a posterior by scale.

    Parameters
    ----------
    measure : Measure
    bins : ndarray of int, optional
        Where bins of the different scales, in rising order, start and end; one each by default.
    """
    scales, index = np.unique(measure.scales, return_inverse=True)
    if len(measure.weights) <= _N_EXACT_NODES:
        grid, place = np.unique(measure.betas, return_inverse=True)
        basis, centres = np.eye(len(grid))[place], np.zeros(len(scales))
        return StepMass(scales, centres, grid, *_cumulated(measure, index, basis), 1.0, 0.0)
    bins = np.arange(len(scales) + 1) if bins is None else bins
    bin_of = np.repeat(np.arange(len(bins) - 1), np.diff(bins))
    mass = np.bincount(bin_of[index], measure.weights)
    centres = (np.bincount(bin_of[index], measure.weights * measure.betas) / mass)[bin_of]
    groups = cells(measure.scales, measure.weights, _N_GROUPS)
    is_centred, grid, basis = beta_basis(measure, centres[index], groups)
    if not is_centred:
        centres = np.zeros(len(scales))
    spread = float(np.sqrt(measure.weights @ (measure.betas - centres[index]) ** 2))
    return StepMass(scales, centres, grid, *_cumulated(measure, index, basis), spread, _JOINED)


def _cumulated(measure: Measure, index: NDArray[np.int64], basis: Floats) -> tuple[Floats, Floats]:
    """Add up the mass before each scale, on the grid and in all."""
    mass = np.zeros((index.max() + 2, basis.shape[1]))
    np.add.at(mass[1:], index, basis * measure.weights[:, None])
    total = np.append(0.0, np.cumsum(np.bincount(index, measure.weights)))
    return np.cumsum(mass, axis=0), total


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
        bins = _bins(measure, family)
        posterior = gather(measure, bins)
        weights = np.diff(posterior.total)
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
    order = np.argsort(labels, kind="stable")
    class_starts = np.searchsorted(labels[order], np.arange(family.n_classes + 1))
    n_bins = len(bins) - 1
    bin_of = np.repeat(np.arange(n_bins), np.diff(bins))
    logs = np.log(scales)
    offsets = logs - (np.bincount(bin_of, weights * logs) / np.bincount(bin_of, weights))[bin_of]
    sums = np.zeros((2, len(scales) + 1))
    np.cumsum([weights * offsets, weights], axis=1, out=sums[:, 1:])
    gains, slopes, outside, outside_slopes = np.zeros((4, n_bins, family.n_points))
    listening = Listening(
        gains,
        slopes,
        outside,
        outside_slopes,
        np.full(family.n_points * N_JUMPS, len(scales)),
        np.zeros(family.n_points * N_JUMPS),
    )
    if is_joint:
        distances = np.ascontiguousarray(family.distances[np.ix_(order, order)])
        fill_listening(distances, scales, weights, offsets, bins, RADIUS_EPSILON, listening)
    jumps = np.argsort(listening.jump_scales, kind="stable")
    is_class = (labels[order][:, None] == np.arange(family.n_classes)).astype(np.float64)
    return RadiusTables(
        order,
        class_starts,
        scales,
        bins,
        sums,
        gains,
        slopes,
        listening.jump_scales,
        listening.jump_sizes,
        jumps,
        np.searchsorted(listening.jump_scales[jumps], bins),
        outside @ is_class,
        outside_slopes @ is_class,
        RADIUS_EPSILON,
    )


def _bins(measure: Measure, family: DistanceFamily) -> NDArray[np.int64]:
    """Cut rising scales into bins; each has its own where there are not many.

    Elsewhere bins are narrow where there is much mass, and where the training points reach ever
    more others.
    """
    scales, index = np.unique(measure.scales, return_inverse=True)
    if len(scales) <= _N_EXACT_SCALES:
        return np.arange(len(scales) + 1)
    some = np.linspace(0, family.n_points - 1, _N_PROBES).astype(np.int64)
    reached = np.mean(
        [np.log(np.searchsorted(np.sort(row), scales)) for row in family.distances[some]], axis=0
    )
    weights = np.bincount(index, measure.weights).astype(np.float64)
    sizes = [len(cell) for cell in cells(reached, weights, _N_BINS)]
    return np.concatenate([[0], np.cumsum(sizes)])
