"""Values and the rows that they belong to, in order: by value, and then by row."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled

Values = NDArray[np.floating]  # float32 or float64
Ints = NDArray[np.int64]

_N_BY_INSERTION = 16


@compiled
def put_smallest_first(values: Values, rows: Ints, n_smallest: int) -> None:
    """Move the smallest values to the front, the largest of them to the end of these."""
    low, high, wanted = 0, values.shape[0] - 1, n_smallest - 1
    while low < high:
        middle = _partition(values, rows, low, high)
        if wanted <= middle:
            high = middle
        else:
            low = middle + 1


@compiled
def sort_pairs(values: Values, rows: Ints) -> None:
    """Sort by value, and then by row."""
    size = values.shape[0]
    if size < _N_BY_INSERTION:
        for t in range(1, size):
            value, row, at = values[t], rows[t], t
            while at > 0 and _comes_after(values[at - 1], rows[at - 1], value, row):
                values[at], rows[at] = values[at - 1], rows[at - 1]
                at -= 1
            values[at], rows[at] = value, row
        return
    middle = _partition(values, rows, 0, size - 1) + 1
    sort_pairs(values[:middle], rows[:middle])
    sort_pairs(values[middle:], rows[middle:])


@compiled
def merge_pairs(
    values: Values, rows: Ints, places: Ints, starts: Ints, more_values: Values, more_rows: Ints
) -> None:
    """Merge sorted lists into sorted rows of values, which keep their length; in place.

    Parameters
    ----------
    values, rows : ndarray, shape (m, K)
    places : ndarray of int, shape (n_lists,)
        The row that each list belongs to.
    starts : ndarray of int, shape (n_lists + 1,)
    more_values, more_rows : ndarray, shape (starts[-1],)
    """
    size = values.shape[1]
    old_values, old_rows = np.empty(size), np.empty(size, dtype=np.int64)
    for t in range(places.shape[0]):
        p, new, stop, old = places[t], starts[t], starts[t + 1], 0
        old_values[:], old_rows[:] = values[p], rows[p]
        for k in range(size):
            if new < stop and _comes_after(
                old_values[old], old_rows[old], more_values[new], more_rows[new]
            ):
                values[p, k], rows[p, k] = more_values[new], more_rows[new]
                new += 1
            else:
                values[p, k], rows[p, k] = old_values[old], old_rows[old]
                old += 1


@compilable
def _comes_after(value: float, row: int, other: float, other_row: int) -> bool:
    return value > other or (value == other and row > other_row)


@compilable
def _partition(values: Values, rows: Ints, low: int, high: int) -> int:
    """Part low .. high into smaller ones and, after the place returned, larger ones."""
    pivot, pivot_row = values[(low + high) // 2], rows[(low + high) // 2]
    low, high = low - 1, high + 1
    while True:
        low, high = low + 1, high - 1
        while _comes_after(pivot, pivot_row, values[low], rows[low]):
            low += 1
        while _comes_after(values[high], rows[high], pivot, pivot_row):
            high -= 1
        if low >= high:
            return high
        values[low], values[high] = values[high], values[low]
        rows[low], rows[high] = rows[high], rows[low]
