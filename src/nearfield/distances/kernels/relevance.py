"""The objective of the search for scales of features, compiled: scaled points, the gradient."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled

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
