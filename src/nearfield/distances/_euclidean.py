"""Euclidean distances from many new points to the training points, fast."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.distances.kernels.euclidean import euclidean_rows


def euclidean_distances_to(
    new_points: ArrayLike, points: ArrayLike, dtype: Any = np.float64
) -> NDArray[Any]:
    r"""Measure the distance from every new point to every point.

    .. math:: d_{ij} = \Big(\sum_f (x_{if} - y_{jf})^2\Big)^{1/2}

    By subtraction: near points keep their digits, identical ones are at distance zero, and a row
    does not depend on the others. For ten features it is also faster than a matrix product.

    Parameters
    ----------
    new_points : array-like, shape (m, n_features)
    points : array-like, shape (n, n_features)
    dtype : type
        ``numpy.float32`` takes half the time.

    Returns
    -------
    distances : ndarray, shape (m, n)
    """
    new_points, points = np.asarray(new_points), np.asarray(points)
    n_features = points.shape[1]
    n_even = n_features + n_features % 2  # with a feature of zeros if need be
    rows = np.zeros((len(new_points), n_even), dtype=dtype)
    columns = np.zeros((n_even, len(points)), dtype=dtype)
    rows[:, :n_features], columns[:n_features] = new_points, points.T
    distances = np.zeros((len(rows), len(points)), dtype=dtype)
    euclidean_rows(rows, columns, distances)
    return distances
