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

# Small helpers take single arrays: a call counts the references of all tables that it is given,
# which costs more than what they do.


class RadiusTables(NamedTuple):
    """What the support of new points needs to know of the training points.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    n_in_class : ndarray, shape (G,)
    scales : ndarray, shape (n_scales,)
        Rising.
    bins : ndarray of int, shape (n_bins + 1,)
        Where each bin of scales starts and the last one ends.
    cuts : ndarray of int
        Scales at which a piece ends in any case: the starts of the bins, but for the first, some
        more between them, and where the last one ends.
    places : ndarray, shape (n_scales,)
        Where each scale starts in the mass of its bin, which goes from -1/2 to 1/2.
    last_scales : ndarray, shape (n_bins,)
        The last scale of each bin.
    lookup : ndarray of int
        The first bin of each of many equal cells, to search in a cell alone.
    gains, slopes, jump_scales, jump_sizes : ndarray
        As in `Listening`.
    last_jumps : ndarray of int, shape (n,)
        The scale of the last jump of each point; -1 where there is none.
    outside, outside_slopes : ndarray, shape (G, n_bins)
        How much all points of a class listen to a new one beyond reach, and by how much that
        changes over a bin.
    epsilon : float
        What a point beyond reach weighs.
    """

    labels: NDArray[np.int64]
    n_in_class: NDArray[np.float64]
    scales: NDArray[np.float64]
    bins: NDArray[np.int64]
    cuts: NDArray[np.int64]
    places: NDArray[np.float64]
    last_scales: NDArray[np.float64]
    lookup: NDArray[np.int64]
    gains: NDArray[np.floating]
    slopes: NDArray[np.floating]
    jump_scales: NDArray[np.int64]
    jump_sizes: NDArray[np.float64]
    last_jumps: NDArray[np.int64]
    outside: NDArray[np.floating]
    outside_slopes: NDArray[np.floating]
    epsilon: float


class Events(NamedTuple):
    """What happens within a bin as the scale rises: a point comes into reach, or a gain jumps.

    Attributes
    ----------
    scales : ndarray of int
        When.
    classes : ndarray of int
        To which class.
    gains, slopes : ndarray
        By how much more it listens, and by how much that changes over a bin.
    entries : ndarray
        One if a point comes into reach, else zero.
    order : ndarray of int
        The events, by scale.
    """

    scales: NDArray[np.int64]
    classes: NDArray[np.int64]
    gains: NDArray[np.float64]
    slopes: NDArray[np.float64]
    entries: NDArray[np.float64]
    order: NDArray[np.int64]


@njit(cache=True, nogil=True, error_model="numpy")
def radius_probabilities(distances, tables, posterior, external_field, probabilities):
    """Fill in the averaged class probabilities of new points; the rest as in `average_pieces`."""
    n_points, n_bins = tables.labels.shape[0], tables.bins.shape[0] - 1
    most_events = n_points * (N_JUMPS + 1) if n_bins < tables.scales.shape[0] else 0
    events = Events(
        np.empty(most_events, dtype=np.int64),
        np.empty(most_events, dtype=np.int64),
        np.empty(most_events),
        np.empty(most_events),
        np.empty(most_events),
        np.empty(most_events, dtype=np.int64),
    )
    most_pieces = most_events + tables.cuts.shape[0]
    stops = np.empty(most_pieces, dtype=np.int64)
    support = np.empty((most_pieces, external_field.shape[0]))
    for i in range(distances.shape[0]):
        n_pieces = make_pieces(distances[i], tables, events, stops, support)
        average_pieces(n_pieces, stops, support, posterior, external_field, probabilities[i])


@njit(cache=True, nogil=True, error_model="numpy")
def radius_support(distances, tables, support):
    """Fill in the support at every scale, shape (m, n_scales, G), with one scale to a bin."""
    whole, real = np.empty(0, dtype=np.int64), np.empty(0)
    events = Events(whole, whole, real, real, real, whole)
    stops = np.empty(support.shape[1], dtype=np.int64)
    for i in range(distances.shape[0]):
        make_pieces(distances[i], tables, events, stops, support[i])


