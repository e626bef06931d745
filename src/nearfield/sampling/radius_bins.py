"""The support of new points under the radius kernel over many scales, gathered in bins.

While few points are in reach, each that comes into reach is an event of its own. Where many are,
one more changes little: what comes into reach within a part of a bin counts by the share of the
part's mass at which it is there. How much training points listen to the new one is known up to the
lines of `nearfield.sampling.listening`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling.radius import ScaleSearch, entry_of, weight_of
from nearfield.sampling.radius_events import make_events, note_event, sort_events
from nearfield.sampling.steps import average_pieces


class ScaleBins(NamedTuple):
    """Rising scales in bins, each of one or more parts.

    Attributes
    ----------
    starts : ndarray of int, shape (n_bins + 1,)
        Where each bin starts and the last one ends.
    of_scale : ndarray of int, shape (n_scales,)
        The bin of each scale.
    places : ndarray, shape (n_scales,)
        Where each scale starts in the mass of its bin, which goes from zero to one.
    cuts : ndarray of int, shape (n_parts,)
        Where each part ends.
    part_of_scale : ndarray of int, shape (n_scales,)
        The part of each scale.
    share_left : ndarray, shape (n_scales,)
        The mass of a part from a scale on, as a share of the part.
    bucket_of_scale : ndarray of int, shape (n_scales,)
        A part is cut in some buckets, by mass: this is that of each scale.
    """

    starts: NDArray[np.int64]
    of_scale: NDArray[np.int32]
    places: NDArray[np.float64]
    cuts: NDArray[np.int64]
    part_of_scale: NDArray[np.int32]
    share_left: NDArray[np.float64]
    bucket_of_scale: NDArray[np.int32]


class BinnedTables(NamedTuple):
    """What the support of new points needs to know of the training points.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    n_in_class : ndarray, shape (G,)
    search : ScaleSearch
    bins : ScaleBins
    gains : ndarray, shape (n, n_bins + 1)
        How much more each point listens to a new one within reach than beyond, where bins start
        and the last one ends; between them it is on a line, but for the jumps.
    jump_scales, jump_sizes : ndarray, shape (n, n_jumps)
        At which scales and by how much it jumps.
    last_jumps : ndarray of int, shape (n,)
        The scale of the last jump of each point; -1 where there is none.
    outside : ndarray, shape (n_parts, G)
        How much all points of a class listen to a new one beyond reach, on average over a part.
    bounds : ndarray, shape (n_bins,)
        How much may come into reach within a bin, for it not to be events: of k among n points,
        k (k + 4) / n^2.
    epsilon : float
        What a point beyond reach weighs.
    """

    labels: NDArray[np.int64]
    n_in_class: NDArray[np.float64]
    search: ScaleSearch
    bins: ScaleBins
    gains: NDArray[np.float32]
    jump_scales: NDArray[np.int64]
    jump_sizes: NDArray[np.float64]
    last_jumps: NDArray[np.int64]
    outside: NDArray[np.float64]
    bounds: NDArray[np.float64]
    epsilon: float


class Reached(NamedTuple):
    """What is known of one new point by bin or part.

    Attributes
    ----------
    near : ndarray of int, shape (n,)
        The training points that ever come into reach.
    entries : ndarray of int, shape (n,)
        The first scale at which each of these is in reach.
    largest_gains : ndarray, shape (n_bins,)
        What a point may listen at most, for its coming into reach within a bin not to be an
        event; below zero where each is one.
    counts : ndarray, shape (n_parts + 1, G)
        By how much the number of points in reach rises from the part before.
    levels : ndarray, shape (n_parts + 1, G)
        By how much what those listen to it that come into reach within the bin rises.
    heard : ndarray, shape (G, n_bins + 1)
        How much those that are in reach listen, where bins start.
    bends : ndarray, shape (n_bins, G)
        What the line of a bin rises less than `heard` does.
    """

    near: NDArray[np.int64]
    entries: NDArray[np.int64]
    largest_gains: NDArray[np.float64]
    counts: NDArray[np.float64]
    levels: NDArray[np.float64]
    heard: NDArray[np.float32]
    bends: NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def binned_probabilities(distances, tables, posterior, external_field, probabilities):
    """Fill in the averaged class probabilities of new points; the rest as in `average_pieces`."""
    n_points, n_parts = tables.labels.shape[0], tables.bins.cuts.shape[0]
    n_classes, n_bins = external_field.shape[0], tables.bins.starts.shape[0] - 1
    most_events = n_points * (tables.jump_scales.shape[1] + 1)
    events = make_events(most_events)
    reached = Reached(
        np.empty(n_points, dtype=np.int64),
        np.empty(n_points, dtype=np.int64),
        np.empty(n_bins),
        np.empty((n_parts + 1, n_classes)),
        np.empty((n_parts + 1, n_classes)),
        np.empty((n_classes, n_bins + 1), dtype=np.float32),
        np.empty((n_bins, n_classes)),
    )
    stops = np.empty(most_events + n_parts, dtype=np.int64)
    support = np.empty((most_events + n_parts, n_classes))
    for i in range(distances.shape[0]):
        n_events = meet_points(distances[i], tables, events, reached)
        sort_events(events.scales, events.order, n_events, tables.bins.bucket_of_scale)
        n_pieces = make_pieces(tables, events, n_events, reached, stops, support)
        average_pieces(n_pieces, stops, support, posterior, external_field, probabilities[i])


@njit(cache=True, nogil=True, error_model="numpy")
def meet_points(row, tables, events, reached):
    """Note who is in reach from where on, and what happens within bins; count that."""
    labels, gains, last_jumps = tables.labels, tables.gains, tables.last_jumps
    jump_scales, jump_sizes = tables.jump_scales, tables.jump_sizes
    starts, of_scale = tables.bins.starts, tables.bins.of_scale
    cuts, part_of_scale = tables.bins.cuts, tables.bins.part_of_scale
    share_left = tables.bins.share_left
    near, entries, largest_gains, counts, levels, heard, bends = reached
    n_knots, n_events = gains.shape[1], 0
    counts[:] = 0.0
    levels[:] = 0.0
    bends[:] = 0.0
    heard[:] = np.float32(0.0)
    n_near = find_near(row, tables.search.scales[-1], near)
    find_entries(row, near[:n_near], tables.search, of_scale, tables.bounds, entries, largest_gains)
    for place in range(n_near):
        j, entry = near[place], entries[place]
        g, b, part = labels[j], of_scale[entry], part_of_scale[entry]
        gain, slope = gains[j, b], gains[j, b + 1] - gains[j, b]
        is_within = entry > starts[b]
        if last_jumps[j] > starts[b]:
            for k in range(jump_scales.shape[1]):
                scale, size = jump_scales[j, k], jump_sizes[j, k]
                if scale <= starts[b]:
                    continue
                if scale > last_jumps[j]:
                    break
                at = of_scale[scale - 1]  # a jump where a bin starts ends the line before it
                if is_within and at == b:
                    slope -= size
                    if scale <= entry:
                        gain += size
                        continue
                else:
                    bends[at, g] += size
                if scale < starts[at + 1]:
                    note_event(events, n_events, scale, g, size, 0.0, 0.0)
                    n_events += 1
        first_knot = b + is_within
        if first_knot > 0:
            bends[first_knot - 1, g] += gains[j, first_knot]
        if not is_within:
            counts[part, g] += 1.0
        else:
            if gain > largest_gains[b]:
                note_event(events, n_events, entry, g, gain, slope, 1.0)
                n_events += 1
            else:
                share, level = share_left[entry], gain + 0.5 * slope
                counts[part, g] += share
                counts[part + 1, g] += 1.0 - share
                levels[part, g] += share * level
                if cuts[part] < starts[b + 1]:
                    levels[part + 1, g] += (1.0 - share) * level
        # Whole numbers that cannot be negative: else no vector instructions.
        for knot in range(np.uint64(first_knot), np.uint64(n_knots)):
            heard[g, knot] += gains[j, knot]
    return n_events


@register_jitable
def find_near(row, reach, near):
    """Find the points that are in reach at the largest scale; count them."""
    n_near = 0
    for j in range(row.shape[0]):
        near[n_near] = j
        n_near += row[j] < reach  # a sum: nothing to mispredict
    return n_near


@register_jitable
def find_entries(row, near, search, of_scale, bounds, entries, largest_gains):
    """Find the first scale at which each point is in reach, and which bins have many such."""
    scales, cells, first_cell, shift = search
    n_bins = bounds.shape[0]
    n_entering = largest_gains
    n_entering[:] = 0.0
    for place in range(near.shape[0]):
        entries[place] = entry_of(row[near[place]], scales, cells, first_cell, shift)
        n_entering[of_scale[entries[place]]] += 1.0
    n_reached = 0.0
    for b in range(n_bins):
        n_new = n_entering[b]
        is_many = n_new * (n_new + 4.0) <= bounds[b] * n_reached**2
        largest_gains[b] = 2.0 / n_reached if is_many and n_reached > 0.0 else -1.0
        n_reached += n_new


@njit(cache=True, nogil=True, error_model="numpy")
def make_pieces(tables, events, n_events, reached, stops, support):
    """Write down the pieces of one new point; return their number."""
    starts, places, cuts = tables.bins.starts, tables.bins.places, tables.bins.cuts
    n_in_class, epsilon, outside = tables.n_in_class, tables.epsilon, tables.outside
    scales, order, classes = events.scales, events.order, events.classes
    entries, gains, slopes = events.entries, events.gains, events.slopes
    heard, bends = reached.heard, reached.bends
    new_counts, new_levels = reached.counts, reached.levels
    n_classes, n_points = n_in_class.shape[0], tables.labels.shape[0]
    counts, levels, drifts, beyond = np.zeros((4, n_classes))
    n_pieces, done, part, scale = 0, 0, 0, 0
    next_event = scales[order[0]] if n_events > 0 else cuts[-1] + 1
    for b in range(starts.shape[0] - 1):
        for g in range(n_classes):
            levels[g] = heard[g, b]
            drifts[g] = heard[g, b + 1] - heard[g, b] - bends[b, g]
        is_new = True
        while scale < starts[b + 1]:
            if is_new:
                for g in range(n_classes):
                    counts[g] += new_counts[part, g]
                    levels[g] += new_levels[part, g]
                    beyond[g] = outside[part, g]
            begin = places[scale]
            scale = min(cuts[part], next_event)
            is_new = scale == cuts[part]
            part += is_new
            middle = 0.5 * (begin + (places[scale] if scale < starts[b + 1] else 1.0))
            factor = 1.0 / weight_of(counts, n_points, epsilon)
            for g in range(n_classes):
                weight = counts[g] + epsilon * (n_in_class[g] - counts[g])
                heard_of_all = beyond[g] + levels[g] + middle * drifts[g]
                support[n_pieces, g] = weight * factor + heard_of_all
            stops[n_pieces] = scale
            n_pieces += 1
            while next_event == scale:
                event = order[done]
                g = classes[event]
                counts[g] += entries[event]
                levels[g] += gains[event]
                drifts[g] += slopes[event]
                done += 1
                next_event = scales[order[done]] if done < n_events else cuts[-1] + 1
    return n_pieces
