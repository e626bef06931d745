"""How much training points listen to a new point under the radius kernel, in tables.

It jumps with the number of points that a training point reaches. At few scales it is known at each
of them. Over many, the first few jumps are kept, and the later, small ones become a line over each
bin of scales; the lines of neighbouring bins meet.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray


class Hats(NamedTuple):
    """Piecewise linear functions of the scale, which bend where one bin ends and the next starts.

    Attributes
    ----------
    bins : ndarray of int, shape (n_scales,)
        The bin of each scale.
    rises : ndarray, shape (n_scales,)
        Where in its bin a scale lies, from zero to one.
    weights : ndarray, shape (n_scales,)
        The mass of each scale.
    """

    bins: NDArray[np.int32]
    rises: NDArray[np.float64]
    weights: NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def listening_at(distances, scales, epsilon, gains, outside):
    r"""Tabulate how much each training point listens to a new one, at each scale.

    .. math:: \frac{1}{T_j + 1} \text{ within reach, } \quad
              \frac{\epsilon}{T_j + \epsilon} \text{ beyond, } \qquad
              T_j = \sum_{l \ne j} \kappa(d_{jl})

    Fills in the gain, which is the difference of the two, and what it is beyond reach; both of
    shape (n, n_scales).
    """
    others = np.empty(distances.shape[0] - 1)
    for j in range(distances.shape[0]):
        sort_others(distances[j], j, others)
        fill_gains(others, scales, epsilon, gains[j], outside[j])


@njit(cache=True, nogil=True, error_model="numpy")
def listening_over(
    distances, labels, scales, hats, epsilon, jump_scales, jump_sizes, moments, outside
):
    """Tabulate the same over bins of scales: the jumps, and the moments of what is left.

    Parameters
    ----------
    distances : ndarray, shape (n, n)
    labels : ndarray of int, shape (n,)
    scales : ndarray, shape (n_scales,)
        Rising.
    hats : Hats
    epsilon : float
    jump_scales, jump_sizes : ndarray, shape (n, n_jumps)
        To be filled in: at which scales, rising, and by how much the gain jumps. A jump that is
        not there has the number of scales for its scale.
    moments : ndarray, shape (n, n_bins + 1)
        To be filled in: sums over scales of the mass times the function which is one at one end
        of a bin and zero at all others, times the gain without its jumps.
    outside : ndarray, shape (n_bins, 2, G)
        To be filled in: sums over the scales of a bin of the mass, and of the mass times how far
        from its middle a scale lies, times how much all points of
        a class listen to one beyond reach.
    """
    n_scales = scales.shape[0]
    others = np.empty(distances.shape[0] - 1)
    gain, beyond = np.empty(n_scales), np.empty(n_scales)
    jump_scales[:] = n_scales
    for j in range(distances.shape[0]):
        sort_others(distances[j], j, others)
        fill_gains(others, scales, epsilon, gain, beyond)
        take_jumps(gain, jump_scales[j], jump_sizes[j])
        add_moments(gain, hats, moments[j])
        for s in range(n_scales):
            weighted = hats.weights[s] * beyond[s]
            outside[hats.bins[s], 0, labels[j]] += weighted
            outside[hats.bins[s], 1, labels[j]] += weighted * (hats.rises[s] - 0.5)


@register_jitable
def sort_others(row, j, others):
    """Sort the distances of a training point to the others."""
    others[:j] = row[:j]
    others[j:] = row[j + 1 :]
    others.sort()


@register_jitable
def fill_gains(others, scales, epsilon, gain, outside):
    """Fill in how much one training point listens to a new one, at each scale."""
    n_others, n_inside = others.shape[0], 0
    for s in range(scales.shape[0]):
        while n_inside < n_others and others[n_inside] < scales[s]:
            n_inside += 1
        total = n_inside + epsilon * (n_others - n_inside)
        outside[s] = epsilon / (total + epsilon)
        gain[s] = 1.0 / (total + 1.0) - outside[s]


@register_jitable
def take_jumps(gain, jump_scales, jump_sizes):
    """Write down the jumps of a gain while few points are in reach, and level them out of it."""
    most_jumps, n_jumps, taken = jump_scales.shape[0], 0, 0.0
    before = gain[0]
    for s in range(1, gain.shape[0]):
        now = gain[s]
        if now != before and (most_jumps + 0.5) * before > 1.0:
            jump_scales[n_jumps] = s
            jump_sizes[n_jumps] = now - before
            taken += now - before
            n_jumps += 1
        gain[s] = now - taken
        before = now


@register_jitable
def add_moments(values, hats, moments):
    """Add up values by mass and by how near to each end of their bin they are."""
    for s in range(values.shape[0]):
        b, weighted = hats.bins[s], hats.weights[s] * values[s]
        moments[b] += weighted * (1.0 - hats.rises[s])
        moments[b + 1] += weighted * hats.rises[s]
