"""The normalisers over shards by a metric that cells do not know."""

from collections.abc import Callable, Sequence

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
from nearfield.near.cells import MAX_EXACT
from nearfield.near.normalizers import Normalizers

_N_BY_ROWS = 256


def sum_by_rows(
    settings: Settings,
    shards: Sequence[Delayed],
    indexes: Sequence[Delayed],
    references: Delayed,
    outline: Delayed,
) -> list[Delayed]:
    """Compute the normalisers of each shard's points, over all points or near ones and references.

    Parameters
    ----------
    settings : Settings
    shards : sequence of Delayed Shard
    indexes : sequence of Delayed indexes
        Of the shards.
    references : Delayed Shard
    outline : Delayed SomeRows
        Of the field.
    """
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


def _in_parts(
    part: Callable[[slice], Normalizers], n_points: int, outline: SomeRows
) -> Normalizers:
    """Compute the normalisers of some points at a time."""
    parts = [
        part(slice(start, start + _N_BY_ROWS)) for start in range(0, n_points, _N_BY_ROWS)
    ] or [outline.normalizers]
    return Normalizers(
        outline.normalizers.scales,
        np.concatenate([some.nearest for some in parts]),
        np.concatenate([some.log_totals for some in parts]),
    )
