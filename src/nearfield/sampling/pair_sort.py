"""Values and the rows that they belong to, in order: by value, and then by row."""

from numba import njit
from numba.extending import register_jitable

_N_BY_INSERTION = 16


@njit(cache=True, nogil=True, error_model="numpy")
def put_smallest_first(values, rows, n_smallest):
    """Move the smallest values to the front, the largest of them to the end of these."""
    low, high, wanted = 0, values.shape[0] - 1, n_smallest - 1
    while low < high:
        middle = _partition(values, rows, low, high)
        if wanted <= middle:
            high = middle
        else:
            low = middle + 1


@njit(cache=True, nogil=True, error_model="numpy")
def sort_pairs(values, rows):
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


@register_jitable
def _comes_after(value, row, other, other_row):
    return value > other or (value == other and row > other_row)


@register_jitable
def _partition(values, rows, low, high):
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
