"""The terms of sums over training points, as one point sees them: gathered, thinned and sorted.

Near cells count point by point, and reference points stand for all others.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling.cell_sums import tiers_around
from nearfield.sampling.cell_table import (
    BLOCK,
    fill_powers,
    first_not_below,
    measure_blocks,
)
from nearfield.sampling.scale_sums import raise_to

_NEGLIGIBLE = 14.0  # exp(-14), times all that counts point by point, beside the near ones
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
    multiplicity: NDArray[np.float32]  # shape (R,), by which each counts more than it stands for


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
    powers: NDArray[np.float32]  # to what is looked at, a cell or all references at a time
    kept: NDArray[np.int32]  # which of these count
    totals: NDArray[np.float32]  # shape (capacity,)


class Sight(NamedTuple):
    """What of the sources one point may see."""

    point: NDArray[np.float64]
    far_distances: NDArray[np.float32]
    closest: np.float32  # its smallest distance, to the power of the kernel
    limit: np.float32  # powers above are negligible, for a source that stands for itself
    slack: float  # by which the limit is higher for the log of what a source stands for
    n_whole: int
    n_listed: int  # points that are seen in another way


@njit(cache=True, nogil=True, error_model="numpy")
def make_terms(table, n_references, n_whole, n_classes):
    """Make room for all terms of one point."""
    n_most = max(min(table.keys.shape[0], 2 * n_whole), n_references) + 2 * BLOCK
    capacity = min(table.keys.shape[0], 4 * n_whole) + n_references + 1
    shape = n_classes, capacity
    return Terms(
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.int32),
        np.zeros(n_classes, np.int64),
        np.empty(n_most, np.float32),
        np.empty(n_most, np.int32),
        np.empty(capacity, np.float32),
    )


@register_jitable
def smooth_sight(point, far_distances, closest, scales, n_whole, n_listed):
    """Say what one point sees under a smooth kernel: what is not negligible at any rate."""
    slowest = scales.values.min()
    power = closest * closest if scales.is_squared else closest
    return Sight(
        point,
        far_distances,
        np.float32(power),
        np.float32(_NEGLIGIBLE / slowest),
        1.0 / slowest,
        n_whole,
        n_listed,
    )


@register_jitable
def gather_terms(sight, table, sources, scales, is_near, tiers, terms):
    """List the sources of a point by class: those of near cells, and the references in others.

    A source that is near is left out, since it is on the list of the nearest ones.
    """
    single = sight.point.astype(np.float32)
    n_cells = table.sizes.shape[0]
    tiers[:] = 0
    if sight.n_whole > 0:
        to_centres = np.empty(n_cells, dtype=np.float32)
        tiers_around(single, table, sight.n_whole, to_centres, tiers)
    n_far = 0
    for c in range(n_cells):
        n_far += table.sizes[c] if tiers[c] != 1 else 0
    terms.ends[:] = 0
    if n_far < table.sizes.sum():
        _gather_cells(
            sight.point,
            (sight.closest, sight.limit, sight.n_whole, table.power, scales.exponent),
            tiers,
            table.sizes,
            table.starts,
            table.keys,
            table.centres,
            table.blocks,
            table.block_starts,
            sources.labels,
            sources.units,
            is_near,
            terms.powers,
            terms.kept,
            terms.out.reshape(-1),
            terms.back.reshape(-1),
            terms.weight.reshape(-1),
            terms.places.reshape(-1),
            terms.ends,
        )
    if n_far > 0 and sources.references.shape[0] > 0:
        _gather_references(n_far, single, sight, table, sources, scales, is_near, tiers, terms)


@njit(cache=True, nogil=True, error_model="numpy")
def _gather_cells(
    point,
    settings,
    tiers,
    sizes,
    starts,
    keys,
    centres,
    blocks,
    block_starts,
    labels,
    units,
    is_near,
    powers,
    kept,
    out,
    back,
    weights,
    places,
    ends,
):
    """Take the points that count of the cells that are taken.

    All in one: tuples of arrays handed over for every cell would take longer than the distances.
    """
    closest, limit, n_whole, power, exponent = settings
    n_features, relative = point.shape[0], np.empty(point.shape[0], dtype=np.float32)
    farthest, capacity = closest + limit, out.shape[0] // ends.shape[0]
    slots = np.arange(ends.shape[0]).astype(np.uint64) * np.uint64(capacity)
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
        n_blocks = (end - start + BLOCK - 1) // BLOCK
        measure_blocks(relative, blocks, block_starts[c], n_blocks, power, powers)
        raise_to(exponent, powers[: end - start])
        n_kept = _list_kept(powers, units[start:end], farthest, limit, kept)
        for k in range(n_kept):
            of_cell = np.uint64(kept[k])  # no place is counted from the end
            j = np.uint64(start) + of_cell
            if not is_near[j]:
                g = np.uint64(labels[j])
                slot = slots[g]
                slots[g] = slot + np.uint64(1)
                value = powers[of_cell]
                out[slot], back[slot] = max(value - closest, _ZERO), value - units[j]
                weights[slot], places[slot] = weight, np.int32(j)
    for h in range(ends.shape[0]):
        ends[h] = np.int64(slots[h]) - h * capacity


@njit(cache=True, nogil=True, error_model="numpy")
def _list_kept(powers, units, farthest, limit, kept):
    """List what counts, of what a point gives or gets; return how many there are."""
    n_kept = 0
    for t in range(units.shape[0]):
        kept[n_kept] = t  # written over by the next one unless it is kept: no branch to miss
        n_kept += (powers[t] <= farthest) | (powers[t] - units[t] <= limit)
    return n_kept


@register_jitable
def _gather_references(n_far, single, sight, table, sources, scales, is_near, tiers, terms):
    """Take the references that count, of those not in cells that are taken."""
    n_references = sources.references.shape[0]
    powers = terms.powers[:n_references]
    if sight.far_distances.shape[0] > 0:
        powers[:] = sight.far_distances
    else:
        fill_powers(single, table.reference_columns, 0, n_references, table.power, powers)
    raise_to(scales.exponent, powers)
    n_others = 0
    for r in range(n_references):
        is_other = tiers[table.reference_cells[r]] != 1
        n_others += is_other & (not is_near[sources.references[r]])
    # Where no cell is taken, all that are near are among the far ones.
    n_left = n_far - (sight.n_listed if n_far == table.sizes.sum() else 0)
    weight = n_left / max(n_others, 1)
    # What is negligible is less for what stands for many.
    limit = sight.limit + np.float32(max(np.log(weight), 0.0) * sight.slack)
    single, closest = np.float32(weight), sight.closest
    for r in range(n_references):
        j, power = sources.references[r], powers[r]
        if power > closest + limit and power - sources.units[j] > limit:
            continue
        if tiers[table.reference_cells[r]] != 1 and not is_near[j]:
            g = sources.labels[j]
            slot = terms.ends[g]
            terms.ends[g] = slot + 1
            terms.out[g, slot] = max(power - closest, _ZERO)
            terms.back[g, slot] = power - sources.units[j]
            terms.weight[g, slot] = single * sources.multiplicity[r]
            terms.places[g, slot] = j


@njit(cache=True, nogil=True, error_model="numpy")
def drop_negligible(slowest, terms):
    """Leave out the terms that count for nothing at rates from some on."""
    limit, slack = np.float32(_NEGLIGIBLE / slowest), 1.0 / slowest
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
