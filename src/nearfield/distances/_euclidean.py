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
    rows = np.ascontiguousarray(new_points, dtype=dtype)
    columns = np.ascontiguousarray(np.asarray(points, dtype=dtype).T)
    distances = np.empty((len(rows), columns.shape[1]), dtype=dtype)
    euclidean_rows(rows, columns, distances)
    return distances
