"""Averages over the posterior where the support is a step function of the scale.

Scales are numbered in rising order. A piece is a stretch of scales on which the support of a new
point is constant. Pieces between which it changes little are joined to runs. A run is averaged by
the mean of its support, its regression on beta, and the covariance that this leaves: the error is
of third order in what changes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

from nearfield._vector import ANY_ORDER, exp_of
from nearfield.sampling._vector32 import exp32_of


class StepMass(NamedTuple):
    """The posterior, gathered by scale.

    Attributes
    ----------
    scales : ndarray, shape (n_scales,)
        Rising.
    betas : ndarray, shape (n_betas,)
        A grid; probabilities are computed to as many digits as it has.
    mass : ndarray, shape (n_scales + 1, n_betas)
        The posterior mass of the scales before each, on the grid.
    sums : ndarray, shape (n_scales + 1, 3)
        The same in all: the mass, and with it the sums of beta and of its square.
    tolerance : float
        The largest mass of a run times the cube of the change of beta x support within it.
    """

    scales: NDArray[np.float64]
    betas: NDArray[np.floating]
    mass: NDArray[np.floating]
    sums: NDArray[np.float64]
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
    external_field : ndarray, shape (G,)
    probabilities : ndarray, shape (G,)
        To be filled in.
    """
    mass, sums, betas = posterior.mass, posterior.sums, posterior.betas
    n_classes, n_betas = external_field.shape[0], betas.shape[0]
    shares = np.empty((n_classes, n_betas), dtype=betas.dtype)
    room = np.empty((n_classes + 2, n_betas), dtype=betas.dtype)
    mean, slope, gaps = np.empty((3, n_classes))
    tolerance = posterior.tolerance
    covariance = np.empty((n_classes, n_classes))
    probabilities[:] = 0.0
    first = 0
    while first < n_pieces:
        last, mean_beta = gather_run(
            first, n_pieces, stops, support, sums, tolerance, mean, slope, covariance, gaps
        )
        fill_shares(mean, slope, mean_beta, external_field, betas, shares, room)
        if last > first + 1:
            add_curvature(covariance, betas, shares, room)
        start, stop = start_of(first, stops), stops[last - 1]
        add_means(mass[start], mass[stop], shares, room[0], probabilities)
        first = last


@njit(cache=True, nogil=True, error_model="numpy")
def gather_run(first, n_pieces, stops, support, sums, tolerance, mean, slope, covariance, gaps):
    r"""Join pieces until beta x support has changed too much.

    Fills in the line :math:`\bar h + s (\beta - \bar\beta)` through the support of the run, and
    the covariance of the support around it.

    Returns
    -------
    last : int
        The first piece beyond the run.
    mean_beta : float
    """
    n_classes, n_scales = support.shape[1], sums.shape[0] - 1
    usual_beta = np.sqrt(sums[n_scales, 2] / sums[n_scales, 0])
    start, stop = start_of(first, stops), stops[first]
    for g in range(n_classes):  # loops: slices would cost more than all the rest of a short run
        mean[g] = 0.0
        slope[g] = 0.0
        for a in range(n_classes):
            covariance[g, a] = 0.0
    largest = 0.0
    last = first + 1
    while last < n_pieces:
        after = stops[last]
        for g in range(n_classes):
            gaps[g] = support[last, g] - support[first, g]
            largest = max(largest, abs(gaps[g]))
        if (sums[after, 0] - sums[start, 0]) * (largest * usual_beta) ** 3 > tolerance:
            break
        mass, of_beta = sums[after, 0] - sums[stop, 0], sums[after, 1] - sums[stop, 1]
        for g in range(n_classes):
            weighted = mass * gaps[g]
            mean[g] += weighted
            slope[g] += of_beta * gaps[g]
            for a in range(g + 1):
                covariance[g, a] += weighted * gaps[a]
        stop = after
        last += 1
    mean_beta = 0.0
    if last > first + 1:
        mass = sums[stop, 0] - sums[start, 0]
        mean_beta = (sums[stop, 1] - sums[start, 1]) / mass
        variance = (sums[stop, 2] - sums[start, 2]) / mass - mean_beta**2
        center(mass, mean_beta, variance, sums[n_scales], mean, slope, covariance)
    for g in range(n_classes):
        mean[g] += support[first, g]
    return last, mean_beta


