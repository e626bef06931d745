"""The Gaussian-kernel field of few points, in float32: weights, support and pseudolikelihood.

Points come sorted by class, so that the sum over a class is one loop. Weights are good to 1e-6, far
below what labels can tell, in half the time of float64.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import ANY_ORDER, exp32_of, exp_of, smallest_of

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

_MAX_NEWTON_STEPS = 30
_MAX_NEWTON_STEP = 5.0
_LEAST_BETA = 0.05
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_FAR = np.float32(3e38)
_NEGLIGIBLE = np.float32(1e-17)  # of the nearest's; slopes of less may be denormal


@compiled(fastmath=ANY_ORDER)
def weigh_neighbors(
    products: Singles,
    norms: Singles,
    labels: Ints,
    class_starts: Ints,
    length: float,
    weights: Singles,
    sums: NDArray[Any],
    back: Singles,
    support: NDArray[Any],
) -> None:
    """Fill in the directed weights and the support of the coupling, the weights both ways.

    Parameters
    ----------
    products, norms : ndarray of float32, shape (n, n) and (n,)
        Inner products of the points, and their diagonal.
    labels, class_starts : ndarray of int, shape (n,) and (G + 1,)
    length : float
        Of the kernel.
    weights : ndarray of float32, shape (n, n)
    sums, support : ndarray, shape (n, G)
        The weights each point gives, by class, and the support.
    back : ndarray of float32, shape (G, n)
        To work in: zeros.
    """
    n_points, n_classes = sums.shape
    rate32 = np.float32(0.5 / (length * length))
    for i in range(n_points):
        row = weights[i]
        for j in range(n_points):
            square = norms[i] + norms[j] - _TWO * products[i, j]
            row[j] = square if square > _ZERO else _ZERO
        row[i] = _FAR
        smallest = smallest_of(row)
        for j in range(n_points):
            kernel = exp32_of(rate32 * (smallest - row[j]))
            row[j] = kernel if kernel > _NEGLIGIBLE else _ZERO
        row[i] = total = _ZERO
        for g in range(n_classes):
            values, part = row[class_starts[g] : class_starts[g + 1]], _ZERO
            for j in range(values.shape[0]):
                part += values[j]
            sums[i, g] = part
            total += part
        factor, own = _ONE / total, labels[i]
        for g in range(n_classes):
            sums[i, g] *= factor
        for j in range(n_points):
            row[j] *= factor
            back[own, j] += row[j]
    for i in range(n_points):
        for g in range(n_classes):
            support[i, g] = sums[i, g] + back[g, i]


@compiled(fastmath=ANY_ORDER)
def field_slopes(
    weights: Singles,
    sums: NDArray[Any],
    labels: Ints,
    class_starts: Ints,
    support: NDArray[Any],
    beta: float,
    residuals: Singles,
    by_square: Singles,
) -> tuple[float, float]:
    r"""Replace weights by the slopes of the log pseudolikelihood in the log kernel.

    With the residual :math:`e_{ig} = 1[y_i = g] - p(y_i = g \mid y_{-i})` and
    :math:`b_{ij} = \beta (e_{i y_j} + e_{j y_i})`, the derivative by
    :math:`\log \kappa_{ij} = -d_{ij}^2 / 2` is
    :math:`w_{ij} (b_{ij} - \sum_l w_{il} b_{il})`.

    Parameters
    ----------
    weights : ndarray of float32, shape (n, n)
    sums, support : ndarray, shape (n, G)
        From `weigh_neighbors`.
    labels, class_starts : ndarray of int, shape (n,) and (G + 1,)
    beta : float
    residuals : ndarray of float32, shape (G, n)
        To be filled in.
    by_square : ndarray of float32, shape (n,)
        Zeros, to which the slopes are added up by column.

    Returns
    -------
    value, by_beta : float
        The log pseudolikelihood, and its slope in beta.
    """
    value, by_beta, beta32 = 0.0, 0.0, np.float32(beta)
    n_points, n_classes = support.shape
    for i in range(n_points):
        own, total = labels[i], 0.0
        top = support[i, 0]
        for g in range(1, n_classes):
            top = support[i, g] if support[i, g] > top else top
        for g in range(n_classes):
            odds = exp_of(beta * (support[i, g] - top))
            residuals[g, i] = odds
            total += odds
        value += beta * (support[i, own] - top) - np.log(total)
        for g in range(n_classes):
            residual = (1.0 if g == own else 0.0) - residuals[g, i] / total
            residuals[g, i] = residual
            by_beta += residual * support[i, g]
    for i in range(n_points):
        own, inner, mean = labels[i], _ZERO, 0.0
        for j in range(n_points):
            inner += weights[i, j] * residuals[own, j]
        for g in range(n_classes):
            mean += sums[i, g] * residuals[g, i]
        for g in range(n_classes):
            shift = np.float32(residuals[g, i] - mean - inner)
            values = weights[i, class_starts[g] : class_starts[g + 1]]
            back = residuals[own, class_starts[g] : class_starts[g + 1]]
            for j in range(values.shape[0]):
                values[j] *= beta32 * (back[j] + shift)
        for j in range(n_points):
            by_square[j] += weights[i, j]
    return value, by_beta


@compiled
def best_beta(
    support: NDArray[Any],
    labels: Ints,
    counts: NDArray[np.float64],
    precision: float,
    max_beta: float,
    beta: float,
) -> tuple[float, float]:
    r"""Maximise over beta > 0 by Newton's method; return it and the log mass around it.

    .. math:: \sum_i s_i \log p(y_i \mid \beta) - \tfrac12 \tau \beta^2, \qquad
              p(g) \propto \exp(\beta h_{ig})

    Parameters
    ----------
    support : ndarray, shape (n, G)
    labels : ndarray of int, shape (n,)
    counts : ndarray, shape (n,)
        s, how often each label counts.
    precision : float
        tau, of the half-normal prior.
    max_beta, beta : float
        The largest beta, and where to start.
    """
    log_mass = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        value, slope, curvature = -0.5 * precision * beta * beta, -precision * beta, precision
        for i in range(support.shape[0]):
            own = support[i, labels[i]]
            top = support[i, 0]
            for g in range(1, support.shape[1]):
                top = support[i, g] if support[i, g] > top else top
            total, first, second = 0.0, 0.0, 0.0
            for g in range(support.shape[1]):
                odds = exp_of(beta * (support[i, g] - top))
                gain = support[i, g] - own
                total += odds
                first += odds * gain
                second += odds * gain * gain
            first /= total
            value += counts[i] * (beta * (own - top) - np.log(total))
            slope -= counts[i] * first
            curvature += counts[i] * (second / total - first * first)
        log_mass = value - 0.5 * np.log(curvature)
        step = slope / curvature
        step = step if step < _MAX_NEWTON_STEP else _MAX_NEWTON_STEP
        step = step if step > -_MAX_NEWTON_STEP else -_MAX_NEWTON_STEP
        previous, beta = beta, beta + step
        beta = beta if beta > _LEAST_BETA else _LEAST_BETA
        beta = beta if beta < max_beta else max_beta
        if abs(beta - previous) < 1e-2 * beta:
            break
    return beta, log_mass
