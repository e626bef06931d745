"""Class probabilities from the support of new points, at nodes of (beta, scale)."""

import numpy as np

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp_of

_LARGEST_LOGIT = 600.0  # its exp, times any number of classes, is finite


@compiled
def mean_softmax(support, nodes, external_field, probabilities):
    r"""Average the class probabilities over weighted nodes.

    .. math:: p_g = \sum_r W_r\, \mathrm{softmax}_g(\alpha_g + \beta_r h_{rg}),
              \qquad h_{rg} = \sum_c a_{rc} h_{s_{rc} g}

    Parameters
    ----------
    support : ndarray, shape (m, n_scales, G)
    nodes : Nodes
        s, a, beta and W.
    external_field : ndarray, shape (G,)
    probabilities : ndarray, shape (m, G)
        To be filled in.
    """
    n_classes, n_nodes = external_field.shape[0], nodes.betas.shape[0]
    odds, total = np.empty((n_classes, n_nodes)), np.empty(n_nodes)
    for i in range(support.shape[0]):
        fill_odds(support[i], nodes, external_field, odds, total)
        total[:] = nodes.weights / total
        for g in range(n_classes):
            probabilities[i, g] = dot(total, odds[g])


@compiled
def node_softmax(support, nodes, external_field, probabilities):
    """Fill in the class probabilities at every node, shape (m, G, n_nodes)."""
    total = np.empty(nodes.betas.shape[0])
    for i in range(support.shape[0]):
        odds = probabilities[i]
        fill_odds(support[i], nodes, external_field, odds, total)
        for g in range(external_field.shape[0]):
            odds[g] /= total


@compilable
def fill_odds(support, nodes, external_field, odds, total):
    """Fill in the odds of the classes at each node, and their sum.

    The first class has one, or less where the exponential of another logit would overflow.
    """
    places, coefficients, betas, _ = nodes
    total[:] = _LARGEST_LOGIT
    for g in range(1, external_field.shape[0]):
        constant = external_field[g] - external_field[0]
        fill_logits(support, g, places, coefficients, betas, constant, odds[g])
        raise_to(odds[g], total)
    for r in range(total.shape[0]):
        excess = total[r] - _LARGEST_LOGIT
        total[r] = 0.0
        odds[0, r] = 1.0
        if excess > 0.0:
            odds[0, r] = exp_of(-excess)
            for g in range(1, external_field.shape[0]):
                odds[g, r] -= excess
    for g in range(1, external_field.shape[0]):
        exponentiate(odds[g], total)
    for r in range(total.shape[0]):
        total[r] += odds[0, r]


@compiled(fastmath=ANY_ORDER)
def fill_logits(support, g, places, coefficients, betas, constant, logits):
    """Fill in the logit of class g against the first one at each node."""
    for r in range(betas.shape[0]):
        difference = 0.0
        for c in range(places.shape[1]):
            s = places[r, c]
            difference += coefficients[r, c] * (support[s, g] - support[s, 0])
        logits[r] = constant + betas[r] * difference


@compiled
def raise_to(logits, largest):
    """Keep the largest logit of each node."""
    for r in range(logits.shape[0]):
        largest[r] = logits[r] if logits[r] > largest[r] else largest[r]


@compiled
def exponentiate(logits, total):
    """Replace logits by their exponentials, and add these to the total."""
    for r in range(logits.shape[0]):
        logits[r] = exp_of(logits[r])
        total[r] += logits[r]


@compiled(fastmath=ANY_ORDER)
def dot(first, second):
    """Add up products."""
    total = 0.0
    for r in range(first.shape[0]):
        total += first[r] * second[r]
    return total
