"""The support of new points under the radius kernel over many scales, gathered in bins.

While few points are in reach, each that comes into reach is an event of its own. Where many are,
one more changes little: what comes into reach within a bin becomes a line, the one nearest to its
steps. How much training points listen to the new one is known up to the lines of
`nearfield.sampling.listening`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling.radius import ScaleSearch, entry_of
from nearfield.sampling.radius_events import make_events, note_event, sort_events
from nearfield.sampling.radius_runs import average_lines, room_for_pieces, room_for_runs

_CROWD = 0.125  # the most that may come into reach, as a share of those that are in reach


class ScaleBins(NamedTuple):
    """Rising scales in bins.

    Attributes
    ----------
    starts : ndarray of int, shape (n_bins + 1,)
        Where each bin starts and the last one ends.
    of_scale : ndarray of int, shape (n_scales,)
        The bin of each scale.
    places : ndarray, shape (n_scales,)
        Where each scale starts in the mass of its bin, which goes from zero to one.
    bucket_of_scale : ndarray of int, shape (n_scales,)
        A bin is cut in some buckets, by mass: this is that of each scale.
    """

    starts: NDArray[np.int64]
    of_scale: NDArray[np.int32]
    places: NDArray[np.float64]
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
    outside : ndarray, shape (n_bins, 2, G)
        How much all points of a class listen to a new one beyond reach: where the line of a bin
        starts, and its rise.
    bounds : ndarray, shape (n_bins,)
        How much may come into reach within a bin, for it not to be events: of k among n points,
        k / n^3.
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
    """What is known of one new point by bin.

    Attributes
    ----------
    near : ndarray of int, shape (n,)
        The training points that ever come into reach.
    entries : ndarray of int, shape (n,)
        The first scale at which each of these is in reach.
    largest_gains : ndarray, shape (n_bins,)
        What a point may listen at most, for its coming into reach within a bin not to be an
        event; below zero where each is one.
    lines : ndarray, shape (n_bins + 1, G, 8)
        Of each bin and class, side by side since they are added to together: see below.
    heard : ndarray, shape (G, n_bins + 1)
        How much those that are in reach listen, where bins start.
    """

    near: NDArray[np.int64]
    entries: NDArray[np.int64]
    largest_gains: NDArray[np.float64]
    lines: NDArray[np.float64]
    heard: NDArray[np.float32]


_COUNT = 0  # points, without those that are events, that came into reach since the last bin started
_CROWD_START, _CROWD_RISE = 1, 2  # the line of how many come into reach within the bin
_LEVEL = 3  # where the line of how much those listen starts
_BEND = 4  # what the line of the bin rises less than `heard` does
_SPREAD, _HEARD_SPREAD = 5, 6  # variance of the steps around their lines; times what each listens
_N_LINES = 8  # a cache line


@njit(cache=True, nogil=True, error_model="numpy")
def binned_probabilities(distances, tables, posterior, external_field, probabilities):
    """Fill in the averaged class probabilities of new points; the rest as in `average_lines`."""
    n_points, n_bins = tables.labels.shape[0], tables.bins.starts.shape[0] - 1
    n_classes = external_field.shape[0]
    most_events = n_points * (tables.jump_scales.shape[1] + 1)
    events = make_events(most_events)
    reached = Reached(
        np.empty(n_points, dtype=np.int64),
        np.empty(n_points, dtype=np.int64),
        np.empty(n_bins),
        np.empty((n_bins + 1, n_classes, _N_LINES)),
        np.empty((n_classes, n_bins + 1), dtype=np.float32),
    )
    pieces = room_for_pieces(most_events + n_bins, n_bins, n_classes)
    runs = room_for_runs(n_classes, posterior.betas)
    for i in range(distances.shape[0]):
        n_events = meet_points(distances[i], tables, events, reached)
        sort_events(events.scales, events.order, n_events, tables.bins.bucket_of_scale)
        n_pieces = make_pieces(tables, events, n_events, reached, pieces)
        average_lines(n_pieces, pieces, posterior, external_field, runs, probabilities[i])


@njit(cache=True, nogil=True, error_model="numpy")
def meet_points(row, tables, events, reached):
    """Note who is in reach from where on, and what happens within bins; count that."""
    labels, gains, last_jumps = tables.labels, tables.gains, tables.last_jumps
    jump_scales, jump_sizes = tables.jump_scales, tables.jump_sizes
    starts, of_scale, places = tables.bins.starts, tables.bins.of_scale, tables.bins.places
    near, entries, largest_gains, lines, heard = reached
    n_knots, n_events = gains.shape[1], 0
    lines[:] = 0.0
    heard[:] = np.float32(0.0)
    n_near = find_near(row, tables.search.scales[-1], near)
    find_entries(row, near[:n_near], tables.search, of_scale, tables.bounds, entries, largest_gains)
    for place in range(n_near):
        j, entry = near[place], entries[place]
        g, b = labels[j], of_scale[entry]
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
                    lines[at, g, _BEND] += size
                if scale < starts[at + 1]:
                    note_event(events, n_events, scale, g, size, 0.0, 0.0)
                    n_events += 1
        first_knot = b + is_within
        if first_knot > 0:
            lines[first_knot - 1, g, _BEND] += gains[j, first_knot]
        if not is_within:
            lines[b, g, _COUNT] += 1.0
        elif gain > largest_gains[b]:
            note_event(events, n_events, entry, g, gain, slope, 1.0)
            n_events += 1
        else:
            # The line nearest to a step from zero to one, by least squares.
            before = places[entry]
            start, rise = (1.0 - before) * (1.0 - 3.0 * before), 6.0 * before * (1.0 - before)
            variance = rise * (2.0 - rise) / 12.0
            level = gain + 0.5 * slope
            lines[b + 1, g, _COUNT] += 1.0
            lines[b, g, _CROWD_START] += start
            lines[b, g, _CROWD_RISE] += rise
            lines[b, g, _LEVEL] += start * level
            lines[b, g, _BEND] -= rise * level
            lines[b, g, _SPREAD] += variance
            lines[b, g, _HEARD_SPREAD] += variance * level
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
        is_many = n_new <= bounds[b] * n_reached**3 and n_new <= _CROWD * n_reached
        largest_gains[b] = 2.0 / n_reached if is_many and n_reached > 0.0 else -1.0
        n_reached += n_new


@njit(cache=True, nogil=True, error_model="numpy")
def make_pieces(tables, events, n_events, reached, pieces):
    """Write down the pieces of one new point; return their number."""
    starts, places, outside = tables.bins.starts, tables.bins.places, tables.outside
    n_in_class, epsilon = tables.n_in_class, tables.epsilon
    scales, order, classes = events.scales, events.order, events.classes
    entries, gains, slopes = events.entries, events.gains, events.slopes
    lines, heard = reached.lines, reached.heard
    stops, support, rises, bin_of_piece, covariances = pieces
    n_classes, n_points = n_in_class.shape[0], tables.labels.shape[0]
    counts, in_reach, levels, drifts = np.zeros((4, n_classes))
    n_pieces, done, scale = 0, 0, 0
    next_event = scales[order[0]] if n_events > 0 else starts[-1] + 1
    for b in range(starts.shape[0] - 1):
        crowd_rise = 0.0
        for g in range(n_classes):
            counts[g] += lines[b, g, _COUNT]
            crowd_rise += lines[b, g, _CROWD_RISE]
            levels[g] = heard[g, b] + lines[b, g, _LEVEL] + outside[b, 0, g]
            drifts[g] = heard[g, b + 1] - heard[g, b] - lines[b, g, _BEND] + outside[b, 1, g]
        if crowd_rise > 0.0:
            fill_spreads(counts, lines[b], in_reach, covariances[b])
        stop = starts[b + 1]
        while scale < stop:
            begin = places[scale]
            scale = min(stop, next_event)
            width = (places[scale] if scale < stop else 1.0) - begin
            middle = begin + 0.5 * width
            n_reached = 0.0
            for g in range(n_classes):
                in_reach[g] = (
                    counts[g] + lines[b, g, _CROWD_START] + middle * lines[b, g, _CROWD_RISE]
                )
                n_reached += in_reach[g]
            factor = 1.0 / (n_reached + epsilon * (n_points - n_reached))
            growth = width * crowd_rise * factor
            for g in range(n_classes):
                share = factor * (in_reach[g] + epsilon * (n_in_class[g] - in_reach[g]))
                rise = width * factor * lines[b, g, _CROWD_RISE] - share * growth
                # A share of a total that grows: its mean over the piece is not that in the middle.
                mean_share = share - rise * growth / 12.0
                support[n_pieces, g] = mean_share + levels[g] + middle * drifts[g]
                rises[n_pieces, g] = rise + width * drifts[g]
            stops[n_pieces] = scale
            bin_of_piece[n_pieces] = b if crowd_rise > 0.0 else -1
            n_pieces += 1
            while next_event == scale:
                event = order[done]
                g = classes[event]
                counts[g] += entries[event]
                levels[g] += gains[event]
                drifts[g] += slopes[event]
                done += 1
                next_event = scales[order[done]] if done < n_events else starts[-1] + 1
    return n_pieces


@register_jitable(inline="always")
def fill_spreads(counts, lines, shares, covariance):
    r"""Fill in the covariance of the support within a bin around its lines; not above the diagonal.

    A point of class c that comes into reach moves the support by
    :math:`d_g = (1/n + l) 1[g = c] - s_g / n`, with l what it listens and s the shares of n points
    in reach. Its step is as good as independent of those of others: the covariance is the sum of
    :math:`v\, d d^T`, with v the variance of its step.
    """
    n_classes = counts.shape[0]
    n_reached, total = 0.0, 0.0
    for g in range(n_classes):
        shares[g] = counts[g] + lines[g, _CROWD_START] + 0.5 * lines[g, _CROWD_RISE]
        n_reached += shares[g]
        total += lines[g, _SPREAD]
    factor = 1.0 / n_reached
    for g in range(n_classes):
        shares[g] *= factor
    for g in range(n_classes):
        moved = factor * lines[g, _SPREAD] + lines[g, _HEARD_SPREAD]
        for a in range(g + 1):
            moved_a = factor * lines[a, _SPREAD] + lines[a, _HEARD_SPREAD]
            both = factor * total * shares[g] * shares[a]
            covariance[g, a] = factor * (both - moved * shares[a] - shares[g] * moved_a)
        if lines[g, _SPREAD] > 0.0:
            covariance[g, g] += moved * moved / lines[g, _SPREAD]
