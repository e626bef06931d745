"""Averages over the posterior where the support is a step function of the scale.

Scales are numbered in rising order. A piece is a stretch of scales on which the support of a new
point is constant. Pieces between which it changes little are joined to runs. A run is averaged by
the mean of its support, its regression on beta, and the covariance that this leaves: the error is
of third order in what changes.
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
    betas : ndarray, shape (n_betas,)
        A grid.
    mass : ndarray, shape (n_scales + 1, n_betas)
        The posterior mass of the scales before each, on the grid.
    sums : ndarray, shape (3, n_scales + 1)
        The same in all: the mass, and with it the sums of beta and of its square.
    tolerance : float
        The largest mass of a run times the cube of the change of beta x support within it.
    """

    scales: NDArray[np.float64]
    betas: NDArray[np.float64]
    mass: NDArray[np.float64]
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
    shares = np.empty((n_classes, n_betas))
    room = np.empty((n_classes + 2, n_betas))
    mean, slope = np.empty((2, n_classes))
    covariance = np.empty((n_classes, n_classes))
    probabilities[:] = 0.0
    first = 0
    while first < n_pieces:
        last, mean_beta = gather_run(
            first, n_pieces, stops, support, sums, posterior.tolerance, mean, slope, covariance
        )
        fill_shares(mean, slope, mean_beta, external_field, betas, shares, room)
        if last > first + 1:
            add_curvature(covariance, betas, shares, room)
        add_means(mass, start_of(first, stops), stops[last - 1], shares, probabilities)
        first = last


@njit(cache=True, nogil=True, error_model="numpy")
def gather_run(first, n_pieces, stops, support, sums, tolerance, mean, slope, covariance):
    r"""Join pieces until beta x support has changed too much.

    Fills in the line :math:`\bar h + s (\beta - \bar\beta)` through the support of the run, and
    the covariance of the support around it.

    Returns
    -------
    last : int
        The first piece beyond the run.
    mean_beta : float
    """
    n_classes = support.shape[1]
    start = start_of(first, stops)
    usual_beta = np.sqrt(sums[2, -1] / sums[0, -1])
    mean[:] = 0.0
    slope[:] = 0.0
    covariance[:] = 0.0
    largest = 0.0
    last = first + 1
    while last < n_pieces:
        before, after = stops[last - 1], stops[last]
        for g in range(n_classes):
            largest = max(largest, abs(support[last, g] - support[first, g]))
        if (sums[0, after] - sums[0, start]) * (largest * usual_beta) ** 3 > tolerance:
            break
        mass, of_beta = sums[0, after] - sums[0, before], sums[1, after] - sums[1, before]
        for g in range(n_classes):
            gap = support[last, g] - support[first, g]
            mean[g] += mass * gap
            slope[g] += of_beta * gap
            for a in range(g + 1):
                covariance[g, a] += mass * gap * (support[last, a] - support[first, a])
        last += 1
    stop = stops[last - 1]
    mass, mean_beta = sums[0, stop] - sums[0, start], 0.0
    if last > first + 1:
        mean_beta = (sums[1, stop] - sums[1, start]) / mass
        variance = (sums[2, stop] - sums[2, start]) / mass - mean_beta**2
        center(mass, mean_beta, variance, sums[:, -1], mean, slope, covariance)
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
    for g in range(n_classes):
        mean[g] /= mass
        slope[g] = (slope[g] / mass - mean_beta * mean[g]) / spread if spread > 0.0 else 0.0
    for g in range(n_classes):
        for a in range(g + 1):
            explained = slope[g] * slope[a] * variance
            covariance[g, a] = covariance[g, a] / mass - mean[g] * mean[a] - explained
            covariance[a, g] = covariance[g, a]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_shares(mean, slope, mean_beta, external_field, betas, shares, room):
    """Fill in the probability of each class at each beta, for a support on a line."""
    n_classes, n_betas = shares.shape
    largest, total = room[0], room[1]
    for b in range(n_betas):
        largest[b] = -np.inf
        total[b] = 0.0
    for g in range(n_classes):
        for b in range(n_betas):
            on_line = mean[g] + slope[g] * (betas[b] - mean_beta)
            shares[g, b] = external_field[g] + betas[b] * on_line
            largest[b] = max(largest[b], shares[g, b])
    for g in range(n_classes):
        for b in range(n_betas):
            shares[g, b] = exp_of(shares[g, b] - largest[b])
            total[b] += shares[g, b]
    for g in range(n_classes):
        for b in range(n_betas):
            shares[g, b] /= total[b]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def add_curvature(covariance, betas, shares, room):
    r"""Correct the probabilities of a run for how its logits vary, to second order.

    .. math:: \mathrm{E}\,p_g \approx p_g \Big(1 + \frac{\beta^2}{2}
              \big(q_g - \sum_a p_a q_a\big)\Big), \qquad q_g = C_{gg} - 2 \sum_a C_{ga} p_a

    with C the covariance of the support.
    """
    n_classes, n_betas = shares.shape
    mean = room[n_classes]
    mean[:] = 0.0
    for g in range(n_classes):
        row = room[g]
        row[:] = covariance[g, g]
        for a in range(n_classes):
            twice = 2.0 * covariance[g, a]
            for b in range(n_betas):
                row[b] -= twice * shares[a, b]
        for b in range(n_betas):
            mean[b] += shares[g, b] * row[b]
    for g in range(n_classes):
        for b in range(n_betas):
            shares[g, b] *= 1.0 + 0.5 * betas[b] ** 2 * (room[g, b] - mean[b])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def add_means(mass, start, stop, shares, probabilities):
    """Add shares, weighted by the mass between two scales."""
    n_classes, n_betas = shares.shape
    for g in range(n_classes):
        mean = 0.0
        for b in range(n_betas):
            mean += (mass[stop, b] - mass[start, b]) * shares[g, b]
        probabilities[g] += mean


@register_jitable(inline="always")
def start_of(piece, stops):
    """Return the first scale of a piece."""
    return stops[piece - 1] if piece > 0 else 0
