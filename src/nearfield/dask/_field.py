"""The near field on shards: an index and the normalisers of each, kept on the workers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept
from nearfield.dask._search import Found, RowTable, build_index, find_nearest, gather_table
from nearfield.dask._settings import Settings
from nearfield.dask._shard_sums import Request, row_sums, sum_of_shards
from nearfield.dask._shards import Shard, collect_rows, deal_out
from nearfield.dask._some_rows import SeenPoints, SomeRows, seen_sites, with_rows
from nearfield.dask._sums import (
    completed,
    exact_over_shards,
    sort_shards,
    sum_over_shards,
    table_of_references,
)
from nearfield.dask._sums_by_rows import sum_by_rows
from nearfield.estimators._settings import check_longest
from nearfield.near._measure import Ruler
from nearfield.near.cells import MAX_EXACT, n_cells
from nearfield.near.drawn import reference_rows, site_rows
from nearfield.near.error import N_CHECKED
from nearfield.near.field import (
    N_PROBED,
    N_PROBED_NEIGHBORS,
    nearest_elsewhere,
    usual_scales,
)
from nearfield.near.normalizers import Normalizers
from nearfield.near.scales import TabulatedScales
from nearfield.near.sums import ClassSums
from nearfield.near.support_table import SupportTable
from nearfield.sampling.cell_table import CellTable


@dataclass(frozen=True, eq=False)
class ShardedField:
    """A near field whose training points are on many workers.

    Attributes
    ----------
    settings : Settings
    n_shards : int
    kept : Kept
        All shards, the index of each, the normalisers of each, the cells of each, then the
        references as a `Shard` and an outline, a `SomeRows` without rows.
    """

    settings: Settings
    n_shards: int
    kept: Kept

    @classmethod
    def of(cls, settings: Settings, blocks: Sequence[Delayed], n_neighbors: int) -> "ShardedField":
        """Describe how it is made of blocks of points; nothing is computed yet.

        Parameters
        ----------
        settings : Settings
        blocks : sequence of Delayed Shard
        n_neighbors : int
            The most that will be asked for.
        """
        n_points = settings.n_points
        references = collect_rows(blocks, reference_rows(n_points, n_neighbors, settings.seed))
        cells = n_cells(n_points)
        shards = deal_out(blocks, delayed(_first_points)(references, cells), n_points, cells)
        indexes = [delayed(build_index)(shard, settings.ruler, settings.search) for shard in shards]
        probes = delayed(_first_points)(references, N_PROBED)
        probed = find_nearest(shards, indexes, probes, min(N_PROBED_NEIGHBORS, n_points))
        outline = delayed(_outline)(settings, probed, _longest(settings.ruler, blocks))
        tables, sizes = sort_shards(settings, shards, references, outline)
        if settings.power is None:
            normalizers = sum_by_rows(settings, shards, indexes, references, outline)
        else:
            normalizers = sum_over_shards(shards, tables, sizes, outline)
        counts = [delayed(_count_classes)(shard, settings.n_classes) for shard in shards]
        table = delayed(table_of_references)(settings, references, sizes)
        outline = delayed(_with_cells)(outline, table, counts)
        complete = [delayed(completed)(table, sizes) for table in tables]
        kept = Kept([*shards, *indexes, *normalizers, *complete, references, outline])
        return cls(settings, len(shards), kept)

    @property
    def shards(self) -> tuple[Delayed, ...]:
        """The training points."""
        return self.kept.values[: self.n_shards]

    @property
    def normalizers(self) -> tuple[Delayed, ...]:
        """The normalisers of the shards."""
        return self.kept.values[2 * self.n_shards : 3 * self.n_shards]

    @property
    def cells(self) -> tuple[Delayed, ...]:
        """The places of the points of the shards in their tables, with the tables."""
        return self.kept.values[3 * self.n_shards : 4 * self.n_shards]

    @property
    def references(self) -> Delayed:
        """The references, in the order in which they were drawn."""
        return self.kept.values[-2]

    @property
    def outline(self) -> Delayed:
        """The field without its rows."""
        return self.kept.values[-1]

    def find(self, points: Delayed, n_neighbors: int) -> Delayed:
        """Find the nearest training points of some others, as `Found`."""
        indexes = self.kept.values[self.n_shards : 2 * self.n_shards]
        return find_nearest(self.shards, indexes, points, n_neighbors)

    def table(self, rows: Sequence[Delayed]) -> Delayed:
        """Bring to one place what is known of some training points, as `RowTable`."""
        return gather_table(self.shards, self.normalizers, rows)

    def sums(self, seen: Delayed, request: Any) -> Delayed:
        """Sum over the shards for points whose neighbours are known, as `ClassSums`."""
        return sum_of_shards(self.outline, self.shards, self.normalizers, self.cells, seen, request)

    def seen_from_sites(self, n_sites: int, n_neighbors: int) -> "SeenSites":
        """Bring to one place what some of the training points see of the field."""
        settings = self.settings
        sites = collect_rows(self.shards, site_rows(settings.n_points, n_sites, settings.seed))
        found = self.find(delayed(_points_of)(sites), n_neighbors + 1)
        table = self.table([delayed(_rows_of)(part) for part in (found, sites, self.references)])
        seen = delayed(seen_sites)(sites, found)
        request = delayed(_site_request)(self.outline)
        field = delayed(_see_sites)(
            self.outline,
            table,
            self.references,
            seen,
            self.sums(seen, request),
            request,
            n_neighbors,
            self._checked(table),
        )
        return SeenSites(seen, field, delayed(_labels_of)(sites))

    def _checked(self, table: Delayed) -> Delayed | None:
        """Sum the normalisers of the last references again, exactly, where others are estimates."""
        if self.settings.n_points <= MAX_EXACT or self.settings.power is None:
            return None
        some = delayed(_last)(self.references, N_CHECKED)
        nearest = delayed(_nearest_at)(table, some)
        return exact_over_shards(self.settings, self.shards, some, nearest, self.outline)


def _longest(ruler: Ruler, blocks: Sequence[Delayed]) -> Delayed:
    """Find about the largest distance, as `Ruler.longest` does: from the farthest of the first."""
    first = collect_rows(blocks, np.array([0]))
    farthest = [delayed(_farthest_from)(first, block, ruler) for block in blocks]
    end = delayed(_farthest)(farthest)
    return delayed(_farthest)([delayed(_farthest_from)(end, block, ruler) for block in blocks])


class Farthest(NamedTuple):
    """The point that is farthest from another."""

    points: NDArray[np.float64]  # shape (1, n_features)
    distance: float
    row: int


def _farthest_from(point: Any, block: Shard, ruler: Ruler) -> Farthest:
    if len(block.rows) == 0:
        return Farthest(block.points, -np.inf, -1)
    distances = ruler.distances(point.points, block.points)[0]
    chosen = int(np.argmax(distances))
    some = block.part(np.array([chosen]))
    return Farthest(some.points, float(distances[chosen]), int(some.rows[0]))


def _farthest(parts: list[Farthest]) -> Farthest:
    return min(parts, key=lambda part: (-part.distance, part.row))


def _outline(settings: Settings, probed: Found, end: Farthest) -> SomeRows:
    """Put down what is known of a field, but no rows."""
    check_longest(end.distance)
    low, high = usual_scales(settings.kernel, nearest_elsewhere(probed.distances), end.distance)
    scales = TabulatedScales.covering(settings.kernel, low, high)
    none = np.empty(0, dtype=np.int64)
    no_totals = np.empty((0, scales.n_scales), dtype=np.float32)
    return SomeRows(
        points=np.empty((0, settings.n_features)),
        labels=none,
        n_classes=settings.n_classes,
        kernel=settings.kernel,
        normalizers=Normalizers(scales, np.empty(0), no_totals),
        references=none,
        scale_range=(low, high),
        longest=end.distance,
        n_neighbors=0,
        metric=settings.ruler.metric,
        metric_params=settings.ruler.params,
        search=settings.search,
        seed=settings.seed,
        n_all=settings.n_points,
        rows=none,
    )


class SeenSites(NamedTuple):
    """Training points that the parameters are inferred from."""

    seen: Delayed  # SeenPoints
    field: Delayed  # SomeRows, with their support
    labels: Delayed


def _site_request(outline: SomeRows) -> Request:
    return Request(outline.site_scales.sigmas, is_coarse=True)


def _see_sites(
    outline: SomeRows,
    table: RowTable,
    references: Shard,
    seen: SeenPoints,
    sums: ClassSums,
    request: Request,
    n_neighbors: int,
    checked: Normalizers | None,
) -> SomeRows:
    field = with_rows(outline, table, references).changed(n_neighbors=n_neighbors, checked=checked)
    neighborhood = field.neighborhood_at(seen)
    complete = row_sums(field, seen, request).plus(sums)
    support = field.sums_at(request.sigmas).finish(neighborhood, complete)
    return field.changed(
        sites=SupportTable(field.site_scales, support, neighborhood.near_distances)
    )


def _with_cells(outline: SomeRows, table: CellTable, counts: list[NDArray[np.int64]]) -> SomeRows:
    return outline.changed(table=table, counts=np.sum(counts, axis=0))


def _count_classes(shard: Shard, n_classes: int) -> NDArray[np.int64]:
    return np.bincount(shard.labels, minlength=n_classes)


def _labels_of(some: Shard) -> NDArray[np.int64]:
    return some.labels


def _first_points(some: Shard, size: int) -> NDArray[np.float64]:
    return some.points[:size]


def _points_of(some: Shard) -> NDArray[np.float64]:
    return some.points


def _rows_of(some: Any) -> NDArray[np.int64]:
    return some.rows


def _last(some: Shard, size: int) -> Shard:
    return some.part(np.arange(len(some.rows))[-size:])


def _nearest_at(table: RowTable, some: Shard) -> NDArray[np.float64]:
    return table.nearest[np.searchsorted(table.rows, some.rows)]
