"""The points in the cells around a target that are near enough to count one by one.

For some targets at once: what is read of a cell serves all that are near to it. Distances are
measured in single precision, and of targets so far away that their differences would have too few
digits left, again in double precision.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._block_list import PLACES, list_sizes, list_squares
from nearfield.sampling._block_vector import fill_gaps
from nearfield.sampling._vector import ANY_ORDER
from nearfield.sampling.cell_table import BLOCK, first_not_below, measure_blocks
from nearfield.sampling.cell_tiers import tiers_around
from nearfield.sampling.scale_sums import raise_to, smallest_of

N_TARGETS = 32
"""So many at once."""

_FAR = 1_024.0  # times the power at which the kernel is exp(-1): single precision is off by 1e-4
_ROUNDING = 2.0**-22  # of a feature
_NEAREST = np.float32(1.5)  # times the power of the distance to the nearest centre
_ZERO = np.float32(0.0)


class Sight(NamedTuple):
    """How far points see."""

    limit: float  # powers that are larger by more are negligible, unless they stand for many
    reach: float  # by more than this, they do not count one by one
    slack: float  # by which the limit is higher for the log of what a source stands for
    rate: float  # the largest, at which differences of powers need digits


class Scan(NamedTuple):
    """What some targets see of the cells around them; most have a row a target."""

    sizes: NDArray[np.float32]  # shape (n_cells,), how many points each cell has
    n_references: NDArray[np.float32]  # shape (n_cells,), how many of them are references
    tiers: NDArray[np.int8]  # shape (N_TARGETS, n_cells), 1 if the points of a cell are measured
    n_seen: NDArray[np.int64]  # how many points these cells have
    n_around: NDArray[np.int64]  # and how many references
    limits: NDArray[np.float32]  # powers, as they are measured, above which nothing counts
    is_far: NDArray[np.bool_]  # whether distances are measured again
    bases: NDArray[np.float64]  # what is taken off their powers then, else zero
    closest: NDArray[np.float32]  # the smallest power, less the base
    n_found: NDArray[np.int64]
    found: NDArray[np.int32]  # shape (N_TARGETS, capacity), the sources that count
    powers: NDArray[np.float32]  # shape (N_TARGETS, capacity), of their distances, less the base


@njit(cache=True, nogil=True, error_model="numpy")
def make_scan(table, n_whole):
    """Make room for all that may be found."""
    n_cells = table.sizes.shape[0]
    shape = N_TARGETS, min(table.keys.shape[0], 4 * n_whole) + 2 * BLOCK
    return Scan(
        table.sizes.astype(np.float32),
        np.bincount(table.reference_cells, minlength=n_cells).astype(np.float32),
        np.zeros((N_TARGETS, n_cells), np.int8),
        np.zeros(N_TARGETS, np.int64),
        np.zeros(N_TARGETS, np.int64),
        np.zeros(N_TARGETS, np.float32),
        np.zeros(N_TARGETS, np.bool_),
        np.zeros(N_TARGETS),
        np.zeros(N_TARGETS, np.float32),
        np.zeros(N_TARGETS, np.int64),
        np.empty(shape, np.int32),
        np.empty(shape, np.float32),
    )


@register_jitable
def scan_around(points, closest, sight, n_whole, exponent, table, bounds, scan):
    """Find what counts for some targets, in cells around them with so many points, about.

    Parameters
    ----------
    points : ndarray, shape (m, n_features)
        At most `N_TARGETS`.
    closest : ndarray, shape (m,)
        The smallest distance to any point, to the power of the kernel; infinite if it is not known,
        to be found among the points around.
    sight : Sight
        How far they see.
    n_whole : int
        So many points are around; none where there are no cells.
    exponent : float
        Of the powers, as they are measured, in the kernel.
    table : CellTable
    bounds : ndarray of float32
        By `bounds_by_block`.
    scan : Scan
        Filled in.
    """
    to_centres = np.empty(table.sizes.shape[0], dtype=np.float32)
    scratch = np.empty(table.sizes.max() + BLOCK, dtype=np.float32)
    for i in range(points.shape[0]):
        scan.tiers[i] = 0
        scan.n_found[i] = 0
        nearest = closest[i]
        if n_whole > 0:
            single = points[i].astype(np.float32)
            tiers_around(single, table, scan.sizes, n_whole, 0, to_centres, scan.tiers[i])
            if not nearest < np.inf:
                nearest = raised(_closest_around(points[i], table, to_centres, scratch), exponent)
        scan.n_seen[i] = int(_count_taken(scan.tiers[i], scan.sizes))
        scan.n_around[i] = int(_count_taken(scan.tiers[i], scan.n_references))
        is_far = n_whole > 0 and nearest * sight.rate > _FAR
        scan.is_far[i], scan.bases[i] = is_far, nearest if is_far else 0.0
        scan.closest[i] = nearest - scan.bases[i]
        slack = _ROUNDING * (points.shape[1] + 2) if is_far else 0.0
        scan.limits[i] = measured_of(nearest + sight.reach, exponent) * (1.0 + slack)
    if n_whole == 0 or table.starts[-1] == 0:
        return
    _scan_cells(
        points,
        (n_whole, table.power, exponent),
        table.sizes,
        table.starts,
        table.keys,
        table.centres,
        table.blocks,
        table.block_starts,
        bounds,
        PLACES,
        scratch,
        scan.tiers,
        scan.limits,
        scan.is_far,
        scan.bases,
        scan.n_found,
        scan.found,
        scan.powers,
    )
    for i in range(points.shape[0]):
        found = scan.powers[i, : scan.n_found[i]]
        if not scan.is_far[i]:
            raise_to(exponent, found)
        if not closest[i] < np.inf and found.shape[0] > 0:
            scan.closest[i] = smallest_of(found)


@register_jitable
def _closest_around(point, table, to_centres, scratch):
    """Bound the smallest distance, measured as it is, by the points of the nearest cells."""
    relative = np.empty(point.shape[0], dtype=np.float32)
    closest = smallest_of(to_centres)  # centres are points
    bound = _NEAREST * closest
    for c in range(to_centres.shape[0]):
        n_points = table.starts[c + 1] - table.starts[c]
        if to_centres[c] > bound or n_points == 0:
            continue
        for f in range(point.shape[0]):
            relative[f] = point[f] - table.centres[c, f]
        n_blocks = table.block_starts[c + 1] - table.block_starts[c]
        measure_blocks(
            relative, table.blocks, table.block_starts[c], n_blocks, table.power, scratch
        )
        closest = min(closest, smallest_of(scratch[:n_points]))
    return np.float64(closest)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _count_taken(tiers, sizes):
    count = _ZERO
    for c in range(tiers.shape[0]):
        count += sizes[c] if tiers[c] == 1 else _ZERO
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _scan_cells(
    points,
    settings,
    sizes,
    starts,
    keys,
    centres,
    blocks,
    block_starts,
    bounds,
    places,
    measured,
    tiers,
    limits,
    is_far,
    bases,
    n_found,
    found,
    powers,
):
    """Find the points that count in the cells that are taken.

    All in one: tuples of arrays handed over for every cell would take longer than the distances.
    """
    n_whole, power, exponent = settings
    n_targets, n_features = points.shape
    relative = np.empty(n_features, dtype=np.float32)
    near = np.empty(n_targets + 1, dtype=np.int64)
    for c in range(sizes.shape[0]):
        start, end = starts[c], starts[c + 1]
        n_near = 0
        for i in range(n_targets):  # written over by the next one unless it is near: no branch
            near[n_near] = i
            n_near += tiers[i, c]
        if n_near == 0 or start == end:
            continue
        if sizes[c] > n_whole:  # a crowd: some of it
            end = first_not_below(keys, c + n_whole / sizes[c], start, end)
        first, n_blocks = block_starts[c], (end - start + BLOCK - 1) // BLOCK
        for k in range(n_near):
            i = near[k]
            fill_gaps(points, i, centres, c, relative)  # type: ignore[call-arg]
            before, row = n_found[i], found[i]
            span, limit = (first, n_blocks, start, before), limits[i]
            if power == 2:
                after = list_squares(relative, blocks, span, bounds, limit, places, measured, row)
            else:
                after = list_sizes(relative, blocks, span, bounds, limit, places, measured, row)
            while after > before and row[after - 1] >= end:  # none: what fills the last block
                after -= 1
            n_found[i] = after
            for t in range(before, after):
                powers[i, t] = measured[np.uint64(row[t] - start)]  # none counts from the end
            if is_far[i]:
                for t in range(before, after):
                    block, lane = first + (row[t] - start) // BLOCK, (row[t] - start) % BLOCK
                    total = 0.0
                    for f in range(n_features):
                        gap = points[i, f] - centres[c, f] - blocks[block, f, lane]
                        total += gap * gap if power == 2 else abs(gap)
                    powers[i, t] = raised(total, exponent) - bases[i]


@register_jitable
def raised(value, exponent):
    """Give the power by which the kernel takes a distance that was measured."""
    return value if exponent == 1.0 else np.sqrt(value) if exponent == 0.5 else value * value


@register_jitable
def measured_of(value, exponent):
    """Give the power, as it is measured, of which the kernel takes the value."""
    return value if exponent == 1.0 else value * value if exponent == 0.5 else np.sqrt(value)


@njit(cache=True, nogil=True, error_model="numpy")
def bounds_by_block(table, units, reach, exponent):
    """Give up to which power, as it is measured, a source gives something that counts.

    Eight numbers a block, as the sources lie.
    """
    bounds = np.zeros(BLOCK * table.block_starts[-1], dtype=np.float32)
    for c in range(table.starts.shape[0] - 1):
        shift = BLOCK * table.block_starts[c] - table.starts[c]
        for j in range(table.starts[c], table.starts[c + 1]):
            bounds[j + shift] = measured_of(units[j] + reach, exponent)
    return bounds
