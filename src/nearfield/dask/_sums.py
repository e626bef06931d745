"""The normalisers of the training points, summed over shards."""

from collections.abc import Sequence

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._search import Found, find_nearest
from nearfield.dask._settings import Settings
from nearfield.dask._shards import Shard, joined
from nearfield.dask._some_rows import SomeRows
from nearfield.near._rows import (
    N_NEAR,
    normalizers_of_lists,
    normalizers_of_rows,
    without_themselves,
)
from nearfield.near.cells import MAX_EXACT, n_cells, n_whole, sort_into_cells
from nearfield.near.normalizers import Normalizers, add_cell_sums, exact_sums
from nearfield.sampling.cell_sums import CellTable, mark_reached

_N_TARGETS = 1_024  # at once
_N_BY_ROWS = 256


def sum_over_shards(
    settings: Settings,
    shards: Sequence[Delayed],
    indexes: Sequence[Delayed],
    references: Delayed,
    outline: Delayed,
) -> list[Delayed]:
    """Compute the normalisers of each shard's points over all shards, as `Normalizers`.

    Parameters
    ----------
    settings : Settings
    shards : sequence of Delayed Shard
    indexes : sequence of Delayed NeighborIndex
        Of the shards.
    references : Delayed Shard
    outline : Delayed SomeRows
        Of the field.
    """
    if settings.power is None:
        return _sum_by_rows(settings, shards, indexes, references, outline)
    tables = [delayed(_sort, nout=2)(settings, shard, references, outline) for shard in shards]
    sizes = delayed(_sizes_by_shard)([table for _, table in tables])
    normalizers = []
    for s, shard in enumerate(shards):
        reached = delayed(_reached, nout=len(shards))(shard, tables[s][1], sizes)
        # Each shard starts with itself and goes round, so that not all ask for the same one.
        others = [*range(s, len(shards)), *range(s)]
        visits = [
            (
                shard,
                tables[other][0] if other == s else None,
                tables[other][1],
                sizes,
                reached[other],
                outline,
            )
            for other in others
        ]
        minima, sums = None, None
        for visit in visits:
            minima = delayed(_lower_minima)(minima, *visit)
        for visit in visits:
            sums = delayed(_add_sums)(sums, minima, *visit)
        normalizers.append(delayed(_finish)(sums, minima, outline))
    return normalizers


def exact_over_shards(
    settings: Settings,
    shards: Sequence[Delayed],
    some: Delayed,
    nearest: Delayed,
    outline: Delayed,
) -> Delayed:
    """Compute the normalisers of some points exactly, as `Normalizers`.

    Parameters
    ----------
    settings : Settings
    shards : sequence of Delayed Shard
    some : Delayed Shard
    nearest : Delayed ndarray
        The distance of each to its nearest other one.
    outline : Delayed SomeRows
        Of the field.
    """
    parts = [delayed(_exact_part)(settings, some, nearest, shard, outline) for shard in shards]
    return delayed(_exact)(parts, nearest, outline)


def _sort(
    settings: Settings, shard: Shard, references: Shard, outline: SomeRows
) -> tuple[NDArray[np.int64], CellTable]:
    """Sort a shard into cells; give the place of each of its points there.

    The outline is waited for: it tells if distances are too large for all this.
    """
    assert settings.power is not None
    order, table = sort_into_cells(
        shard.points,
        references.points[: n_cells(settings.n_points)],
        references.points,
        settings.seed,
        power=settings.power,
        rows=shard.rows,
    )
    return np.argsort(order, kind="stable"), table


def _sizes_by_shard(tables: list[CellTable]) -> NDArray[np.int64]:
    """Count the points of each cell in each shard, shape (n_shards, n_cells)."""
    return np.array([table.sizes for table in tables])


def _reached(
    shard: Shard, table: CellTable, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], ...]:
    """Tell for each shard which points of one have sources there."""
    is_reached = np.zeros((len(shard.rows), len(sizes)), dtype=bool)
    total = sizes.sum(axis=0)
    table = table._replace(sizes=total)
    mark_reached(
        shard.points, table, n_whole(int(total.sum())), np.argmax(sizes, axis=0), is_reached
    )
    return tuple(np.ascontiguousarray(column) for column in is_reached.T)


def _lower_minima(
    minima: NDArray[np.float32] | None,
    shard: Shard,
    places: NDArray[np.int64] | None,
    table: CellTable,
    sizes: NDArray[np.int64],
    reached: NDArray[np.bool_],
    outline: SomeRows,
) -> NDArray[np.float32]:
    """Lower the minima of a shard's points to those over the points of another, or its own."""
    n_points = len(shard.rows)
    lowered = np.full(n_points, np.inf, dtype=np.float32) if minima is None else minima.copy()
    none = np.zeros((n_points, 0))
    _visit(shard, places, table, sizes, reached, outline, lowered, none, is_given=False)
    return lowered


