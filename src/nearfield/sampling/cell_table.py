"""Distances to points that are sorted into cells: eight points at a time."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._block_vector import store_sizes, store_squares
from nearfield.sampling.euclidean import add_square, add_squares

BLOCK = 8
"""So many points of a cell lie together, feature by feature."""

_ZERO = np.float32(0.0)


class CellTable(NamedTuple):
    """Points by cell, and in each cell by their uniform numbers; references for far cells."""

    centres: NDArray[np.float64]  # shape (n_cells, n_features)
    centre_columns: NDArray[np.float32]  # one feature after the other
    sizes: NDArray[np.int64]  # shape (n_cells,), over all shards
    starts: NDArray[np.int64]  # shape (n_cells + 1,)
    keys: NDArray[np.float64]  # shape (n,), cell plus uniform number: they rise
    blocks: NDArray[np.float32]  # shape (n_blocks, n_features, 8), cell by cell, eight points each
    block_starts: NDArray[np.int64]  # shape (n_cells + 1,)
    reference_columns: NDArray[np.float32]  # one feature after the other
    reference_cells: NDArray[np.int64]  # shape (n_references,)
    power: int  # 2 for squared Euclidean distances, 1 for Manhattan distances


@register_jitable
def fill_powers(target, columns, start, stride, power, powers):
    """Fill in the powers of the distances to as many points, one feature after the other.

    The first feature of the points is in columns[start:], the next one a stride later.
    """
    n_features, size = target.shape[0], powers.shape[0]
    powers[:] = _ZERO
    if power == 1:
        for f in range(n_features):
            place = start + f * stride
            _add_size(target[f], columns[place : place + size], powers)
        return
    for f in range(0, n_features - 1, 2):  # two at a time: half the traffic
        place, after = start + f * stride, start + (f + 1) * stride
        others, more = columns[place : place + size], columns[after : after + size]
        add_squares(target[f], others, target[f + 1], more, powers)
    if n_features % 2:
        place = start + (n_features - 1) * stride
        add_square(target[n_features - 1], columns[place : place + size], powers)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_size(value, values, row):
    for j in range(row.shape[0]):
        row[j] += abs(value - values[j])


@njit(cache=True, nogil=True, error_model="numpy")
def measure_blocks(relative, blocks, first, n_blocks, power, powers):
    """Fill in the powers of the distances to the points of some blocks."""
    if power == 2:
        for t in range(n_blocks):
            store_squares(relative, blocks, first + t, powers, BLOCK * t)  # type: ignore[call-arg]
    else:
        for t in range(n_blocks):
            store_sizes(relative, blocks, first + t, powers, BLOCK * t)  # type: ignore[call-arg]


@register_jitable
def window_of(keys, c, start, end, shift, share, part):
    """Find the points of a cell with frac(number + shift) < share: from .. to, in two parts."""
    first = (1.0 - shift) % 1.0
    low, high = (first, min(first + share, 1.0)) if part == 0 else (0.0, first + share - 1.0)
    if high <= low:
        return start, start
    if low > 0.0:
        start = first_not_below(keys, c + low, start, end)
    if high < 1.0:
        end = first_not_below(keys, c + high, start, end)
    return start, end


@register_jitable
def first_not_below(keys, key, low, high):
    """Search low .. high, between which keys rise, for the first that is not below a key."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low
