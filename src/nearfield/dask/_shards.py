"""Training points dealt out to shards, each a region of the space, and queries on all of them.

Points are first queried on the shard of their own region. The distance of the k-th neighbour
there limits the queries on the other shards. Each answer has the ties of its last neighbour, and
so the merged lists have them. Neighbours travel as codes, n_classes * row + label, since a shard
knows its own labels alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield._hashing import sample_rows
from nearfield.dask._kept import Kept
from nearfield.dask._training import Block, TrainingBlocks, collect, join
from nearfield.estimators import MetricSpace
from nearfield.neighbors import (
    Index,
    NeighborLists,
    ShortLists,
    merge_lists,
    past_ties,
    search_with_ties,
)

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_MAX_SHARDS = 32  # every shard queries the others
_LEAST_POINTS = 100  # in a shard, on average
_N_SAMPLE, _SAMPLE_STREAM = 4_096, 6  # points that the cuts between shards are chosen by


class Cuts(NamedTuple):
    """A balanced binary tree of cuts across features, whose leaves are regions.

    The nodes below node i are 2i + 1, up to the value, and 2i + 2.
    """

    features: Numbers  # shape (n_regions - 1,)
    values: Floats  # shape (n_regions - 1,)
    shards: Numbers  # shape (n_regions,): the shard of each; an empty one shares that of another

    @classmethod
    def from_points(cls, points: Floats, n_regions: int) -> "Cuts":
        """Cut halves of halves at the median of the feature in which they are widest."""
        features, values = np.zeros(n_regions - 1, dtype=np.int64), np.zeros(n_regions - 1)
        members = [np.nan_to_num(points)]
        for node in range(n_regions - 1):
            some = members[node]
            if len(some):
                features[node] = np.argmax(np.ptp(some, axis=0))
                values[node] = np.median(some[:, features[node]])
            is_above = some[:, features[node]] > values[node]
            members += [some[~is_above], some[is_above]]
        is_filled = [len(some) > 0 for some in members[n_regions - 1 :]]
        return cls(features, values, np.maximum(np.cumsum(is_filled) - 1, 0))

    @property
    def n_shards(self) -> int:
        """The number of shards, each with a point of those that the cuts were chosen by."""
        return int(self.shards.max()) + 1

    def shard_of(self, points: Floats) -> Numbers:
        """Tell which shard each point belongs to."""
        nodes, n_cuts = np.zeros(len(points), dtype=np.int64), len(self.values)
        for _ in range((n_cuts + 1).bit_length() - 1):
            values = points[np.arange(len(points)), self.features[nodes]]
            nodes = 2 * nodes + 1 + (values > self.values[nodes])
        return self.shards[nodes - n_cuts]


class Queries(NamedTuple):
    """Points whose neighbours are searched."""

    points: Floats  # shape (m, n_features)
    homes: Numbers  # shape (m,): the number of the shard of its region
    limits: Floats  # shape (m,): how far neighbours on other shards may be

    @classmethod
    def from_points(cls, points: Floats, space: MetricSpace, cuts: Cuts) -> "Queries":
        """Place new points; there are no limits yet."""
        placed = np.ascontiguousarray(space.place(points))
        return cls(placed, cuts.shard_of(placed), np.full(len(points), np.inf))

    def limited(self, answers: list[ShortLists], n_neighbors: int) -> "Queries":
        """Limit the distances by the k-th neighbours that were found at home."""
        limits = self.limits.copy()
        for found in answers:
            last = found.starts[:-1] + n_neighbors - 1
            is_full = last < found.starts[1:]
            limits[found.places[is_full]] = past_ties(found.distances[last[is_full]])
        return self._replace(limits=limits)


@dataclass(frozen=True, eq=False)
class Shard:
    """The training points of one region.

    Attributes
    ----------
    number : int
    block : Block
        In the metric space.
    codes : ndarray of int, shape (n,)
        n_classes * row + label of each point.
    index : Index
    power : int or None
        2 for Euclidean and 1 for Manhattan distances, which boxes bound.
    """

    number: int
    block: Block
    codes: Numbers
    index: Index
    power: int | None

    def own(self, sites: Numbers | None = None) -> tuple[Numbers, Queries]:
        """Give the codes of its points, all or some, and queries of their neighbours."""
        is_wanted = slice(None) if sites is None else np.isin(self.block.rows, sites)
        codes, points = self.codes[is_wanted], self.block.points[is_wanted]
        homes, limits = np.full(len(codes), self.number), np.full(len(codes), np.inf)
        return codes, Queries(points, homes, limits)

    def search_home(self, queries: Queries, n_neighbors: int) -> ShortLists:
        """Find the nearest of its points for those queries that are in its region."""
        return self._search(queries.homes == self.number, queries, n_neighbors)

    def answer(self, queries: Queries, n_neighbors: int) -> ShortLists:
        """Find those of its points that may be among the neighbours of points of other regions."""
        points, homes, limits = queries
        is_near = homes != self.number
        if self.power is not None:
            low, high = self._box
            gaps = np.maximum(np.maximum(low - points, points - high), 0.0)
            is_near &= np.linalg.norm(gaps, ord=self.power, axis=1) <= limits
        return self._search(is_near, queries, n_neighbors)

    @cached_property
    def _box(self) -> tuple[Floats, Floats]:
        """The least and the largest coordinates."""
        return self.block.points.min(axis=0), self.block.points.max(axis=0)

    def _search(
        self, is_asked: NDArray[np.bool_], queries: Queries, n_neighbors: int
    ) -> ShortLists:
        places = np.flatnonzero(is_asked)
        if len(places) == 0:
            return ShortLists.from_lists(places, merge_lists([], 0, 1))
        places = places[self.index.query_order(queries.points[places])]
        points, limits = queries.points[places], queries.limits[places]
        search = partial(self.index.query_within, points, limits=limits)
        distances, rows = search_with_ties(search, n_neighbors, len(self.codes))
        return ShortLists.from_lists(places, NeighborLists(distances, self.codes[rows]))


@dataclass(frozen=True, eq=False)
class Shards:
    """All training points, in shards on the workers.

    Attributes
    ----------
    kept : Kept
        A `Shard` each.
    cuts : Cuts
    space : MetricSpace
        The metric space, without points.
    n_points, n_classes : int
    """

    kept: Kept
    cuts: Cuts
    space: MetricSpace
    n_points: int
    n_classes: int

    @classmethod
    def from_training(
        cls, training: TrainingBlocks, space: MetricSpace, search: str = "exact"
    ) -> "Shards":
        """Deal out the points to as many shards as there are blocks, or the next power of two."""
        n_points, n_classes = training.n_points, training.n_classes

        def place(blocks: Sequence[Delayed]) -> list[Delayed]:
            groups = np.array_split(np.arange(len(blocks)), min(len(blocks), _MAX_SHARDS))
            return [delayed(_place)([blocks[b] for b in group], space) for group in groups]

        placed = Kept(place, training.blocks)
        most = min(len(placed.values), max(n_points // _LEAST_POINTS, 1))
        sample = collect(placed.values, sample_rows(n_points, _N_SAMPLE, 0, _SAMPLE_STREAM))
        cuts = delayed(Cuts.from_points)(sample.points, 1 << most.bit_length() - 1).compute()

        def deal(blocks: Sequence[Delayed]) -> list[Delayed]:
            split = [delayed(_split, nout=cuts.n_shards)(block, cuts) for block in blocks]
            parts = zip(*split, strict=True)
            make = partial(_make_shard, space=space, search=search, n_classes=n_classes)
            return [delayed(make)(number, list(some)) for number, some in enumerate(parts)]

        kept = Kept(deal, placed).in_place_of_parents()
        return cls(kept, cuts, space, n_points, n_classes)


def search(
    shards: Sequence[Delayed],
    queries: Delayed,
    n_neighbors: int,
    homes: Sequence[Delayed] | None = None,
) -> list[Delayed]:
    """Search neighbours on the shards of their regions, if told among some, and on all others."""
    answers = [shard.search_home(queries, n_neighbors) for shard in homes or shards]
    limited = queries.limited(answers, n_neighbors)
    return answers + [shard.answer(limited, n_neighbors) for shard in shards]


def merge(
    answers: list[ShortLists], queries: Queries, n_neighbors: int, n_points: int
) -> NeighborLists:
    """Merge the lists of all shards; with the ties of the last neighbour."""
    lists = partial(merge_lists, answers, len(queries.points))
    return search_with_ties(lists, n_neighbors, n_points)


def _place(blocks: list[Block], space: MetricSpace) -> Block:
    block = join(blocks)
    return block._replace(points=np.ascontiguousarray(space.place(block.points)))


def _split(block: Block, cuts: Cuts) -> tuple[Block, ...]:
    shards = cuts.shard_of(block.points)
    return tuple(Block(*(array[shards == s] for array in block)) for s in range(cuts.n_shards))


def _make_shard(
    number: int, parts: list[Block], space: MetricSpace, search: str, n_classes: int
) -> Shard:
    block = join(parts)
    codes = n_classes * block.rows + block.labels
    index = replace(space, points=block.points).make_index(search)
    return Shard(number, block, codes, index, space.power)
