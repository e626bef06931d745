"""Votes of the k nearest neighbours: the nearest are kept in a heap, the farthest on top."""

import numpy as np
from numba import njit
from numba.extending import register_jitable


@njit(cache=True, nogil=True, error_model="numpy")
def count_votes(distances, labels, k, votes):
    """Add up, for each row of distances, the labels of its k smallest; of equals the first.

    Parameters
    ----------
    distances : ndarray, shape (m, n)
    labels : ndarray of int, shape (n,)
    k : int
        From 1 to n.
    votes : ndarray, shape (m, G)
        Zeros, to be filled in.
    """
    kept, sites = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(distances.shape[0]):
        row = distances[i]
        for j in range(k):
            kept[j], sites[j] = row[j], j
        for place in range(k // 2 - 1, -1, -1):
            sink(kept, sites, place)
        for j in range(k, row.shape[0]):
            if row[j] < kept[0]:
                kept[0], sites[0] = row[j], j
                sink(kept, sites, 0)
        for place in range(k):
            votes[i, labels[sites[place]]] += 1


@register_jitable
def sink(kept, sites, place):
    """Let an entry sink until none below it is farther; of equals the last counts as farther."""
    distance, site = kept[place], sites[place]
    while 2 * place + 1 < kept.shape[0]:
        child = 2 * place + 1
        other = child + 1
        if other < kept.shape[0] and is_farther(kept, sites, other, kept[child], sites[child]):
            child = other
        if not is_farther(kept, sites, child, distance, site):
            break
        kept[place], sites[place] = kept[child], sites[child]
        place = child
    kept[place], sites[place] = distance, site


@register_jitable
def is_farther(kept, sites, place, distance, site):
    """Tell whether an entry is farther than a site at a distance."""
    return kept[place] > distance or (kept[place] == distance and sites[place] > site)
