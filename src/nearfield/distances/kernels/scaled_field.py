"""The Gaussian-kernel field of few points, in float32: weights, support and pseudolikelihood.

Points come sorted by class, so that the sum over a class is one loop. Weights are good to 1e-6, far
below what labels can tell, in half the time of float64.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp32_of, exp_of, smallest_of

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

_MAX_NEWTON_STEPS = 30
_MAX_NEWTON_STEP = 5.0
_LEAST_BETA = 0.05
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
FAR = np.float32(3e38)


@compiled
def squared_distances(points: Singles, factors: Singles) -> Singles:
    """Give the squared distances between points times factors, by their inner products."""
    n_points = points.shape[0]
    scaled = np.empty_like(points)
    for i in range(n_points):
        multiply(points[i], factors, scaled[i])
    products = np.dot(scaled, scaled.T)
    norms = np.empty(n_points, dtype=np.float32)
    for i in range(n_points):
        norms[i] = products[i, i]
    for i in range(n_points):
        expand_square(products[i], norms[i], norms)
    return products


@compiled
def copy_to(values: Singles, copies: Singles) -> None:
    """Copy values, each to its place."""
    for j in range(values.shape[0]):
        copies[j] = values[j]


@compiled
def multiply(values: Singles, factors: Singles, products: Singles) -> None:
    """Fill in products of values, each in its place."""
    for f in range(values.shape[0]):
        products[f] = values[f] * factors[f]


@compiled
def expand_square(products: Singles, norm: np.float32, norms: Singles) -> None:
    r"""Replace products by :math:`|x|^2 + |y|^2 - 2xy`."""
    for j in range(products.shape[0]):
        products[j] = max(norm + norms[j] - _TWO * products[j], _ZERO)


@compilable
def weigh_neighbors(squared: Singles, class_starts: Ints, factor: float, sums: Floats) -> None:
    """Replace squared distances by directed weights; fill in their sums a class, shape (n, G)."""
    for i in range(squared.shape[0]):
        row = squared[i]
        row[i] = FAR
        exponentiate_excess(row, smallest_of(row), np.float32(0.5 * factor))
        row[i] = _ZERO
        total = 0.0
        for g in range(sums.shape[1]):
            sums[i, g] = sum32_of(row[class_starts[g] : class_starts[g + 1]])
            total += sums[i, g]
        for g in range(sums.shape[1]):
            sums[i, g] /= total
        divide(row, np.float32(total))


@compiled
def exponentiate_excess(row: Singles, smallest: np.float32, rate: np.float32) -> None:
    """Replace values by exp(-rate x what they have above the smallest)."""
    for j in range(row.shape[0]):
        row[j] = exp32_of(rate * (smallest - row[j]))


@compiled(fastmath=ANY_ORDER)
def sum32_of(values: Singles) -> np.float32:
    """Add up float32 values."""
    total = _ZERO
    for j in range(values.shape[0]):
        total += values[j]
    return total


@compiled
def divide(row: Singles, total: np.float32) -> None:
    """Divide values by their total."""
    factor = _ONE / total
    for j in range(row.shape[0]):
        row[j] *= factor


@compilable
def fill_support(weights: Singles, sums: Floats, labels: Ints, support: Floats) -> None:
    """Fill in the support of the coupling: the weights both ways, by class."""
    heard = np.zeros((support.shape[1], support.shape[0]), dtype=np.float32)
    for j in range(support.shape[0]):
        add_to(weights[j], heard[labels[j]])
    for i in range(support.shape[0]):
        for g in range(support.shape[1]):
            support[i, g] = sums[i, g] + heard[g, i]


@compiled
def add_to(values: Singles, total: Singles) -> None:
    """Add values to a total, each in its place."""
    for j in range(values.shape[0]):
        total[j] += values[j]


@compiled(fastmath={"contract"})
def add_slopes(point: Singles, product: Singles, by_square: np.float32, total: Floats) -> None:
    r"""Add a point's part of :math:`\sum_{ij} g_{ij} (x_i - x_j)^2`, a feature at a time."""
    for f in range(point.shape[0]):
        total[f] += point[f] * (by_square * point[f] - _TWO * product[f])


