"""Averages over the posterior where the support is a step function of the scale.

Scales are numbered in rising order. A piece is a stretch of scales on which the support of a new
point is constant. Pieces between which it changes little are joined to runs, and a run is
averaged with its mean support: the error is of second order in what changes.

As beta can change with the scale, it is split: beta = centre(scale) + deviation.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._vector import exp_of

_ANY_ORDER = {"reassoc", "contract", "nsz"}


class StepMass(NamedTuple):
    """The posterior, gathered by scale.

    Attributes
    ----------
    scales : ndarray, shape (n_scales,)
        Rising.
    centres : ndarray, shape (n_scales,)
        What beta is around at each scale.
    deviations : ndarray, shape (n_deviations,)
        A grid of beta - centre.
    mass : ndarray, shape (n_scales + 1, n_deviations)
        The posterior mass of the scales before each, on the grid.
    total : ndarray, shape (n_scales + 1,)
        The same in all.
    spread : float
        The size of the deviations.
    tolerance : float
        The largest mass of a run times the square of the change of beta x support within it.
    """

    scales: NDArray[np.float64]
    centres: NDArray[np.float64]
    deviations: NDArray[np.float64]
    mass: NDArray[np.float64]
    total: NDArray[np.float64]
    spread: float
    tolerance: float


@njit(cache=True, nogil=True, error_model="numpy")
def average_pieces(n_pieces, stops, support, posterior, external_field, probabilities):
    """Average the class probabilities of one new point over the posterior.

    Parameters
    ----------
    n_pieces : int
    stops : ndarray of int, shape (>= n_pieces,)
        Where each piece ends: the number of the first scale beyond.
    support : ndarray, shape (>= n_pieces, G)
    posterior : StepMass
        Its centres do not change within a piece.
    external_field : ndarray, shape (G,)
    probabilities : ndarray, shape (G,)
        To be filled in.
    """
    centres, total_mass, deviations = posterior.centres, posterior.total, posterior.deviations
    mass, spread, tolerance = posterior.mass, posterior.spread, posterior.tolerance
    n_classes, n_deviations = external_field.shape[0], deviations.shape[0]
    odds = np.empty((n_classes, n_deviations))
    largest, total = np.empty((2, n_deviations))
    tilt, mean = np.empty((2, n_classes))
    probabilities[:] = 0.0
    first = 0
    while first < n_pieces:
        last = end_of_run(first, n_pieces, stops, support, centres, total_mass, spread, tolerance)
        average_run(first, last, stops, support, centres, total_mass, tilt, mean)
        for g in range(n_classes):
            tilt[g] += external_field[g]
        fill_odds(tilt, mean, deviations, odds, largest, total)
        add_means(mass, start_of(first, stops), stops[last - 1], odds, total, probabilities)
        first = last


@njit(cache=True, nogil=True, error_model="numpy")
def fill_odds(offsets, slopes, values, odds, largest, total):
    """Fill in the odds of each class, exp(offset + slope x value), and their total.

    Relative to those of the likeliest class. All in one function: a call costs more than this.
    """
    n_classes, n_values = odds.shape
    for b in range(n_values):
        largest[b] = offsets[0] + slopes[0] * values[b]
        total[b] = 0.0
    for g in range(1, n_classes):
        offset, slope = offsets[g], slopes[g]
        for b in range(n_values):
            largest[b] = max(largest[b], offset + slope * values[b])
    for g in range(n_classes):
        offset, slope = offsets[g], slopes[g]
        for b in range(n_values):
            odds[g, b] = exp_of(offset + slope * values[b] - largest[b])
            total[b] += odds[g, b]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def add_means(mass, start, stop, odds, total, probabilities):
    """Add odds / total, weighted by the mass between two scales."""
    n_classes, n_values = odds.shape
    for g in range(n_classes):
        mean = 0.0
        for b in range(n_values):
            mean += (mass[stop, b] - mass[start, b]) * odds[g, b] / total[b]
        probabilities[g] += mean


@register_jitable(inline="always")
def start_of(piece, stops):
    """Return the first scale of a piece."""
    return stops[piece - 1] if piece > 0 else 0


@njit(cache=True, nogil=True, error_model="numpy")
def end_of_run(first, n_pieces, stops, support, centres, total, spread, tolerance):
    """Find the first piece at which beta x support differs too much from the run's first."""
    start = start_of(first, stops)
    centre = centres[start]
    largest = 0.0
    last = first + 1
    while last < n_pieces:
        other_centre = centres[stops[last - 1]]
        for g in range(support.shape[1]):
            change = abs(support[last, g] - support[first, g]) * spread
            tilt = abs(other_centre * support[last, g] - centre * support[first, g])
            largest = max(largest, change + tilt)
        if (total[stops[last]] - total[start]) * largest**2 > tolerance:
            break
        last += 1
    return last


@njit(cache=True, nogil=True, error_model="numpy")
def average_run(first, last, stops, support, centres, total, tilt, mean):
    """Average centre x support, and the support, over the pieces of a run by their mass."""
    start = start_of(first, stops)
    run_mass = total[stops[last - 1]] - total[start]
    tilt[:] = 0.0
    mean[:] = 0.0
    for piece in range(first, last):
        share = (total[stops[piece]] - total[start]) / run_mass if last > first + 1 else 1.0
        centre = centres[start]
        for g in range(mean.shape[0]):
            mean[g] += share * support[piece, g]
            tilt[g] += share * centre * support[piece, g]
        start = stops[piece]
