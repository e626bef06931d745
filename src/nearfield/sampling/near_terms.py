"""The terms of sums over training points, as one point sees them: gathered, thinned and sorted.

Of near cells the points that weigh something count one by one, and reference points stand for all
others.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._block_vector import keep_sizes, keep_squares
from nearfield.sampling.cell_sums import tiers_around
from nearfield.sampling.cell_table import BLOCK, fill_powers, first_not_below
from nearfield.sampling.scale_sums import raise_to

NEGLIGIBLE = 14.0
"""exp(-14), times all that counts point by point, beside the near ones."""

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


NEW = -1
"""The site of a point that is no training point."""

ELSEWHERE = -2
"""The site of a training point that is not among the sources at hand."""


class Neighborhood(NamedTuple):
    """What some points see of the training points: the K nearest ones, and where others are."""

    near_distances: NDArray[np.float64]  # shape (m, K)
    near_index: NDArray[np.int64]  # shape (m, K), places among the sources
    points: NDArray[np.float64]  # shape (m, n_features), for distances by cells, else (m, 0)
    far_distances: NDArray[np.float32]  # shape (m, R), to the references if not by cells, or (m, 0)
    sites: NDArray[np.int64]  # shape (m,), which source it is, NEW or ELSEWHERE if none

    def part(self, rows: Any) -> "Neighborhood":
        """Take some of the points."""
        return Neighborhood(*(array[rows] for array in self))


class Sources(NamedTuple):
    """Training points, in the order of their cells, or any if there are none."""

    labels: NDArray[np.int64]  # shape (n,)
    nearest: NDArray[np.float64]  # shape (n,), the distance to the nearest other one
    units: NDArray[np.float32]  # shape (n,), the same to the power of the kernel
    references: NDArray[np.int64]  # shape (R,), places
    reference_units: NDArray[np.float32]  # shape (R,), of these
    multiplicity: NDArray[np.float32]  # shape (R,), by which each counts more than it stands for


class Vicinity(NamedTuple):
    """Which of the sources that are on no list count one by one."""

    n_whole: int  # so many points, about, in the cells around, or none where there are no cells,
    reach: float  # whose kernel is above exp(-reach) of that at the closest point, either way


class ScaleTable(NamedTuple):
    """The scales at hand, and the totals of the sources at each of them."""

    values: NDArray[np.float64]  # shape (n_scales,), rates of a smooth kernel, or radii
    is_squared: bool  # whether the smooth kernel is exp(-rate d^2), else exp(-rate d)
    exponent: float  # of the powers of distances, as they come, in the kernel: 0.5, 1 or 2
    totals: NDArray[np.float32]  # shape (n_scales, n); relative to the nearest, unless for radii
    rest: NDArray[np.float64]  # shape (2, n_scales, G), what all give to a site and to a new point


class Terms(NamedTuple):
    """The sources of one point that count, class by class: shape (G, capacity), if no other."""

    out: NDArray[np.float32]  # d^p - c^p, with c the smallest distance of the point
    back: NDArray[np.float32]  # d^p - r^p, with r the distance of the source to its nearest
    weight: NDArray[np.float32]  # for how many points it stands
    places: NDArray[np.int32]
    ends: NDArray[np.int64]  # shape (G,), how many there are
    powers: NDArray[np.float32]  # shape (capacity,), to what is looked at
    found: NDArray[np.int32]  # shape (capacity,), which of it counts
    totals: NDArray[np.float32]  # shape (capacity,)


class Sight(NamedTuple):
    """What of the sources one point may see."""

    point: NDArray[np.float64]
    far_distances: NDArray[np.float32]
    closest: np.float32  # its smallest distance, to the power of the kernel
    limit: np.float32  # powers above are negligible, for a source that stands for itself
    reach: np.float32  # powers above do not count one by one
    slack: float  # by which the limit is higher for the log of what a source stands for
    n_whole: int


@njit(cache=True, nogil=True, error_model="numpy")
def make_terms(table, n_references, n_whole, n_classes):
    """Make room for all terms of one point."""
    capacity = min(table.keys.shape[0], 4 * n_whole) + n_references + 1
    shape = n_classes, capacity
    return Terms(
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.int32),
        np.zeros(n_classes, np.int64),
        np.empty(capacity, np.float32),
        np.empty(capacity, np.int32),
        np.empty(capacity, np.float32),
    )


@register_jitable
def smooth_sight(point, far_distances, closest, scales, vicinity):
    """Say what one point sees under a smooth kernel: what is not negligible at any rate."""
    slowest = scales.values.min()
    power = closest * closest if scales.is_squared else closest
    return Sight(
        point,
        far_distances,
        np.float32(power),
        np.float32(NEGLIGIBLE / slowest),
        np.float32(vicinity.reach / slowest),
        1.0 / slowest,
        vicinity.n_whole,
    )


@register_jitable
def gather_terms(sight, table, sources, scales, bounds, is_near, tiers, terms):
    """List the sources of a point by class: those of near cells, and references for others.

    A source that is near is left out, since it is on the list of the nearest ones.
    """
    single = sight.point.astype(np.float32)
    n_cells = table.sizes.shape[0]
    tiers[:] = 0
    if sight.n_whole > 0:
        to_centres = np.empty(n_cells, dtype=np.float32)
        tiers_around(single, table, sight.n_whole, 0, to_centres, tiers)
    n_all = table.sizes.sum()
    n_far = 0
    for c in range(n_cells):
        n_far += table.sizes[c] if tiers[c] != 1 else 0
    terms.ends[:] = 0
    if n_far < n_all:
        n_found = _scan_cells(
            sight.point,
            (sight.closest, sight.reach, sight.n_whole, table.power, scales.exponent),
            tiers,
            table.sizes,
            table.starts,
            table.keys,
            table.centres,
            table.blocks,
            table.block_starts,
            bounds,
            terms.powers,
            terms.found,
            terms.totals,
        )
        raise_to(scales.exponent, terms.powers[:n_found])
        _sort_by_class(
            (n_found, sight.closest),
            terms.powers,
            terms.found,
            terms.totals,
            sources.labels,
            sources.units,
            is_near,
            terms.out.reshape(-1),
            terms.back.reshape(-1),
            terms.weight.reshape(-1),
            terms.places.reshape(-1),
            terms.ends,
        )
    has_others = n_far > 0 or sight.reach < sight.limit
    if has_others and sources.references.shape[0] > 0:
        n_points = n_far, n_all
        _gather_references(n_points, single, sight, table, sources, scales, is_near, tiers, terms)


@njit(cache=True, nogil=True, error_model="numpy")
def _scan_cells(
    point,
    settings,
    tiers,
    sizes,
    starts,
    keys,
    centres,
    blocks,
    block_starts,
    bounds,
    powers,
    found,
    weights,
):
    """Find the points that count in the cells that are taken; return how many there are.

    All in one: tuples of arrays handed over for every cell would take longer than the distances.
    """
    closest, reach, n_whole, power, exponent = settings
    n_features, relative = point.shape[0], np.empty(point.shape[0], dtype=np.float32)
    measured, limit = np.empty(BLOCK, dtype=np.float32), _measured(closest + reach, exponent)
    n_found = 0
    for c in range(sizes.shape[0]):
        start, end = starts[c], starts[c + 1]
        if tiers[c] != 1 or start == end:
            continue
        weight = _ONE
        if sizes[c] > n_whole:  # a crowd: some of it
            end = first_not_below(keys, c + n_whole / sizes[c], start, end)
            weight = np.float32(sizes[c] / n_whole)
        for f in range(n_features):
            relative[f] = point[f] - centres[c, f]
        for first in range(start, end, BLOCK):
            block = block_starts[c] + (first - start) // BLOCK
            if power == 2:
                bits = keep_squares(relative, blocks, block, measured, bounds, limit)  # type: ignore[call-arg, var-annotated]
            else:
                bits = keep_sizes(relative, blocks, block, measured, bounds, limit)  # type: ignore[call-arg]
            bits &= (1 << min(BLOCK, end - first)) - 1
            if bits == 0:
                continue
            for k in range(BLOCK):  # written over by the next one unless it counts: no branch
                powers[n_found], found[n_found] = measured[k], np.int32(first + k)
                weights[n_found] = weight
                n_found += bits >> k & 1
    return n_found


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_by_class(
    settings,
    powers,
    found,
    found_weights,
    labels,
    units,
    is_near,
    out,
    back,
    weights,
    places,
    ends,
):
    """Sort what was found by class; what is near is written over by the next one."""
    n_found, closest = settings
    capacity = out.shape[0] // ends.shape[0]
    slots = np.arange(ends.shape[0]).astype(np.uint64) * np.uint64(capacity)
    for t in range(n_found):
        j = np.uint64(found[t])  # no place is counted from the end
        g = np.uint64(labels[j])
        slot = slots[g]
        slots[g] = slot + np.uint64(not is_near[j])
        out[slot], back[slot] = max(powers[t] - closest, _ZERO), powers[t] - units[j]
        weights[slot], places[slot] = found_weights[t], np.int32(j)
    for h in range(ends.shape[0]):
        ends[h] = np.int64(slots[h]) - h * capacity


@register_jitable
def _measured(value, exponent):
    """Give the power, as it is measured, of which the kernel takes the value."""
    root = value if exponent == 1.0 else value * value if exponent == 0.5 else np.sqrt(value)
    return np.float32(root)


@njit(cache=True, nogil=True, error_model="numpy")
def bounds_by_block(table, units, reach, exponent):
    """Give up to which power, as it is measured, a source gives something that counts.

    Eight numbers a block, as the sources lie.
    """
    bounds = np.zeros(BLOCK * table.block_starts[-1], dtype=np.float32)
    for c in range(table.starts.shape[0] - 1):
        shift = BLOCK * table.block_starts[c] - table.starts[c]
        for j in range(table.starts[c], table.starts[c + 1]):
            bounds[j + shift] = _measured(units[j] + reach, exponent)
    return bounds


@register_jitable
def _gather_references(n_points, single, sight, table, sources, scales, is_near, tiers, terms):
    """Take the references that count, of the sources that do not count one by one."""
    n_references = sources.references.shape[0]
    powers = terms.powers[:n_references]
    if sight.far_distances.shape[0] > 0:
        powers[:] = sight.far_distances
    else:
        fill_powers(single, table.reference_columns, 0, n_references, table.power, powers)
    raise_to(scales.exponent, powers)
    n_around = 0
    for r in range(n_references):
        n_around += tiers[table.reference_cells[r]]
    n_far, n_all = n_points
    weight = n_far / max(n_references - n_around, 1)
    weight_around = (n_all - n_far) / max(n_around, 1)
    # What is negligible is less for what stands for many.
    log_weight = np.log(max(weight, weight_around, 1.0))
    limit = sight.limit + np.float32(log_weight * sight.slack)
    closest, reach = sight.closest, sight.reach
    n_kept = _list_kept(powers, sources.reference_units, closest, limit, terms.found)
    for t in range(n_kept):
        r = terms.found[t]
        j, power, unit = sources.references[r], powers[r], sources.reference_units[r]
        is_around = tiers[table.reference_cells[r]] == 1
        is_counted = is_around and (power - closest <= reach or power - unit <= reach)
        if is_counted or is_near[j]:
            continue
        g = sources.labels[j]
        slot = terms.ends[g]
        terms.ends[g] = slot + 1
        terms.out[g, slot] = max(power - closest, _ZERO)
        terms.back[g, slot] = power - unit
        terms.weight[g, slot] = sources.multiplicity[r] * np.float32(
            weight_around if is_around else weight
        )
        terms.places[g, slot] = j


@njit(cache=True, nogil=True, error_model="numpy")
def _list_kept(powers, units, closest, limit, kept):
    """List what is not negligible, of what a point gives or gets; return how many there are."""
    n_kept = 0
    for t in range(units.shape[0]):
        kept[n_kept] = t  # written over by the next one unless it is kept: no branch to miss
        n_kept += (powers[t] - closest <= limit) | (powers[t] - units[t] <= limit)
    return n_kept


@njit(cache=True, nogil=True, error_model="numpy")
def drop_negligible(slowest, terms):
    """Leave out the terms that count for nothing at rates from some on."""
    limit, slack = np.float32(NEGLIGIBLE / slowest), 1.0 / slowest
    for g in range(terms.ends.shape[0]):
        out, back, weight, places = terms.out[g], terms.back[g], terms.weight[g], terms.places[g]
        kept = 0
        for t in range(terms.ends[g]):
            most = limit if weight[t] <= _ONE else limit + np.float32(np.log(weight[t]) * slack)
            if out[t] <= most or back[t] <= most:
                out[kept], back[kept], weight[kept] = out[t], back[t], weight[t]
                places[kept] = places[t]
                kept += 1
        terms.ends[g] = kept


@register_jitable
def mark_near(places, site, is_near, value):
    """Mark the sources that are on the list of the nearest ones, and the point itself."""
    for j in places:
        if j >= 0:
            is_near[j] = value
    if site >= 0:
        is_near[site] = value
