"""The k-nearest-neighbour graph over shards, and what a fit needs of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept
from nearfield.dask._shards import Shard, Shards, merge, search_home
from nearfield.dask._training import collect, each
from nearfield.estimators import MetricSpace, check_longest, conditional_rows
from nearfield.field import (
    GraphEdges,
    NeighborFamily,
    SubsampledConditionals,
    nearest_distances,
    scale_range_from_nearest,
)
from nearfield.neighbors import NeighborGraph, ShortLists, last_tie, most_columns

Floats = NDArray[np.float64]


class GraphRows(NamedTuple):
    """Rows of the graph: training points with their neighbours, nearest first."""

    rows: NDArray[np.int64]  # shape (n,), rising
    labels: NDArray[np.int64]  # shape (n,)
    distances: Floats  # shape (n, n_columns)
    codes: NDArray[np.int64]  # shape (n, n_columns): n_classes * row + label of each neighbour

    def first(self, n_columns: int) -> "GraphRows":
        """Keep the first columns."""
        lists: Any = (np.ascontiguousarray(array[:, :n_columns]) for array in self[2:])
        return GraphRows(self.rows, self.labels, *lists)


@dataclass(frozen=True, eq=False)
class PartGraph(NeighborGraph):
    """Some rows of the graph of all points, where codes stand for row numbers.

    Attributes
    ----------
    n_all : int
        The number of all training points.
    """

    n_all: int = 0

    @property
    def n_points(self) -> int:
        """The number of all training points."""
        return self.n_all


@dataclass(frozen=True, eq=False)
class ShardedGraph:
    """The nearest neighbours of training points, on the workers: in the place of `NeighborGraph`.

    Attributes
    ----------
    parts : Kept
        `GraphRows` each, of all or some of the points.
    n_neighbors : int
    n_points : int
        The number of all training points.
    """

    parts: Kept
    n_neighbors: int
    n_points: int

    distances = np.empty((0, 0))  # none here

    def first(self, n_neighbors: int) -> "ShardedGraph":
        """Give the graph of fewer neighbours, with the ties of the last, in place of this one."""
        return self.cut(n_neighbors, self.n_columns(n_neighbors))

    def cut(self, n_neighbors: int, n_columns: int) -> "ShardedGraph":
        """Keep the first columns of all rows, in place of these."""
        cut = Kept(partial(each, partial(GraphRows.first, n_columns=n_columns)), self.parts)
        fewer = replace(self, parts=cut.wait(), n_neighbors=n_neighbors)
        self.parts.release()
        return fewer

    def n_columns(self, n_neighbors: int) -> int:
        """Count the columns up to the last one that ties with neighbour k in some row."""
        lists = [part.distances for part in self.parts.values]
        return max(dask.compute(*[delayed(last_tie)(some, n_neighbors) for some in lists]))

    def without_parts(self) -> "ShardedGraph":
        """Leave out what is on the workers: to send the rest there."""
        return replace(self, parts=Kept(tuple))


def family_of(family: NeighborFamily, part: GraphRows) -> NeighborFamily:
    """Make the family of some rows of the graph."""
    codes: Any = part.codes
    graph = PartGraph(part.distances, codes, family.n_neighbors, family.n_points)
    return replace(family, graph=graph)


def take_conditionals(family: NeighborFamily, sites: NDArray[np.int64]) -> SubsampledConditionals:
    """Take the conditionals of some points given all other labels, on a `ShardedGraph`."""
    graph: Any = family.graph
    parts, edges = graph.parts.values, None
    if not family.is_directed:
        find = partial(_edges, sites=sites, n_points=family.n_points, n_classes=family.n_classes)
        edges = _map_parts(parts, find)
    nearest = each(_nearest, parts)
    scale_range = delayed(_scale_range)(family.kernel, family.n_neighbors, nearest)
    found, scale_range = dask.compute(collect(parts, sites), scale_range)
    return SubsampledConditionals(
        found.distances,
        found.codes % family.n_classes,
        found.labels,
        family.n_classes,
        family.neighbor_kernel,
        edges,
        scale_range,
        family.longest,
        family.external_field,
        map_parts=_map_parts,
        sum_parts=_sum_parts,
    )


class ShardedTraining:
    """Training points in shards, and what a fit needs of their graph, as `TrainingGraph` has it.

    Parameters
    ----------
    shards : Shards
    kernel : str
    is_directed : bool
    seed : int
        Draws the points whose conditionals the parameters are inferred from.
    sites : ndarray of int, optional
        These points themselves; they choose k as well.
    """

    def __init__(
        self,
        shards: Shards,
        kernel: str,
        is_directed: bool,
        *,
        seed: int = 0,
        sites: NDArray[np.int64] | None = None,
    ) -> None:
        self.shards, self.kernel, self.is_directed = shards, kernel, is_directed
        self.n_points, self.n_classes = shards.n_points, shards.n_classes
        self.longest = _longest(shards)
        check_longest(self.longest)
        self.sites, self.pilot_sites = conditional_rows(
            self.n_points, self.n_classes, kernel, seed, sites
        )

    def build(self, n_neighbors: int) -> ShardedGraph:
        """Search the neighbours of all training points, with the ties of the last."""
        graph = self._search(n_neighbors)
        n_columns = graph.n_columns(n_neighbors)
        if n_columns == n_neighbors:
            return graph
        graph.parts.release()
        return self._search(n_columns).cut(n_neighbors, n_columns)

    def first(self, graph: ShardedGraph, n_neighbors: int) -> ShardedGraph:
        """Cut a graph to fewer neighbours, in its place."""
        return graph.first(n_neighbors)

    def build_of_sites(self, sites: NDArray[np.int64], n_neighbors: int) -> ShardedGraph:
        """Search the neighbours of some training points alone."""
        return self._search(n_neighbors, sites).cut(n_neighbors, n_neighbors)

    def family(self, graph: Any) -> NeighborFamily:
        """Make the family of fields on a `ShardedGraph`."""
        return NeighborFamily(graph, self.n_classes, self.kernel, self.is_directed, self.longest)

    def conditionals(self, graph: ShardedGraph, sites: NDArray[np.int64]) -> SubsampledConditionals:
        """Take the conditionals of some points on the graph of all points."""
        return take_conditionals(self.family(graph), sites)

    def directed_conditionals(
        self, sites: NDArray[np.int64], n_neighbors: int
    ) -> SubsampledConditionals:
        """Take the conditionals of some points by out-weights alone: a search of these points."""
        family = self.family(self.build_of_sites(sites, n_neighbors))
        return take_conditionals(replace(family, is_directed=True), sites)

    def _search(self, n_neighbors: int, sites: NDArray[np.int64] | None = None) -> ShardedGraph:
        build = partial(_search, n_neighbors, sites, self.n_points, self.n_classes)
        return ShardedGraph(Kept(build, self.shards.kept), n_neighbors, self.n_points)


def _search(
    n_neighbors: int,
    sites: NDArray[np.int64] | None,
    n_points: int,
    n_classes: int,
    shards: Sequence[Delayed],
) -> list[Delayed]:
    """Search the neighbours of the points of each shard, there and on the other shards."""
    rows = []
    for home in shards:
        own = home.own(sites)
        queries, answers = search_home([home], own[1], n_neighbors + 1)
        others = [shard for shard in shards if shard is not home]
        answers += [shard.answer(queries, n_neighbors + 1) for shard in others]
        rows.append(delayed(_graph_rows)(own[0], answers, n_neighbors, n_points, n_classes))
    return rows


def _graph_rows(
    codes: NDArray[np.int64],
    answers: list[ShortLists],
    n_neighbors: int,
    n_points: int,
    n_classes: int,
) -> GraphRows:
    lists = merge(answers, len(codes), n_neighbors + 1, n_points).without(codes)
    lists = lists.first(most_columns(n_neighbors, n_points - 1))
    return GraphRows(codes // n_classes, codes % n_classes, *lists)


def _map_parts(parts: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Apply a function where the parts are, and leave the results there."""
    return list(dask.persist(*each(function, parts)))


