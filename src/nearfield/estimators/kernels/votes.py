"""Votes of the k nearest neighbours."""

import numpy as np

from nearfield._compile import compiled
from nearfield.estimators.kernels.selection import bound_of_smallest, sorted_below


@compiled
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
    rooms = np.empty((3, labels.shape[0] + 1), dtype=np.int64)
    bound = 0.0
    for i in range(distances.shape[0]):
        bound = bound_of_smallest(distances[i], k, bound)
        sorted_below(distances[i], bound, rooms[0], rooms[1], rooms[2])
        for place in range(k):
            votes[i, labels[rooms[0, place]]] += 1
