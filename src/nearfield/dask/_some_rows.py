"""A near field that knows some of its training points: those on the lists of the points at hand."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.dask._search import Found, RowTable, stack
from nearfield.dask._shards import Shard
from nearfield.near._rows import without_themselves
from nearfield.near.field import NearField
from nearfield.near.normalizers import Normalizers
from nearfield.sampling.near_support import Neighborhood


@dataclass(frozen=True, eq=False)
class SeenPoints:
    """Points whose neighbours are known.

    Attributes
    ----------
    points : ndarray, shape (m, n_features)
    distances : ndarray, shape (m, K)
    index : ndarray of int, shape (m, K)
        The places of the neighbours among the rows of a `SomeRows`.
    sites : ndarray of int, shape (m,)
        Their own places there; -1 for new points.
    """

    points: NDArray[np.float64]
    distances: NDArray[np.float64]
    index: NDArray[np.int64]
    sites: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the points."""
        return self.points.shape

    def __getitem__(self, chosen: slice) -> "SeenPoints":
        return SeenPoints(
            self.points[chosen], self.distances[chosen], self.index[chosen], self.sites[chosen]
        )


@dataclass(frozen=True, eq=False)
class SomeRows(NearField):
    """A near field of training points that are elsewhere, but for what some points need.

    `labels` and `normalizers` are those of some rows, `references` places among these, and
    `points` empty.

    Attributes
    ----------
    n_all : int
        The number of all training points.
    rows : ndarray of int, shape (n,)
        The numbers of those at hand, rising.
    reference_points : ndarray, shape (R, n_features)
    seen : SeenPoints
        The sites that the parameters are inferred from.
    checked : Normalizers
        Exact ones of the last references, where others are estimates.
    """

    n_all: int = 0
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.empty(0, np.int64))
    reference_points: Any = field(repr=False, default=None)
    seen: SeenPoints | None = field(repr=False, default=None)
    checked: Normalizers | None = field(repr=False, default=None)

    @property
    def n_points(self) -> int:
        """The number of all training points."""
        return self.n_all

    def changed(self, **changes: Any) -> "SomeRows":
        """Make another one of the same training points."""
        return replace(self, **changes)

    def look(self, points: SeenPoints, sites: Any = None, **options: Any) -> Neighborhood:
        """Tell what points are near to that were looked up, and how far the references are."""
        near = np.s_[:, : self.n_neighbors]
        return Neighborhood(
            np.ascontiguousarray(points.distances[near]),
            np.ascontiguousarray(points.index[near]),
            self._ruler.distances(points.points, self.reference_points),
            points.sites,
        )

    def look_from(self, sites: NDArray[np.int64], **options: Any) -> Neighborhood:
        """Tell what the first ones of the sites are near to."""
        assert self.seen is not None
        return self.look(self.seen[: len(sites)])

    def exact_normalizers(self, rows: NDArray[np.int64]) -> Normalizers:
        """Give those of the last references."""
        assert self.checked is not None
        return self.checked

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
        """Forget all rows."""
        few = self.reference_table
        none = RowTable(few.rows[:0], few.labels[:0], few.nearest[:0], few.log_totals[:0])
        references = Shard(self.reference_points[:0], none.labels, none.rows)
        return with_rows(self, none, references).changed(seen=None, checked=None)

    def references_only(self) -> "SomeRows":
        """Forget all rows but the references."""
        rows = self.rows[self.references]
        table = self.reference_table
        references = Shard(self.reference_points, self.labels[self.references], rows)
        return with_rows(self, table, references).changed(seen=None, checked=None)

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


def seen_sites(table: RowTable, sites: Shard, found: Found) -> SeenPoints:
    """Describe training points by what was found near to them, one more each than is needed."""
    distances, rows = without_themselves(*found, sites.rows)
    places = np.searchsorted(table.rows, sites.rows)
    return SeenPoints(sites.points, distances, np.searchsorted(table.rows, rows), places)


def seen_points(rows: NDArray[np.int64], points: NDArray[np.float64], found: Found) -> SeenPoints:
    """Describe new points by what was found near to them, among some rows."""
    index = np.searchsorted(rows, found.rows)
    return SeenPoints(points, found.distances, index, np.full(len(points), -1))