def _sum_parts(parts: list[Any], function: Callable[[Any], Floats]) -> Floats:
    """Apply a function where the parts are, and add up the results on a worker."""
    return delayed(_add_up)(each(partial(_without_zeros, function), parts)).compute()


def _without_zeros(function: Callable[[Any], Floats], part: Any) -> tuple[int, Any, Floats]:
    """Leave out the sites that no row of a part leads to: most of them, for parts are regions."""
    table = function(part)
    places = np.flatnonzero(table.any(axis=(1, 2)))
    return len(table), places, table[places]


def _add_up(tables: list[tuple[int, Any, Floats]]) -> Floats:
    n_sites, _, some = tables[0]
    total = np.zeros((n_sites, *some.shape[1:]))
    for _, places, table in tables:
        total[places] += table
    return total


def _edges(part: GraphRows, sites: NDArray[np.int64], n_points: int, n_classes: int) -> GraphEdges:
    place_of_site = np.full(n_points, -1, dtype=np.int32)
    place_of_site[sites] = np.arange(len(sites))
    return GraphEdges.from_rows(part.distances, part.codes // n_classes, part.labels, place_of_site)


def _nearest(part: GraphRows) -> tuple[float, Floats]:
    return float(part.distances.max(initial=0.0)), nearest_distances(part.distances)


def _scale_range(
    kernel: str, n_neighbors: int, parts: list[tuple[float, Floats]]
) -> tuple[float, float]:
    longest, nearest = zip(*parts, strict=True)
    return scale_range_from_nearest(kernel, n_neighbors, max(longest), np.concatenate(nearest))


def _longest(shards: Shards) -> float:
    """Find about the largest distance between points: from the one farthest from the first."""
    first = collect([shard.block for shard in shards.kept.values], np.array([0]))
    start: Any = (0.0, 0, first.points)
    for _ in range(2):
        start = delayed(max)(
            [delayed(_farthest_from)(start, shard, shards.space) for shard in shards.kept.values]
        )
    return start.compute()[0]


def _farthest_from(
    start: tuple[float, int, Floats], shard: Shard, space: MetricSpace
) -> tuple[float, int, Floats]:
    """Find the point of a shard that is farthest from another, of equals the first."""
    block = shard.block
    if len(block.rows) == 0:
        return -np.inf, shard.number, block.points
    distances = space.distances_between(start[2], block.points)[0]
    chosen = int(np.argmax(distances))
    return float(distances[chosen]), -int(block.rows[chosen]), block.points[chosen : chosen + 1]
