"""The support of new points under k nearest neighbours, at all k at once.

A neighbour counts from some k on; points that tie share a stretch of places, over which what they
count rises linearly. So k times the support is a sum of ramps in k, and two running sums over
their corners give it for every k. Distances that differ by rounding tie, as in the weights of the
training points.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.field.weights import TIE_TOLERANCE
from nearfield.sampling.selection import bound_of_smallest, places_below, sorted_below
from nearfield.sampling.steps import average_pieces

BELOW = 1.0 - TIE_TOLERANCE
"""Times a distance: what is not closer ties with it."""

ABOVE = 1.0 + 4.0 * TIE_TOLERANCE
"""Times a distance: past all that may tie with it."""


@njit(cache=True, nogil=True, error_model="numpy")
def nearest_others(distances, nearest, n_as_near):
    """Sort the distances of each training point to the others; keep the smallest.

    Fills in `nearest`, shape (n, k_max), and `n_as_near`, shape (n,): how many of the others are
    no farther than the last that is kept, or tie with it.
    """
    n_points, k_max = nearest.shape
    others = np.empty(n_points - 1)
    for j in range(n_points):
        others[:j] = distances[j, :j]
        others[j:] = distances[j, j + 1 :]
        others.sort()
        nearest[j] = others[:k_max]
        n_as_near[j] = end_of_ties(others, k_max - 1)


@register_jitable
def end_of_ties(rising, place):
    """Find the first of rising distances, past a place, that does not tie with the one before."""
    place += 1
    while place < rising.shape[0] and rising[place] * BELOW <= rising[place - 1]:
        place += 1
    return place


@njit(cache=True, nogil=True, error_model="numpy")
def neighbor_support(distances, labels, ks, nearest, n_as_near, is_joint, support):
    """Fill in the support at each k, shape (m, n_ks, G); `ks` rise, and end with k_max."""
    n_points, k_max = nearest.shape
    n_classes = support.shape[2]
    corners = np.empty((k_max + 2, n_classes))
    rooms = np.empty((3, n_points + 1), dtype=np.int64)
    reaches = nearest[:, k_max - 1] * ABOVE
    bound = np.median(reaches)
    for i in range(distances.shape[0]):
        corners[:] = 0.0
        bound = bound_of_smallest(distances[i], k_max, bound)
        n_near = sorted_below(distances[i], bound * ABOVE, rooms[0], rooms[1], rooms[2])
        add_own_neighbors(distances[i], labels, rooms[0, :n_near], corners)
        if is_joint:
            n_hearing = places_below(distances[i], reaches, rooms[1])
            hearing = rooms[1, :n_hearing]
            add_listeners(distances[i][hearing], hearing, labels, nearest, n_as_near, corners)
        sum_ramps(corners, ks, support[i])


@register_jitable
def sum_ramps(corners, ks, support):
    """Add up the ramps of each class, and divide by k, at each of some k."""
    for g in range(support.shape[1]):
        slope, height, n_done = 0.0, 0.0, 0
        for k in range(1, corners.shape[0] - 1):
            slope += corners[k, g]
            height += slope
            if k == ks[n_done]:
                support[n_done, g] = height / k
                n_done += 1


@register_jitable
def add_ramp(corners, g, n_before, n_until, share):
    """Let a class rise by `share` at each k from n_before + 1 to n_until."""
    if n_before + 1 < corners.shape[0]:
        corners[n_before + 1, g] += share
    if n_until + 1 < corners.shape[0]:
        corners[n_until + 1, g] -= share


@register_jitable
def add_own_neighbors(row, labels, near, corners):
    """Add the nearest neighbours of the new point, sorted; those that tie share their places."""
    first = 0
    while first < near.shape[0]:
        last = first + 1
        while last < near.shape[0] and row[near[last]] * BELOW <= row[near[last - 1]]:
            last += 1
        for place in range(first, last):
            add_ramp(corners, labels[near[place]], first, last, 1.0 / (last - first))
        first = last


@register_jitable
def add_listeners(distances, hearing, labels, nearest, n_as_near, corners):
    """Add the training points, so far away, of which the new point would be a near neighbour."""
    k_max = nearest.shape[1]
    for t in range(hearing.shape[0]):
        j, distance = hearing[t], distances[t]
        n_closer = np.searchsorted(nearest[j], distance * BELOW)
        n_until = n_closer
        while n_until < k_max and nearest[j, n_until] * BELOW <= distance:
            n_until += 1
        if n_until == k_max and n_closer < k_max:
            n_until = n_as_near[j]  # ties go on among those that were not kept
        share = 1.0 / (n_until - n_closer + 1)
        add_ramp(corners, labels[j], n_closer, n_until + 1, share)


@njit(cache=True, nogil=True, error_model="numpy")
def average_scales(support, posterior, external_field, probabilities):
    """Average the class probabilities of new points whose support is known at every scale."""
    n_scales = support.shape[1]
    stops = np.arange(1, n_scales + 1)
    for i in range(support.shape[0]):
        average_pieces(n_scales, stops, support[i], posterior, external_field, probabilities[i])
