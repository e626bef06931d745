"""Class probabilities from the support of new points, averaged over nodes of (beta, scale)."""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._vector import ANY_ORDER, exp_of


@njit(cache=True, nogil=True, error_model="numpy")
def mean_softmax(support, interpolation, starts, betas, weights, external_field, probabilities):
    r"""Average the probabilities, the support being known at knots and interpolated between.

    .. math:: p_g = \sum_s \sum_{r \in s} W_r\, \mathrm{softmax}_g(\alpha_g + \beta_r h_{sg}),
              \qquad h_{sg} = \sum_q L_{sq} h_{qg}

    Parameters
    ----------
    support : ndarray, shape (m, n_knots, G)
    interpolation : ndarray, shape (n_scales, n_knots)
        L; without columns where the knots are the scales.
    starts : ndarray of int, shape (n_scales + 1,)
        Where the nodes of each scale start.
    betas, weights : ndarray, shape (n_nodes,)
        W may be below zero here and there.
    external_field : ndarray, shape (G,)
    probabilities : ndarray, shape (m, G)
        To be filled in.
    """
    n_classes, n_nodes = external_field.shape[0], weights.shape[0]
    logits = np.empty((n_classes, n_nodes))
    largest, total = np.empty(n_nodes), np.empty(n_nodes)
    for i in range(support.shape[0]):
        fill_logits(support[i], interpolation, starts, betas, external_field, logits)
        softmax_columns(logits, largest, total)
        for g in range(n_classes):
            probabilities[i, g] = weighted_ratios(weights, logits[g], total)


@njit(cache=True, nogil=True, error_model="numpy")
def node_probabilities(support, interpolation, starts, betas, external_field, probabilities):
    """Fill in the probabilities at every node, shape (m, G, n_nodes); as in `mean_softmax`."""
    n_classes, n_nodes = external_field.shape[0], betas.shape[0]
    largest, total = np.empty(n_nodes), np.empty(n_nodes)
    for i in range(support.shape[0]):
        logits = probabilities[i]
        fill_logits(support[i], interpolation, starts, betas, external_field, logits)
        softmax_columns(logits, largest, total)
        for g in range(n_classes):
            for r in range(n_nodes):
                logits[g, r] /= total[r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def fill_logits(support, interpolation, starts, betas, external_field, logits):
    """Fill in alpha + beta x support at each node, shape (G, n_nodes)."""
    for s in range(interpolation.shape[0]):
        for g in range(external_field.shape[0]):
            at_scale = 0.0 if interpolation.shape[1] > 0 else support[s, g]
            for q in range(interpolation.shape[1]):
                at_scale += interpolation[s, q] * support[q, g]
            for r in range(starts[s], starts[s + 1]):
                logits[g, r] = external_field[g] + betas[r] * at_scale


@register_jitable
def softmax_columns(logits, largest, total):
    """Turn logits into odds relative to the largest class, with their total over classes."""
    largest[:] = logits[0]
    for g in range(1, logits.shape[0]):
        keep_larger(logits[g], largest)
    total[:] = 0.0
    for g in range(logits.shape[0]):
        exponentiate(logits[g], largest, total)


@njit(cache=True, nogil=True, error_model="numpy")
def keep_larger(values, largest):
    """Replace what is smaller than the value in its place."""
    for r in range(largest.shape[0]):
        largest[r] = max(largest[r], values[r])


@njit(cache=True, nogil=True, error_model="numpy")
def exponentiate(values, largest, total):
    """Replace values by exp(value - largest), and add these to the total."""
    for r in range(values.shape[0]):
        values[r] = exp_of(values[r] - largest[r])
        total[r] += values[r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def weighted_ratios(weights, numerators, denominators):
    """Add up weight x numerator / denominator."""
    total = 0.0
    for r in range(weights.shape[0]):
        total += weights[r] * numerators[r] / denominators[r]
    return total
