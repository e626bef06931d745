"""Training points dealt out to shards: each a region of the space, on some worker."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield._hashing import sample_rows
from nearfield.dask._kept import Kept
from nearfield.estimators._metric import MetricSpace
from nearfield.neighbors import Index, box_power, make_index

_MAX_SHARDS = 32  # every shard queries the others
_LEAST_POINTS = 100  # in a shard, on average
_N_SAMPLE, _SAMPLE_STREAM = 4_096, 6  # points that the cuts between shards are chosen by


class Block(NamedTuple):
    """Some training points in the metric space, with their labels and row numbers."""

    points: NDArray[np.float64]  # shape (n, n_features)
    labels: NDArray[np.int64]  # shape (n,)
    rows: NDArray[np.int64]  # shape (n,), among all training points; they rise

    def part(self, chosen: NDArray[Any]) -> "Block":
        """Take some of the points."""
        return Block(*(array[chosen] for array in self))


class Cuts(NamedTuple):
    """A balanced binary tree of cuts across features; its leaves are the shards.

    The nodes below node i are 2i + 1, up to the value, and 2i + 2.
    """

    features: NDArray[np.int64]  # shape (n_shards - 1,)
    values: NDArray[np.float64]  # shape (n_shards - 1,)

    @classmethod
    def from_points(cls, points: NDArray[np.float64], n_shards: int) -> "Cuts":
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

    def shard_of(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """Tell which shard each point belongs to."""
        nodes, n_cuts = np.zeros(len(points), dtype=np.int64), len(self.values)
        for _ in range((n_cuts + 1).bit_length() - 1):
            values = points[np.arange(len(points)), self.features[nodes]]
            nodes = 2 * nodes + 1 + (values > self.values[nodes])
        return nodes - n_cuts


@dataclass(frozen=True, eq=False)
class Shard:
    """The training points of one region.

    Attributes
    ----------
    block : Block
    codes : ndarray of int, shape (n,)
        n_classes * row + label of each point.
    index : Index or None
        None without points.
    box : ndarray, shape (2, n_features)
        The least and the largest coordinates.
    """

    block: Block
    codes: NDArray[np.int64]
    index: Index | None
    box: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shards:
    """All training points, in shards on the workers.

    Attributes
    ----------
    kept : Kept
        A `Shard` each, then the `Cuts` between them and their boxes.
    space : MetricSpace
        The metric space, without points.
    n_points, n_classes : int
    """

    kept: Kept
    space: MetricSpace
    n_points: int
    n_classes: int

    @classmethod
    def from_blocks(
        cls,
        blocks: Sequence[Delayed],
        space: MetricSpace,
        n_points: int,
        n_classes: int,
        search: str,
    ) -> "Shards":
        """Deal out blocks to as many shards, or the next lower power of two.

        Parameters
        ----------
        blocks : sequence of Delayed Block
        space : MetricSpace
            Without points.
        n_points, n_classes : int
        search : {"exact", "approximate"}
        """
        most = min(len(blocks), _MAX_SHARDS, max(n_points // _LEAST_POINTS, 1))
        n_shards = 1 << most.bit_length() - 1
        sample = collect_rows(blocks, sample_rows(n_points, _N_SAMPLE, 0, _SAMPLE_STREAM))
        cuts = delayed(_cuts_of)(sample, n_shards)
        split = [delayed(_split, nout=n_shards)(block, cuts, n_shards) for block in blocks]
        shards = [
            delayed(_make_shard)([parts[s] for parts in split], space, n_classes, search)
            for s in range(n_shards)
        ]
        boxes = delayed(np.stack)([delayed(attrgetter("box"))(shard) for shard in shards])
        return cls(Kept.from_recipes([*shards, cuts, boxes]), space, n_points, n_classes)

    @property
    def shards(self) -> tuple[Delayed, ...]:
        """One `Shard` each."""
        return self.kept.values[:-2]

    @property
    def cuts(self) -> Delayed:
        """The `Cuts` between the shards."""
        return self.kept.values[-2]

    @property
    def boxes(self) -> Delayed:
        """The boxes around the points of the shards, shape (n_shards, 2, n_features)."""
        return self.kept.values[-1]

    @property
    def power(self) -> int | None:
        """2 for Euclidean and 1 for Manhattan distances, which boxes bound."""
        return box_power(self.space.points, self.space.metric, self.space.params)


def collect_rows(parts: Sequence[Delayed], rows: NDArray[np.int64]) -> Delayed:
    """Bring some rows to one worker, in the order of their numbers in `rows`."""
    ascending = np.sort(rows)
    return delayed(_in_order)([delayed(_with_rows)(part, ascending) for part in parts], rows)


def joined(parts: Sequence[Block]) -> Block:
    """Put points together, in the order of their rows."""
    whole = Block(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    return whole.part(np.argsort(whole.rows, kind="stable"))


def places_of(rows: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find which of some rising rows are wanted, by their places; `wanted` rises."""
    return np.flatnonzero(np.isin(rows, wanted, assume_unique=True))


def _with_rows(part: Block, ascending: NDArray[np.int64]) -> Block:
    return part.part(places_of(part.rows, ascending))


def _in_order(parts: list[Block], rows: NDArray[np.int64]) -> Block:
    found = joined(parts)
    return found.part(np.searchsorted(found.rows, rows))


def _cuts_of(sample: Block, n_shards: int) -> Cuts:
    return Cuts.from_points(sample.points, n_shards)


def _split(block: Block, cuts: Cuts, n_shards: int) -> tuple[Block, ...]:
    shards = cuts.shard_of(block.points)
    return tuple(block.part(shards == s) for s in range(n_shards))


def _make_shard(parts: list[Block], space: MetricSpace, n_classes: int, search: str) -> Shard:
    block = joined(parts)
    low = block.points.min(axis=0, initial=np.inf)
    high = block.points.max(axis=0, initial=-np.inf)
    index = None
    if len(block.rows):
        index = make_index(
            block.points, metric=space.metric, metric_params=space.params, search=search
        )
    return Shard(block, n_classes * block.rows + block.labels, index, np.stack([low, high]))
