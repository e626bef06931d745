"""Class probabilities from the support of new points, averaged over nodes of (beta, scale)."""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield._vector import ANY_ORDER, exp_of

_LARGEST_LOGIT = 600.0  # its exp, times any number of classes, is finite


@njit(cache=True, nogil=True, error_model="numpy")
def mean_softmax(
    support, first, coefficients, starts, betas, weights, external_field, probabilities
):
    r"""Average the probabilities, the support being known at knots and interpolated between.

    .. math:: p_g = \sum_s \sum_{r \in s} W_r\, \mathrm{softmax}_g(\alpha_g + \beta_r h_{sg}),
              \qquad h_{sg} = \sum_c a_{sc} h_{f_s + c, g}

    Parameters
    ----------
    support : ndarray, shape (m, n_knots, G)
    first : ndarray of int, shape (n_scales,)
        f: the first knot that the support at each scale is interpolated from.
    coefficients : ndarray, shape (n_scales, n_around)
        a
    starts : ndarray of int, shape (n_scales + 1,)
        Where the nodes of each scale start.
    betas, weights : ndarray, shape (n_nodes,)
        W may be below zero here and there.
    external_field : ndarray, shape (G,)
    probabilities : ndarray, shape (m, G)
        To be filled in.
    """
    n_classes, n_nodes = external_field.shape[0], weights.shape[0]
    odds, total = np.empty((n_classes, n_nodes)), np.empty(n_nodes)
    for i in range(support.shape[0]):
        fill_odds(support[i], first, coefficients, starts, betas, external_field, odds, total)
        probabilities[i, 0] = dot(weights, odds[0])
        odds[0] *= weights
        for g in range(1, n_classes):
            probabilities[i, g] = dot(odds[0], odds[g])


@njit(cache=True, nogil=True, error_model="numpy")
def node_probabilities(support, first, coefficients, starts, betas, external_field, probabilities):
    """Fill in the probabilities at every node, shape (m, G, n_nodes); as in `mean_softmax`."""
    total = np.empty(betas.shape[0])
    for i in range(support.shape[0]):
        odds = probabilities[i]
        fill_odds(support[i], first, coefficients, starts, betas, external_field, odds, total)
        for g in range(1, external_field.shape[0]):
            odds[g] *= odds[0]


@register_jitable
def fill_odds(support, first, coefficients, starts, betas, external_field, odds, total):
    """Fill in the probability of the first class at each node, then the odds of others to it."""
    total[:] = 1.0
    for g in range(1, external_field.shape[0]):
        constant = external_field[g] - external_field[0]
        fill_logits(support, g, first, coefficients, starts, betas, constant, odds[g])
        exponentiate(odds[g], total)
    for r in range(total.shape[0]):
        odds[0, r] = 1.0 / total[r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def fill_logits(support, g, first, coefficients, starts, betas, constant, logits):
    """Fill in the logit of class g against the first one at each node."""
    for s in range(first.shape[0]):
        difference = 0.0
        for c in range(coefficients.shape[1]):
            knot = first[s] + c
            difference += coefficients[s, c] * (support[knot, g] - support[knot, 0])
        for r in range(starts[s], starts[s + 1]):
            logits[r] = constant + betas[r] * difference


@njit(cache=True, nogil=True, error_model="numpy")
def exponentiate(logits, total):
    """Replace logits by odds, and add these to the total."""
    for r in range(logits.shape[0]):
        logits[r] = exp_of(min(logits[r], _LARGEST_LOGIT))
        total[r] += logits[r]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def dot(first, second):
    """Add up products."""
    total = 0.0
    for r in range(first.shape[0]):
        total += first[r] * second[r]
    return total
