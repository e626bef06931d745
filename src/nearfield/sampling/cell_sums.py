"""Kernel sums over all points, at many scales: what the normalisers of all points are made of.

The points are sorted into cells. For each target the nearest cells count point by point, those
around them by a quarter of their points, and the rest by reference points. Minima and sums over
shards of the points combine by minimum and by addition.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling.euclidean import add_square, add_squares
from nearfield.sampling.scale_sums import ITSELF, N_AT_ONCE, add_sums, raise_to, smallest_of

_N_BINS = 256
_QUARTER = 4
_SLACK = 1.5  # cells beyond so many times the points that were asked for are not taken whole
_ZERO = np.float32(0.0)


class CellTable(NamedTuple):
    """Points by cell, and in each cell by their uniform numbers; references for far cells."""

    centres: NDArray[np.float64]  # shape (n_cells, n_features)
    centre_columns: NDArray[np.float32]  # one feature after the other
    sizes: NDArray[np.int64]  # shape (n_cells,), over all shards
    starts: NDArray[np.int64]  # shape (n_cells + 1,)
    keys: NDArray[np.float64]  # shape (n,), cell plus uniform number: they rise
    columns: NDArray[np.float32]  # cell by cell, in a cell one feature after the other
    reference_columns: NDArray[np.float32]  # one feature after the other
    reference_cells: NDArray[np.int64]  # shape (n_references,)
    power: int  # 2 for squared Euclidean distances, 1 for Manhattan distances


@njit(cache=True, nogil=True, error_model="numpy")
def cell_sums(targets, places, shifts, table, n_whole, scales, is_given, minima, sums):
    r"""Fill in the smallest distances, and add kernel sums relative to them.

    .. math:: S_{is} \mathrel{+}= \sum_j f_j \exp(-\lambda_s (p_{ij} - r_i)), \qquad
              \lambda_{s + m} = 2 \lambda_s

    with :math:`p_{ij}` the power of the distance, :math:`r_i` the smallest, and :math:`f_j` for how
    many points source j stands. For radii, the numbers of points within them.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    places : ndarray of int, shape (m,)
        Of the targets among the points of the table, -1 if they are not there.
    shifts : ndarray, shape (m,)
        A point of a cell that is taken in part is a source if frac(its number + shift) < share.
    table : CellTable
    n_whole : int
        How many of the nearest points are to be sources as they are.
    scales : SumScales
    is_given : bool
        Whether the minima are known: of sums over shards, which come second.
    minima : ndarray of float32, shape (m,)
        Powers of the smallest distances; lowered unless they are given.
    sums : ndarray, shape (m, n_scales)
        Without columns where only the minima are wanted.
    """
    n_cells, n_references = table.sizes.shape[0], table.reference_cells.shape[0]
    capacity = 8 * n_whole + n_references + n_cells
    powers = np.empty(capacity, dtype=np.float32)
    kernel = np.empty(N_AT_ONCE, dtype=np.float32)
    starts = np.empty(n_cells + 2, dtype=np.int64)
    factors = np.empty(n_cells + 2)
    to_centres = np.empty(n_cells, dtype=np.float32)
    tiers = np.empty(n_cells, dtype=np.int8)
    relative, nowhere = np.empty(targets.shape[1], dtype=np.float32), np.zeros(targets.shape[1])
    for i in range(targets.shape[0]):
        _take_difference(targets[i], nowhere, relative)
        _fill_powers(relative, table.centre_columns, 0, n_cells, table.power, to_centres)
        _choose_tiers(to_centres, table.sizes, n_whole, tiers)
        target = targets[i], places[i], shifts[i], relative
        n_segments = _gather(target, table, n_whole, tiers, powers, starts, factors)
        stop = starts[n_segments]
        if stop == 0:
            continue
        raise_to(scales.exponent, powers[:stop])
        if not is_given:
            minima[i] = min(minima[i], smallest_of(powers[:stop]))
        if sums.shape[1] == 0:
            continue
        for segment in range(n_segments):
            row = powers[starts[segment] : starts[segment + 1]]
            add_sums(row, minima[i], scales, factors[segment], kernel, sums[i])


@njit(cache=True, nogil=True, error_model="numpy")
def mark_reached(targets, table, n_whole, shard_of, is_reached):
    """Mark the shards that have sources of each target, in `cell_sums` with the same table.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    table : CellTable
    n_whole : int
    shard_of : ndarray of int, shape (n_cells,)
    is_reached : ndarray of bool, shape (m, n_shards)
    """
    n_cells = table.sizes.shape[0]
    to_centres = np.empty(n_cells, dtype=np.float32)
    tiers = np.empty(n_cells, dtype=np.int8)
    relative, nowhere = np.empty(targets.shape[1], dtype=np.float32), np.zeros(targets.shape[1])
    for i in range(targets.shape[0]):
        _take_difference(targets[i], nowhere, relative)
        _fill_powers(relative, table.centre_columns, 0, n_cells, table.power, to_centres)
        _choose_tiers(to_centres, table.sizes, n_whole, tiers)
        for c in range(n_cells):
            if tiers[c] > 0 and table.sizes[c] > 0:
                is_reached[i, shard_of[c]] = True


@register_jitable
def _fill_powers(target, columns, start, stride, power, powers):
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


@register_jitable
def _choose_tiers(to_centres, sizes, n_whole, tiers):
    """Choose the nearest cells (1), those around them (2) and the rest (0), by bins of distance."""
    lowest, highest = to_centres.min(), to_centres.max()
    scale = (_N_BINS - 1) / max(highest - lowest, np.float32(1e-30))
    counts = np.zeros(_N_BINS)
    for c in range(sizes.shape[0]):
        counts[int((to_centres[c] - lowest) * scale)] += sizes[c]
    last = np.zeros(2, dtype=np.int64)
    n_points = 0.0
    for b in range(_N_BINS):
        for tier in range(2):
            if n_points < n_whole * (1 if tier == 0 else _QUARTER):
                last[tier] = b
        n_points += counts[b]
    n_taken = np.zeros(2)
    for c in range(sizes.shape[0]):
        b, tiers[c] = int((to_centres[c] - lowest) * scale), 0
        for tier in range(2):
            most = _SLACK * n_whole * (1 if tier == 0 else _QUARTER)
            if tiers[c] == 0 and b <= last[tier] and n_taken[tier] < most:
                tiers[c] = tier + 1
                n_taken[tier] += sizes[c]


@register_jitable
def _gather(target, table, n_whole, tiers, powers, starts, factors):
    """Measure to the sources, segment after segment; return the number of segments."""
    point, place, shift, relative = target
    n_segments, stop, n_far = 0, 0, 0
    starts[0] = 0
    for tier in range(1, 3):
        for c in range(tiers.shape[0]):
            if tiers[c] != tier or table.sizes[c] == 0:
                continue
            share = min(1.0 if tier == 1 else 1.0 / _QUARTER, n_whole / table.sizes[c])
            _take_difference(point, table.centres[c], relative)
            stop = _gather_cell(relative, place, shift, share, c, table, powers, stop)
            if n_segments == 0 or factors[n_segments - 1] != 1.0 / share:
                factors[n_segments] = 1.0 / share
                n_segments += 1
            starts[n_segments] = stop
    for c in range(tiers.shape[0]):
        n_far += table.sizes[c] if tiers[c] == 0 else 0
    first = stop
    if n_far > 0:
        _take_difference(point, np.zeros_like(point), relative)
        stop = _gather_references(relative, table, tiers, powers, stop)
    if stop > first:
        factors[n_segments] = n_far / (stop - first)
        n_segments += 1
        starts[n_segments] = stop
    return n_segments


@register_jitable
def _gather_cell(relative, place, shift, share, c, table, powers, stop):
    """Measure to the points of a cell whose numbers, shifted, are below the share."""
    first = (1.0 - shift) % 1.0 if share < 1.0 else 0.0
    for part in range(2):
        low, high = (first, min(first + share, 1.0)) if part == 0 else (0.0, first + share - 1.0)
        if high <= low:
            break
        first_place, stride = table.starts[c], table.starts[c + 1] - table.starts[c]
        start, end = table.starts[c], table.starts[c + 1]
        if low > 0.0:
            start = _first_not_below(table.keys, c + low, start, end)
        if high < 1.0:
            end = _first_not_below(table.keys, c + high, start, end)
        size = end - start
        if size > 0:
            row = powers[stop : stop + size]
            offset = first_place * relative.shape[0] + start - first_place
            _fill_powers(relative, table.columns, offset, stride, table.power, row)
            if start <= place < end:
                row[place - start] = ITSELF
            stop += size
    return stop


@register_jitable
def _first_not_below(keys, key, low, high):
    """Search low .. high, between which keys rise, for the first that is not below a key."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@register_jitable
def _gather_references(target, table, tiers, powers, stop):
    """Measure to the references in far cells."""
    n_references = table.reference_cells.shape[0]
    row = powers[stop : stop + n_references]
    _fill_powers(target, table.reference_columns, 0, n_references, table.power, row)
    n_kept = 0
    for r in range(n_references):
        row[n_kept] = row[r]  # written over by the next one unless it is kept: no branch to miss
        n_kept += 1 if tiers[table.reference_cells[r]] == 0 else 0
    return stop + n_kept


@register_jitable
def _take_difference(point, centre, difference):
    for f in range(point.shape[0]):
        difference[f] = point[f] - centre[f]
