"""The nearest of points in a tree of boxes, exactly.

Distances are measured in single precision, eight at a time; those that may be small enough are
measured again in double precision. What is in a box that is too far is passed over.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._block_list import PLACES
from nearfield.sampling._block_vector import (
    keep_box_sizes,
    keep_box_squares,
    keep_sizes,
    keep_squares,
)
from nearfield.sampling.box_tree import MOST_LEVELS, WIDTH
from nearfield.sampling.pair_sort import put_smallest_first, sort_pairs

N_AT_ONCE = WIDTH**3
"""So many points are in the smallest nodes that are looked into by themselves."""

_ROUNDING = 2.0**-23
_TINY = 1e-36  # smaller numbers lose their digits in single precision
_COUNTS = np.array([bin(bits).count("1") for bits in range(1 << WIDTH)])
_MORE = 1.2  # times as far as the last one of the target before: so far is looked at first


@njit(cache=True, nogil=True, error_model="numpy")
def box_neighbors(targets, tree, points, rows, distances, index):
    """Find the nearest points of each target, nearest first; of equally far ones the first rows.

    Targets that are near the one before take less time.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    tree : BoxTree
    points : ndarray, shape (n, n_features)
        In the order of the tree; at least K.
    rows : ndarray of int, shape (n,)
        The numbers of these points.
    distances : ndarray, shape (m, K)
    index : ndarray of int, shape (m, K)
        Rows of the nearest points.
    """
    (n_targets, n_neighbors), n_features = distances.shape, targets.shape[1]
    blocks, boxes, sizes, starts = tree.blocks, tree.boxes, tree.sizes, tree.starts
    n_points, power = tree.n_points, tree.power
    found = np.empty(2 * n_neighbors)
    found_rows = np.empty(2 * n_neighbors, dtype=np.int64)
    single = np.empty(n_features, dtype=np.float32)
    levels, nodes, node_powers = make_stack()
    powers, near, room = make_room()
    farthest = np.inf
    i = 0
    while i < n_targets:
        margin = place_single(targets[i], tree.origin, power, single)
        is_guess = farthest < np.inf
        limit = single_limit(farthest, margin, n_features, power)
        n_found, n_nodes = 0, 1
        levels[0], nodes[0], node_powers[0] = sizes.shape[0] - 1, 0, np.float32(0.0)
        while n_nodes > 0:
            n_nodes -= 1
            if node_powers[n_nodes] > limit:
                continue
            level, node = levels[n_nodes], nodes[n_nodes]
            at, first, n_below = starts[level] + node, WIDTH * node, sizes[level - 1]
            bits = boxes_near(single, power, boxes, at, powers, None, limit)
            if level > 2:
                n_nodes = push(
                    bits, powers, level - 1, first, n_below, levels, nodes, node_powers, n_nodes
                )
                continue
            n_near = note(bits, first, n_below, near, 0)
            n_near = points_near(
                single,
                power,
                blocks,
                boxes,
                n_points,
                (None, None),
                limit,
                powers,
                near,
                n_near,
                room,
            )
            for t in range(n_near):
                value, place = 0.0, near[t]
                for f in range(n_features):
                    gap = targets[i, f] - points[place, f]
                    value += gap * gap if power == 2 else abs(gap)
                if value > farthest:
                    continue
                found[n_found], found_rows[n_found] = value, rows[place]
                n_found += 1
                if n_found == found.shape[0]:
                    put_smallest_first(found, found_rows, n_neighbors)
                    n_found, farthest = n_neighbors, found[n_neighbors - 1]
                    limit = single_limit(farthest, margin, n_features, power)
        if is_guess and n_found < n_neighbors:
            farthest = np.inf
            continue
        put_smallest_first(found[:n_found], found_rows[:n_found], n_neighbors)
        sort_pairs(found[:n_neighbors], found_rows[:n_neighbors])
        for k in range(n_neighbors):
            distances[i, k] = np.sqrt(found[k]) if power == 2 else found[k]
            index[i, k] = found_rows[k]
        farthest = found[n_neighbors - 1] * (_MORE * _MORE if power == 2 else _MORE)
        i += 1


@register_jitable
def make_stack():
    """Make room for nodes that are still to be looked into: their levels, numbers and powers."""
    size = WIDTH * MOST_LEVELS
    levels, nodes = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return levels, nodes, np.empty(size, dtype=np.float32)


@register_jitable
def make_room():
    """Make room for the powers of eight boxes, and for two lists of what is in a small node."""
    shape = N_AT_ONCE + WIDTH
    powers = np.empty(WIDTH, dtype=np.float32)
    return powers, np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)


@register_jitable
def push(bits, powers, level, first, n_below, levels, nodes, node_powers, n_nodes):
    """Put the nodes that are marked on the stack, the nearest on top; return how many are there."""
    bottom = n_nodes
    for c in range(min(WIDTH, n_below - first)):
        if bits >> c & 1:
            at, power = n_nodes, powers[c]
            while at > bottom and node_powers[at - 1] < power:
                levels[at], nodes[at] = levels[at - 1], nodes[at - 1]
                node_powers[at] = node_powers[at - 1]
                at -= 1
            levels[at], nodes[at], node_powers[at] = level, first + c, power
            n_nodes += 1
    return n_nodes


@register_jitable
def points_near(single, power, blocks, boxes, n_points, bounds, limit, powers, near, n_nodes, room):
    """Replace nodes of eight blocks by the points in them that may be near; return how many.

    Those within the limit, or within bounds of their own.

    Parameters
    ----------
    single : ndarray of float32, shape (n_features,)
    power : int
    blocks, boxes, n_points
        Of the tree.
    bounds : tuple of ndarray of float32, or of None
        Eight numbers a node, and eight a block.
    limit : float32
    powers : ndarray of float32, shape (8,)
        Room to work.
    near : ndarray of int, shape (520,)
        The nodes, of which there are n_nodes, and then the places of the points.
    n_nodes : int
    room : ndarray of int, shape (520,)
    """
    box_bounds, point_bounds = bounds
    n_blocks, n_kept, n_near = 0, 0, 0
    for t in range(n_nodes):
        bits = boxes_near(single, power, boxes, near[t], powers, box_bounds, limit)
        n_blocks = note(bits, WIDTH * near[t], blocks.shape[0], room, n_blocks)
    for t in range(n_blocks):
        if power == 2:
            bits = keep_squares(single, blocks, room[t], powers, point_bounds, limit)  # type: ignore[call-arg]
        else:
            bits = keep_sizes(single, blocks, room[t], powers, point_bounds, limit)  # type: ignore[call-arg]
        room[n_kept] = room[t] << WIDTH | bits  # most blocks have none, and are written over
        n_kept += 1 if bits else 0
    for t in range(n_kept):
        bits, block = room[t] & (1 << WIDTH) - 1, room[t] >> WIDTH
        n_near = note(bits, WIDTH * block, n_points, near, n_near)
    return n_near


@register_jitable
def boxes_near(single, power, boxes, at, powers, bounds, limit):
    """Measure to eight boxes; tell which are within the limit, or within their bounds."""
    if power == 2:
        return keep_box_squares(single, boxes, at, powers, bounds, limit)  # type: ignore[call-arg]
    return keep_box_sizes(single, boxes, at, powers, bounds, limit)  # type: ignore[call-arg]


@register_jitable
def note(bits, first, stop, noted, n_noted):
    """Note the numbers of what is marked, from the first on and below the stop.

    Always eight, of which those that are too many are written over: no branch to miss.
    """
    if stop - first < WIDTH:
        bits &= (1 << (stop - first)) - 1
    for c in range(WIDTH):
        noted[n_noted + c] = first + PLACES[bits, c]
    return n_noted + _COUNTS[bits]


@register_jitable
def place_single(target, origin, power, single):
    """Take a point relative to the origin, in single precision; bound what that does to distances.

    Either end of a distance d is moved by half a digit of how far it is from the origin, and the
    other end is no farther from there than d more than this one.
    """
    total = 0.0
    for f in range(target.shape[0]):
        gap = target[f] - origin[f]
        single[f] = gap
        total += gap * gap if power == 2 else abs(gap)
    return margin_of(np.sqrt(total) if power == 2 else total)


@register_jitable
def margin_of(length):
    """Bound by how much single distances are off, less a part, if one end is so far out."""
    return _ROUNDING * length + _TINY


@njit(cache=True, nogil=True, error_model="numpy")
def fill_bounds(reaches, lengths, n_features, power, bounds):
    """Fill in the powers of single distances up to which points, so far out, may reach."""
    for j in range(reaches.shape[0]):
        reach = reaches[j] * reaches[j] if power == 2 else reaches[j]
        bounds[j] = single_limit(reach, margin_of(lengths[j]), n_features, power)


@register_jitable
def single_limit(value, margin, n_features, power):
    """Bound the power, measured in single precision, of distances whose power is below a value."""
    distance = (np.sqrt(value) if power == 2 else value) * (1.0 + _ROUNDING) + margin
    highest = distance * distance if power == 2 else distance
    return np.float32(highest * (1.0 + _ROUNDING * (n_features + 4)))
