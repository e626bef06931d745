"""Euclidean distances from new points, by subtraction: all digits, a vector of points at a time."""

import math
from typing import Any

from numpy.typing import NDArray

from nearfield._compile import compiled


@compiled(fastmath={"contract"})
def euclidean_rows(
    new_points: NDArray[Any], columns: NDArray[Any], distances: NDArray[Any]
) -> None:
    """Turn zeros into the distance from each new point to each point.

    Parameters
    ----------
    new_points : ndarray, shape (m, n_features)
    columns : ndarray, shape (n_features, n)
        The points, one feature a row; the number of features is even.
    distances : ndarray, shape (m, n)
    """
    n_features, n_points = columns.shape
    for i in range(new_points.shape[0]):
        for f in range(0, n_features, 2):  # two at a time: half the traffic
            first, second = new_points[i, f], new_points[i, f + 1]
            for j in range(n_points):
                first_gap, second_gap = first - columns[f, j], second - columns[f + 1, j]
                distances[i, j] += first_gap * first_gap + second_gap * second_gap
        for j in range(n_points):
            distances[i, j] = math.sqrt(distances[i, j])
