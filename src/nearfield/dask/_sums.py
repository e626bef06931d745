"""The normalisers of the training points, summed over shards."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._settings import Settings
from nearfield.dask._shards import Shard
from nearfield.dask._some_rows import SomeRows
from nearfield.near.cells import n_cells, n_whole, sort_into_cells, without_cells
from nearfield.near.normalizers import Normalizers, add_cell_sums, exact_sums
from nearfield.sampling.cell_sums import mark_reached
from nearfield.sampling.cell_table import CellTable

_N_TARGETS = 1_024  # at once


def sort_shards(
    settings: Settings, shards: Sequence[Delayed], references: Delayed, outline: Delayed
) -> tuple[list[Delayed], Delayed]:
    """Sort shards into cells.

    Returns
    -------
    tables : list of Delayed
        The place of each point of a shard in its table, and the `CellTable`.
    sizes : Delayed ndarray, shape (n_shards, n_cells)
        How many points each cell has in each shard.
    """
    tables = [delayed(_sort, nout=2)(settings, shard, references, outline) for shard in shards]
    return tables, delayed(_sizes_by_shard)([table for _, table in tables])


def sum_over_shards(
    shards: Sequence[Delayed], tables: Sequence[Any], sizes: Delayed, outline: Delayed
) -> list[Delayed]:
    """Compute the normalisers of each shard's points over all shards, as `Normalizers`.

    Parameters
    ----------
    shards : sequence of Delayed Shard
    tables, sizes
        By `sort_shards`.
    outline : Delayed SomeRows
        Of the field.
    """
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
    if settings.power is None:
        return np.arange(len(shard.rows)), without_cells(len(shard.rows), 0, 0)
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


def completed(
    sorted_: tuple[NDArray[np.int64], CellTable], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], CellTable]:
    """Tell a table how large its cells are over all shards; the references are left to others."""
    places, table = sorted_
    return places, _without_references(table._replace(sizes=sizes.sum(axis=0)))


def _without_references(table: CellTable) -> CellTable:
    return table._replace(
        reference_cells=table.reference_cells[:0], reference_columns=table.reference_columns[:0]
    )


def table_of_references(
    settings: Settings, references: Shard, sizes: NDArray[np.int64]
) -> CellTable:
    """Make the table of all cells, and the references, without the points."""
    if settings.power is None:
        return without_cells(settings.n_points, len(references.rows), 0)
    _, table = sort_into_cells(
        references.points[:0],
        references.points[: n_cells(settings.n_points)],
        references.points,
        settings.seed,
        power=settings.power,
    )
    return table._replace(sizes=sizes.sum(axis=0))


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
        table = _without_references(table)
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
