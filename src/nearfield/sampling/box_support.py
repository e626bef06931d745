"""The support of new points under k nearest neighbours, from the points in near boxes alone."""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling.box_search import (
    boxes_near,
    make_room,
    make_stack,
    note,
    place_single,
    points_near,
    single_limit,
)
from nearfield.sampling.box_tree import WIDTH
from nearfield.sampling.nearest import ABOVE, add_listeners, add_own_neighbors, sum_ramps
from nearfield.sampling.selection import sorted_below

_FARTHER = 1.0 + 1e-8  # times the k-th distance: past many that tie with it, one by one


@njit(cache=True, nogil=True, error_model="numpy")
def box_support(targets, kth_distances, tree, points, rows, labels, ks, lists, bounds, support):
    """Fill in the support at each k, shape (m, n_ks, G), as `neighbor_support` does.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    kth_distances : ndarray, shape (m,)
        Of the last neighbour that counts, the k_max-th.
    tree : BoxTree
    points : ndarray, shape (n, n_features)
        In the order of the tree.
    rows : ndarray of int, shape (n,)
        The numbers of these points.
    labels : ndarray of int, shape (n,)
        By number.
    ks : ndarray, shape (n_ks + 1,)
        They rise, and end with one that is never reached.
    lists : tuple of ndarray, shapes (n, k_max) and (n,)
        The distances of the nearest neighbours of each training point, by number, and how many
        are no farther than the last of these, or tie with it.
    bounds : tuple of ndarray of float32, or None for both
        How far the new point may be for a training point to listen to it, as powers of single
        distances: eight numbers a node, and eight a block. None where nobody listens.
    support : ndarray, shape (m, n_ks, G)
    """
    nearest, n_as_near = lists
    box_bounds, point_bounds = bounds
    k_max, n_features, power = nearest.shape[1], targets.shape[1], tree.power
    blocks, boxes, sizes, starts = tree.blocks, tree.boxes, tree.sizes, tree.starts
    corners = np.empty((k_max + 2, support.shape[2]))
    single = np.empty(n_features, dtype=np.float32)
    levels, nodes, _ = make_stack()
    powers, near, room = make_room()
    distances, places = np.empty(4 * WIDTH**3), np.empty(4 * WIDTH**3, dtype=np.int64)
    for i in range(targets.shape[0]):
        margin = place_single(targets[i], tree.origin, power, single)
        own_limit = kth_distances[i] * _FARTHER
        limit = single_limit(own_limit**power, margin, n_features, power)
        n_found, n_nodes = 0, 1
        levels[0], nodes[0] = sizes.shape[0] - 1, 0
        while n_nodes > 0:
            n_nodes -= 1
            level, node = levels[n_nodes], nodes[n_nodes]
            at, first, n_below = starts[level] + node, WIDTH * node, sizes[level - 1]
            bits = boxes_near(single, power, boxes, at, powers, box_bounds, limit)
            if level > 2:
                stop = note(bits, first, n_below, nodes, n_nodes)
                levels[n_nodes:stop] = level - 1
                n_nodes = stop
                continue
            n_near = note(bits, first, n_below, near, 0)
            n_near = points_near(
                single,
                power,
                blocks,
                boxes,
                points.shape[0],
                (box_bounds, point_bounds),
                limit,
                powers,
                near,
                n_near,
                room,
            )
            if n_found + n_near > places.shape[0]:
                distances, places = _longer(distances), _longer(places)
            for t in range(n_near):
                total, place = 0.0, near[t]
                for f in range(n_features):
                    gap = targets[i, f] - points[place, f]
                    total += gap * gap if power == 2 else abs(gap)
                distances[n_found + t] = np.sqrt(total) if power == 2 else total
                places[n_found + t] = rows[place]
            n_found += n_near
        corners[:] = 0.0
        found, found_rows = distances[:n_found], places[:n_found]
        _add_own(found, labels[found_rows], own_limit, corners)
        if point_bounds is not None:
            n_hearing = 0
            for t in range(n_found):
                found[n_hearing], found_rows[n_hearing] = found[t], found_rows[t]
                n_hearing += found[t] <= nearest[found_rows[t], k_max - 1] * ABOVE
            found, found_rows = found[:n_hearing], found_rows[:n_hearing]
            add_listeners(found, found_rows, labels, nearest, n_as_near, corners)
        sum_ramps(corners, ks, support[i])


@register_jitable
def _add_own(found, labels, limit, corners):
    rooms = np.empty((3, found.shape[0] + 1), dtype=np.int64)
    n_near = sorted_below(found, limit, rooms[0], rooms[1], rooms[2])
    add_own_neighbors(found, labels, rooms[0, :n_near], corners)


@register_jitable
def _longer(values):
    longer = np.empty(2 * values.shape[0], dtype=values.dtype)
    longer[: values.shape[0]] = values
    return longer
