"""The search for scales of features, compiled: the objective, the best length, the steps."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, smallest_of
from nearfield.distances._scale_objective import MIN_BETA, ScaleObjective, ScaleProblem
from nearfield.distances._scaled_field import MAX_BETA, N_LENGTHS, NEIGHBORING, PRIOR_SD_BETA
from nearfield.distances.kernels.scaled_field import (
    FAR,
    add_slopes,
    add_to,
    best_beta,
    copy_to,
    fill_kernel_gradient,
    fill_residuals,
    fill_support,
    squared_distances,
    weigh_neighbors,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]


class CompiledObjective(ScaleObjective):
    """Minus the penalised log pseudolikelihood of scales, compiled."""

    def __init__(self, problem: ScaleProblem) -> None:
        super().__init__(problem)
        self._points = problem.points.astype(np.float32)

    def __call__(
        self, parameters: NDArray[np.float64], log_length: float
    ) -> tuple[float, NDArray[np.float64]]:
        """Evaluate at a length of the kernel: the value, and the gradient."""
        problem, gradient = self.problem, np.empty(self.n_parameters)
        value = penalized_field(
            self._points,
            problem.labels,
            problem.class_starts,
            problem.shares,
            problem.independence,
            problem.precisions,
            log_length,
            parameters,
            gradient,
        )
        return value, gradient

    def best_length(self, parameters: NDArray[np.float64], around: float) -> tuple[float, float]:
        """Find the length of the Gaussian kernel and the beta > 0 that explain the labels best."""
        problem = self.problem
        return best_length(
            self._points,
            problem.labels,
            problem.class_starts,
            self.log_scales(parameters),
            around * NEIGHBORING if around > 0.0 else np.zeros(N_LENGTHS),
        )

    def quasi_newton(
        self,
        gradient: NDArray[np.float64],
        moves: NDArray[np.float64],
        changes: NDArray[np.float64],
        n_kept: int,
    ) -> NDArray[np.float64]:
        """Multiply minus the gradient by the inverse curvature that past steps have shown."""
        direction = np.empty_like(gradient)
        quasi_newton(gradient, moves, changes, n_kept, direction)
        return direction


@compiled
def penalized_field(
    points: Singles,
    labels: Ints,
    class_starts: Ints,
    shares: Floats,
    independence: Floats,
    precisions: Floats,
    log_length: float,
    parameters: Floats,
    gradient: Floats,
) -> float:
    """Evaluate the objective and fill in its gradient: the compiled `ScaleObjective`."""
    n_features, n_parameters = shares.shape[0], precisions.shape[0]
    beta = min(max(float(np.exp(parameters[n_parameters])), MIN_BETA), MAX_BETA)
    scales = np.empty(n_features)
    fill_scales(parameters, shares, independence, scales)
    factors = np.empty(n_features, dtype=np.float32)
    for f in range(n_features):
        factors[f] = scales[f] / np.exp(log_length)
    by_scale = np.zeros(n_features)
    value, by_beta = field_slopes(points, labels, class_starts, factors, beta, by_scale)
    total = 0.0
    for f in range(n_features):
        total += by_scale[f]
    for p in range(n_parameters):
        gradient[p] = 0.0
    for f in range(n_features):
        by_raw = by_scale[f] - shares[f] * scales[f] * scales[f] * total
        gradient[f] -= independence[f] * by_raw
        gradient[n_features] -= (1.0 - independence[f]) * by_raw
    penalty = (beta / PRIOR_SD_BETA) ** 2
    for p in range(n_parameters):
        gradient[p] += precisions[p] * parameters[p]
        penalty += precisions[p] * parameters[p] ** 2
    gradient[n_parameters] = (beta / PRIOR_SD_BETA) ** 2 - beta * by_beta
    return 0.5 * penalty - value


@compilable
def fill_scales(parameters: Floats, shares: Floats, independence: Floats, scales: Floats) -> None:
    """Turn free parameters into scales that leave the mean squared distance as it was."""
    n_features = shares.shape[0]
    top = -np.inf
    for f in range(n_features):
        scales[f] = independence[f] * parameters[f]
        scales[f] += (1.0 - independence[f]) * parameters[n_features]
        top = max(top, scales[f])
    mean = 0.0
    for f in range(n_features):
        scales[f] = np.exp(scales[f] - top)
        mean += shares[f] * scales[f] * scales[f]
    for f in range(n_features):
        scales[f] /= np.sqrt(mean)


@compilable
def field_slopes(
    points: Singles,
    labels: Ints,
    class_starts: Ints,
    factors: Singles,
    beta: float,
    by_scale: Floats,
) -> tuple[float, float]:
    r"""Evaluate the log pseudolikelihood and its slopes in the log scales and in beta.

    With the residual :math:`e_{ig} = 1[y_i = g] - p(y_i = g \mid y_{-i})` and
    :math:`b_{ij} = \beta (e_{i y_j} + e_{j y_i})`, the derivative by
    :math:`\log \kappa_{ij} = -d_{ij}^2 / 2` is
    :math:`w_{ij} (b_{ij} - \sum_l w_{il} b_{il})`. Adds to zeros in `by_scale`.
    """
    n_points, n_features = points.shape
    weights = squared_distances(points, factors)
    sums = np.empty((n_points, class_starts.shape[0] - 1))
    weigh_neighbors(weights, class_starts, 1.0, sums)
    support = np.empty_like(sums)
    fill_support(weights, sums, labels, support)
    residuals = np.empty((support.shape[1], n_points), dtype=np.float32)
    value, by_beta = fill_residuals(support, labels, beta, residuals)
    fill_kernel_gradient(weights, sums, labels, class_starts, residuals, beta)
    by_square = np.zeros(n_points, dtype=np.float32)
    for i in range(n_points):
        add_to(weights[i], by_square)
    products = np.dot(weights, points)
    # Rows of the gradient sum to zero: of sum_ij g_ij (x_i - x_j)^2 three terms are two.
    for i in range(n_points):
        add_slopes(points[i], products[i], by_square[i], by_scale)
    for f in range(n_features):
        by_scale[f] *= -factors[f] * factors[f]
    return value, by_beta


@compiled
def best_length(
    points: Singles, labels: Ints, class_starts: Ints, log_scales: Floats, lengths: Floats
) -> tuple[float, float]:
    """Find the best length of the kernel, and beta: as `ScaleObjective.best_length`.

    The lengths to try, or zeros to be filled in with some from near to far.
    """
    factors = np.empty(log_scales.shape[0], dtype=np.float32)
    for f in range(factors.shape[0]):
        factors[f] = np.exp(log_scales[f])
    squared = squared_distances(points, factors)
    if lengths[0] == 0.0:
        fill_lengths(squared, lengths)
    weights = np.empty_like(squared)
    sums = np.empty((squared.shape[0], class_starts.shape[0] - 1))
    support = np.empty_like(sums)
    beta, best_mass, best, its_beta = 3.0, -np.inf, lengths[0], 1.0
    for q in range(lengths.shape[0]):
        for i in range(squared.shape[0]):
            copy_to(squared[i], weights[i])
        weigh_neighbors(weights, class_starts, lengths[q] ** -2, sums)
        fill_support(weights, sums, labels, support)
        beta, log_mass = best_beta(support, labels, PRIOR_SD_BETA**-2, MAX_BETA, beta)
        if log_mass > best_mass:
            best_mass, best, its_beta = log_mass, lengths[q], beta
    return best, its_beta


@compilable
def fill_lengths(squared: Singles, lengths: Floats) -> None:
    """Fill in lengths between those of near neighbours and the largest."""
    n_points, n_lengths = squared.shape[0], lengths.shape[0]
    nearest, farthest = 0.0, 0.0
    for i in range(n_points):
        for j in range(n_points):
            farthest = max(farthest, squared[i, j])
        squared[i, i] = FAR
        nearest += np.sqrt(smallest_of(squared[i])) / n_points
    low = np.log(max(0.1 * nearest, 1e-4 * np.sqrt(farthest)))
    high = 0.5 * np.log(farthest)
    for q in range(n_lengths):
        lengths[q] = np.exp(low + (high - low) * q / (n_lengths - 1))


@compiled
def quasi_newton(
    gradient: Floats, moves: Floats, changes: Floats, n_kept: int, direction: Floats
) -> None:
    """Fill in the direction of the next step: the compiled `ScaleObjective.quasi_newton`."""
    n_memory, largest = moves.shape[0], 1.0
    for p in range(gradient.shape[0]):
        largest = max(largest, abs(gradient[p]))
        direction[p] = -gradient[p]
    if n_kept == 0:
        for p in range(gradient.shape[0]):
            direction[p] /= largest
        return
    shares, curvatures = np.empty(n_memory), np.empty(n_memory)
    oldest = max(n_kept - n_memory, 0)
    for t in range(n_kept - 1, oldest - 1, -1):
        row = t % n_memory
        curvatures[row] = inner64(moves[row], changes[row])
        shares[row] = inner64(moves[row], direction) / curvatures[row]
        add_multiple(changes[row], -shares[row], direction)
    last = (n_kept - 1) % n_memory
    unit = curvatures[last] / inner64(changes[last], changes[last])
    for p in range(gradient.shape[0]):
        direction[p] *= unit
    for t in range(oldest, n_kept):
        row = t % n_memory
        correction = inner64(changes[row], direction) / curvatures[row]
        add_multiple(moves[row], shares[row] - correction, direction)


@compiled(fastmath=ANY_ORDER)
def inner64(first: Floats, second: Floats) -> float:
    """Add up the products of values."""
    total = 0.0
    for p in range(first.shape[0]):
        total += first[p] * second[p]
    return total


@compiled
def add_multiple(values: Floats, factor: float, total: Floats) -> None:
    """Add a multiple of values to a total, each in its place."""
    for p in range(values.shape[0]):
        total[p] += factor * values[p]
