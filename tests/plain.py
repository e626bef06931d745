"""Plain forms of what is compiled or solved by steps: weights, predictions, log posteriors."""

import numpy as np
from scipy.special import logsumexp

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


def minus_log_posterior(parameters, support, labels, prior_sd, prior_beta, multiplicities=None):
    r"""Evaluate what the intercepts and beta, in this order, minimise, and its gradient.

    With :math:`r_{ig} = p(y_i = g \mid y_{-i}) - 1[y_i = g]` it is

    .. math:: \sum_i r_{ig} + \frac{\alpha_g}{s^2}, \qquad
              \sum_{ig} r_{ig} h_{ig} + \frac{\beta - m}{t^2}

    The likelihood does not change if all intercepts move alike, so that the prior makes them sum
    to zero. `prior_beta` is (m, t). With multiplicities, the term of each label counts as often.
    """
    alpha, beta = parameters[:-1], parameters[-1]
    middle, spread = prior_beta
    totals = alpha + beta * support
    log_conditionals = totals - logsumexp(totals, axis=1, keepdims=True)
    sites = np.arange(len(labels))
    surplus = np.exp(log_conditionals)
    surplus[sites, labels] -= 1.0
    log_own = log_conditionals[sites, labels]
    if multiplicities is not None:
        surplus, log_own = surplus * multiplicities[:, None], log_own * multiplicities
    penalty = 0.5 * np.sum((alpha / prior_sd) ** 2) + 0.5 * ((beta - middle) / spread) ** 2
    gradient = np.append(
        surplus.sum(axis=0) + alpha / prior_sd**2,
        np.vdot(surplus, support) + (beta - middle) / spread**2,
    )
    return float(penalty - log_own.sum()), gradient
