"""Euclidean distances from new points, by subtraction: all digits, a vector of points at a time."""

import math

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled

Floats = NDArray[np.float64]


@compiled
def euclidean_rows(new_points: Floats, columns: Floats, distances: Floats) -> None:
    """Fill in the distance from each new point to each point.

    Parameters
    ----------
    new_points : ndarray, shape (m, n_features)
    columns : ndarray, shape (n_features, n)
        The points, one feature a row.
    distances : ndarray, shape (m, n)
    """
    n_features = columns.shape[0]
    for i in range(new_points.shape[0]):
        row = distances[i]
        row[:] = 0.0
        for f in range(0, n_features - 1, 2):  # two at a time: half the traffic
            add_squares(new_points[i, f], columns[f], new_points[i, f + 1], columns[f + 1], row)
        if n_features % 2:
            last = n_features - 1
            add_square(new_points[i, last], columns[last], row)
        take_roots(row)


@compiled(fastmath={"contract"})
def add_squares(
    first: float, first_values: Floats, second: float, second_values: Floats, row: Floats
) -> None:
    """Add the squared differences of two features."""
    for j in range(row.shape[0]):
        first_gap, second_gap = first - first_values[j], second - second_values[j]
        row[j] += first_gap * first_gap + second_gap * second_gap


@compiled(fastmath={"contract"})
def add_square(value: float, values: Floats, row: Floats) -> None:
    """Add the squared differences of a feature."""
    for j in range(row.shape[0]):
        gap = value - values[j]
        row[j] += gap * gap


@compiled
def take_roots(row: Floats) -> None:
    """Replace squares by their roots."""
    for j in range(row.shape[0]):
        row[j] = math.sqrt(row[j])
