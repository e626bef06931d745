"""Training points dealt out to shards, each a region of the space, and queries on all of them.

Points are first queried on the shard of their own region. The distance of the k-th neighbour
there limits the queries on the other shards. Each answer has the ties of its last neighbour, and
so the merged lists have them. Neighbours travel as codes, n_classes * row + label, since a shard
knows its own labels alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield._hashing import sample_rows
from nearfield.dask._kept import Kept
from nearfield.dask._training import Block, TrainingBlocks, collect, join, number_blocks
from nearfield.estimators import MetricSpace
from nearfield.neighbors import (
    Index,
    NeighborLists,
    ShortLists,
    make_index,
    merge_lists,
    past_ties,
    search_with_ties,
)

Floats = NDArray[np.float64]

_MAX_SHARDS = 32  # every shard queries the others
_LEAST_POINTS = 100  # in a shard, on average
_N_SAMPLE, _SAMPLE_STREAM = 4_096, 6  # points that the cuts between shards are chosen by


class Cuts(NamedTuple):
    """A balanced binary tree of cuts across features; its leaves are the shards.

    The nodes below node i are 2i + 1, up to the value, and 2i + 2.
    """

    features: NDArray[np.int64]  # shape (n_shards - 1,)
    values: Floats  # shape (n_shards - 1,)

    @classmethod
    def from_points(cls, points: Floats, n_shards: int) -> "Cuts":
        """Cut halves of halves at the median of the feature in which they are widest."""
        features, values = np.zeros(n_shards - 1, dtype=np.int64), np.zeros(n_shards - 1)
        members = {0: np.nan_to_num(points)}
        for node in range(n_shards - 1):
            some = members.pop(node)
            if len(some):
                features[node] = np.argmax(np.ptp(some, axis=0))
                values[node] = np.median(some[:, features[node]])
            is_above = some[:, features[node]] > values[node]
            members[2 * node + 1], members[2 * node + 2] = some[~is_above], some[is_above]
        return cls(features, values)

    def shard_of(self, points: Floats) -> NDArray[np.int64]:
        """Tell which shard each point belongs to."""
        nodes, n_cuts = np.zeros(len(points), dtype=np.int64), len(self.values)
        for _ in range((n_cuts + 1).bit_length() - 1):
            values = points[np.arange(len(points)), self.features[nodes]]
            nodes = 2 * nodes + 1 + (values > self.values[nodes])
        return nodes - n_cuts


class Queries(NamedTuple):
    """Points that were queried on the shard of their own region."""

    points: Floats  # shape (m, n_features)
    homes: NDArray[np.int64]  # shape (m,): the number of the shard
    limits: Floats  # shape (m,): how far other neighbours may be

    @classmethod
    def from_homes(
        cls, points: Floats, answers: list[tuple[int, ShortLists]], n_neighbors: int
    ) -> "Queries":
        """Take the answers of shards, each with the number of its shard."""
        homes, limits = np.full(len(points), -1), np.full(len(points), np.inf)
        for number, found in answers:
            homes[found.places] = number
            last = found.starts[:-1] + n_neighbors - 1
            is_full = last < found.starts[1:]
            limits[found.places[is_full]] = past_ties(found.distances[last[is_full]])
        return cls(points, homes, limits)


@dataclass(frozen=True, eq=False)
class Shard:
    """The training points of one region.

    Attributes
    ----------
    number : int
    cuts : Cuts
    block : Block
        In the metric space.
    codes : ndarray of int, shape (n,)
        n_classes * row + label of each point.
    index : Index or None
        None without points.
    power : int or None
        2 for Euclidean and 1 for Manhattan distances, which boxes bound.
    """

    number: int
    cuts: Cuts
    block: Block
    codes: NDArray[np.int64]
    index: Index | None
    power: int | None

    def own(self, sites: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], Floats]:
        """Give the codes and the places in space of its points, all or some."""
        is_wanted = slice(None) if sites is None else np.isin(self.block.rows, sites)
        return self.codes[is_wanted], self.block.points[is_wanted]

    def search_home(self, points: Floats, n_neighbors: int) -> tuple[int, ShortLists]:
        """Find the nearest of its points for those points that are in its region."""
        places = np.flatnonzero(self.cuts.shard_of(points) == self.number)
        limits = np.full(len(points), np.inf)
        return self.number, self._search(places, points, limits, n_neighbors)

    def answer(self, queries: Queries, n_neighbors: int) -> ShortLists:
        """Find those of its points that may be among the neighbours of points of other regions."""
        points, homes, limits = queries
        is_near = homes != self.number
        if self.power is not None:
            low, high = self._box
            gaps = np.maximum(np.maximum(low - points, points - high), 0.0)
            distances = gaps.sum(axis=1) if self.power == 1 else np.linalg.norm(gaps, axis=1)
            is_near &= distances <= limits
        return self._search(np.flatnonzero(is_near), points, limits, n_neighbors)

    @cached_property
    def _box(self) -> tuple[Floats, Floats]:
        """The least and the largest coordinates."""
        points = self.block.points
        return points.min(axis=0, initial=np.inf), points.max(axis=0, initial=-np.inf)

    def _search(
        self, places: NDArray[np.int64], points: Floats, limits: Floats, n_neighbors: int
    ) -> ShortLists:
        index = self.index
        if index is None or len(places) == 0:
            return ShortLists.from_lists(places[:0], merge_lists([], 0, 1))
        places = places[index.query_order(points[places])]
        search = partial(index.query_within, points[places], limits=limits[places])
        distances, rows = search_with_ties(search, n_neighbors, len(self.codes))
        return ShortLists.from_lists(places, NeighborLists(distances, self.codes[rows]))


@dataclass(frozen=True, eq=False)
class Shards:
    """All training points, in shards on the workers.

    Attributes
    ----------
    kept : Kept
        A `Shard` each.
    space : MetricSpace
        The metric space, without points.
    n_points, n_classes : int
    """

    kept: Kept
    space: MetricSpace
    n_points: int
    n_classes: int

    @classmethod
    def from_training(
        cls, training: TrainingBlocks, space: MetricSpace, search: str = "exact"
    ) -> "Shards":
        """Deal out the points to as many shards as there are blocks, or the next power of two."""
        most = min(len(training.lengths), _MAX_SHARDS, max(training.n_points // _LEAST_POINTS, 1))
        build = partial(_build, training.lengths, space, training.n_classes, search, most)
        kept = Kept(build, training.points, training.labels)
        return cls(kept, space, training.n_points, training.n_classes)


def search_home(
    shards: Sequence[Delayed], points: Delayed, n_neighbors: int
) -> tuple[Delayed, list[Delayed]]:
    """Query points on the shards of their regions, among these: `Queries`, and `ShortLists`."""
    answers = [shard.search_home(points, n_neighbors) for shard in shards]
    queries = delayed(Queries.from_homes)(points, answers, n_neighbors)
    return queries, [answer[1] for answer in answers]


def merge(
    answers: list[ShortLists], n_queries: int, n_neighbors: int, n_points: int
) -> NeighborLists:
    """Merge the lists of all shards; with the ties of the last neighbour."""
    return search_with_ties(partial(merge_lists, answers, n_queries), n_neighbors, n_points)


def place(points: Floats, space: MetricSpace) -> Floats:
    """Take points, of which there may be none, to the metric space."""
    return np.ascontiguousarray(space.place(points)) if len(points) else space.points


def _build(
    lengths: list[int],
    space: MetricSpace,
    n_classes: int,
    search: str,
    most: int,
    points: Sequence[Delayed],
    labels: Sequence[Delayed],
) -> list[Delayed]:
    n_shards, n_points = 1 << most.bit_length() - 1, sum(lengths)
    numbered = number_blocks(lengths, points, labels)
    groups = np.array_split(np.arange(len(numbered)), min(len(numbered), _MAX_SHARDS))
    blocks = [delayed(_place)([numbered[b] for b in group], space) for group in groups]
    sample = collect(blocks, sample_rows(n_points, _N_SAMPLE, 0, _SAMPLE_STREAM))
    cuts = delayed(Cuts.from_points)(sample.points, n_shards)
    split = [delayed(_split, nout=n_shards)(block, cuts, n_shards) for block in blocks]
    return [
        delayed(_make_shard)(
            number, cuts, [parts[number] for parts in split], space, search, n_classes
        )
        for number in range(n_shards)
    ]


def _place(blocks: list[Block], space: MetricSpace) -> Block:
    block = join(blocks)
    return block._replace(points=place(block.points, space))


def _split(block: Block, cuts: Cuts, n_shards: int) -> tuple[Block, ...]:
    shards = cuts.shard_of(block.points)
    return tuple(Block(*(array[shards == s] for array in block)) for s in range(n_shards))


def _make_shard(
    number: int, cuts: Cuts, parts: list[Block], space: MetricSpace, search: str, n_classes: int
) -> Shard:
    block, index = join(parts), None
    if len(block.rows):
        index = make_index(
            block.points, metric=space.metric, metric_params=space.params, search=search
        )
    codes = n_classes * block.rows + block.labels
    return Shard(number, cuts, block, codes, index, space.power)
