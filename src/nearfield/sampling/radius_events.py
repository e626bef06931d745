"""What happens to a new point under the radius kernel as the scale rises, in order."""

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray


class Events(NamedTuple):
    """What happens within a bin as the scale rises: a point comes into reach, or a gain jumps.

    Attributes
    ----------
    scales : ndarray of int
        When.
    classes : ndarray of int
        To which class.
    gains, slopes : ndarray
        By how much more it listens from the start of the bin on, and by how much that changes
        over the bin.
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


@register_jitable
def make_events(most_events):
    """Make room for events."""
    whole, real = np.empty((3, most_events), dtype=np.int64), np.empty((3, most_events))
    return Events(whole[0], whole[1], real[0], real[1], real[2], whole[2])


@register_jitable(inline="always")
def note_event(events, number, scale, g, gain, slope, entries):
    """Write an event down."""
    events.scales[number] = scale
    events.classes[number] = g
    events.gains[number] = gain
    events.slopes[number] = slope
    events.entries[number] = entries


@register_jitable
def sort_events(scales, order, n_events, bucket_of_scale):
    """Sort events by scale: counting by buckets of scales, then insertion."""
    counts = np.zeros(bucket_of_scale[-1] + 2, dtype=np.int64)
    for e in range(n_events):
        counts[bucket_of_scale[scales[e]] + 1] += 1
    for bucket in range(1, counts.shape[0]):
        counts[bucket] += counts[bucket - 1]
    for e in range(n_events):
        bucket = bucket_of_scale[scales[e]]
        order[counts[bucket]] = e
        counts[bucket] += 1
    for place in range(1, n_events):
        e, before = order[place], place - 1
        while before >= 0 and scales[order[before]] > scales[e]:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = e
