"""Draws of some labels of a field while the others are known.

What the known labels say is a field at each free site, which Gibbs sampling and cluster moves
both take in: groups of free points then change class together.
"""

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._random import draw_key, uniform_at
from nearfield.sampling.swendsen_wang import find_root, join_clusters


def draw_free_labels(
    rng: np.random.Generator,
    coupling: NDArray[np.float64],
    site_fields: NDArray[np.float64],
    beta: float,
    labels: NDArray[np.int64],
    n_sweeps: int,
) -> NDArray[np.int64]:
    r"""Draw labels from a field with a field of its own at each site.

    .. math:: \pi(y) \propto \exp\Big(\sum_i a_{i y_i} + \beta \sum_{i<j} c_{ij} 1[y_i = y_j]\Big)

    Approximate, exact as the sweeps grow. Each is a cluster move, where beta > 0, and a Gibbs
    sweep.

    Parameters
    ----------
    rng : numpy.random.Generator
    coupling : ndarray, shape (m, m)
    site_fields : ndarray, shape (m, G)
        a
    beta : float
    labels : ndarray of int, shape (m,)
        Where to start; left as they are.
    n_sweeps : int

    Returns
    -------
    labels : ndarray of int, shape (m,)
    """
    labels = labels.copy()
    keys = draw_key(rng), draw_key(rng), draw_key(rng)
    free_sweeps(np.ascontiguousarray(coupling), site_fields, beta, labels, keys, n_sweeps)
    return labels


@njit(cache=True, nogil=True)
def free_sweeps(coupling, site_fields, beta, labels, keys, n_sweeps):
    """Move groups, then single labels, `n_sweeps` times, changing `labels` in place."""
    n_points, n_classes = site_fields.shape
    parents = np.empty(n_points, dtype=np.int64)
    group_fields = np.empty((n_points, n_classes))
    log_weights = np.empty((n_points, n_classes))
    for sweep in range(n_sweeps):
        if beta > 0.0:
            first = sweep * n_points
            tie_all(coupling, beta, labels, parents, keys[0], first * n_points)
            recolour(site_fields, parents, labels, group_fields, keys[1], first)
        fill_log_weights(coupling, site_fields, beta, labels, log_weights)
        for i in range(n_points):
            uniform = uniform_at(keys[2], sweep * n_points + i)
            new = draw_by_weight(log_weights[i], uniform)
            if new != labels[i]:
                for j in range(n_points):
                    log_weights[j, labels[i]] -= beta * coupling[i, j]
                    log_weights[j, new] += beta * coupling[i, j]
                labels[i] = new


@register_jitable
def tie_all(coupling, beta, labels, parents, key, position):
    """Tie every two points that agree with probability 1 - exp(-beta c)."""
    n_points = labels.shape[0]
    parents[:] = np.arange(n_points)
    for i in range(n_points):
        for j in range(i):
            strength = beta * coupling[i, j]
            if labels[i] != labels[j] or strength <= 0.0:
                continue
            uniform = uniform_at(key, position + i * n_points + j)
            # Most ties are weak, and 1 - exp(-x) <= x decides them without an exp.
            if uniform < strength and uniform < -math.expm1(-strength):
                join_clusters(parents, i, j)


@register_jitable
def recolour(site_fields, parents, labels, group_fields, key, position):
    """Give each group of tied points a class, by the sum of its sites' fields."""
    group_fields[:] = 0.0
    for i in range(labels.shape[0]):
        parents[i] = find_root(parents, i)
        group_fields[parents[i]] += site_fields[i]
    for i in range(labels.shape[0]):
        uniform = uniform_at(key, position + parents[i])
        labels[i] = draw_by_weight(group_fields[parents[i]], uniform)


@register_jitable
def fill_log_weights(coupling, site_fields, beta, labels, log_weights):
    """Fill in the log weight of each class at each site."""
    log_weights[:] = site_fields
    for i in range(labels.shape[0]):
        for j in range(labels.shape[0]):
            log_weights[j, labels[i]] += beta * coupling[i, j]


@register_jitable
def draw_by_weight(log_weights, uniform):
    """Draw a class by inversion, g with probability proportional to exp(log weight)."""
    largest = log_weights.max()
    total = 0.0
    for g in range(log_weights.shape[0]):
        total += math.exp(log_weights[g] - largest)
    left = uniform * total
    for g in range(log_weights.shape[0] - 1):
        left -= math.exp(log_weights[g] - largest)
        if left < 0.0:
            return g
    return log_weights.shape[0] - 1
