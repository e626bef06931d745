"""Exact neighbour queries on a tree of boxes, forward and reverse.

Distances are measured in single precision, eight at a time; those that may be small enough are
measured again in double precision. Boxes that are too far are skipped.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield.neighbors.kernels.box_tree import MOST_LEVELS, WIDTH, BoxTree
from nearfield.neighbors.kernels.pair_sort import put_smallest_first, sort_pairs
from nearfield.neighbors.kernels.vector import (
    keep_box_sizes,
    keep_box_squares,
    keep_sizes,
    keep_squares,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.generic)

N_AT_ONCE = WIDTH**3
"""Number of points in the smallest nodes that are put on the stack."""

_ROUNDING = 2.0**-23
_TINY = 1e-36  # smaller numbers lose their digits in single precision
_GUESS = 1.2  # times the last distance of the query before: the first limit of the next query
_NONE = np.float32(-1.0)  # a limit that leaves the decision to the bounds
_BIT_COUNTS = np.array([bin(mask).count("1") for mask in range(1 << WIDTH)])


def _set_bits() -> NDArray[np.uint8]:
    """List the set bits of every byte, shape (256, 8); the rest of a row is zero."""
    places = np.zeros((1 << WIDTH, WIDTH), dtype=np.uint8)
    for mask in range(1 << WIDTH):
        chosen = [k for k in range(WIDTH) if mask >> k & 1]
        places[mask, : len(chosen)] = chosen
    return places


_SET_BITS = _set_bits()


@compiled
def box_neighbors(
    queries: Floats,
    limits: Floats,
    tree: BoxTree,
    points: Floats,
    rows: Ints,
    distances: Floats,
    index: Ints,
) -> None:
    """Find the nearest points of each query, nearest first; of equally far ones the first rows.

    A query that is near the one before takes less time.

    Parameters
    ----------
    queries : ndarray, shape (m, n_features)
    limits : ndarray, shape (m,)
        The largest distance of each; where fewer points are within it, the rest are rows -1 at
        infinity.
    tree : BoxTree
    points : ndarray, shape (n, n_features)
        In the order of the tree.
    rows : ndarray of int, shape (n,)
        The row numbers of these points.
    distances : ndarray, shape (m, K)
        Filled in.
    index : ndarray of int, shape (m, K)
        Filled in with the row numbers of the nearest points.
    """
    (n_queries, n_neighbors), n_features = distances.shape, queries.shape[1]
    boxes, sizes, starts, power = tree.boxes, tree.sizes, tree.starts, tree.power
    found = np.empty(2 * n_neighbors)
    found_rows = np.empty(2 * n_neighbors, dtype=np.int64)
    single = np.empty(n_features, dtype=np.float32)
    levels, nodes, node_powers = _make_stack()
    powers, near, work = _make_work()
    guess = np.inf
    i = 0
    while i < n_queries:
        margin = _to_single(queries[i], tree.origin, power, single)
        farthest = limits[i] * limits[i] if power == 2 else limits[i]
        is_guess = guess < farthest
        farthest = min(guess, farthest)
        limit = _single_limit(farthest, margin, n_features, power)
        n_found, n_nodes = 0, 1
        levels[0], nodes[0], node_powers[0] = sizes.shape[0] - 1, 0, np.float32(0.0)
        while n_nodes > 0:
            n_nodes -= 1
            if node_powers[n_nodes] > limit:
                continue
            level, node = levels[n_nodes], nodes[n_nodes]
            at, first, n_below = starts[level] + node, WIDTH * node, sizes[level - 1]
            mask = _boxes_in_reach(single, power, boxes, at, powers, None, limit)
            if level > 2:
                n_nodes = _push(
                    mask, powers, level - 1, first, n_below, levels, nodes, node_powers, n_nodes
                )
                continue
            n_near = _list_set(mask, first, n_below, near, 0)
            n_near = _points_in_reach(single, tree, (None, None), limit, powers, near, n_near, work)
            for t in range(n_near):
                value, place = _power(queries[i], points[near[t]], power), near[t]
                if value > farthest:
                    continue
                found[n_found], found_rows[n_found] = value, rows[place]
                n_found += 1
                if n_found == found.shape[0]:
                    put_smallest_first(found, found_rows, n_neighbors)
                    n_found, farthest = n_neighbors, found[n_neighbors - 1]
                    limit = _single_limit(farthest, margin, n_features, power)
        guess = np.inf
        if is_guess and n_found < n_neighbors:
            continue
        if n_found >= n_neighbors:
            put_smallest_first(found[:n_found], found_rows[:n_found], n_neighbors)
            n_found = n_neighbors
            guess = found[n_neighbors - 1] * (_GUESS * _GUESS if power == 2 else _GUESS)
        sort_pairs(found[:n_found], found_rows[:n_found])
        for k in range(n_found):
            distances[i, k] = np.sqrt(found[k]) if power == 2 else found[k]
            index[i, k] = found_rows[k]
        distances[i, n_found:], index[i, n_found:] = np.inf, -1
        i += 1


@compiled
def box_reverse_neighbors(
    queries: Floats,
    tree: BoxTree,
    points: Floats,
    rows: Ints,
    reaches: Floats,
    bounds: tuple[Singles, Singles],
) -> tuple[Ints, Ints, Floats]:
    """Find, for each query, all points that have it within their reach.

    The queries go down the tree together, so that a box is read once for all that are near it:
    reading it from memory takes longer than measuring.

    Parameters
    ----------
    queries : ndarray, shape (m, n_features)
    tree : BoxTree
    points : ndarray, shape (n, n_features)
        In the order of the tree.
    rows : ndarray of int, shape (n,)
        The row numbers of these points.
    reaches : ndarray, shape (n,)
        In the order of the tree.
    bounds : tuple of ndarray of float32
        The reaches as powers of single distances, of eight boxes a node and of eight points a
        block; see `fill_bounds`.

    Returns
    -------
    starts : ndarray of int, shape (m + 1,)
        Where the results of each query start.
    found_rows : ndarray of int, shape (n_found,)
        Those of a query in the order of the tree.
    found_distances : ndarray, shape (n_found,)
    """
    (n_queries, n_features), power = queries.shape, tree.power
    singles = np.empty((n_queries, n_features), dtype=np.float32)
    for i in range(n_queries):
        _to_single(queries[i], tree.origin, power, singles[i])
    # At each level on the way down: the node, the queries that came to it, the boxes of the node
    # that each of these may be in reach of, and the boxes left to visit, as bits.
    top = tree.sizes.shape[0] - 1
    nodes, counts = np.zeros(top + 1, dtype=np.int64), np.zeros(top + 1, dtype=np.int64)
    active = np.empty((top + 1, n_queries), dtype=np.int32)
    masks = np.empty((top + 1, n_queries), dtype=np.uint8)
    left = np.zeros(top + 1, dtype=np.int64)
    powers, near, work = _make_work()
    found_queries = np.empty(16 * n_queries + N_AT_ONCE, dtype=np.int32)
    found_places = np.empty(found_queries.shape[0], dtype=np.int64)
    found_distances = np.empty(found_queries.shape[0])
    n_found, level = 0, top
    counts[top], active[top] = n_queries, np.arange(n_queries)
    left[top] = _mark_boxes(singles, active[top], tree, top, 0, bounds, powers, masks)
    while level <= top:
        if level > 2 and left[level] == 0:
            level += 1
            continue
        if level > 2:
            box = _SET_BITS[left[level], 0]
            left[level] &= left[level] - 1
            level -= 1
            nodes[level], n_active = WIDTH * nodes[level + 1] + box, 0
            for t in range(counts[level + 1]):
                active[level, n_active] = active[level + 1, t]
                n_active += masks[level + 1, t] >> box & 1
            left[level] = _mark_boxes(
                singles, active[level, :n_active], tree, level, nodes[level], bounds, powers, masks
            )
            counts[level] = n_active
            continue
        for t in range(counts[2]):  # eight nodes of eight blocks, which fit a cache
            i, mask = active[2, t], np.int64(masks[2, t])
            n_near = _list_set(mask, WIDTH * nodes[2], tree.sizes[1], near, 0)
            n_near = _points_in_reach(singles[i], tree, bounds, _NONE, powers, near, n_near, work)
            if n_found + n_near > found_places.shape[0]:
                found_queries = _longer(found_queries, n_near)
                found_places = _longer(found_places, n_near)
                found_distances = _longer(found_distances, n_near)
            for place in near[:n_near]:
                value = _power(queries[i], points[place], power)
                distance = np.sqrt(value) if power == 2 else value
                found_queries[n_found], found_places[n_found] = i, place
                found_distances[n_found] = distance
                n_found += distance <= reaches[place]
        level += 1
    return _by_query(
        found_queries[:n_found], found_places[:n_found], found_distances[:n_found], n_queries, rows
    )


@compilable
def _mark_boxes(
    singles: Singles,
    some: NDArray[np.int32],
    tree: BoxTree,
    level: int,
    node: int,
    bounds: tuple[Singles, Singles],
    powers: Singles,
    masks: NDArray[np.uint8],
) -> int:
    """Mark the boxes of a node that some queries may be in reach of; return those of any query.

    Both are bit masks; `masks`, shape (n_levels, m), has one a query.
    """
    n_boxes = min(WIDTH, tree.sizes[level - 1] - WIDTH * node)
    of_any = 0
    for t in range(some.shape[0]):
        at = tree.starts[level] + node
        mask = _boxes_in_reach(
            singles[some[t]], tree.power, tree.boxes, at, powers, bounds[0], _NONE
        )
        masks[level, t] = mask
        of_any |= mask
    return of_any & (1 << n_boxes) - 1


@compilable
def _by_query(
    found_queries: NDArray[np.int32],
    found_places: Ints,
    found_distances: Floats,
    n_queries: int,
    rows: Ints,
) -> tuple[Ints, Ints, Floats]:
    """Sort results by query, and keep their order otherwise; see `box_reverse_neighbors`."""
    starts = np.zeros(n_queries + 1, dtype=np.int64)
    for i in found_queries:
        starts[i + 1] += 1
    starts = np.cumsum(starts)
    ends = starts.copy()
    found_rows, distances = np.empty_like(found_places), np.empty_like(found_distances)
    for t in range(found_queries.shape[0]):
        i = found_queries[t]
        found_rows[ends[i]], distances[ends[i]] = rows[found_places[t]], found_distances[t]
        ends[i] += 1
    return starts, found_rows, distances


@compiled
def fill_distances(
    points: Floats, rows: NDArray[np.integer], power: int, distances: Floats
) -> None:
    """Measure from each point to its neighbours, shape (n, n_columns), as a search does."""
    for i in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            value = _power(points[i], points[rows[i, c]], power)
            distances[i, c] = np.sqrt(value) if power == 2 else value


@compiled
def fill_bounds(
    reaches: Floats, lengths: Floats, n_features: int, power: int, bounds: Singles
) -> None:
    """Fill in how far points reach, as powers of single distances.

    `lengths` are the distances of the points from the origin of the tree.
    """
    for j in range(reaches.shape[0]):
        reach = reaches[j] * reaches[j] if power == 2 else reaches[j]
        bounds[j] = _single_limit(reach, _margin(lengths[j]), n_features, power)


@compilable
def _make_stack() -> tuple[Ints, Ints, Singles]:
    """Allocate the stack of nodes to visit: their levels, numbers and powers."""
    size = WIDTH * MOST_LEVELS
    levels, nodes = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return levels, nodes, np.empty(size, dtype=np.float32)


@compilable
def _make_work() -> tuple[Singles, Ints, Ints]:
    """Allocate the powers of eight boxes, and two lists of the contents of a small node."""
    shape = N_AT_ONCE + WIDTH
    powers = np.empty(WIDTH, dtype=np.float32)
    return powers, np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)


@compilable
def _longer(values: NDArray[_Number], n_more: int) -> NDArray[_Number]:
    longer = np.empty(2 * values.shape[0] + n_more, dtype=values.dtype)
    longer[: values.shape[0]] = values
    return longer


@compilable
def _push(
    mask: int,
    powers: Singles,
    level: int,
    first: int,
    n_below: int,
    levels: Ints,
    nodes: Ints,
    node_powers: Singles,
    n_nodes: int,
) -> int:
    """Push the nodes in reach on the stack, the nearest on top; return the size of the stack."""
    bottom = n_nodes
    for c in range(min(WIDTH, n_below - first)):
        if mask >> c & 1:
            at, power = n_nodes, powers[c]
            while at > bottom and node_powers[at - 1] < power:
                levels[at], nodes[at] = levels[at - 1], nodes[at - 1]
                node_powers[at] = node_powers[at - 1]
                at -= 1
            levels[at], nodes[at], node_powers[at] = level, first + c, power
            n_nodes += 1
    return n_nodes


@compilable
def _points_in_reach(
    single: Singles,
    tree: BoxTree,
    bounds: tuple[Singles, Singles] | tuple[None, None],
    limit: np.float32,
    powers: Singles,
    near: Ints,
    n_nodes: int,
    work: Ints,
) -> int:
    """Replace the nodes in `near` by the points in them that may be in reach; return their number.

    Parameters
    ----------
    single : ndarray of float32, shape (n_features,)
        The query relative to the origin.
    tree : BoxTree
    bounds : tuple of ndarray of float32, or of None
        Eight numbers a node, and eight a block.
    limit : float32
    powers : ndarray of float32, shape (8,)
        Work space.
    near : ndarray of int, shape (520,)
        Nodes of eight blocks on entry, of which there are n_nodes; places of points on return.
    n_nodes : int
    work : ndarray of int, shape (520,)
    """
    blocks, power, n_points = tree.blocks, tree.power, tree.n_points
    box_bounds, point_bounds = bounds
    n_blocks, n_kept, n_near = 0, 0, 0
    for t in range(n_nodes):
        mask = _boxes_in_reach(single, power, tree.boxes, near[t], powers, box_bounds, limit)
        n_blocks = _list_set(mask, WIDTH * near[t], blocks.shape[0], work, n_blocks)
    for t in range(n_blocks):
        if power == 2:
            mask = keep_squares(single, blocks, work[t], powers, point_bounds, limit)
        else:
            mask = keep_sizes(single, blocks, work[t], powers, point_bounds, limit)
        work[n_kept] = work[t] << WIDTH | mask  # most blocks have none, and are written over
        n_kept += 1 if mask else 0
    for t in range(n_kept):
        mask, block = work[t] & (1 << WIDTH) - 1, work[t] >> WIDTH
        n_near = _list_set(mask, WIDTH * block, n_points, near, n_near)
    return n_near


@compilable
def _boxes_in_reach(
    single: Singles,
    power: int,
    boxes: Singles,
    at: int,
    powers: Singles,
    bounds: Singles | None,
    limit: np.float32,
) -> int:
    """Measure to eight boxes; return a bit mask of those within the limit or their bounds."""
    if power == 2:
        return keep_box_squares(single, boxes, at, powers, bounds, limit)
    return keep_box_sizes(single, boxes, at, powers, bounds, limit)


@compilable
def _list_set(mask: int | np.int64, first: int, stop: int, listed: Ints, n_listed: int) -> int:
    """Append first + k for every set bit k, below `stop`; return the length of the list.

    Eight entries are always written, and those too many overwritten later: no branch to miss.
    """
    if stop - first < WIDTH:
        mask &= (1 << (stop - first)) - 1
    for c in range(WIDTH):
        listed[n_listed + c] = first + _SET_BITS[mask, c]
    return n_listed + _BIT_COUNTS[mask]


@compilable
def _power(query: Floats, point: Floats, power: int) -> float:
    """Measure the squared Euclidean or the Manhattan distance in double precision."""
    total = 0.0
    for f in range(query.shape[0]):
        gap = query[f] - point[f]
        total += gap * gap if power == 2 else abs(gap)
    return total


@compilable
def _to_single(query: Floats, origin: Floats, power: int, single: Singles) -> float:
    """Take a query relative to the origin, in single precision; bound the error of distances.

    Rounding moves either end of a distance d by half a digit of its distance from the origin, and
    the other end is no farther from the origin than this one plus d.
    """
    total = 0.0
    for f in range(query.shape[0]):
        gap = query[f] - origin[f]
        single[f] = gap
        total += gap * gap if power == 2 else abs(gap)
    return _margin(np.sqrt(total) if power == 2 else total)


@compilable
def _margin(length: float) -> float:
    """Bound the absolute error of single distances from a point this far from the origin."""
    return _ROUNDING * length + _TINY


@compilable
def _single_limit(value: float, margin: float, n_features: int, power: int) -> np.float32:
    """Bound the single-precision power of all distances whose power is at most a value."""
    distance = (np.sqrt(value) if power == 2 else value) * (1.0 + _ROUNDING) + margin
    highest = distance * distance if power == 2 else distance
    return np.float32(highest * (1.0 + _ROUNDING * (n_features + 4)))
