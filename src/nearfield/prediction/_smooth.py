"""Averages over the posterior for kernels that change smoothly with sigma.

The support is computed at a few scales (knots), and follows by interpolation in log sigma at
all others; the posterior is replaced by a few nodes. How few is decided by how well they do at
probes: some training points, as they are and moved, towards the centre of all and out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import DistanceFamily
from nearfield.prediction._knots import Interpolation, Knots
from nearfield.prediction._rules import Floats, Measure, compress
from nearfield.sampling.mean_softmax import mean_softmax
from nearfield.sampling.new_points import smooth_support, training_totals

_KNOT_TOLERANCE, _NODE_TOLERANCE = 1e-5, 2e-5  # largest errors of a probability at the probes

_N_EXACT_SCALES = 8  # as many different scales or fewer are taken as they are
_N_EXACT_NODES = 96
_N_KNOTS = (2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_N_CELLS = (
    *((1, 1), (2, 1), (4, 2), (8, 2), (12, 3), (16, 4), (24, 4)),
    *((32, 4), (48, 4), (64, 4), (64, 6), (64, 8)),
)
_N_PROBES = 48
_TOWARDS_CENTRE = (0.0, 0.5, 0.9, -0.5, -2.0)  # how far training points are moved, to be probes
_LARGEST_RATE = 1e200  # times zero it is still zero, times a square of 1e100 finite


def kernel_rates(family: DistanceFamily, scales: Floats) -> tuple[bool, Floats]:
    r"""Write a smooth kernel as exp(-rate x d^2), or as exp(-rate x d).

    Returns
    -------
    is_squared : bool
    rates : ndarray, shape (n_scales,)
    """
    if family.kernel == "exponential":
        return False, np.minimum(scales, _LARGEST_RATE)
    with np.errstate(over="ignore", divide="ignore"):
        return True, np.minimum(0.5 / scales / scales, _LARGEST_RATE)


class Nodes(NamedTuple):
    """Nodes grouped by scale: those of scale s are starts[s] .. starts[s + 1] - 1."""

    scales: Floats
    starts: NDArray[np.int64]
    betas: Floats
    weights: Floats

    @classmethod
    def of(cls, measure: Measure) -> "Nodes":
        """Group the nodes of a measure."""
        scales, index = np.unique(measure.scales, return_inverse=True)
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(len(scales) + 1))
        return cls(scales, starts, measure.betas[order], measure.weights[order])


@dataclass(frozen=True, eq=False)
class TrainingSums:
    """What the support of new points needs to know of the training points at given scales.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Sorts the training points by class.
    class_starts : ndarray of int, shape (G + 1,)
    is_squared, is_joint : bool
    rates : ndarray, shape (n_scales,)
    nearest : ndarray, shape (n,)
    log_totals : ndarray, shape (n_scales, n)
    """

    order: NDArray[np.int64]
    class_starts: NDArray[np.int64]
    is_squared: bool
    is_joint: bool
    rates: Floats
    nearest: Floats
    log_totals: Floats

    @classmethod
    def of(
        cls, family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, is_joint: bool
    ) -> "TrainingSums":
        """Sum over the training points at each of the scales."""
        is_squared, rates = kernel_rates(family, scales)
        order = np.argsort(labels, kind="stable")
        class_starts = np.searchsorted(labels[order], np.arange(family.n_classes + 1))
        nearest, log_totals = np.empty(family.n_points), np.empty((len(rates), family.n_points))
        training_totals(family.distances, rates, is_squared, log_totals, nearest)
        return cls(
            order,
            class_starts,
            is_squared,
            is_joint,
            rates,
            nearest[order],
            np.ascontiguousarray(log_totals[:, order]),
        )

    def support(self, distances: Floats) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""
        support = np.empty((len(distances), len(self.rates), len(self.class_starts) - 1))
        smooth_support(
            distances,
            self.order,
            self.class_starts,
            self.rates,
            self.is_squared,
            self.nearest,
            self.log_totals,
            self.is_joint,
            support,
        )
        return support


class GivenSupport:
    """The support of points for which it was computed elsewhere, at whatever scales."""

    def __init__(self, scales: Floats | None = None) -> None:
        self.scales = scales

    def support(self, support: Floats) -> Floats:
        """Give it back, shape (m, n_scales, G)."""
        return support


@dataclass(frozen=True, eq=False)
class SmoothAverage:
    """The posterior average of class probabilities, by knots and nodes.

    Attributes
    ----------
    sums : TrainingSums or alike
        At the knots.
    knots : Knots
    nodes : Nodes
    external_field : ndarray, shape (G,)
    """

    sums: Any
    knots: Knots
    nodes: Nodes
    external_field: Floats

    def probabilities(self, distances: Any) -> Floats:
        """Average the class probabilities of new points, shape (m, G)."""
        return self.average(self.sums.support(distances))

    @property
    def scales(self) -> Floats:
        """The scales at which the support is computed."""
        return np.exp(self.knots.log_scales)

    def of_supports(self) -> "SmoothAverage":
        """Take supports that were computed elsewhere for points."""
        return replace(self, sums=GivenSupport())

    def support_scales(self, scales: Floats) -> Floats:
        """Give the scales at which the support is computed for values at others: the knots."""
        return self.scales

    def average(self, support: Floats) -> Floats:
        """Average the class probabilities of points with a given support, shape (m, G)."""
        probabilities = np.empty((len(support), len(self.external_field)))
        mean_softmax(
            support,
            *self._interpolation,
            self.nodes.starts,
            self.nodes.betas,
            self.nodes.weights,
            self.external_field,
            probabilities,
        )
        return probabilities

    @cached_property
    def _interpolation(self) -> Interpolation:
        return self.knots.interpolation(self.nodes.scales)

    def at(self, scales: Floats) -> Callable[[Any], tuple[Floats, Interpolation]]:
        """Prepare the support at other scales: at the knots, with the interpolation from there."""
        interpolation = self.knots.interpolation(scales)
        return lambda distances: (self.sums.support(distances), interpolation)


def smooth_average(
    measure: Measure,
    make_sums: Callable[[Floats], Any],
    probes: Any,
    external_field: Floats,
) -> SmoothAverage:
    """Choose knots and nodes for a posterior: as few as the probes allow.

    Parameters
    ----------
    measure : Measure
    make_sums : callable
        Prepares the support at some scales: an object whose ``support(points)`` has the shape
        (m, n_scales, G).
    probes : object
        Points that such a ``support`` takes.
    external_field : ndarray, shape (G,)
    """
    full = _with_few_knots(measure, make_sums, probes, external_field)
    if len(measure.weights) <= _N_EXACT_NODES:
        return full
    expected = full.probabilities(probes)
    for n_cells in _N_CELLS:
        few = compress(measure, *n_cells)
        if len(few.weights) >= len(measure.weights):
            break
        average = replace(full, nodes=Nodes.of(few))
        if _error(average.probabilities(probes), expected) < _NODE_TOLERANCE:
            return average
    return full


def probe_distances(distances: Floats) -> Floats:
    r"""Move some training points, towards the centre of all and away from it, for new points.

    .. math:: d^2(x_i + t (c - x_i), x_j)
              = (1 - t) d^2_{ij} + t d^2_{cj} - t (1 - t) d^2_{ci}, \qquad
              d^2_{cj} = \frac1n \sum_l d^2_{lj} - \frac1{2 n^2} \sum_{lm} d^2_{lm}

    in Euclidean space; with other distances such points need not exist, but are much like others.
    """
    n_points = len(distances)
    chosen = np.unique(np.linspace(0, n_points - 1, _N_PROBES).astype(np.int64))
    mean_squares = np.einsum("ij,ij->i", distances, distances) / n_points
    from_centre = mean_squares - 0.5 * mean_squares.mean()
    probes = []
    for t in _TOWARDS_CENTRE:
        squares = (1.0 - t) * distances[chosen] ** 2 + t * from_centre
        squares -= t * (1.0 - t) * from_centre[chosen, None]
        probes.append(np.sqrt(np.maximum(squares, 0.0)))
        probes[-1][np.arange(len(chosen)), chosen] = np.inf  # no probe is its own neighbour
    return np.concatenate(probes)


def _with_few_knots(
    measure: Measure, make_sums: Callable[[Floats], Any], probes: Any, external_field: Floats
) -> SmoothAverage:
    """Find the fewest knots that the next number of them confirms; all nodes are kept as yet."""

    def with_knots(knots: Knots) -> SmoothAverage:
        sums = make_sums(np.exp(knots.log_scales))
        return SmoothAverage(sums, knots, Nodes.of(measure), external_field)

    scales = np.unique(measure.scales)
    if len(scales) <= _N_EXACT_SCALES:
        return with_knots(Knots(scales))
    chosen = with_knots(Knots.of(measure, _N_KNOTS[0]))
    probabilities = chosen.probabilities(probes)
    for n_knots in _N_KNOTS[1:]:
        finer = with_knots(Knots.of(measure, n_knots))
        confirmed = finer.probabilities(probes)
        if _error(probabilities, confirmed) < _KNOT_TOLERANCE:
            break
        chosen, probabilities = finer, confirmed
    return chosen


def _error(probabilities: Floats, expected: Floats) -> float:
    return float(np.abs(probabilities - expected).max())
