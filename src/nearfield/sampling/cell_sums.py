"""Kernel sums over all points, at many scales: what the normalisers of all points are made of.

The points are sorted into cells. For each target the nearest cells count point by point, those
around them by a quarter of their points, and the rest by reference points. Minima and sums over
shards of the points combine by minimum and by addition.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling.cell_table import BLOCK, fill_powers, measure_blocks, window_of
from nearfield.sampling.cell_tiers import tiers_around
from nearfield.sampling.scale_sums import ITSELF, N_AT_ONCE, add_sums, raise_to, smallest_of

_QUARTER = 4


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
    capacity = 8 * n_whole + n_references + n_cells + 2 * BLOCK
    powers = np.empty(capacity, dtype=np.float32)
    kernel = np.empty(N_AT_ONCE, dtype=np.float32)
    starts = np.empty(n_cells + 2, dtype=np.int64)
    factors = np.empty(n_cells + 2)
    to_centres = np.empty(n_cells, dtype=np.float32)
    tiers = np.empty(n_cells, dtype=np.int8)
    single = np.empty(targets.shape[1], dtype=np.float32)
    sizes = table.sizes.astype(np.float32)
    for i in range(targets.shape[0]):
        single[:] = targets[i]
        tiers_around(single, table, sizes, n_whole, _QUARTER * n_whole, to_centres, tiers)
        target = targets[i], single, places[i], shifts[i]
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
    single = np.empty(targets.shape[1], dtype=np.float32)
    sizes = table.sizes.astype(np.float32)
    for i in range(targets.shape[0]):
        single[:] = targets[i]
        tiers_around(single, table, sizes, n_whole, _QUARTER * n_whole, to_centres, tiers)
        for c in range(n_cells):
            if tiers[c] > 0 and table.sizes[c] > 0:
                is_reached[i, shard_of[c]] = True


@register_jitable
def _gather(target, table, n_whole, tiers, powers, starts, factors):
    """Measure to the sources, segment after segment; return the number of segments."""
    point, single, place, shift = target
    n_segments = _gather_cells(
        point,
        (place, shift, n_whole, table.power),
        tiers,
        table.sizes,
        table.starts,
        table.keys,
        table.centres,
        table.blocks,
        table.block_starts,
        powers,
        starts,
        factors,
    )
    n_far, first = 0, starts[n_segments]
    for c in range(tiers.shape[0]):
        n_far += table.sizes[c] if tiers[c] == 0 else 0
    stop = first
    if n_far > 0:
        stop = _gather_references(single, table, tiers, powers, stop)
    if stop > first:
        factors[n_segments] = n_far / (stop - first)
        n_segments += 1
        starts[n_segments] = stop
    return n_segments


@njit(cache=True, nogil=True, error_model="numpy")
def _gather_cells(
    point,
    settings,
    tiers,
    sizes,
    cell_starts,
    keys,
    centres,
    blocks,
    block_starts,
    powers,
    starts,
    factors,
):
    """Measure to the points of the cells that are taken, whole or in part.

    All in one: tuples of arrays handed over for every cell would take longer than the distances.
    """
    place, shift, n_whole, power = settings
    relative = np.empty(point.shape[0], dtype=np.float32)
    n_segments, stop = 0, 0
    starts[0] = 0
    for tier in range(1, 3):
        for c in range(tiers.shape[0]):
            if tiers[c] != tier or sizes[c] == 0:
                continue
            share = min(1.0 if tier == 1 else 1.0 / _QUARTER, n_whole / sizes[c])
            if n_segments == 0 or factors[n_segments - 1] != 1.0 / share:
                factors[n_segments] = 1.0 / share
                n_segments += 1
            for f in range(point.shape[0]):
                relative[f] = point[f] - centres[c, f]
            for part in range(2 if share < 1.0 else 1):
                start, end = cell_starts[c], cell_starts[c + 1]
                first = start
                if share < 1.0:
                    start, end = window_of(keys, c, start, end, shift, share, part)
                if end > start:
                    offset = start - first
                    n_blocks = (end - 1 - first) // BLOCK - offset // BLOCK + 1
                    row = powers[stop : stop + (n_blocks + 1) * BLOCK]
                    at = block_starts[c] + offset // BLOCK
                    measure_blocks(relative, blocks, at, n_blocks, power, row)
                    if offset % BLOCK > 0:
                        for t in range(end - start):
                            row[t] = row[t + offset % BLOCK]
                    if start <= place < end:
                        row[place - start] = ITSELF
                    stop += end - start
            starts[n_segments] = stop
    return n_segments


@register_jitable
def _gather_references(target, table, tiers, powers, stop):
    """Measure to the references in far cells."""
    n_references = table.reference_cells.shape[0]
    row = powers[stop : stop + n_references]
    fill_powers(target, table.reference_columns, 0, n_references, table.power, row)
    n_kept = 0
    for r in range(n_references):
        row[n_kept] = row[r]  # written over by the next one unless it is kept: no branch to miss
        n_kept += 1 if tiers[table.reference_cells[r]] == 0 else 0
    return stop + n_kept