@compilable
def fill_residuals(
    support: Floats, labels: Ints, beta: float, residuals: Singles
) -> tuple[float, float]:
    """Fill in the residuals, shape (G, n); return the log pseudolikelihood, and its slope."""
    value, by_beta = 0.0, 0.0
    n_points, n_classes = support.shape
    odds = np.empty(n_classes)
    for i in range(n_points):
        own = support[i, labels[i]]
        top = support[i, 0]
        for g in range(1, n_classes):
            top = max(top, support[i, g])
        total = 0.0
        for g in range(n_classes):
            odds[g] = exp_of(beta * (support[i, g] - top))
            total += odds[g]
        value += beta * (own - top) - np.log(total)
        for g in range(n_classes):
            residuals[g, i] = -odds[g] / total
        residuals[labels[i], i] += 1.0
        for g in range(n_classes):
            by_beta += residuals[g, i] * support[i, g]
    return value, by_beta


@compilable
def fill_kernel_gradient(
    weights: Singles,
    sums: Floats,
    labels: Ints,
    class_starts: Ints,
    residuals: Singles,
    beta: float,
) -> None:
    """Replace weights by the derivatives of the pseudolikelihood by the log kernel."""
    n_classes = residuals.shape[0]
    for i in range(weights.shape[0]):
        row, back = weights[i], residuals[labels[i]]
        mean = inner(row, back)
        for g in range(n_classes):
            mean += sums[i, g] * residuals[g, i]
        for g in range(n_classes):
            start, stop = class_starts[g], class_starts[g + 1]
            shift = np.float32(residuals[g, i] - mean)
            multiply_gap(row[start:stop], back[start:stop], shift, np.float32(beta))


@compiled(fastmath=ANY_ORDER)
def inner(first: Singles, second: Singles) -> np.float32:
    """Add up the products of values."""
    total = _ZERO
    for j in range(first.shape[0]):
        total += first[j] * second[j]
    return total


@compiled(fastmath={"contract"})
def multiply_gap(row: Singles, back: Singles, shift: np.float32, beta: np.float32) -> None:
    """Multiply values by beta (back + shift)."""
    for j in range(row.shape[0]):
        row[j] *= beta * (back[j] + shift)


@compilable
def best_beta(
    support: Floats, labels: Ints, precision: float, max_beta: float, beta: float
) -> tuple[float, float]:
    """Maximise over beta > 0 by Newton's method; return it and the log mass around it."""
    log_mass = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        value, slope, curvature = beta_derivatives(support, labels, beta)
        slope -= precision * beta
        curvature += precision
        log_mass = value - 0.5 * precision * beta * beta - 0.5 * np.log(curvature)
        step = min(max(slope / curvature, -_MAX_NEWTON_STEP), _MAX_NEWTON_STEP)
        previous, beta = beta, min(max(beta + step, _LEAST_BETA), max_beta)
        if abs(beta - previous) < 1e-2 * beta:
            break
    return beta, log_mass


@compiled
def beta_derivatives(support: Floats, labels: Ints, beta: float) -> tuple[float, float, float]:
    """Evaluate the log pseudolikelihood, its slope and minus its curvature in beta."""
    n_points, n_classes = support.shape
    value, slope, curvature = 0.0, 0.0, 0.0
    for i in range(n_points):
        own = support[i, labels[i]]
        top = support[i, 0]
        for g in range(1, n_classes):
            top = max(top, support[i, g])
        total, first, second = 0.0, 0.0, 0.0
        for g in range(n_classes):
            odds = exp_of(beta * (support[i, g] - top))
            gain = support[i, g] - own
            total += odds
            first += odds * gain
            second += odds * gain * gain
        first /= total
        value += beta * (own - top) - np.log(total)
        slope -= first
        curvature += second / total - first * first
    return value, slope, curvature
