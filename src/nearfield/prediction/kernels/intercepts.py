"""The external field that labels make most probable, given the support of their classes."""

import numpy as np

from nearfield._compile import compilable, compiled
from nearfield._vector import exp_of

_MAX_STEPS = 20
_LONGEST_STEP = 3.0
_LEAST_BETA = 0.05
_TOLERANCE = 1e-3


@compiled
def fit_intercepts(support, labels, precision, precision_beta, beta, alpha):
    r"""Maximise over the external field alpha and beta > 0 by Newton's method.

    .. math:: \sum_i \log p(y_i \mid \alpha, \beta) - \frac{\tau}{2} \sum_g \alpha_g^2
              - \frac{\tau_\beta}{2} \beta^2, \qquad
              p(g) \propto \exp(\alpha_g + \beta h_{ig})

    Concave. Fills in alpha, which comes to sum to zero, and returns beta.

    Parameters
    ----------
    support : ndarray, shape (n, G)
    labels : ndarray of int, shape (n,)
    precision, precision_beta : float
        tau and tau_beta.
    beta : float
        To start from.
    alpha : ndarray, shape (G,)
    """
    n_classes = support.shape[1]
    size = n_classes + 1
    slope, curvature = np.empty(size), np.empty((size, size))
    for g in range(n_classes):
        alpha[g] = 0.0
    for _ in range(_MAX_STEPS):
        for k in range(size):
            for other in range(size):
                curvature[k, other] = 0.0
            is_beta = k == n_classes
            curvature[k, k] = precision_beta if is_beta else precision
            slope[k] = -precision_beta * beta if is_beta else -precision * alpha[k]
        add_derivatives(support, labels, alpha, beta, slope, curvature)
        solve_in_place(curvature, slope)
        longest = 0.0
        for k in range(size):
            longest = max(longest, abs(slope[k]))
        factor = min(1.0, _LONGEST_STEP / max(longest, 1e-300))
        for g in range(n_classes):
            alpha[g] += factor * slope[g]
        beta = max(beta + factor * slope[n_classes], _LEAST_BETA)
        if longest < _TOLERANCE:
            break
    mean = 0.0
    for g in range(n_classes):
        mean += alpha[g] / n_classes
    for g in range(n_classes):
        alpha[g] -= mean
    return beta


@compilable
def add_derivatives(support, labels, alpha, beta, slope, curvature):
    """Add the slope of the log likelihood in (alpha, beta), and minus its curvature."""
    n_points, n_classes = support.shape
    p = np.empty(n_classes)
    for i in range(n_points):
        top = -np.inf
        for g in range(n_classes):
            p[g] = alpha[g] + beta * support[i, g]
            top = max(top, p[g])
        total = 0.0
        for g in range(n_classes):
            p[g] = exp_of(p[g] - top)
            total += p[g]
        mean, square = 0.0, 0.0
        for g in range(n_classes):
            p[g] /= total
            mean += p[g] * support[i, g]
            square += p[g] * support[i, g] * support[i, g]
        for g in range(n_classes):
            slope[g] -= p[g]
            cross = p[g] * (support[i, g] - mean)
            curvature[g, n_classes] += cross
            curvature[n_classes, g] += cross
            curvature[g, g] += p[g]
            for other in range(n_classes):
                curvature[g, other] -= p[g] * p[other]
        slope[labels[i]] += 1.0
        slope[n_classes] += support[i, labels[i]] - mean
        curvature[n_classes, n_classes] += square - mean * mean


@compilable
def solve_in_place(matrix, vector):
    """Solve for a positive definite matrix by elimination; the vector becomes the solution."""
    size = vector.shape[0]
    for k in range(size):
        for row in range(k + 1, size):
            factor = matrix[row, k] / matrix[k, k]
            for column in range(k, size):
                matrix[row, column] -= factor * matrix[k, column]
            vector[row] -= factor * vector[k]
    for k in range(size - 1, -1, -1):
        for column in range(k + 1, size):
            vector[k] -= matrix[k, column] * vector[column]
        vector[k] /= matrix[k, k]
