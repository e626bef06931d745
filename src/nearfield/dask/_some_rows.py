"""A near field that knows some of its training points: those on the lists of the points at hand."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.dask._search import Found, RowTable, stack
from nearfield.dask._shards import Shard
from nearfield.near._rows import without_themselves
from nearfield.near.field import NearField
from nearfield.near.normalizers import Normalizers
from nearfield.near.sums import ClassSums, FieldSums, Support
from nearfield.near.support_table import SupportTable
from nearfield.sampling.cell_table import CellTable
from nearfield.sampling.near_terms import NEW, Neighborhood


@dataclass(frozen=True, eq=False)
class SeenPoints:
    """Points whose neighbours are known, and sums over the shards for them.

    Attributes
    ----------
    points : ndarray, shape (m, n_features)
    distances : ndarray, shape (m, K)
    rows : ndarray of int, shape (m, K)
        The rows of the neighbours among all training points.
    sites : ndarray of int, shape (m,)
        Their own rows there; -1 for new points.
    sums : ClassSums, optional
        Over the points of all shards that are not on the lists.
    """

    points: NDArray[np.float64]
    distances: NDArray[np.float64]
    rows: NDArray[np.int64]
    sites: NDArray[np.int64]
    sums: ClassSums | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the points."""
        return self.points.shape

    def __getitem__(self, chosen: slice) -> "SeenPoints":
        sums = None if self.sums is None else self.sums.part(chosen)
        return SeenPoints(
            self.points[chosen],
            self.distances[chosen],
            self.rows[chosen],
            self.sites[chosen],
            sums,
        )


@dataclass(frozen=True, eq=False)
class SeenNeighborhood:
    """What points see of the rows at hand, with the sums over the shards."""

    neighborhood: Neighborhood
    sums: ClassSums

    @property
    def near_distances(self) -> NDArray[np.float64]:
        """To the nearest training points."""
        return self.neighborhood.near_distances

    def part(self, rows: Any) -> "SeenNeighborhood":
        """Take some of the points."""
        return SeenNeighborhood(self.neighborhood.part(rows), self.sums.part(rows))


@dataclass(frozen=True, eq=False)
class ShardedSums(FieldSums):
    """Sums over the rows at hand, to which those over the shards are added."""

    def support(self, seen: Any, is_joint: bool = True) -> Support:
        """Sum over all training points."""
        sums = self.parts(seen.neighborhood, is_joint).plus(seen.sums)
        return self.finish(seen.neighborhood, sums, is_joint)


