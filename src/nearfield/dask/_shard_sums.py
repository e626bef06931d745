"""Sums over the shards for points whose neighbours are known: what each shard adds to them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._shards import Shard, is_among
from nearfield.dask._some_rows import SeenPoints, SomeRows
from nearfield.near.normalizers import Normalizers
from nearfield.near.sums import ClassSums, FieldSums
from nearfield.near.support_table import batches
from nearfield.near.tables import scale_table, signs_of, sources_of
from nearfield.sampling.cell_table import CellTable
from nearfield.sampling.near_terms import ELSEWHERE, NEW, Neighborhood

_N_ADDED = 8  # sums at once


class Request(NamedTuple):
    """At which sigmas sums are wanted, and how; as `NearField.sums_at`."""

    sigmas: NDArray[np.float64]
    is_coarse: bool = False  # whether to fit parameters by them
    n_neighbors: int | None = None  # of those on the lists
    sign: float = 0.0
    normalizer_error: float = 0.0


def sum_of_shards(
    outline: Delayed,
    shards: Sequence[Delayed],
    normalizers: Sequence[Delayed],
    tables: Sequence[Delayed],
    seen: Delayed,
    request: Any,
) -> Delayed:
    """Sum over the points of all shards, as `ClassSums`; those on lists are left out.

    Parameters
    ----------
    outline : Delayed SomeRows
    shards, normalizers, tables
        Delayed `Shard`, `Normalizers`, and places with `CellTable`, of all points.
    seen : Delayed SeenPoints
    request : Delayed Request
    """
    sums = [
        delayed(shard_sums)(outline, shard, totals, table, seen, request)
        for shard, totals, table in zip(shards, normalizers, tables, strict=True)
    ]
    while len(sums) > 1:
        sums = [
            delayed(_added_up)(sums[start : start + _N_ADDED])
            for start in range(0, len(sums), _N_ADDED)
        ]
    return sums[0]


def shard_sums(
    outline: SomeRows,
    shard: Shard,
    normalizers: Normalizers,
    sorted_: tuple[NDArray[np.int64], CellTable],
    seen: SeenPoints,
    request: Request,
) -> ClassSums:
    """Sum over the points of one shard."""
    place_of, table = sorted_
    neighborhood = _seen_from(shard, place_of, seen, request.n_neighbors, outline)
    order = np.argsort(place_of)
    sources = sources_of(shard.labels, normalizers, np.empty(0, dtype=np.int64), order)
    change: Any = 0.0
    if request.sign:
        signs = signs_of(shard.rows, outline.seed)
        change = request.sign * request.normalizer_error * signs

    def part(sigmas: NDArray[np.float64]) -> ClassSums:
        scales = scale_table(
            sigmas,
            outline.n_points,
            shard.labels,
            normalizers,
            outline.n_classes,
            power=table.power,
            order=order,
            log_change=change,
        )
        vicinity = outline.vicinity(sigmas, is_coarse=request.is_coarse)
        sums = FieldSums(table, sources, scales, outline.kernel, vicinity, outline.class_counts)
        return sums.parts(neighborhood, adds_near=False)

    return by_batches(part, request)


def row_sums(field: SomeRows, seen: SeenPoints, request: Request) -> ClassSums:
    """Sum over the rows on the lists, and the references: what the shards leave out."""
    if request.n_neighbors is not None:
        field = field.changed(n_neighbors=request.n_neighbors)
    neighborhood = field.neighborhood_at(seen)

    def part(sigmas: NDArray[np.float64]) -> ClassSums:
        sums = field.sums_at(
            sigmas,
            is_coarse=request.is_coarse,
            sign=request.sign,
            normalizer_error=request.normalizer_error,
        )
        return sums.parts(neighborhood)

    return by_batches(part, request)


def by_batches(part: Any, request: Request) -> ClassSums:
    """Sum at some sigmas at a time where they are many, as one machine does."""
    if not request.is_coarse:
        return part(request.sigmas)
    parts = [part(sigmas) for sigmas in batches(request.sigmas)]
    return ClassSums(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


def _seen_from(
    shard: Shard,
    place_of: NDArray[np.int64],
    seen: SeenPoints,
    n_neighbors: int | None,
    outline: SomeRows,
) -> Neighborhood:
    """Say where the points on lists are in the table of a shard."""
    sites = _places(seen.sites, shard, place_of)
    sites[(sites < 0) & (seen.sites >= 0)] = ELSEWHERE
    index = _places(seen.rows[:, :n_neighbors], shard, place_of)
    n_points = len(seen.points)
    points = seen.points if outline.power is not None else np.empty((n_points, 0))
    return Neighborhood(
        np.ascontiguousarray(seen.distances[:, :n_neighbors]),
        np.ascontiguousarray(index),
        np.ascontiguousarray(points),
        np.empty((n_points, 0), dtype=np.float32),
        sites,
    )


def _places(
    rows: NDArray[np.int64], shard: Shard, place_of: NDArray[np.int64]
) -> NDArray[np.int64]:
    is_here = is_among(rows, shard.rows)
    places = np.full(rows.shape, NEW)
    places[is_here] = place_of[np.searchsorted(shard.rows, rows[is_here])]
    return places


def _added_up(parts: list[ClassSums]) -> ClassSums:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total
