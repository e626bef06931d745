"""Votes of nearest neighbours, for one k or for every k at once."""

import numpy as np
from numpy.typing import NDArray

from nearfield.estimators.kernels.votes import count_votes


def leave_one_out_errors(
    distances: NDArray[np.float64],
    own: NDArray[np.int64],
    labels: NDArray[np.int64],
    max_k: int,
) -> NDArray[np.int64]:
    """Count, for every k from 1 to `max_k`, the points that their k nearest others outvote.

    One sort orders the neighbours of a point; the votes of the first k of them, for every k, are
    running sums along that order.

    Parameters
    ----------
    distances : ndarray, shape (m, n)
        Of some training points to all of them.
    own : ndarray of int, shape (m,)
        Which training point each row is: it has no vote on itself.
    labels : ndarray of int, shape (n,)
    max_k : int
        Below n.

    Returns
    -------
    n_errors : ndarray of int, shape (max_k,)
    """
    others = distances.copy()
    others[np.arange(len(own)), own] = np.inf
    nearest = np.argsort(others, axis=1, kind="stable")[:, :max_k]
    return outvoted(labels[nearest], labels[own])


def outvoted(
    neighbor_labels: NDArray[np.int64], own_labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count, for every k, the points whose label is not that of most of their k nearest.

    Parameters
    ----------
    neighbor_labels : ndarray of int, shape (m, max_k)
        Of the neighbours of each point, the nearest first.
    own_labels : ndarray of int, shape (m,)

    Returns
    -------
    n_errors : ndarray of int, shape (max_k,)
    """
    most_votes = np.zeros(neighbor_labels.shape, dtype=np.int32)
    winner = np.zeros(neighbor_labels.shape, dtype=np.int32)
    for g in range(max(neighbor_labels.max(), own_labels.max()) + 1):
        votes = np.cumsum(neighbor_labels == g, axis=1, dtype=np.int32)
        has_more = votes > most_votes  # strictly: of equal classes the first wins
        winner[has_more] = g
        np.maximum(most_votes, votes, out=most_votes)
    return (winner != own_labels[:, None]).sum(axis=0)


def vote_shares(
    distances: NDArray[np.float64], labels: NDArray[np.int64], n_classes: int, k: int
) -> NDArray[np.float64]:
    """Give each class its share of the votes of the k nearest training points, shape (m, G).

    Of points at the same distance the first in the order of training are nearer.
    """
    votes = np.zeros((len(distances), n_classes))
    count_votes(np.ascontiguousarray(distances), labels, k, votes)
    return votes / k


def list_shares(neighbor_labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """Give each class its share of the labels on lists, shape (m, k), as shape (m, G)."""
    return (neighbor_labels[:, :, None] == np.arange(n_classes)).mean(axis=1)