@dataclass(frozen=True, eq=False)
class SomeRows(NearField):
    """A near field of training points that are elsewhere, but for what some points need.

    `labels` and `normalizers` are those of some rows, `references` places among these, and
    `points` empty.

    Attributes
    ----------
    n_all : int
        The number of all training points.
    counts : ndarray of int, shape (G,)
        Of each class among them.
    rows : ndarray of int, shape (n,)
        The numbers of those at hand, rising.
    reference_points : ndarray, shape (R, n_features)
    table : CellTable
        Of no points: the cells of all training points, and the references.
    sites : SupportTable
        The support of the sites that the parameters are inferred from.
    checked : Normalizers
        Exact ones of the last references, where others are estimates.
    """

    n_all: int = 0
    counts: Any = field(repr=False, default=None)
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.empty(0, np.int64))
    reference_points: Any = field(repr=False, default=None)
    table: Any = field(repr=False, default=None)
    sites: Any = field(repr=False, default=None)
    checked: Normalizers | None = field(repr=False, default=None)

    @property
    def n_points(self) -> int:
        """The number of all training points."""
        return self.n_all

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """The numbers of the rows at hand among all training points."""
        return self.rows

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """How many of all training points each class has."""
        return self.counts

    @property
    def cells(self) -> tuple[NDArray[np.int64], CellTable]:
        """The cells of all training points, without these."""
        return np.arange(len(self.rows)), self.table

    def changed(self, **changes: Any) -> "SomeRows":
        """Make another one of the same training points."""
        return replace(self, **changes)

    def look(self, points: SeenPoints, sites: Any = None, **options: Any) -> Any:
        """Tell what points are near to that were looked up."""
        assert points.sums is not None
        return SeenNeighborhood(self.neighborhood_at(points), points.sums)

    def look_within(self, points: SeenPoints) -> Any:
        """Do so; they were drawn in before they were looked up."""
        return self.look(points)

    def neighborhood_at(self, points: SeenPoints) -> Neighborhood:
        """Tell it without the shards."""
        near = np.s_[:, : self.n_neighbors]
        is_site = points.sites >= 0
        places = np.searchsorted(self.rows, points.sites)
        return self.neighborhood_of(
            points.points,
            points.distances[near],
            np.searchsorted(self.rows, points.rows[near]),
            np.where(is_site, places, NEW),
        )

    def sums_at(self, sigmas: ArrayLike, **options: Any) -> FieldSums:
        """Prepare sums over the rows at hand; what all points weigh comes from the shards."""
        sums = super().sums_at(sigmas, **options)
        scales = sums.scales._replace(rest=np.zeros_like(sums.scales.rest))
        known = {each.name: getattr(sums, each.name) for each in fields(sums)}
        return ShardedSums(**known | {"scales": scales})

    def site_table(self, n_sites: int) -> SupportTable:
        """Give the support of the first ones of the sites."""
        return self.sites.part(slice(n_sites))

    def exact_normalizers(self, rows: NDArray[np.int64]) -> Normalizers:
        """Give those of the last references."""
        assert self.checked is not None
        return self.checked

    @property
    def _reference_points(self) -> Any:
        return self.reference_points

    @cached_property
    def reference_table(self) -> RowTable:
        """What is known of the references, in the order of their rows."""
        places = np.sort(self.references)
        return RowTable(
            self.rows[places],
            self.labels[places],
            self.normalizers.nearest[places],
            self.normalizers.log_totals[places],
        )

    def without_rows(self) -> "SomeRows":
        """Forget all rows, and the cells."""
        few = self.reference_table
        none = RowTable(few.rows[:0], few.labels[:0], few.nearest[:0], few.log_totals[:0])
        references = Shard(self.reference_points[:0], none.labels, none.rows)
        return with_rows(self, none, references).changed(sites=None, checked=None, table=None)

    def references_only(self) -> "SomeRows":
        """Forget all rows but the references."""
        rows = self.rows[self.references]
        table = self.reference_table
        references = Shard(self.reference_points, self.labels[self.references], rows)
        return with_rows(self, table, references).changed(sites=None, checked=None)

    def with_neighbors(self, table: RowTable) -> "SomeRows":
        """Know the rows of a table beside the references."""
        rows = self.rows[self.references]
        references = Shard(self.reference_points, self.labels[self.references], rows)
        return with_rows(self, stack([self.reference_table, table]), references)


def with_rows(outline: SomeRows, table: RowTable, references: Shard) -> SomeRows:
    """Give a field the rows of a table, which has the references among them."""
    return outline.changed(
        labels=table.labels,
        normalizers=Normalizers(outline.normalizers.scales, table.nearest, table.log_totals),
        references=np.searchsorted(table.rows, references.rows),
        reference_points=references.points,
        rows=table.rows,
    )


def seen_sites(sites: Shard, found: Found) -> SeenPoints:
    """Describe training points by what was found near to them, one more each than is needed."""
    distances, rows = without_themselves(*found, sites.rows)
    return SeenPoints(sites.points, distances, rows, sites.rows)


def seen_points(points: NDArray[np.float64], found: Found) -> SeenPoints:
    """Describe new points by what was found near to them."""
    return SeenPoints(points, found.distances, found.rows, np.full(len(points), NEW))
