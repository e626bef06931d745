"""The k-nearest-neighbour graph over shards, and what a fit needs of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept, each
from nearfield.dask._shards import Shard, Shards, merge, search
from nearfield.dask._training import collect
from nearfield.estimators import MetricSpace, check_longest, conditional_rows
from nearfield.field import (
    GraphEdges,
    NeighborFamily,
    SubsampledConditionals,
    nearest_distances,
    scale_range_from_nearest,
)
from nearfield.neighbors import ShortLists, last_tie, most_columns

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class GraphRows(NamedTuple):
    """Rows of the graph: training points with their neighbours, nearest first."""

    rows: Numbers  # shape (n,), rising
    labels: Numbers  # shape (n,)
    distances: Floats  # shape (n, n_columns)
    codes: Numbers  # shape (n, n_columns): n_classes * row + label of each neighbour

    def first(self, n_columns: int) -> "GraphRows":
        """Keep the first columns."""
        lists: Any = (np.ascontiguousarray(array[:, :n_columns]) for array in self[2:])
        return GraphRows(self.rows, self.labels, *lists)


class PartGraph(NamedTuple):
    """Rows of the graph, or none, for a family on a worker: in the place of `NeighborGraph`."""

    distances: Floats
    rows: Numbers  # codes, in the place of row numbers
    n_neighbors: int
    n_points: int  # of all training points


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
        return replace(self, parts=cut.in_place_of_parents(), n_neighbors=n_neighbors)

    def n_columns(self, n_neighbors: int) -> int:
        """Count the columns up to the last one that ties with neighbour k in some row."""
        lists = [part.distances for part in self.parts.values]
        return max(dask.compute(*each(partial(last_tie, n_neighbors=n_neighbors), lists)))


def family_of(family: NeighborFamily, part: GraphRows | None = None) -> NeighborFamily:
    """Make the family of some rows of the graph, or of none, that can be on a worker."""
    none: Any = np.empty((0, 0))
    distances, codes = (none, none) if part is None else (part.distances, part.codes)
    graph: Any = PartGraph(distances, codes, family.n_neighbors, family.n_points)
    return replace(family, graph=graph)


def take_conditionals(family: NeighborFamily, sites: Numbers) -> SubsampledConditionals:
    """Take the conditionals of some points given all other labels, on a `ShardedGraph`."""
    graph: Any = family.graph
    parts, edges = graph.parts.values, None
    if not family.is_directed:
        find = partial(_edges, sites=sites, n_points=family.n_points, n_classes=family.n_classes)
        edges = _map_parts(parts, find)
    scale_range = delayed(_scale_range)(family.kernel, family.n_neighbors, each(_nearest, parts))
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
        sites: Numbers | None = None,
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
        if n_columns > n_neighbors:
            graph = self._search(n_columns)
        return graph.cut(n_neighbors, n_columns)

    def first(self, graph: ShardedGraph, n_neighbors: int) -> ShardedGraph:
        """Cut a graph to fewer neighbours, in its place."""
        return graph.first(n_neighbors)

    def build_of_sites(self, sites: Numbers, n_neighbors: int) -> ShardedGraph:
        """Search the neighbours of some training points alone."""
        return self._search(n_neighbors, sites).cut(n_neighbors, n_neighbors)

    def family(self, graph: Any) -> NeighborFamily:
        """Make the family of fields on a `ShardedGraph`."""
        return NeighborFamily(graph, self.n_classes, self.kernel, self.is_directed, self.longest)

    def conditionals(self, graph: ShardedGraph, sites: Numbers) -> SubsampledConditionals:
        """Take the conditionals of some points on the graph of all points."""
        return take_conditionals(self.family(graph), sites)

    def directed_conditionals(self, sites: Numbers, n_neighbors: int) -> SubsampledConditionals:
        """Take the conditionals of some points by out-weights alone: a search of these points."""
        family = self.family(self.build_of_sites(sites, n_neighbors))
        return take_conditionals(replace(family, is_directed=True), sites)

    def _search(self, n_neighbors: int, sites: Numbers | None = None) -> ShardedGraph:
        """Search the neighbours of the points of each shard, there and on the other shards."""
        n_points, n_classes = self.n_points, self.n_classes

        def build(shards: Sequence[Delayed]) -> list[Delayed]:
            parts = []
            for home in shards:
                own = home.own(sites)
                answers = search(shards, own[1], n_neighbors + 1, homes=[home])
                rows = delayed(_graph_rows)(own[0], answers, n_neighbors, n_points, n_classes)
                parts.append(rows)
            return parts

        return ShardedGraph(Kept(build, self.shards.kept), n_neighbors, n_points)


def _graph_rows(
    codes: Numbers, answers: list[ShortLists], n_neighbors: int, n_points: int, n_classes: int
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


def _edges(part: GraphRows, sites: Numbers, n_points: int, n_classes: int) -> GraphEdges:
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
    parts = shards.kept.values
    start = collect([shard.block for shard in parts], np.array([0])).points
    for _ in range(2):
        farthest = partial(_farthest, space=shards.space)
        distance, _, start = delayed(max, nout=3)([delayed(farthest)(s, start) for s in parts])
    return distance.compute()


def _farthest(shard: Shard, start: Floats, space: MetricSpace) -> tuple[float, int, Floats]:
    """Find the point of a shard that is farthest from another, of equals the first."""
    distances = space.distances_between(start, shard.block.points)[0]
    chosen = int(np.argmax(distances))
    return float(distances[chosen]), -int(shard.block.rows[chosen]), shard.block.points[[chosen]]
