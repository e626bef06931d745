"""The terms of sums over training points, as one point sees them: gathered, thinned and sorted.

Of near cells the points that weigh something count one by one, and reference points stand for all
others.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._block_list import PLACES, list_within
from nearfield.sampling.cell_scan import Sight, raised
from nearfield.sampling.cell_table import fill_powers
from nearfield.sampling.scale_sums import raise_to

NEGLIGIBLE = 14.0
"""exp(-14), times all that counts point by point, beside the near ones."""

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


FULL = 32
"""So many terms vector instructions take at once, at most."""

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

    labels: NDArray[np.int32]  # shape (n,)
    nearest: NDArray[np.float64]  # shape (n,), the distance to the nearest other one
    units: NDArray[np.float32]  # shape (n,), the same to the power of the kernel
    references: NDArray[np.int64]  # shape (R,), places
    reference_labels: NDArray[np.int32]  # shape (R,), of these
    reference_units: NDArray[np.float32]  # shape (R,)
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
    totals: NDArray[np.float32]  # shape (n, n_scales); relative to the nearest, unless for radii
    rest: NDArray[np.float64]  # shape (2, n_scales, G), what all give to a site and to a new point


class Terms(NamedTuple):
    """The sources of one point that count, class by class: shape (G, capacity), if no other."""

    out: NDArray[np.float32]  # d^p - c^p, with c the smallest distance of the point
    back: NDArray[np.float32]  # d^p - r^p, with r the distance of the source to its nearest
    weight: NDArray[np.float32]  # for how many points it stands
    places: NDArray[np.int32]
    ends: NDArray[np.int64]  # shape (G,), how many there are
    totals: NDArray[np.float32]  # shape (capacity,), room for those of the sources
    units: NDArray[np.float32]  # shape (capacity,), room for these, less the base of the scan
    powers: NDArray[np.float32]  # shape (R,), to the references
    kept: NDArray[np.int32]  # shape (R + 8,), which of them count


@njit(cache=True, nogil=True, error_model="numpy")
def make_terms(table, n_references, n_whole, n_classes):
    """Make room for all terms of one point."""
    capacity = min(table.keys.shape[0], 4 * n_whole) + n_references + FULL
    shape = n_classes, capacity
    return Terms(
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.int32),
        np.zeros(n_classes, np.int64),
        np.empty(capacity, np.float32),
        np.empty(capacity, np.float32),
        np.empty(n_references, np.float32),
        np.empty(n_references + 8, np.int32),
    )


@register_jitable
def smooth_sight(scales, vicinity):
    """Say how far points see under a smooth kernel: what is not negligible at any rate."""
    slowest = scales.values.min()
    return Sight(NEGLIGIBLE / slowest, vicinity.reach / slowest, 1.0 / slowest, scales.values.max())


@register_jitable
def gather_terms(t, n_points, sight, seen, scan, table, sources, scales, is_near, terms):
    """List the sources of a target by class: those that were found, and references for others.

    A source that is near is left out, since it is on the list of the nearest ones.

    Parameters
    ----------
    t : int
        The number of the target in the scan.
    n_points : tuple of int
        How many training points there are, and how many, about, are seen one by one.
    sight : Sight
    seen : tuple
        The point, and its distances to the references, if cells do not know the metric.
    scan : Scan
        By `scan_around`.
    table : CellTable
    sources : Sources
    scales : ScaleTable
    is_near : ndarray of bool, shape (n,)
        Or of none, if no source is: reading it takes as long as the rest.
    terms : Terms
        Filled in.
    """
    n_seen = scan.n_seen[t]
    n_all, n_whole = n_points
    found, base = scan.found[t, : scan.n_found[t]], scan.bases[t]
    closest, reach = scan.closest[t], np.float32(sight.reach)
    if scan.is_far[t]:
        _take_units_again(found, sources.nearest, base, scales.is_squared, terms.units)
    else:
        _take_units(found, sources.units, terms.units)
    _sort_by_class(
        (closest, reach),
        scan.powers[t],
        found,
        terms.units,
        sources.labels,
        is_near,
        terms.out.reshape(-1),
        terms.back.reshape(-1),
        terms.weight.reshape(-1),
        terms.places.reshape(-1),
        terms.ends,
    )
    if n_seen > n_whole > 0:
        _weigh_crowds(table, n_whole, terms)
    has_others = n_seen < n_all or sight.reach < sight.limit
    if has_others and sources.references.shape[0] > 0:
        _measure_references(seen, table, scales, scan.is_far[t], base, terms.powers)
        _gather_references(
            (n_all - n_seen, n_all, scan.n_around[t]),
            sight,
            (closest, reach, base),
            table,
            sources,
            scan.tiers[t],
            is_near,
            terms,
        )


@njit(cache=True, nogil=True, error_model="numpy")
def _take_units(found, units, taken):
    for t in range(found.shape[0]):
        taken[t] = units[found[t]]


@njit(cache=True, nogil=True, error_model="numpy")
def _take_units_again(found, nearest, base, is_squared, taken):
    """Do so in double precision, where a base is taken off."""
    for t in range(found.shape[0]):
        distance = nearest[found[t]]
        taken[t] = (distance * distance if is_squared else distance) - base


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_by_class(
    settings, powers, found, units, labels, is_near, out, back, weights, places, ends
):
    """Sort what was found by class; what does not count is written over by the next one."""
    closest, reach = settings
    has_near = is_near.shape[0] > 0
    capacity = out.shape[0] // ends.shape[0]
    slots = np.arange(ends.shape[0]).astype(np.uint64) * np.uint64(capacity)
    for t in range(found.shape[0]):
        j = np.uint64(found[t])  # no place is counted from the end
        g = np.uint64(labels[j])
        slot, power, unit = slots[g], powers[t], units[t]
        is_within = power <= max(unit, closest) + reach
        slots[g] = slot + np.uint64(is_within & (not (has_near and is_near[j])))
        out[slot], back[slot] = max(power - closest, _ZERO), power - unit
        weights[slot], places[slot] = _ONE, np.int32(j)
    for h in range(ends.shape[0]):
        ends[h] = np.int64(slots[h]) - h * capacity


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_crowds(table, n_whole, terms):
    """Let the points of a cell that was taken in part stand for all of it."""
    if table.sizes.max() <= n_whole:
        return
    for g in range(terms.ends.shape[0]):
        for t in range(terms.ends[g]):
            c = np.searchsorted(table.starts, terms.places[g, t], side="right") - 1
            terms.weight[g, t] = max(table.sizes[c] / n_whole, 1.0)


@register_jitable
def _measure_references(seen, table, scales, is_far, base, powers):
    point, far_distances = seen
    if far_distances.shape[0] > 0:
        powers[:] = far_distances
    elif is_far:
        _measure_again(point, table, base, scales.exponent, powers)
        return
    else:
        single = point.astype(np.float32)
        fill_powers(single, table.reference_columns, 0, powers.shape[0], table.power, powers)
    raise_to(scales.exponent, powers)


@register_jitable
def _measure_again(point, table, base, exponent, powers):
    """Measure to the references in double precision."""
    n_references = powers.shape[0]
    for r in range(n_references):
        total = 0.0
        for f in range(point.shape[0]):
            gap = point[f] - table.reference_columns[f * n_references + r]
            total += gap * gap if table.power == 2 else abs(gap)
        powers[r] = raised(total, exponent) - base


@register_jitable
def _gather_references(n_points, sight, settings, table, sources, tiers, is_near, terms):
    """Take the references that count, of the sources that do not count one by one."""
    closest, reach, base = settings
    has_near = is_near.shape[0] > 0
    n_references = sources.references.shape[0]
    powers, units = terms.powers, sources.reference_units
    n_far, n_all, n_around = n_points
    weight = n_far / max(n_references - n_around, 1)
    weight_around = (n_all - n_far) / max(n_around, 1)
    # What is negligible is less for what stands for many.
    log_weight = np.log(max(weight, weight_around, 1.0))
    limit = np.float32(sight.limit + log_weight * sight.slack)
    if base > 0.0:
        units = (units - base).astype(np.float32)
    n_kept = list_within(powers, units, closest, limit, PLACES, terms.kept)
    for t in range(n_kept):
        r = terms.kept[t]
        j, g, power = sources.references[r], sources.reference_labels[r], powers[r]
        is_around = tiers[table.reference_cells[r]] == 1
        is_counted = is_around and power <= max(units[r], closest) + reach
        # Written over by the next one unless it counts: no branch to miss.
        slot = terms.ends[g]
        terms.ends[g] = slot + (not (is_counted or (has_near and is_near[j])))
        terms.out[g, slot], terms.back[g, slot] = max(power - closest, _ZERO), power - units[r]
        stands_for = weight_around if is_around else weight
        terms.weight[g, slot] = sources.multiplicity[r] * np.float32(stands_for)
        terms.places[g, slot] = j


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
def fill_up(g, terms):
    """Put terms that weigh nothing after those of a class; return how many there are then.

    So many that vector instructions take them all: a few that are left, one by one, take as long
    as hundreds.
    """
    end = terms.ends[g]
    full = (end + FULL - 1) // FULL * FULL
    for t in range(end, full):
        terms.out[g, t], terms.back[g, t], terms.weight[g, t] = _ZERO, _ZERO, _ZERO
        terms.places[g, t] = terms.places[g, 0]
    return full


@register_jitable
def mark_near(places, site, is_near, value):
    """Mark the sources that are on the list of the nearest ones, and the point itself."""
    for j in places:
        if j >= 0:
            is_near[j] = value
    if site >= 0:
        is_near[site] = value
