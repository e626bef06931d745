"""Weights and predictions of the k-nearest-neighbour field, written out one row at a time."""

import numpy as np

from nearfield.neighbors import TIE_TOLERANCE
from nearfield.neighbors.index import PrecomputedIndex
from nearfield.prediction import NeighborPredictor, Predictor

BELOW = 1.0 - TIE_TOLERANCE


def row_weights(distances, kernel, sigma, k):
    """Weigh the k nearest of a row of distances; ties at the k-th share the rest of the weight."""
    order = np.argsort(distances, kind="stable")
    near = distances[order]
    share = np.ones(len(near))
    if k < len(near):
        kth = near[k - 1]
        is_closer = near < kth * BELOW
        is_tied = ~is_closer & (near * BELOW <= kth)
        share = is_closer + is_tied * (k - is_closer.sum()) / is_tied.sum()
    with np.errstate(over="ignore", divide="ignore"):
        log_kernel = {
            "gaussian": -0.5 * ((near - near[0]) / sigma) * ((near + near[0]) / sigma),
            "exponential": -(near - near[0]) * sigma,
            "radius": np.log(1e-10) * ((near >= sigma) * 1.0 - (near[0] >= sigma)),
            "uniform": np.zeros(len(near)),
        }[kernel]
    weights = np.empty(len(near))
    weights[order] = share * np.exp(log_kernel)
    return weights / weights.sum()


def new_point_support(distances, labels, new, kernel, sigma, k, n_classes, *, is_joint=True):
    """Sum the coupling of new points, (m, n), in the field of n + 1 points; `k` None is all."""
    n_points = len(distances)
    k = n_points if k is None else k
    support = np.empty((len(new), n_classes))
    for i, row in enumerate(new):
        coupling = row_weights(row, kernel, sigma, k)
        for j in range(n_points) if is_joint else ():
            others = np.append(np.delete(distances[j], j), row[j])
            coupling[j] += row_weights(others, kernel, sigma, k)[-1]
        support[i] = np.bincount(labels, coupling, minlength=n_classes)
    return support


def all_distances(family):
    """Give the distances between all points of a family; a graph must be complete."""
    if not family.has_graph:
        return family.distances
    graph = family.graph
    distances = np.zeros((graph.n_points, graph.n_points))
    np.put_along_axis(distances, graph.rows.astype(np.int64), graph.distances, axis=1)
    return distances


def predictor_of(posterior, family, labels, predictive="joint"):
    """Make the predictor of a family; either takes the distances of new points."""
    if not family.has_graph:
        return Predictor(posterior, family, labels, predictive)
    index = PrecomputedIndex(family.n_points)
    return NeighborPredictor(posterior, family, np.asarray(labels), index, predictive)
