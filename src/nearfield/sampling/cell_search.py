"""The nearest of points that are sorted into cells, exactly.

Distances are measured in single precision, eight at a time; those that may be small enough are
measured again in double precision. Cells that are too far for the nearest of their points to count
are passed over.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._block_vector import sizes_within, squares_within
from nearfield.sampling.cell_table import BLOCK, fill_powers, measure_blocks
from nearfield.sampling.cell_tiers import tiers_around

_ROUNDING = 2.0**-23
_N_FIRST = 4  # so many points near by are looked at first, for each that is wanted
_N_TARGETS = 8  # at once: what is read of a cell serves them all
_N_BY_INSERTION = 16
_ZERO, _ONE, _TWO = np.float32(0.0), np.float32(1.0), np.float32(2.0)
_TINY = np.float32(1e-30)


@njit(cache=True, nogil=True, error_model="numpy")
def cell_neighbors(targets, table, radii, points, rows, distances, index):
    """Find the nearest points of each target, nearest first; of equally far ones the first rows.

    Parameters
    ----------
    targets : ndarray, shape (m, n_features)
    table : CellTable
        Of all points.
    radii : ndarray of float32, shape (n_cells,)
        How far the points of each cell are from its centre at most.
    points : ndarray, shape (n, n_features)
        At least K.
    rows : ndarray of int, shape (n,)
        The points in the order of the table.
    distances : ndarray, shape (m, K)
    index : ndarray of int, shape (m, K)
        Rows of the points.
    """
    n_neighbors, shape = distances.shape[1], (_N_TARGETS, table.sizes.shape[0])
    tiers = np.empty(shape[1], dtype=np.int8)
    bounds = np.empty(shape, dtype=np.float32)
    between = np.empty(shape[1], dtype=np.float32)
    powers = np.empty(2 * _N_FIRST * n_neighbors + table.sizes.max() + BLOCK, dtype=np.float32)
    found = np.empty((_N_TARGETS, 2 * n_neighbors))
    found_rows = np.empty(found.shape, dtype=np.int64)
    margins, limits = np.empty(_N_TARGETS), np.empty(_N_TARGETS)
    farthest = _largest_length(table.centres, table.power)
    sizes = table.sizes.astype(np.float32)
    for start in range(0, targets.shape[0], _N_TARGETS):
        some = targets[start : start + _N_TARGETS]
        for i in range(some.shape[0]):
            to_centres = bounds[i]
            n_first = _N_FIRST * n_neighbors
            single = some[i].astype(np.float32)
            tiers_around(single, table, sizes, n_first, 0, to_centres, tiers)
            margins[i] = _ROUNDING * (farthest + _largest_length(some[i : i + 1], table.power))
            _bound_cells(some[i], table, radii, margins[i], to_centres, between)
            limits[i] = _first_limit(
                some[i], table, (radii, margins[i]), bounds[i], tiers, n_neighbors, powers
            )
        _visit_cells(
            some,
            (table.power, n_neighbors),
            bounds,
            margins,
            limits,
            radii,
            table.starts,
            table.centres,
            table.blocks,
            table.block_starts,
            points,
            rows,
            powers,
            found,
            found_rows,
        )
        for i in range(some.shape[0]):
            nearest, nearest_rows = found[i, :n_neighbors], found_rows[i, :n_neighbors]
            _sort(nearest, nearest_rows)
            distances[start + i] = np.sqrt(nearest) if table.power == 2 else nearest
            index[start + i] = nearest_rows


@register_jitable
def _bound_cells(target, table, radii, margin, bounds, between):
    """Turn the powers of the distances to centres into how near the points of a cell are at most.

    In single precision; `margin` is by how much such distances are off for the points' being far
    from zero. `between` is to be overwritten.
    """
    rounding = np.float32(2.0 * _rounding(target))
    margin = np.float32(margin)
    nearest = np.argmin(bounds)
    for c in range(bounds.shape[0]):
        bounds[c] = np.sqrt(bounds[c]) if table.power == 2 else bounds[c]
    closest = bounds[nearest]
    if table.power == 1:
        _bound_by_radii(bounds, radii, margin, rounding)
        return
    centre = table.centres[nearest].astype(np.float32)
    fill_powers(centre, table.centre_columns, 0, bounds.shape[0], table.power, between)
    # Which centre is the nearest to a point was found to so many digits.
    unsure = np.float32(1e-12) * (margin / np.float32(_ROUNDING) + radii[nearest]) ** 2
    _bound_by_halves(bounds, radii, between, closest, (margin, rounding, unsure))


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_by_radii(bounds, radii, margin, rounding):
    """Bound by the triangle inequality: all points of a cell are within its radius."""
    for c in range(radii.shape[0]):
        bounds[c] = bounds[c] * (_ONE - rounding) - (radii[c] + margin)


@njit(cache=True, nogil=True, error_model="numpy")
def _bound_by_halves(bounds, radii, between, closest, errors):
    r"""Bound by that, and by what is nearer to the centre of its cell than to another one.

    A point p of the cell of c is in the half of the space that is nearer to c than to b, the centre
    nearest to the target t, so that

    .. math:: d(t, p) \ge \frac{d(t, c)^2 - d(t, b)^2}{2 d(b, c)}
    """
    margin, rounding, unsure = errors
    highest = closest * (_ONE + rounding) + margin
    for c in range(radii.shape[0]):
        lowest = max(bounds[c] * (_ONE - rounding) - margin, _ZERO)
        width = np.sqrt(between[c]) * (_ONE + rounding) + margin
        gap = lowest * lowest - highest * highest - unsure
        by_half = gap / max(_TWO * width, _TINY)
        bounds[c] = max(lowest - radii[c], by_half)


@njit(cache=True, nogil=True, error_model="numpy")
def _first_limit(target, table, reach, bounds, tiers, n_neighbors, powers):
    """Bound the distance of the last of the nearest points by some that are near."""
    radii, margin = reach
    relative = np.empty(target.shape[0], dtype=np.float32)
    n_seen, slack = 0, 0.0
    for c in range(bounds.shape[0]):
        size = table.starts[c + 1] - table.starts[c]
        if tiers[c] != 1 or n_seen + size + BLOCK > powers.shape[0]:
            continue
        for f in range(target.shape[0]):
            relative[f] = target[f] - table.centres[c, f]
        n_blocks = (size + BLOCK - 1) // BLOCK
        first = table.block_starts[c]
        measure_blocks(relative, table.blocks, first, n_blocks, table.power, powers[n_seen:])
        slack = max(slack, _slack(bounds[c], radii[c], margin))
        n_seen += size
    if n_seen < n_neighbors:
        return np.inf
    seen = powers[:n_seen]
    _put_nearest_first(seen, np.arange(n_seen), n_neighbors)
    return _upper(seen[n_neighbors - 1], _rounding(target), table.power) + slack


@njit(cache=True, nogil=True, error_model="numpy")
def _visit_cells(
    targets,
    settings,
    bounds,
    margins,
    limits,
    radii,
    starts,
    centres,
    blocks,
    block_starts,
    points,
    rows,
    powers,
    found,
    found_rows,
):
    """Look for neighbours in all cells that are not too far.

    All in one: tuples of arrays handed over for every cell would take longer than the distances.
    """
    power, n_neighbors = settings
    n_features, rounding = targets.shape[1], _rounding(points)
    relative = np.empty(n_features, dtype=np.float32)
    n_found = np.zeros(targets.shape[0], dtype=np.int64)
    for c in range(radii.shape[0]):
        start, size = starts[c], starts[c + 1] - starts[c]
        n_blocks = (size + BLOCK - 1) // BLOCK
        for i in range(targets.shape[0]):
            if bounds[i, c] > limits[i]:
                continue
            for f in range(n_features):
                relative[f] = targets[i, f] - centres[c, f]
            slack = _slack(bounds[i, c], radii[c], margins[i])
            limit = _limit(limits[i] + slack, rounding, power)
            for t in range(n_blocks):
                block = block_starts[c] + t
                if power == 2:
                    near = squares_within(relative, blocks, block, limit)  # type: ignore[call-arg, var-annotated]
                else:
                    near = sizes_within(relative, blocks, block, limit)  # type: ignore[call-arg]
                if near == 0:
                    continue
                for k in range(min(BLOCK, size - BLOCK * t)):
                    if near >> k & 1 == 0:
                        continue
                    row = rows[start + BLOCK * t + k]
                    found[i, n_found[i]] = _power_of(targets[i], points[row], power)
                    found_rows[i, n_found[i]] = row
                    n_found[i] += 1
                    if n_found[i] == found.shape[1]:
                        _put_nearest_first(found[i], found_rows[i], n_neighbors)
                        n_found[i] = n_neighbors
                        limits[i] = _upper(found[i, n_neighbors - 1], 0.0, power)
                        limit = _limit(limits[i] + slack, rounding, power)
    for i in range(targets.shape[0]):
        _put_nearest_first(found[i, : n_found[i]], found_rows[i, : n_found[i]], n_neighbors)


@register_jitable
def _slack(bound, radius, margin):
    """Bound the error of a distance: either end is rounded relative to the centre."""
    return _ROUNDING * (bound + 2.0 * (radius + margin))


@register_jitable
def _rounding(points):
    """Bound the relative error of a sum over features in single precision."""
    return _ROUNDING * (points.shape[-1] + 4)


@register_jitable
def _limit(distance, rounding, power):
    """Bound the power, as it is measured, of what may be so near."""
    value = distance * distance if power == 2 else distance
    return np.float32(value * (1.0 + rounding))


@register_jitable
def _upper(measured, rounding, power):
    """Bound a distance whose power was measured."""
    value = np.float64(measured) * (1.0 + rounding + 1e-15)
    return np.sqrt(value) if power == 2 else value


@register_jitable
def _power_of(point, other, power):
    total = 0.0
    for f in range(point.shape[0]):
        gap = point[f] - other[f]
        total += gap * gap if power == 2 else abs(gap)
    return total


@register_jitable
def _largest_length(points, power):
    largest = 0.0
    for i in range(points.shape[0]):
        total = 0.0
        for value in points[i]:
            total += value * value if power == 2 else abs(value)
        largest = max(largest, total)
    return np.sqrt(largest) if power == 2 else largest


@register_jitable
def _comes_after(value, row, other, other_row):
    return value > other or (value == other and row > other_row)


@njit(cache=True, nogil=True, error_model="numpy")
def _put_nearest_first(values, rows, n_nearest):
    """Move the smallest values to the front, the largest of them to the end of these."""
    low, high, wanted = 0, values.shape[0] - 1, n_nearest - 1
    while low < high:
        middle = _partition(values, rows, low, high)
        if wanted <= middle:
            high = middle
        else:
            low = middle + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(values, rows):
    """Sort by value, and then by row."""
    size = values.shape[0]
    if size < _N_BY_INSERTION:
        for t in range(1, size):
            value, row, at = values[t], rows[t], t
            while at > 0 and _comes_after(values[at - 1], rows[at - 1], value, row):
                values[at], rows[at] = values[at - 1], rows[at - 1]
                at -= 1
            values[at], rows[at] = value, row
        return
    middle = _partition(values, rows, 0, size - 1) + 1
    _sort(values[:middle], rows[:middle])
    _sort(values[middle:], rows[middle:])


@register_jitable
def _partition(values, rows, low, high):
    """Part low .. high into smaller ones and, after the place returned, larger ones."""
    pivot, pivot_row = values[(low + high) // 2], rows[(low + high) // 2]
    low, high = low - 1, high + 1
    while True:
        low, high = low + 1, high - 1
        while _comes_after(pivot, pivot_row, values[low], rows[low]):
            low += 1
        while _comes_after(values[high], rows[high], pivot, pivot_row):
            high -= 1
        if low >= high:
            return high
        values[low], values[high] = values[high], values[low]
        rows[low], rows[high] = rows[high], rows[low]