def _add_sums(
    sums: NDArray[np.float64] | None,
    minima: NDArray[np.float32],
    shard: Shard,
    places: NDArray[np.int64] | None,
    table: CellTable,
    sizes: NDArray[np.int64],
    reached: NDArray[np.bool_],
    outline: SomeRows,
) -> NDArray[np.float64]:
    """Add to the sums of a shard's points those over the points of another, or its own."""
    shape = len(shard.rows), outline.normalizers.scales.n_scales
    added = np.zeros(shape) if sums is None else sums.copy()
    _visit(shard, places, table, sizes, reached, outline, minima.copy(), added, is_given=True)
    return added


def _visit(
    shard: Shard,
    places: NDArray[np.int64] | None,
    table: CellTable,
    sizes: NDArray[np.int64],
    reached: NDArray[np.bool_],
    outline: SomeRows,
    minima: NDArray[np.float32],
    sums: NDArray[np.float64],
    *,
    is_given: bool,
) -> None:
    """Take the points of a table into minima or sums, in place."""
    table = table._replace(sizes=sizes.sum(axis=0))
    if places is None:  # the references count once, with a shard's own points
        table = table._replace(
            reference_cells=table.reference_cells[:0],
            reference_columns=table.reference_columns[:0],
        )
        places, order = np.full(len(shard.rows), -1), np.flatnonzero(reached)
    else:
        order = np.argsort(places)  # neighbours in turn: their sources stay in the cache
    for start in range(0, len(order), _N_TARGETS):
        some = order[start : start + _N_TARGETS]
        lowest, added = minima[some], sums[some]
        add_cell_sums(
            shard.points[some],
            shard.rows[some],
            places[some],
            table,
            outline.normalizers.scales,
            outline.seed,
            lowest,
            added,
            is_given=is_given,
        )
        minima[some], sums[some] = lowest, added


def _finish(
    sums: NDArray[np.float64], minima: NDArray[np.float32], outline: SomeRows
) -> Normalizers:
    return Normalizers.of(sums, minima, outline.normalizers.scales)


def _exact_part(
    settings: Settings,
    some: Shard,
    nearest: NDArray[np.float64],
    shard: Shard,
    outline: SomeRows,
) -> NDArray[np.float64]:
    assert settings.power is not None
    scales = outline.normalizers.scales
    if len(shard.rows) == 0:
        return np.zeros((len(some.rows), scales.n_scales))
    return exact_sums(
        some.points,
        some.rows,
        nearest,
        shard.points,
        scales,
        settings.seed,
        power=settings.power,
        source_rows=shard.rows,
    )


def _exact(
    parts: list[NDArray[np.float64]], nearest: NDArray[np.float64], outline: SomeRows
) -> Normalizers:
    return Normalizers.given(np.sum(parts, axis=0), nearest, outline.normalizers.scales)


def _sum_by_rows(
    settings: Settings,
    shards: Sequence[Delayed],
    indexes: Sequence[Delayed],
    references: Delayed,
    outline: Delayed,
) -> list[Delayed]:
    """Do so by a metric that cells do not know: over all points, or near ones and references."""
    if settings.n_points <= MAX_EXACT:
        whole = delayed(joined)(list(shards))
        return [delayed(_sum_all)(settings, shard, whole, outline) for shard in shards]
    return [
        delayed(_sum_lists)(
            settings,
            shard,
            find_nearest(shards, indexes, delayed(_points_of)(shard), N_NEAR + 1),
            references,
            outline,
        )
        for shard in shards
    ]


def _points_of(shard: Shard) -> NDArray[np.float64]:
    return shard.points


def _sum_all(settings: Settings, shard: Shard, whole: Shard, outline: SomeRows) -> Normalizers:
    scales = outline.normalizers.scales

    def part(some: slice) -> Normalizers:
        distances = settings.ruler.distances(shard.points[some], whole.points)
        return normalizers_of_rows(distances, shard.rows[some], scales)

    return _in_parts(part, len(shard.rows), outline)


def _sum_lists(
    settings: Settings, shard: Shard, found: Found, references: Shard, outline: SomeRows
) -> Normalizers:
    scales, n_points = outline.normalizers.scales, settings.n_points

    def part(some: slice) -> Normalizers:
        rows = shard.rows[some]
        near = without_themselves(found.distances[some], found.rows[some], rows)
        far = settings.ruler.distances(shard.points[some], references.points)
        return normalizers_of_lists(near, far, rows, references.rows, n_points, scales)

    return _in_parts(part, len(shard.rows), outline)


def _in_parts(part, n_points: int, outline: SomeRows) -> Normalizers:
    """Compute the normalisers of some points at a time."""
    parts = [
        part(slice(start, start + _N_BY_ROWS)) for start in range(0, n_points, _N_BY_ROWS)
    ] or [outline.normalizers]
    return Normalizers(
        outline.normalizers.scales,
        np.concatenate([some.nearest for some in parts]),
        np.concatenate([some.log_totals for some in parts]),
    )
