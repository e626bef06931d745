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
    """How much each training point listens to a new one; arrays as in `RadiusTables`.

    `outside` and `outside_slopes` are not summed over classes yet: shape (n_bins, n).
    """

    gains: NDArray[np.float64]
    slopes: NDArray[np.float64]
    outside: NDArray[np.float64]
    outside_slopes: NDArray[np.float64]
    jump_scales: NDArray[np.int64]
    jump_sizes: NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def fill_listening(distances, scales, weights, offsets, bins, epsilon, listening):
    r"""Tabulate how much each training point listens to a new one.

    .. math:: \frac{1}{T_j + 1} \text{ within reach, } \quad
              \frac{\epsilon}{T_j + \epsilon} \text{ beyond, } \qquad
              T_j = \sum_{l \ne j} \kappa(d_{jl})

    The gain is the difference of the two. `offsets` are log scales around their mean in a bin.
    A jump that is not there has the number of scales for its scale.
    """
    n_points, n_scales = distances.shape[0], scales.shape[0]
    others = np.empty(n_points - 1)
    gain, outside = np.empty(n_scales), np.empty(n_scales)
    listening.jump_scales[:] = n_scales
    listening.jump_sizes[:] = 0.0
    for j in range(n_points):
        others[:j] = distances[j, :j]
        others[j:] = distances[j, j + 1 :]
        others.sort()
        n_inside, n_jumps = 0, 0
        for b in range(bins.shape[0] - 1):
            first, n_jumps_before = bins[b], n_jumps
            for s in range(bins[b], bins[b + 1]):
                n_before = n_inside
                while n_inside < n_points - 1 and others[n_inside] < scales[s]:
                    n_inside += 1
                if s > bins[b] and n_before < N_JUMPS and n_inside > n_before:
                    note_level(listening, b, j, n_jumps, n_jumps_before, gain, weights, first, s)
                    listening.jump_scales[j * N_JUMPS + n_jumps] = s
                    n_jumps += 1
                    first = s
                total = n_inside + epsilon * (n_points - 1 - n_inside)
                outside[s] = epsilon / (total + epsilon)
                gain[s] = 1.0 / (total + 1.0) - outside[s]
            inside = slice(bins[b], bins[b + 1])
            listening.outside[b, j], listening.outside_slopes[b, j] = line_through(
                outside[inside], weights[inside], offsets[inside]
            )
            if n_jumps > n_jumps_before:
                stop = bins[b + 1]
                note_level(listening, b, j, n_jumps, n_jumps_before, gain, weights, first, stop)
            else:
                listening.gains[b, j], listening.slopes[b, j] = line_through(
                    gain[inside], weights[inside], offsets[inside]
                )


@register_jitable
def note_level(listening, b, j, n_jumps, n_jumps_before, gain, weights, first, stop):
    """Note the mean gain between two jumps: that of the bin at first, then by how much it rose."""
    level = np.dot(gain[first:stop], weights[first:stop]) / weights[first:stop].sum()
    if n_jumps == n_jumps_before:
        listening.gains[b, j] = level
        listening.slopes[b, j] = 0.0
        return
    so_far = listening.gains[b, j]
    for number in range(n_jumps_before, n_jumps - 1):
        so_far += listening.jump_sizes[j * N_JUMPS + number]
    listening.jump_sizes[j * N_JUMPS + n_jumps - 1] = level - so_far


@register_jitable
def line_through(values, weights, offsets):
    """Return the mean of values and their slope in the offsets, whose mean is zero."""
    mean = np.dot(values, weights) / weights.sum()
    moment, variance = 0.0, 0.0
    for s in range(values.shape[0]):
        moment += weights[s] * offsets[s] * (values[s] - mean)
        variance += weights[s] * offsets[s] ** 2
    return mean, moment / variance if variance > 0.0 else 0.0
