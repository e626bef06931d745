"""Averages over the posterior of pieces on which the support is a line in the mass.

As in `nearfield.sampling.steps`, pieces between which the support changes little are joined to
runs. Here the probabilities of many runs are computed at once, one lane of a vector each.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield._vector import ANY_ORDER
from nearfield.sampling.steps import exponential, gather_run, start_of

_N_LANES = 128
_STEP = 32  # of lanes that are used: whole vectors, as many as a loop takes at once


class Pieces(NamedTuple):
    """Stretches of scales on which the support of a new point is a line.

    Attributes
    ----------
    stops : ndarray of int, shape (most_pieces,)
        Where each piece ends: the number of the first scale beyond.
    support : ndarray, shape (most_pieces, G)
        Its mean over each piece.
    rises : ndarray, shape (most_pieces, G)
        By how much it rises over each.
    bins : ndarray of int, shape (most_pieces,)
        The bin of each piece; -1 where the support is a line and nothing else.
    covariances : ndarray, shape (n_bins, G, G)
        That of the support around the lines, by bin; what is above the diagonal is not read.
    """

    stops: NDArray[np.int64]
    support: NDArray[np.float64]
    rises: NDArray[np.float64]
    bins: NDArray[np.int64]
    covariances: NDArray[np.float64]


class Runs(NamedTuple):
    """Some runs side by side; the support is level + tilt x beta, give or take its covariance.

    Attributes
    ----------
    levels, tilts : ndarray, shape (G, n_lanes)
    covariances : ndarray, shape (G, G, n_lanes)
    mass : ndarray, shape (n_betas, n_lanes)
    shares, terms : ndarray, shape (G, n_lanes)
        Room to work in.
    largest, larger, total, mean : ndarray, shape (n_lanes,)
        The same.
    """

    levels: NDArray[np.floating]
    tilts: NDArray[np.floating]
    covariances: NDArray[np.floating]
    mass: NDArray[np.floating]
    shares: NDArray[np.floating]
    terms: NDArray[np.floating]
    largest: NDArray[np.floating]
    larger: NDArray[np.floating]
    total: NDArray[np.floating]
    mean: NDArray[np.floating]


@register_jitable
def room_for_pieces(most_pieces, n_bins, n_classes):
    """Make room for pieces."""
    stops, bins = np.empty((2, most_pieces), dtype=np.int64)
    support, rises = np.empty((2, most_pieces, n_classes))
    return Pieces(stops, support, rises, bins, np.empty((n_bins, n_classes, n_classes)))


@register_jitable
def room_for_runs(n_classes, betas):
    """Make room for runs, with as many digits as betas have."""
    of_classes = np.zeros((4, n_classes, _N_LANES), dtype=betas.dtype)
    of_lanes = np.zeros((4, _N_LANES), dtype=betas.dtype)
    return Runs(
        of_classes[0],
        of_classes[1],
        np.zeros((n_classes, n_classes, _N_LANES), dtype=betas.dtype),
        np.zeros((betas.shape[0], _N_LANES), dtype=betas.dtype),
        of_classes[2],
        of_classes[3],
        of_lanes[0],
        of_lanes[1],
        of_lanes[2],
        of_lanes[3],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def average_lines(n_pieces, pieces, posterior, external_field, runs, probabilities):
    """Average the class probabilities of one new point over the posterior.

    Parameters
    ----------
    n_pieces : int
    pieces : Pieces
    posterior : StepMass
    external_field : ndarray, shape (G,)
    runs : Runs
        Room for them.
    probabilities : ndarray, shape (G,)
        To be filled in.
    """
    probabilities[:] = 0.0
    first = 0
    while first < n_pieces:
        first, n_lanes = fill_lanes(first, n_pieces, pieces, posterior, runs)
        add_lanes(n_lanes, runs, posterior.betas, external_field, probabilities)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_lanes(first, n_pieces, pieces, posterior, runs):
    """Join pieces to as many runs as there are lanes; return where to go on, and lanes in use."""
    stops, support, rises, bins, bin_covariances = pieces
    levels, tilts, covariances, lane_mass = runs.levels, runs.tilts, runs.covariances, runs.mass
    mass, sums, tolerance = posterior.mass, posterior.sums, posterior.tolerance
    n_classes, n_betas = support.shape[1], mass.shape[1]
    mean, slope, gaps = np.empty((3, n_classes))
    covariance = np.empty((n_classes, n_classes))
    lane = 0
    while lane < _N_LANES and first < n_pieces:
        last, mean_beta = gather_run(
            first, n_pieces, stops, support, sums, tolerance, mean, slope, covariance, gaps
        )
        start, stop = start_of(first, stops), stops[last - 1]
        add_rises(first, last, start, stops, rises, bins, bin_covariances, sums, covariance)
        for b in range(n_betas):
            lane_mass[b, lane] = mass[stop, b] - mass[start, b]
        for g in range(n_classes):
            levels[g, lane] = mean[g] - slope[g] * mean_beta
            tilts[g, lane] = slope[g]
            for a in range(g + 1):
                covariances[g, a, lane] = covariance[g, a]
                covariances[a, g, lane] = covariance[g, a]
        lane += 1
        first = last
    n_lanes = (lane + _STEP - 1) // _STEP * _STEP
    for b in range(n_betas):
        for spare in range(lane, n_lanes):
            lane_mass[b, spare] = 0.0
    return first, n_lanes


@register_jitable(inline="always")
def add_rises(first, last, start, stops, rises, bins, bin_covariances, sums, covariance):
    """Add to the covariance of a run, below and on the diagonal, that within its pieces."""
    factor = 1.0 / (sums[stops[last - 1], 0] - sums[start, 0])
    for piece in range(first, last):
        stop, b = stops[piece], bins[piece]
        if b >= 0:
            share = factor * (sums[stop, 0] - sums[start, 0])
            for g in range(rises.shape[1]):
                rise = rises[piece, g] / 12.0
                for a in range(g + 1):
                    within = rise * rises[piece, a] + bin_covariances[b, g, a]
                    covariance[g, a] += share * within
        start = stop


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def add_lanes(n_lanes, runs, betas, external_field, probabilities):
    r"""Add the class probabilities of runs, by mass.

    With a support of covariance C, to second order

    .. math:: \mathrm{E}\,p_g \approx p_g \Big(1 + \frac{\beta^2}{2}
              \big(q_g - \sum_a p_a q_a\big)\Big), \qquad q_g = C_{gg} - 2 \sum_a C_{ga} p_a
    """
    levels, tilts, covariances, mass, shares, terms, largest, larger, total, mean = runs
    n_classes, kind = external_field.shape[0], betas.dtype.type
    one, two = kind(1.0), kind(2.0)
    for b in range(betas.shape[0]):
        beta = betas[b]
        half_square = kind(0.5) * beta * beta
        for lane in range(n_lanes):
            largest[lane] = kind(-np.inf)
            total[lane] = kind(0.0)
            mean[lane] = kind(0.0)
        for g in range(n_classes):
            alpha = kind(external_field[g])
            for lane in range(n_lanes):
                logit = alpha + beta * (levels[g, lane] + tilts[g, lane] * beta)
                shares[g, lane] = logit
                # Not in place, which would be a store under a condition: those are slow.
                larger[lane] = max(largest[lane], logit)
            for lane in range(n_lanes):
                largest[lane] = larger[lane]
        for g in range(n_classes):
            for lane in range(n_lanes):
                odds = exponential(shares[g, lane] - largest[lane])
                shares[g, lane] = odds
                total[lane] += odds
        for lane in range(n_lanes):
            total[lane] = one / total[lane]
        for g in range(n_classes):
            for lane in range(n_lanes):
                shares[g, lane] *= total[lane]
                terms[g, lane] = covariances[g, g, lane]
        for g in range(n_classes):
            for a in range(n_classes):
                for lane in range(n_lanes):
                    terms[g, lane] -= two * covariances[g, a, lane] * shares[a, lane]
            for lane in range(n_lanes):
                mean[lane] += shares[g, lane] * terms[g, lane]
        for g in range(n_classes):
            of_class = kind(0.0)
            for lane in range(n_lanes):
                bent = one + half_square * (terms[g, lane] - mean[lane])
                of_class += mass[b, lane] * shares[g, lane] * bent
            probabilities[g] += of_class
