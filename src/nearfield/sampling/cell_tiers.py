"""Which cells are near a point: those that hold as many points as are wanted."""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._vector import ANY_ORDER
from nearfield.sampling._vector32 import bits32_of, float32_of
from nearfield.sampling.cell_table import fill_powers

_FEW_MORE = 32  # a part of the points that were asked for
_SLACK = 1.5  # cells beyond so many times the points that were asked for are not taken whole
_LARGEST = np.float32(1e38)
_ZERO = np.float32(0.0)


@register_jitable
def tiers_around(single, table, sizes, n_whole, n_part, to_centres, tiers):
    """Measure from a point, in single precision, to the cells, and choose among them.

    The nearest cells (1) hold `n_whole` points, about, and with those around them (2) `n_part`; the
    rest is far (0). The sizes of the cells come as float32, by which vector instructions count.
    """
    n_cells = sizes.shape[0]
    fill_powers(single, table.centre_columns, 0, n_cells, table.power, to_centres)
    if _count_within(to_centres, np.ones_like(sizes), _LARGEST) < n_cells:
        _make_finite(to_centres)
    ends = _ends_of(to_centres)
    tiers[:] = 0
    if n_part > n_whole:
        _take_nearest(to_centres, ends, sizes, n_part, np.int8(2), tiers)
    _take_nearest(to_centres, ends, sizes, n_whole, np.int8(1), tiers)


@njit(cache=True, nogil=True, error_model="numpy")
def _make_finite(values):
    """Bound values, in place."""
    for c in range(values.shape[0]):
        values[c] = values[c] if values[c] < _LARGEST else _LARGEST  # also what is not a number


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER | {"nnan"})
def _ends_of(values):
    """Find the smallest and the largest value."""
    smallest, largest = values[0], values[0]
    for c in range(values.shape[0]):
        smallest = values[c] if values[c] < smallest else smallest
        largest = values[c] if values[c] > largest else largest
    return smallest, largest


@njit(cache=True, nogil=True, error_model="numpy")
def _take_nearest(to_centres, ends, sizes, n_wanted, tier, tiers):
    """Mark the nearest cells that hold so many points, and not many more, with their tier."""
    bound, n_found = _bound_of_nearest(to_centres, ends, sizes, n_wanted)
    most = int(_SLACK * n_wanted)
    if n_found <= most:
        _mark_within(to_centres, bound, tier, tiers)
        return
    n_taken = 0
    for order in range(2):  # of those that tie, or one that is a crowd, as many as it takes
        for c in range(sizes.shape[0]):
            is_last = to_centres[c] == bound
            if to_centres[c] <= bound and is_last == (order == 1) and n_taken < most:
                tiers[c] = tier
                n_taken += sizes[c]


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_within(to_centres, bound, tier, tiers):
    for c in range(tiers.shape[0]):
        before = tiers[c]  # read in any case, so that vector instructions do it
        tiers[c] = tier if to_centres[c] <= bound else before


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_of_nearest(to_centres, ends, sizes, n_wanted):
    """Find how far the nearest cells with so many points are, and how many points are within.

    These are few more than were wanted, unless cells tie or are crowded. Bisection, where a step
    counts by vector instructions. It halves the bits of floats, whose order is that of the numbers,
    so that no outlier makes the others look alike.
    """
    enough = n_wanted + n_wanted // _FEW_MORE
    low, high = int(bits32_of(ends[0])), int(bits32_of(ends[1]))
    while low < high:
        middle = (low + high) >> 1
        bound = float32_of(np.int32(middle))
        n_found = _count_within(to_centres, sizes, bound)
        if n_wanted <= n_found <= enough:
            return bound, n_found
        if n_found < n_wanted:
            low = middle + 1
        else:
            high = middle
    bound = float32_of(np.int32(high))
    return bound, _count_within(to_centres, sizes, bound)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _count_within(to_centres, sizes, bound):
    count = _ZERO
    for c in range(sizes.shape[0]):
        count += sizes[c] if to_centres[c] <= bound else _ZERO
    return count
