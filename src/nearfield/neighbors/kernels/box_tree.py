"""A tree of boxes around points: eight points a block, eight boxes a node.

Points are split at medians until eight are left, so that those of a block are near each other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield.neighbors.kernels.pair_sort import put_smallest_first

WIDTH = 8
"""So many points make a block, and so many boxes a node."""

_N_SPREAD = 512  # points that tell along which feature to split
MOST_LEVELS = 24
"""Of eight boxes each: more points than any machine has."""


class BoxTree(NamedTuple):
    """Points in blocks, and boxes around them, around eight of these, and so on, up to one node.

    All numbers are single, relative to the origin.
    """

    origin: NDArray[np.float64]  # shape (n_features,)
    blocks: NDArray[np.float32]  # shape (n_blocks, n_features, 8)
    boxes: NDArray[np.float32]  # shape (n_nodes, n_features, 2, 8): lows, highs of what is below
    sizes: NDArray[np.int64]  # shape (n_levels,): how many blocks, nodes of eight, ..., at last one
    starts: NDArray[np.int64]  # shape (n_levels,): the first node of each level; not of the blocks
    n_points: int
    power: int  # 2 for squared Euclidean distances, 1 for Manhattan distances


@compiled
def split_points(points: NDArray[np.float32], order: NDArray[np.int64]) -> None:
    """Bring points, shape (n, n_features), into an order in which neighbours are near each other.

    Parameters
    ----------
    points : ndarray of float32, shape (n, n_features)
    order : ndarray of int, shape (n,)
        To be filled in. Any 8, 64, 512, ... that a node is made of are split off by medians.
    """
    n_points = points.shape[0]
    order[:] = np.arange(n_points)
    keys = np.empty(n_points, dtype=np.float32)
    unit = WIDTH
    while unit < n_points:
        unit *= WIDTH
    stack = np.empty((4 * WIDTH * MOST_LEVELS, 3), dtype=np.int64)
    stack[0] = 0, n_points, unit
    n_left = 1
    while n_left > 0:
        n_left -= 1
        start, stop, unit = stack[n_left]
        while unit >= stop - start and unit > 1:
            unit //= WIDTH
        if unit < WIDTH:
            continue
        n_parts = (stop - start + unit - 1) // unit
        middle = start + n_parts // 2 * unit
        feature = _widest(points, order[start:stop])
        for i in range(start, stop):
            keys[i] = points[order[i], feature]
        put_smallest_first(keys[start:stop], order[start:stop], middle - start)
        stack[n_left] = start, middle, unit
        stack[n_left + 1] = middle, stop, unit
        n_left += 2


@compilable
def _widest(points: NDArray[np.float32], rows: NDArray[np.int64]) -> int:
    """Find the feature with the largest variance, over some of the points if there are many."""
    step = max(1, rows.shape[0] // _N_SPREAD)
    widest, largest = 0, -1.0
    for f in range(points.shape[1]):
        count, mean, spread = 0, 0.0, 0.0
        for i in range(0, rows.shape[0], step):
            count += 1
            gap = points[rows[i], f] - mean
            mean += gap / count
            spread += gap * (points[rows[i], f] - mean)
        if spread / count > largest:
            widest, largest = f, spread / count
    return widest