@njit(cache=True, nogil=True, error_model="numpy")
def make_pieces(row, tables, events, stops, support):
    """Write down the pieces of one new point; return their number."""
    bins, cuts, places = tables.bins, tables.cuts, tables.places
    n_in_class, epsilon = tables.n_in_class, tables.epsilon
    scales, order, classes = events.scales, events.order, events.classes
    entries, gains, slopes = events.entries, events.gains, events.slopes
    n_classes, n_bins = tables.outside.shape
    entered = np.zeros((n_classes, n_bins))
    heard, drift = tables.outside.copy(), tables.outside_slopes.copy()
    n_events = meet_points(row, tables, events, entered, heard, drift)
    sort_events(scales, order, n_events, tables.scales.shape[0])
    counts = np.zeros(n_classes)
    n_pieces, done, cut = 0, 0, 0
    for b in range(n_bins):
        for g in range(n_classes):
            counts[g] += entered[g, b]
        scale, stop = bins[b], bins[b + 1]
        while scale < stop:
            begin = places[scale]
            scale = cuts[cut]
            if done < n_events:
                scale = min(scale, scales[order[done]])
            cut += scale == cuts[cut]
            middle = 0.5 * (begin + (places[scale] if scale < stop else 0.5))
            total = 0.0
            for g in range(n_classes):
                total += counts[g] + epsilon * (n_in_class[g] - counts[g])
            for g in range(n_classes):
                share = (counts[g] + epsilon * (n_in_class[g] - counts[g])) / total
                support[n_pieces, g] = share + heard[g, b] + middle * drift[g, b]
            stops[n_pieces] = scale
            n_pieces += 1
            while done < n_events and scales[order[done]] == scale:
                event = order[done]
                g = classes[event]
                counts[g] += entries[event]
                heard[g, b] += gains[event]
                drift[g, b] += slopes[event]
                done += 1
    return n_pieces


@njit(cache=True, nogil=True, error_model="numpy")
def meet_points(row, tables, events, entered, heard, drift):
    """Note for each bin who is in reach from its start, and what happens within; count that."""
    labels, scales, lookup = tables.labels, tables.scales, tables.lookup
    bins, last_scales, last_jumps = tables.bins, tables.last_scales, tables.last_jumps
    gains, slopes = tables.gains, tables.slopes
    jump_scales, jump_sizes = tables.jump_scales, tables.jump_sizes
    n_bins, n_events = gains.shape[1], 0
    is_exact = n_bins == scales.shape[0]
    for j in range(row.shape[0]):
        if row[j] >= scales[-1]:
            continue
        g, b = labels[j], bin_of(row[j], last_scales, lookup)
        entry = first_above(row[j], scales, bins[b], bins[b + 1])
        has_jumps = last_jumps[j] > bins[b]
        if entry > bins[b]:
            gain = gains[j, b]
            for jump in range(N_JUMPS if has_jumps else 0):
                if bins[b] < jump_scales[j, jump] <= entry:
                    gain += jump_sizes[j, jump]
            note_event(events, n_events, entry, g, gain, slopes[j, b], 1.0)
            n_events += 1
            b += 1  # in the bins that follow it is there from the start
        else:
            entered[g, b] += 1.0
        for later in range(b, n_bins):
            heard[g, later] += gains[j, later]
        for later in range(n_bins if is_exact else b, n_bins):
            drift[g, later] += slopes[j, later]
        for jump in range(N_JUMPS if has_jumps else 0):
            scale = jump_scales[j, jump]
            if entry < scale <= last_jumps[j]:
                note_event(events, n_events, scale, g, jump_sizes[j, jump], 0.0, 0.0)
                n_events += 1
    return n_events


@register_jitable(inline="always")
def note_event(events, number, scale, g, gain, slope, entries):
    """Write an event down."""
    events.scales[number] = scale
    events.classes[number] = g
    events.gains[number] = gain
    events.slopes[number] = slope
    events.entries[number] = entries


@njit(cache=True, nogil=True, error_model="numpy")
def lookup_table(last_scales, n_cells):
    """Note the first bin of each of many equal cells, to search in a cell alone."""
    width = last_scales[-1] / n_cells
    table = np.zeros(n_cells + 1, dtype=np.int64)
    for cell in range(1, n_cells + 1):
        b = table[cell - 1]
        # A cell early, so that rounding never leads past the bin.
        while last_scales[b] <= (cell - 1) * width:
            b += 1
        table[cell] = b
    return table


@register_jitable
def bin_of(distance, last_scales, lookup):
    """Find the first bin with a scale that is larger than a distance, which the last one has."""
    n_cells = lookup.shape[0] - 1
    b = lookup[int(distance / last_scales[-1] * n_cells)]
    while last_scales[b] <= distance:
        b += 1
    return b


@register_jitable
def first_above(distance, scales, start, stop):
    """Find the first scale between two that is larger than a distance, without branches."""
    n_left = stop - start
    while n_left > 1:
        half = n_left // 2
        start += half * (scales[start + half - 1] <= distance)  # a product: nothing to mispredict
        n_left -= half
    return start


@register_jitable
def sort_events(scales, order, n_events, n_scales):
    """Sort events by scale: counting by buckets of scales, then insertion."""
    counts = np.zeros(n_events + 1, dtype=np.int64)
    factor = n_events / n_scales
    for e in range(n_events):
        counts[int(scales[e] * factor) + 1] += 1
    for bucket in range(n_events):
        counts[bucket + 1] += counts[bucket]
    for e in range(n_events):
        bucket = int(scales[e] * factor)
        order[counts[bucket]] = e
        counts[bucket] += 1
    for place in range(1, n_events):
        e, before = order[place], place - 1
        while before >= 0 and scales[order[before]] > scales[e]:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = e
