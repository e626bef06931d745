"""Class probabilities from the support of new points, at nodes of (beta, scale)."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp_of

Floats = NDArray[np.float64]
NodeArrays = tuple[NDArray[np.int64], Floats, Floats, Floats]  # `Nodes`

_LARGEST_LOGIT = 600.0  # its exp, times any number of classes, is finite


@compiled(fastmath=ANY_ORDER)
def mean_softmax(
    support: Floats,
    nodes: NodeArrays,
    external_field: Floats,
    odds: Floats,
    total: Floats,
    probabilities: Floats,
) -> None:
    r"""Average the class probabilities over weighted nodes.

    .. math:: p_g = \sum_r W_r\, \mathrm{softmax}_g(\alpha_g + \beta_r h_{rg}),
              \qquad h_{rg} = \sum_c a_{rc} h_{s_{rc} g}

    Parameters
    ----------
    support : ndarray, shape (m, n_scales, G)
    nodes : Nodes
        s, a, beta and W.
    external_field : ndarray, shape (G,)
    odds, total : ndarray, shape (G, n_nodes) and (n_nodes,)
        To work in.
    probabilities : ndarray, shape (m, G)
        To be filled in.
    """
    places, coefficients, betas, weights = nodes
    for i in range(support.shape[0]):
        fill_odds(support[i], places, coefficients, betas, external_field, odds, total)
        for r in range(betas.shape[0]):
            total[r] = weights[r] / total[r]
        for g in range(external_field.shape[0]):
            mean = 0.0
            for r in range(betas.shape[0]):
                mean += total[r] * odds[g, r]
            probabilities[i, g] = mean


@compiled
def node_softmax(
    support: Floats,
    nodes: NodeArrays,
    external_field: Floats,
    total: Floats,
    probabilities: Floats,
) -> None:
    """Fill in the class probabilities at every node, shape (m, G, n_nodes)."""
    places, coefficients, betas, _ = nodes
    for i in range(support.shape[0]):
        odds = probabilities[i]
        fill_odds(support[i], places, coefficients, betas, external_field, odds, total)
        for g in range(external_field.shape[0]):
            for r in range(betas.shape[0]):
                odds[g, r] /= total[r]


@compilable(fastmath=ANY_ORDER)
def fill_odds(
    support: Floats,
    places: NDArray[np.int64],
    coefficients: Floats,
    betas: Floats,
    external_field: Floats,
    odds: Floats,
    total: Floats,
) -> None:
    """Fill in the odds of the classes at each node, and their sum.

    The first class has one, or less where the exponential of another logit would overflow.
    """
    n_nodes, n_classes = betas.shape[0], external_field.shape[0]
    for r in range(n_nodes):
        total[r] = _LARGEST_LOGIT
    for g in range(1, n_classes):
        constant = external_field[g] - external_field[0]
        for r in range(n_nodes):
            difference = 0.0
            for c in range(places.shape[1]):
                s = places[r, c]
                difference += coefficients[r, c] * (support[s, g] - support[s, 0])
            odds[g, r] = constant + betas[r] * difference
        for r in range(n_nodes):
            total[r] = odds[g, r] if odds[g, r] > total[r] else total[r]
    for r in range(n_nodes):
        excess = total[r] - _LARGEST_LOGIT
        odds[0, r] = 1.0
        if excess > 0.0:
            odds[0, r] = exp_of(-excess)
            for g in range(1, n_classes):
                odds[g, r] -= excess
        total[r] = odds[0, r]
    for g in range(1, n_classes):
        for r in range(n_nodes):
            odds[g, r] = exp_of(odds[g, r])
            total[r] += odds[g, r]
