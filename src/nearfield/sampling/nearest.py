"""The support of new points under k nearest neighbours, at all k at once.

A neighbour counts from some k on; points that tie share a stretch of places, over which what they
count rises linearly. So k times the support is a sum of ramps in k, and two running sums over
their corners give it for every k.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling.steps import average_pieces


@njit(cache=True, nogil=True, error_model="numpy")
def nearest_others(distances, nearest, n_as_near):
    """Sort the distances of each training point to the others; keep the smallest.

    Fills in `nearest`, shape (n, k_max), and `n_as_near`, shape (n,): how many of the others are
    no farther than the last that is kept.
    """
    n_points, k_max = nearest.shape
    others = np.empty(n_points - 1)
    for j in range(n_points):
        others[:j] = distances[j, :j]
        others[j:] = distances[j, j + 1 :]
        others.sort()
        nearest[j] = others[:k_max]
        n_as_near[j] = np.searchsorted(others, nearest[j, k_max - 1], side="right")


@njit(cache=True, nogil=True, error_model="numpy")
def neighbor_support(distances, labels, ks, nearest, n_as_near, is_joint, support):
    """Fill in the support at each k, shape (m, n_ks, G); `ks` rise, and end with k_max."""
    k_max = nearest.shape[1]
    n_classes = support.shape[2]
    corners = np.empty((k_max + 2, n_classes))
    for i in range(distances.shape[0]):
        corners[:] = 0.0
        add_own_neighbors(distances[i], labels, k_max, corners)
        if is_joint:
            add_listeners(distances[i], labels, nearest, n_as_near, corners)
        for g in range(n_classes):
            slope, height, n_done = 0.0, 0.0, 0
            for k in range(1, k_max + 1):
                slope += corners[k, g]
                height += slope
                if k == ks[n_done]:
                    support[i, n_done, g] = height / k
                    n_done += 1


@register_jitable
def add_ramp(corners, g, n_before, n_until, share):
    """Let a class rise by `share` at each k from n_before + 1 to n_until."""
    if n_before + 1 < corners.shape[0]:
        corners[n_before + 1, g] += share
    if n_until + 1 < corners.shape[0]:
        corners[n_until + 1, g] -= share


@register_jitable
def add_own_neighbors(row, labels, k_max, corners):
    """Add the nearest neighbours of the new point; those that tie share their places."""
    farthest = np.partition(row, k_max - 1)[k_max - 1]
    near = np.flatnonzero(row <= farthest)
    near = near[np.argsort(row[near], kind="mergesort")]
    first = 0
    while first < near.shape[0]:
        last = first + 1
        while last < near.shape[0] and row[near[last]] == row[near[first]]:
            last += 1
        for place in range(first, last):
            add_ramp(corners, labels[near[place]], first, last, 1.0 / (last - first))
        first = last


@register_jitable
def add_listeners(row, labels, nearest, n_as_near, corners):
    """Add the training points of which the new point would be a near neighbour."""
    k_max = nearest.shape[1]
    for j in range(row.shape[0]):
        if row[j] > nearest[j, k_max - 1]:
            continue  # it would come after k_max others
        n_closer = np.searchsorted(nearest[j], row[j], side="left")
        n_until = n_closer
        while n_until < k_max and nearest[j, n_until] == row[j]:
            n_until += 1
        if n_until == k_max and row[j] == nearest[j, k_max - 1]:
            n_until = n_as_near[j]
        share = 1.0 / (n_until - n_closer + 1)
        add_ramp(corners, labels[j], n_closer, n_until + 1, share)


@njit(cache=True, nogil=True, error_model="numpy")
def average_scales(support, posterior, external_field, probabilities):
    """Average the class probabilities of new points whose support is known at every scale."""
    n_scales = support.shape[1]
    stops = np.arange(1, n_scales + 1)
    for i in range(support.shape[0]):
        average_pieces(n_scales, stops, support[i], posterior, external_field, probabilities[i])
