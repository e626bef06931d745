"""The k-nearest-neighbour graph over shards, and what a fit needs of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept, each
from nearfield.dask._shards import Shard, Shards, merge, search
from nearfield.dask._training import collect
from nearfield.estimators import MetricSpace, TrainingGraph
from nearfield.field import (
    GraphEdges,
    NeighborFamily,
    SubsampledConditionals,
    nearest_distances,
    scale_range_from_nearest,
)
from nearfield.neighbors import NeighborGraph, NeighborLists, last_tie, most_columns

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


class PartGraph(NamedTuple):
    """Rows of the graph, or none, for a family on a worker: in the place of `NeighborGraph`."""

    distances: Floats
    rows: Numbers  # codes, in the place of row numbers
    n_neighbors: int
    n_points: int  # of all training points


class ShardedFamily(NeighborFamily):
    """The family of fields on a `ShardedGraph`: conditionals come from where the rows are."""

    @cached_property
    def scale_range(self) -> tuple[float, float]:
        """From where only the nearest neighbours count to where all on the graph count alike."""
        nearest = each(_nearest, self._parts)
        return delayed(_scale_range)(self.kernel, self.n_neighbors, nearest).compute()

    def conditionals(self, labels: Any, sites: Any = None) -> SubsampledConditionals:
        """Take the conditionals of some sites given all other labels, which are on the shards."""
        edges = None
        if not self.is_directed:
            find = partial(_edges, sites=sites, n_points=self.n_points, n_classes=self.n_classes)
            edges = _map_parts(self._parts, find)
        found = collect(self._parts, sites).compute()
        return SubsampledConditionals(
            found.distances,
            found.codes % self.n_classes,
            found.labels,
            self.n_classes,
            self.neighbor_kernel,
            edges,
            self.scale_range,
            self.longest,
            self.external_field,
            map_parts=_map_parts,
            sum_parts=_sum_parts,
        )

    def on_worker(self, part: GraphRows | None = None) -> NeighborFamily:
        """Make the family of some rows of the graph, or of none, that a task can take along."""
        none: Any = np.empty((0, 0))
        distances, codes = (none, none) if part is None else (part.distances, part.codes)
        graph: Any = PartGraph(distances, codes, self.n_neighbors, self.n_points)
        return replace(self, graph=graph)

    def in_one_place(self, graph: NeighborGraph) -> NeighborFamily:
        """Make the family of this model on a graph that is here."""
        return NeighborFamily(**self.__getstate__() | {"graph": graph})

    @property
    def _parts(self) -> Sequence[Delayed]:
        graph: Any = self.graph
        return graph.parts.values


class ShardedTraining(TrainingGraph):
    """Training points in shards, and what a fit needs of their graph.

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
        is_directed: bool = False,
        *,
        seed: int = 0,
        sites: Numbers | None = None,
    ) -> None:
        self.shards, self.n_classes = shards, shards.n_classes
        self.kernel, self.is_directed = kernel, is_directed
        self.labels = np.empty(0, dtype=np.int64)  # none here
        self._prepare(seed, sites)

    @property
    def n_points(self) -> int:
        """The number of training points."""
        return self.shards.n_points

    def build(self, n_neighbors: int) -> Any:
        """Search the neighbours of all training points, with the ties of the last."""
        return build_graph(self.shards, n_neighbors)

    def build_of_sites(self, sites: Numbers, n_neighbors: int) -> Any:
        """Search the neighbours of some training points alone."""
        return _search(self.shards, n_neighbors, sites).cut(n_neighbors, n_neighbors)

    def family(self, graph: Any) -> ShardedFamily:
        """Make the family of fields on a `ShardedGraph`."""
        return ShardedFamily(graph, self.n_classes, self.kernel, self.is_directed, self.longest)

    def directed_conditionals(self, sites: Numbers, n_neighbors: int) -> SubsampledConditionals:
        """Take the conditionals of some points by out-weights alone: a search of these points."""
        family = self.family(self.build_of_sites(sites, n_neighbors))
        return replace(family, is_directed=True).conditionals(None, sites)

    def _longest(self) -> float:
        """Find about the largest distance between points: from the one farthest from the first."""
        shards = self.shards.kept.values
        start = collect([shard.block for shard in shards], np.array([0])).points
        farthest = partial(delayed(_farthest), space=self.shards.space)
        for _ in range(2):
            distance, _, start = delayed(max, nout=3)([farthest(s, start) for s in shards])
        return distance.compute()


def build_graph(shards: Shards, n_neighbors: int, sites: Numbers | None = None) -> ShardedGraph:
    """Search the neighbours of training points, all or some, with the ties of the last."""
    graph = _search(shards, n_neighbors, sites)
    n_columns = graph.n_columns(n_neighbors)
    if n_columns > n_neighbors:
        graph = _search(shards, n_columns, sites)
    return graph.cut(n_neighbors, n_columns)


def _search(shards: Shards, n_neighbors: int, sites: Numbers | None) -> ShardedGraph:
    """Search the neighbours of the points of each shard, there and on the other shards."""
    n_points, n_classes = shards.n_points, shards.n_classes

    def build(shards: Sequence[Delayed]) -> list[Delayed]:
        parts = []
        for home in shards:
            codes, queries = delayed(Shard.own, nout=2)(home, sites)
            answers = search(shards, queries, n_neighbors + 1, homes=[home])
            lists = delayed(merge)(answers, queries, n_neighbors + 1, n_points)
            parts.append(delayed(_graph_rows)(codes, lists, n_neighbors, n_points, n_classes))
        return parts

    return ShardedGraph(Kept(build, shards.kept), n_neighbors, n_points)


def _graph_rows(
    codes: Numbers, lists: NeighborLists, n_neighbors: int, n_points: int, n_classes: int
) -> GraphRows:
    kept = lists.without(codes).first(most_columns(n_neighbors, n_points - 1))
    return GraphRows(codes // n_classes, codes % n_classes, *kept)


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


def _farthest(shard: Shard, start: Floats, space: MetricSpace) -> tuple[float, int, Floats]:
    """Find the point of a shard that is farthest from another, of equals the first."""
    distances = space.distances_between(start, shard.block.points)[0]
    chosen = int(np.argmax(distances))
    return float(distances[chosen]), -int(shard.block.rows[chosen]), shard.block.points[[chosen]]