@register_jitable
def center(mass, mean_beta, variance, all_sums, mean, slope, covariance):
    """Turn sums over a run into its mean, the slope in beta, and the covariance left by it."""
    n_classes = mean.shape[0]
    overall = all_sums[2] / all_sums[0] - (all_sums[1] / all_sums[0]) ** 2
    # Betas that are all but equal say nothing about a slope: with the floor it is next to none.
    spread = max(variance, 0.25 * overall)
    share, steepness = 1.0 / mass, 1.0 / spread if spread > 0.0 else 0.0
    for g in range(n_classes):
        mean[g] *= share
        slope[g] = (slope[g] * share - mean_beta * mean[g]) * steepness
    for g in range(n_classes):
        for a in range(g + 1):
            explained = slope[g] * slope[a] * variance
            covariance[g, a] = covariance[g, a] * share - mean[g] * mean[a] - explained
            covariance[a, g] = covariance[g, a]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def fill_shares(mean, slope, mean_beta, external_field, betas, shares, room):
    """Fill in the probability of each class at each beta, for a support on a line."""
    n_classes, n_betas = shares.shape
    kind = betas.dtype.type
    largest, total = room[0], room[1]
    for b in range(n_betas):
        largest[b] = kind(-np.inf)
        total[b] = kind(0.0)
    for g in range(n_classes):
        alpha = kind(external_field[g])
        tilt, level = kind(slope[g]), kind(mean[g] - slope[g] * mean_beta)
        for b in range(n_betas):
            shares[g, b] = alpha + betas[b] * (level + tilt * betas[b])
            largest[b] = max(largest[b], shares[g, b])
    for g in range(n_classes):
        for b in range(n_betas):
            shares[g, b] = exponential(shares[g, b] - largest[b])
            total[b] += shares[g, b]
    for b in range(n_betas):
        total[b] = kind(1.0) / total[b]
    for g in range(n_classes):
        for b in range(n_betas):
            shares[g, b] *= total[b]


def exponential(x):
    """Evaluate exp(x), x <= 0, to as many digits as x has."""
    return np.exp(x)  # compiled code has what follows in its place


@overload(exponential)
def _exponential(x):
    if x == types.float32:
        return lambda x: exp32_of(x)
    return lambda x: exp_of(x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def add_curvature(covariance, betas, shares, room):
    r"""Correct the probabilities of a run for how its logits vary, to second order.

    .. math:: \mathrm{E}\,p_g \approx p_g \Big(1 + \frac{\beta^2}{2}
              \big(q_g - \sum_a p_a q_a\big)\Big), \qquad q_g = C_{gg} - 2 \sum_a C_{ga} p_a

    with C the covariance of the support.
    """
    n_classes, n_betas = shares.shape
    kind = betas.dtype.type
    mean = room[n_classes]
    mean[:] = kind(0.0)
    for g in range(n_classes):
        row = room[g]
        row[:] = kind(covariance[g, g])
        for a in range(n_classes):
            twice = kind(2.0 * covariance[g, a])
            for b in range(n_betas):
                row[b] -= twice * shares[a, b]
        for b in range(n_betas):
            mean[b] += shares[g, b] * row[b]
    for g in range(n_classes):
        for b in range(n_betas):
            half_square = kind(0.5) * betas[b] * betas[b]
            shares[g, b] *= kind(1.0) + half_square * (room[g, b] - mean[b])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def add_means(mass_before, mass_after, shares, weights, probabilities):
    """Add shares, weighted by the mass between two scales."""
    n_classes, n_betas = shares.shape
    for b in range(n_betas):
        weights[b] = mass_after[b] - mass_before[b]
    for g in range(n_classes):
        mean = shares.dtype.type(0.0)
        for b in range(n_betas):
            mean += weights[b] * shares[g, b]
        probabilities[g] += mean


@register_jitable(inline="always")
def start_of(piece, stops):
    """Return the first scale of a piece."""
    return stops[piece - 1] if piece > 0 else 0
