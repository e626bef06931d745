"""The search for scales of features, compiled: scaled points, the gradient, the steps."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import ANY_ORDER

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@compiled
def scale_points(
    points: Singles,
    prior: tuple[Floats, Floats, Floats],
    parameters: Floats,
    log_length: float,
    scales: Floats,
    scaled: Singles,
) -> None:
    """Turn free parameters into scales that leave the mean squared distance as it was.

    Parameters
    ----------
    points, scaled : ndarray of float32, shape (n, n_features)
        The second is filled in with the points times the scales over the length of the kernel.
    prior : tuple of ndarray
        Shares, independence and precisions, as of `ScaleProblem`.
    parameters : ndarray, shape (n_features + 2,)
    log_length : float
    scales : ndarray, shape (n_features,)
        To be filled in.
    """
    shares, independence, _ = prior
    n_points, n_features = points.shape
    top = -np.inf
    for f in range(n_features):
        own = independence[f]
        scales[f] = own * parameters[f] + (1.0 - own) * parameters[n_features]
        top = scales[f] if scales[f] > top else top
    mean = 0.0
    for f in range(n_features):
        scales[f] = np.exp(scales[f] - top)
        mean += shares[f] * scales[f] * scales[f]
    for f in range(n_features):
        scales[f] /= np.sqrt(mean)
    per_length = np.exp(-log_length)
    for i in range(n_points):
        for f in range(n_features):
            scaled[i, f] = points[i, f] * np.float32(scales[f] * per_length)


@compiled(fastmath={"contract"})
def fill_gradient(
    points: Singles,
    products: Singles,
    by_square: Singles,
    scales: Floats,
    log_length: float,
    prior: tuple[Floats, Floats, Floats],
    parameters: Floats,
    gradient: Floats,
) -> float:
    r"""Fill in the gradient in all parameters but beta; return the penalty of their squares.

    Rows of the slopes g sum to zero: of :math:`\sum_{ij} g_{ij} (x_i - x_j)^2` three terms are two.

    Parameters
    ----------
    points : ndarray of float32, shape (n, n_features)
    products, by_square : ndarray of float32, shape (n, n_features) and (n,)
        Slopes times points, and their sums by column.
    scales, log_length, prior, parameters
        As of `scale_points`.
    gradient : ndarray, shape (n_features + 2,)
    """
    shares, independence, precisions = prior
    n_points, n_features = points.shape
    for f in range(n_features + 1):
        gradient[f] = 0.0
    for i in range(n_points):
        for f in range(n_features):
            point = points[i, f]
            gradient[f] += point * (by_square[i] * point - np.float32(2.0) * products[i, f])
    per_length, total = np.exp(-log_length), 0.0
    for f in range(n_features):
        factor = scales[f] * per_length
        gradient[f] *= -factor * factor
        total += gradient[f]
    common = 0.0
    for f in range(n_features):
        by_raw = gradient[f] - shares[f] * scales[f] * scales[f] * total
        gradient[f] = -independence[f] * by_raw
        common -= (1.0 - independence[f]) * by_raw
    gradient[n_features] = common
    penalty = 0.0
    for p in range(n_features + 1):
        gradient[p] += precisions[p] * parameters[p]
        penalty += precisions[p] * parameters[p] * parameters[p]
    return penalty


@compiled(fastmath=ANY_ORDER)
def quasi_newton(
    moves: Floats, changes: Floats, n_kept: int, work: Floats, direction: Floats
) -> None:
    """Turn minus the gradient into the direction of the next step: `ScaleObjective.quasi_newton`.

    Works in `work`, shape (2, n_memory).
    """
    n_memory, n_parameters = moves.shape
    shares, curvatures = work[0], work[1]
    oldest = n_kept - n_memory if n_kept > n_memory else 0
    for t in range(n_kept - 1, oldest - 1, -1):
        row, curvature, share = t % n_memory, 0.0, 0.0
        for p in range(n_parameters):
            curvature += moves[row, p] * changes[row, p]
            share += moves[row, p] * direction[p]
        curvatures[row], shares[row] = curvature, share / curvature
        for p in range(n_parameters):
            direction[p] -= shares[row] * changes[row, p]
    last, square = (n_kept - 1) % n_memory, 0.0
    for p in range(n_parameters):
        square += changes[last, p] * changes[last, p]
    for p in range(n_parameters):
        direction[p] *= curvatures[last] / square
    for t in range(oldest, n_kept):
        row, correction = t % n_memory, 0.0
        for p in range(n_parameters):
            correction += changes[row, p] * direction[p]
        for p in range(n_parameters):
            direction[p] += (shares[row] - correction / curvatures[row]) * moves[row, p]
