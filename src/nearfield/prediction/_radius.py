"""Averages over the posterior with the radius kernel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solveh_banded

from nearfield.field import DistanceFamily
from nearfield.field.weights import RADIUS_EPSILON
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._rules import Floats, Measure, cells
from nearfield.prediction._steps import N_EXACT_SCALES, gather
from nearfield.sampling.listening import Hats, listening_at, listening_over
from nearfield.sampling.radius import (
    RadiusTables,
    radius_probabilities,
    radius_support,
    search_table,
)
from nearfield.sampling.radius_bins import BinnedTables, ScaleBins, binned_probabilities
from nearfield.sampling.steps import StepMass

_N_BINS = (190.0, 3.0)  # at most so many, plus these x beta
_MOST_BINS = 255
_N_BINS_A_FOLD = (8.0, 2.5)  # where the points reached grow e-fold: so many, plus these x beta
_LEAST_JUMPS = 8
_SMALL_JUMP = 0.05  # of beta x support: smaller ones become part of a line
_N_BUCKETS = 8  # of a bin
_N_PROBES = 64
_CROWDED = 5e-5  # mass x (change of beta x support)^3 of points that come into reach in a crowd
_FLATNESS = 1e-4  # what the lines of bins with hardly more than one scale shall be


@dataclass(frozen=True, eq=False)
class RadiusAverage:
    """The posterior average of class probabilities with the radius kernel."""

    family: DistanceFamily
    labels: NDArray[np.int64]
    external_field: Floats
    is_joint: bool
    posterior: StepMass
    tables: RadiusTables | BinnedTables

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
        tables: RadiusTables | BinnedTables
        if len(posterior.scales) <= N_EXACT_SCALES:
            tables = exact_tables(family, labels, posterior.scales, is_joint)
        else:
            tables = binned_tables(family, labels, posterior, is_joint)
        return cls(family, labels, external_field, is_joint, posterior, tables)

    def probabilities(self, distances: Floats) -> Floats:
        """Average the class probabilities of new points, shape (m, G)."""
        is_binned = isinstance(self.tables, BinnedTables)
        fill = binned_probabilities if is_binned else radius_probabilities
        probabilities = np.empty((len(distances), len(self.external_field)))
        fill(distances, self.tables, self.posterior, self.external_field, probabilities)
        return probabilities

    def at(self, scales: Floats) -> Callable[[Floats], tuple[Floats, Interpolation]]:
        """Prepare the support at other scales, which rise; no interpolation follows it."""
        tables = exact_tables(self.family, self.labels, scales, self.is_joint)

        def support(distances: Floats) -> tuple[Floats, Interpolation]:
            values = np.empty((len(distances), len(scales), len(self.external_field)))
            radius_support(distances, tables, values)
            return values, Interpolation.none(len(scales))

        return support


def exact_tables(
    family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, is_joint: bool
) -> RadiusTables:
    """Gather what the support of new points needs to know of the training points."""
    gains, outside = np.zeros((2, family.n_points, len(scales)))
    if is_joint:
        listening_at(family.distances, scales, RADIUS_EPSILON, gains, outside)
    is_class = _indicators(family, labels)
    return RadiusTables(
        labels,
        is_class.sum(axis=1),
        search_table(scales),
        gains,
        is_class @ outside,
        RADIUS_EPSILON,
    )


def binned_tables(
    family: DistanceFamily, labels: NDArray[np.int64], posterior: StepMass, is_joint: bool
) -> BinnedTables:
    """Gather the same over bins of scales."""
    scales, weights = posterior.scales, np.diff(posterior.sums[:, 0])
    bins = _bins(_starts(posterior, family), weights)
    n_points, n_knots = family.n_points, len(bins.starts)
    n_jumps = _n_jumps(posterior)
    jump_scales = np.full((n_points, n_jumps), len(scales))
    jump_sizes = np.zeros((n_points, n_jumps))
    gains, outside = np.zeros((n_points, n_knots)), np.zeros((n_knots - 1, 2, family.n_classes))
    if is_joint:
        masses = np.diff(posterior.sums[bins.starts, 0])
        hats = Hats(bins.of_scale, bins.places + 0.5 * weights / masses[bins.of_scale], weights)
        listening_over(
            family.distances,
            labels,
            scales,
            hats,
            RADIUS_EPSILON,
            jump_scales,
            jump_sizes,
            gains,
            outside,
        )
        gains = _knots(hats, gains)
        _add_jumps(gains, jump_scales, jump_sizes, bins.starts)
        _fit_lines(hats, outside)
    is_class = _indicators(family, labels)
    return BinnedTables(
        labels,
        is_class.sum(axis=1),
        search_table(scales),
        bins,
        gains.astype(np.float32),  # lines are no better than its six digits, read twice as fast
        jump_scales,
        jump_sizes,
        np.where(jump_scales < len(scales), jump_scales, -1).max(axis=1),
        outside,
        _bounds(posterior, bins.starts),
        RADIUS_EPSILON,
    )


def _bounds(posterior: StepMass, starts: NDArray[np.int64]) -> Floats:
    r"""Bound what may come into reach within a bin without being events.

    Of k among n points in reach that come within a bin of mass m, each changes the support by up
    to 2/n. Lines take their place, with the covariance around them; what is neglected is of third
    order, in the measure of runs up to

    .. math:: m \, k \, (2 \beta / n)^3
    """
    masses = np.diff(posterior.sums[starts, 0])
    return _CROWDED / (masses * (2.0 * _typical_beta(posterior)) ** 3)


def _n_jumps(posterior: StepMass) -> int:
    """Choose how many jumps of a training point to keep; the k-th is 1/k - 1/(k + 1) high."""
    return max(_LEAST_JUMPS, int(np.sqrt(_typical_beta(posterior) / _SMALL_JUMP)))


def _typical_beta(posterior: StepMass) -> float:
    """Give the root of the mean square of beta."""
    return float(np.sqrt(posterior.sums[-1, 2] / posterior.sums[-1, 0]))


def _indicators(family: DistanceFamily, labels: NDArray[np.int64]) -> Floats:
    return (labels == np.arange(family.n_classes)[:, None]).astype(np.float64)


def _knots(hats: Hats, moments: Floats) -> Floats:
    """Fit functions that are lines over bins by least squares, given their moments."""
    n_knots = moments.shape[1]
    bands = np.zeros((2, n_knots))  # of the normal equations: above the diagonal, and on it
    falls = 1.0 - hats.rises
    mass = np.bincount(hats.bins, hats.weights)
    bands[0, 1:] = np.bincount(hats.bins, hats.weights * hats.rises * falls) - _FLATNESS * mass
    bands[1, :-1] += np.bincount(hats.bins, hats.weights * falls**2) + _FLATNESS * mass
    bands[1, 1:] += np.bincount(hats.bins, hats.weights * hats.rises**2) + _FLATNESS * mass
    return solveh_banded(bands, moments.T).T


def _fit_lines(hats: Hats, moments: Floats) -> None:
    """Turn moments over each bin by itself, in place, into where lines start and their rises."""
    from_middle = hats.rises - 0.5
    variance = np.bincount(hats.bins, hats.weights * from_middle**2)
    # A bin of a single scale has no rise.
    moments[:, 1] /= np.where(variance > 0.0, variance, 1.0)[:, None]
    moments[:, 0] /= np.bincount(hats.bins, hats.weights)[:, None]
    moments[:, 0] -= 0.5 * moments[:, 1]


def _add_jumps(
    gains: Floats, jump_scales: NDArray[np.int64], jump_sizes: Floats, starts: NDArray[np.int64]
) -> None:
    """Add to gains where bins start, in place, the jumps up to there."""
    jumps = np.zeros_like(gains)
    rows = np.arange(len(gains))[:, None]
    np.add.at(jumps, (rows, np.searchsorted(starts, jump_scales)), jump_sizes)
    gains += np.cumsum(jumps, axis=1)


def _starts(posterior: StepMass, family: DistanceFamily) -> NDArray[np.int64]:
    """Cut rising scales into bins, and return where they start and the last one ends.

    Bins are narrow where there is much mass, and where the training points reach ever more
    others; the more so the larger beta is.
    """
    scales, weights = posterior.scales, np.diff(posterior.sums[:, 0])
    some = np.linspace(0, family.n_points - 1, _N_PROBES).astype(np.int64)
    reached = np.mean(
        [np.log(np.searchsorted(np.sort(row), scales)) for row in family.distances[some]], axis=0
    )
    beta = _typical_beta(posterior)
    most, n_bins_a_fold = (fixed + times * beta for fixed, times in (_N_BINS, _N_BINS_A_FOLD))
    n_bins = int(min(16 + n_bins_a_fold * np.ptp(reached), most, _MOST_BINS))
    sizes = [len(cell) for cell in cells(reached, weights, n_bins)]
    return np.concatenate([[0], np.cumsum(sizes)])


def _bins(starts: NDArray[np.int64], weights: Floats) -> ScaleBins:
    """Note where each scale lies in the bins of scales."""
    bin_of_scale = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    before = np.append(0.0, np.cumsum(weights))
    masses = np.diff(before[starts])
    places = (before[:-1] - before[starts[:-1]][bin_of_scale]) / masses[bin_of_scale]
    bucket_of_scale = (_N_BUCKETS * (bin_of_scale + places)).astype(np.int32)
    return ScaleBins(starts, bin_of_scale.astype(np.int32), places, bucket_of_scale)
