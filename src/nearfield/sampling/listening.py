"""How much training points listen to a new point under the radius kernel, in tables.

It jumps with the number of points that a training point reaches: the first few jumps are kept,
the later, small ones become a line over each bin of scales.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

N_JUMPS = 8
"""The jumps of a point that are kept; the next one changes what it listens to by 1/9 - 1/10."""


class Listening(NamedTuple):
    """How much each training point listens to a new one.

    Attributes
    ----------
    gains : ndarray, shape (n, n_bins)
        How much more within reach than beyond: the mean in a bin, or up to the first jump there.
    slopes : ndarray, shape (n, n_bins)
        By how much that changes over a bin, where there is no jump.
    outside, outside_slopes : ndarray, shape (n, n_bins)
        How much beyond reach: the mean in a bin, and by how much that changes over it.
    jump_scales, jump_sizes : ndarray, shape (n, N_JUMPS)
        At which scales within a bin, rising, and by how much the gain jumps. A jump that is not
        there has the number of scales for its scale.
    """

    gains: NDArray[np.float64]
    slopes: NDArray[np.float64]
    outside: NDArray[np.float64]
    outside_slopes: NDArray[np.float64]
    jump_scales: NDArray[np.int64]
    jump_sizes: NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_listening(distances, scales, weights, bins, epsilon, listening):
    r"""Tabulate how much each training point listens to a new one.

    .. math:: \frac{1}{T_j + 1} \text{ within reach, } \quad
              \frac{\epsilon}{T_j + \epsilon} \text{ beyond, } \qquad
              T_j = \sum_{l \ne j} \kappa(d_{jl})

    The gain is the difference of the two. `weights` are the masses of the scales, `bins` where
    each bin of them starts and the last one ends.
    """
    n_points, n_scales = distances.shape[0], scales.shape[0]
    others = np.empty(n_points - 1)
    gain, outside = np.empty(n_scales), np.empty(n_scales)
    listening.jump_scales[:] = n_scales
    for j in range(n_points):
        others[:j] = distances[j, :j]
        others[j:] = distances[j, j + 1 :]
        others.sort()
        n_inside, n_jumps = 0, 0
        jump_scales, jump_sizes = listening.jump_scales[j], listening.jump_sizes[j]
        for b in range(bins.shape[0] - 1):
            start, stop = bins[b], bins[b + 1]
            first_jump = n_jumps
            for s in range(start, stop):
                n_before = n_inside
                while n_inside < n_points - 1 and others[n_inside] < scales[s]:
                    n_inside += 1
                total = n_inside + epsilon * (n_points - 1 - n_inside)
                outside[s] = epsilon / (total + epsilon)
                gain[s] = 1.0 / (total + 1.0) - outside[s]
                if s > start and n_before < N_JUMPS and n_inside > n_before:
                    jump_scales[n_jumps] = s
                    n_jumps += 1
            mean = mean_of(outside, weights, start, stop)
            listening.outside[j, b] = mean
            listening.outside_slopes[j, b] = slope_of(outside, weights, start, stop, mean)
            end = jump_scales[first_jump] if n_jumps > first_jump else stop
            level = mean_of(gain, weights, start, end)
            listening.gains[j, b] = level
            for jump in range(first_jump, n_jumps):
                end = jump_scales[jump + 1] if jump + 1 < n_jumps else stop
                next_level = mean_of(gain, weights, jump_scales[jump], end)
                jump_sizes[jump] = next_level - level
                level = next_level
            if n_jumps == first_jump:
                listening.slopes[j, b] = slope_of(gain, weights, start, stop, level)


@register_jitable
def mean_of(values, weights, start, stop):
    """Average values by weight over a stretch of scales."""
    total, mass = 0.0, 0.0
    for s in range(start, stop):
        total += weights[s] * values[s]
        mass += weights[s]
    return total / mass


@register_jitable
def slope_of(values, weights, start, stop, mean):
    """Fit a line to values over a stretch of scales: by how much it rises, end to end."""
    mass = weights[start:stop].sum()
    moment, variance, before = 0.0, 0.0, 0.0
    for s in range(start, stop):
        offset = (before + 0.5 * weights[s]) / mass - 0.5
        moment += weights[s] * offset * (values[s] - mean)
        variance += weights[s] * offset**2
        before += weights[s]
    return moment / variance if variance > 0.0 else 0.0
