"""The support of new points under the radius kernel: steps wherever a point comes into reach.

The scales are sorted, and gathered in bins. What a new point listens to, and which training
points it reaches, is exact at every scale; how much these listen to it is so up to the lines of
`nearfield.sampling.listening`. With one scale to a bin everything is exact.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling.listening import N_JUMPS
from nearfield.sampling.steps import average_pieces

_ANY_ORDER = {"reassoc", "contract", "nsz"}

# Small helpers take single arrays, or are inlined before compilation (inline="always"): a call
# counts the references of all tables that it is given, which costs more than what they do.


class RadiusTables(NamedTuple):
    """What the support of new points needs to know of the training points.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Sorts the training points by class, as they are from here on.
    class_starts : ndarray of int, shape (G + 1,)
        Where each class starts and the last one ends.
    scales : ndarray, shape (n_scales,)
        Rising.
    bins : ndarray of int, shape (n_bins + 1,)
        Where each bin of scales starts and the last one ends.
    offsets : ndarray, shape (2, n_scales + 1)
        Up to each scale, the sum of weight x (log scale - its mean in the bin), and of the weight.
    gains : ndarray, shape (n_bins, n)
        How much more a training point listens to a new one within reach than beyond: its mean
        in a bin, or up to its first jump there.
    slopes : ndarray, shape (n_bins, n)
        How that changes with the log scale.
    jump_scales, jump_sizes : ndarray, shape (n x N_JUMPS,)
        At which scales, and by how much, the gain of each point jumps within a bin.
    jumps : ndarray of int, shape (n x N_JUMPS,)
        The places of these, by their scale.
    jump_starts : ndarray of int, shape (n_bins + 1,)
        Where the jumps of each bin start and those of the last one end.
    outside, outside_slopes : ndarray, shape (n_bins, G)
        How much all points of a class listen to a new one beyond reach, and how that changes.
    epsilon : float
        What a point beyond reach weighs.
    """

    order: NDArray[np.int64]
    class_starts: NDArray[np.int64]
    scales: NDArray[np.float64]
    bins: NDArray[np.int64]
    offsets: NDArray[np.float64]
    gains: NDArray[np.float64]
    slopes: NDArray[np.float64]
    jump_scales: NDArray[np.int64]
    jump_sizes: NDArray[np.float64]
    jumps: NDArray[np.int64]
    jump_starts: NDArray[np.int64]
    outside: NDArray[np.float64]
    outside_slopes: NDArray[np.float64]
    epsilon: float


@njit(cache=True, nogil=True, error_model="numpy")
def radius_probabilities(distances, tables, posterior, external_field, probabilities):
    """Fill in the averaged class probabilities of new points; the rest as in `average_pieces`."""
    n_points, n_bins = tables.order.shape[0], tables.bins.shape[0] - 1
    row = np.empty(n_points)
    events = np.empty(n_points, dtype=np.int64)
    entries = np.empty(n_points, dtype=np.int64)
    event_starts = np.empty(n_bins + 1, dtype=np.int64)
    most_pieces = n_points + n_bins + tables.jump_starts[-1]
    stops = np.empty(most_pieces, dtype=np.int64)
    support = np.empty((most_pieces, external_field.shape[0]))
    lookup, bin_of = lookup_table(tables.scales), bins_of_scales(tables.bins)
    for i in range(distances.shape[0]):
        for j in range(n_points):
            row[j] = distances[i, tables.order[j]]
        sort_events(row, tables, lookup, bin_of, entries, events, event_starts)
        n_pieces = make_pieces(row, tables, entries, events, event_starts, stops, support)
        average_pieces(n_pieces, stops, support, posterior, external_field, probabilities[i])


@njit(cache=True, nogil=True, error_model="numpy")
def radius_support(distances, tables, support):
    """Fill in the support at every scale, shape (m, n_scales, G), with one scale to a bin."""
    n_points, n_scales = tables.order.shape[0], tables.scales.shape[0]
    row = np.empty(n_points)
    stops = np.empty(n_scales, dtype=np.int64)
    nothing = np.zeros(max(n_points, n_scales + 1), dtype=np.int64)  # no events
    for i in range(distances.shape[0]):
        for j in range(n_points):
            row[j] = distances[i, tables.order[j]]
        make_pieces(row, tables, nothing, nothing, nothing, stops, support[i])


@register_jitable
def make_pieces(row, tables, entries, events, event_starts, stops, support):
    """Write down the pieces of one new point; return their number.

    `events` are the points that come into reach within a bin, sorted by bin and scale,
    `event_starts` where those of a bin start, and `entries` the scale at which a point enters.
    """
    class_starts, bins = tables.class_starts, tables.bins
    jumps, jump_starts = tables.jumps, tables.jump_starts
    jump_scales, jump_sizes = tables.jump_scales, tables.jump_sizes
    n_classes = class_starts.shape[0] - 1
    counts, heard, slopes = np.empty((3, n_classes))
    n_pieces = 0
    for b in range(bins.shape[0] - 1):
        for g in range(n_classes):
            start, stop = class_starts[g], class_starts[g + 1]
            counts[g], heard[g], slopes[g] = reach(
                row[start:stop],
                tables.scales[bins[b]],
                tables.gains[b, start:stop],
                tables.slopes[b, start:stop],
            )
            heard[g] += tables.outside[b, g]
            slopes[g] += tables.outside_slopes[b, g]
        event, jump, scale = event_starts[b], jump_starts[b], bins[b]
        while scale < bins[b + 1]:
            begin = scale
            jump = next_jump(jump, jump_starts[b + 1], jumps, jump_scales, entries)
            scale = bins[b + 1]
            if event < event_starts[b + 1]:
                scale = entries[events[event]]
            if jump < jump_starts[b + 1]:
                scale = min(scale, jump_scales[jumps[jump]])
            stops[n_pieces] = scale
            offset = mean_offset(tables.offsets, begin, scale)
            fill_piece(counts, heard, slopes, offset, tables, support[n_pieces])
            n_pieces += 1
            while event < event_starts[b + 1] and entries[events[event]] == scale:
                point = events[event]
                g = class_of(point, class_starts)
                counts[g] += 1.0
                heard[g] += tables.gains[b, point] + risen(
                    jump_scales, jump_sizes, bins[b], point, scale
                )
                slopes[g] += tables.slopes[b, point]
                event += 1
            while jump < jump_starts[b + 1] and jump_scales[jumps[jump]] == scale:
                point = jumps[jump] // N_JUMPS
                if entries[point] < scale:  # those that enter now have it in their gain
                    heard[class_of(point, class_starts)] += jump_sizes[jumps[jump]]
                jump += 1
    return n_pieces


@register_jitable(inline="always")
def mean_offset(offsets, start, stop):
    """Average the log scale, around its mean in the bin, over a piece."""
    return (offsets[0, stop] - offsets[0, start]) / (offsets[1, stop] - offsets[1, start])


@register_jitable
def next_jump(jump, stop, jumps, jump_scales, entries):
    """Pass over the jumps of points out of reach."""
    while jump < stop:
        if entries[jumps[jump] // N_JUMPS] < jump_scales[jumps[jump]]:
            break
        jump += 1
    return jump


@register_jitable
def risen(jump_scales, jump_sizes, first, point, scale):
    """Add up the jumps of a point from the first scale of a bin to another."""
    total = 0.0
    for place in range(point * N_JUMPS, (point + 1) * N_JUMPS):
        if first < jump_scales[place] <= scale:
            total += jump_sizes[place]
    return total


@register_jitable(inline="always")
def fill_piece(counts, heard, slopes, offset, tables, support):
    """Fill in the support of a piece: what the point listens to, and who listens to it."""
    total = 0.0
    for g in range(counts.shape[0]):
        n_class = tables.class_starts[g + 1] - tables.class_starts[g]
        support[g] = counts[g] + tables.epsilon * (n_class - counts[g])
        total += support[g]
    for g in range(counts.shape[0]):
        support[g] = support[g] / total + heard[g] + slopes[g] * offset


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def reach(row, scale, gains, slopes):
    """Count the points within a radius, and add up their gains and slopes."""
    count, gain, slope = 0.0, 0.0, 0.0
    for j in range(row.shape[0]):
        is_inside = 1.0 if row[j] < scale else 0.0
        count += is_inside
        gain += is_inside * gains[j]
        slope += is_inside * slopes[j]
    return count, gain, slope


@register_jitable
def class_of(point, class_starts):
    """Find the class of a point by its place."""
    g = 0
    while point >= class_starts[g + 1]:
        g += 1
    return g


@register_jitable
def lookup_table(scales):
    """Note the first scale of each of many equal cells, to search in a cell alone."""
    n_cells = 4 * scales.shape[0]
    width = (scales[-1] - scales[0]) / n_cells
    table = np.zeros(n_cells + 1, dtype=np.int64)
    for cell in range(1, n_cells + 1):
        s = table[cell - 1]
        while s < scales.shape[0] - 1 and scales[s] <= scales[0] + (cell - 1) * width:
            s += 1
        table[cell] = s
    return table


@register_jitable
def bins_of_scales(bins):
    """Note the bin within which a point enters; -1 where it enters with the bin, or never."""
    bin_of = np.full(bins[-1] + 1, -1)
    for b in range(bins.shape[0] - 1):
        bin_of[bins[b] + 1 : bins[b + 1]] = b
    return bin_of


@register_jitable
def entry_of(distance, scales, lookup):
    """Find the first scale that is larger than a distance."""
    n_scales = scales.shape[0]
    if not distance >= scales[0]:
        return 0
    if distance >= scales[-1]:
        return n_scales
    n_cells = lookup.shape[0] - 1
    cell = int((distance - scales[0]) / (scales[-1] - scales[0]) * n_cells)
    s = lookup[min(cell, n_cells)]
    while s > 0 and scales[s - 1] > distance:  # rounding may have led a cell too far
        s -= 1
    while scales[s] <= distance:
        s += 1
    return s


@register_jitable
def sort_events(row, tables, lookup, bin_of, entries, events, event_starts):
    """List the points that come into reach within a bin, after its first scale."""
    scales, bins = tables.scales, tables.bins
    n_bins = bins.shape[0] - 1
    event_starts[:] = 0
    for j in range(row.shape[0]):
        entries[j] = entry_of(row[j], scales, lookup)
        b = bin_of[entries[j]]
        if b >= 0:
            event_starts[b + 1] += 1
    for b in range(n_bins):
        event_starts[b + 1] += event_starts[b]
    places = event_starts.copy()
    for j in range(row.shape[0]):
        b = bin_of[entries[j]]
        if b >= 0:
            # Insertion: the events of a bin are few.
            place = places[b]
            while place > event_starts[b] and entries[events[place - 1]] > entries[j]:
                events[place] = events[place - 1]
                place -= 1
            events[place] = j
            places[b] += 1
