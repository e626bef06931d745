"""The k-nearest-neighbour graph over shards, and what a fit needs of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept
from nearfield.dask._search import HomeLists, search_training
from nearfield.dask._shards import Block, Shards, collect_rows, places_of
from nearfield.estimators._graph import pilot_rows, site_rows
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._settings import check_longest
from nearfield.field import (
    GraphEdges,
    NeighborKernel,
    SubsampledConditionals,
    nearest_distances,
    neighbor_scale_range,
    scale_range_from_nearest,
)
from nearfield.neighbors import NeighborLists, last_tie, most_columns

Floats = NDArray[np.float64]


class GraphRows(NamedTuple):
    """Rows of the graph: training points with their neighbours, nearest first."""

    rows: NDArray[np.int64]  # shape (n,), rising
    labels: NDArray[np.int64]  # shape (n,)
    distances: Floats  # shape (n, n_columns)
    neighbors: NDArray[np.int32]  # shape (n, n_columns): rows among all training points
    neighbor_labels: NDArray[np.int32]  # shape (n, n_columns)

    def part(self, places: NDArray[np.int64]) -> "GraphRows":
        """Take some of the rows."""
        return GraphRows(*(array[places] for array in self))  # type: ignore[arg-type]

    def first(self, n_columns: int) -> "GraphRows":
        """Keep the first columns."""
        lists: Any = (np.ascontiguousarray(array[:, :n_columns]) for array in self[2:])
        return GraphRows(self.rows, self.labels, *lists)


@dataclass(frozen=True, eq=False)
class ShardedGraph:
    """The nearest neighbours of training points, on the workers, as `NeighborGraph` has them.

    Attributes
    ----------
    parts : Kept
        `GraphRows` each.
    n_neighbors : int
    """

    parts: Kept
    n_neighbors: int

    def first(self, n_neighbors: int) -> "ShardedGraph":
        """Give the graph of fewer neighbours, with the ties of the last, in place of this one."""
        last = [delayed(_last_tie)(part, n_neighbors) for part in self.parts.values]
        n_columns = max(dask.compute(*last))
        build = partial(_each, partial(GraphRows.first, n_columns=n_columns))
        return ShardedGraph(self.parts.followed_by(build), n_neighbors)

    @property
    def n_columns(self) -> int:
        """The number of columns: k, and more where points tie with the last neighbour."""
        return delayed(_n_columns)(self.parts.values[0]).compute()

    def collect(self, rows: NDArray[np.int64] | None = None) -> Delayed:
        """Bring rows of the graph to one worker, in this order; all of them in theirs."""
        return delayed(joined_rows)(
            [delayed(_part)(part, rows) for part in self.parts.values], rows
        )


@dataclass(frozen=True, eq=False)
class ShardedFamily:
    """The fields over a graph on the workers, by what is known of them here.

    Attributes are those of `NeighborFamily`, but the graph may be of some of the points alone.
    """

    graph: ShardedGraph
    n_points: int
    n_classes: int
    kernel: str
    is_directed: bool
    longest: float
    external_field: Any = None

    def conditionals(self, sites: NDArray[np.int64]) -> SubsampledConditionals:
        """Take the conditionals of some points given all other labels."""
        parts, n_neighbors = self.graph.parts.values, self.graph.n_neighbors
        nearest = [delayed(_nearest)(part) for part in parts]
        scale_range = delayed(_scale_range)(self.kernel, n_neighbors, nearest)
        edges = None
        if not self.is_directed:
            edges = _map_parts(parts, partial(_edges, sites=sites, n_points=self.n_points))
        found, scale_range = dask.compute(self.graph.collect(sites), scale_range)
        return self.conditionals_of(found, n_neighbors, edges, scale_range)

    def conditionals_of(
        self,
        sites: GraphRows,
        n_neighbors: int,
        edges: list[Delayed] | None,
        scale_range: tuple[float, float],
    ) -> SubsampledConditionals:
        """Take the conditionals of points whose rows of the graph are here."""
        return SubsampledConditionals(
            sites.distances,
            sites.neighbor_labels.astype(np.int64),
            sites.labels,
            self.n_classes,
            NeighborKernel(self.kernel, n_neighbors),
            edges,
            scale_range,
            self.longest,
            self.external_field,
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
    """

    def __init__(self, shards: Shards, kernel: str, is_directed: bool, seed: int) -> None:
        self.shards, self.kernel, self.is_directed = shards, kernel, is_directed
        self.n_points, self.n_classes = shards.n_points, shards.n_classes
        self.longest = _longest(shards)
        check_longest(self.longest)
        self.sites = site_rows(self.n_points, self.n_classes, kernel, seed)
        self.pilot_sites = pilot_rows(self.n_points, seed)

    def build(self, n_neighbors: int) -> ShardedGraph:
        """Search the neighbours of all training points, with the ties of the last."""
        most = most_columns(n_neighbors, self.n_points - 1)
        n_columns = min(n_neighbors + 1, most)
        while True:
            graph = self._search(None, n_neighbors, n_columns)
            if n_columns == most or graph.n_columns < n_columns:
                return graph
            n_columns = min(2 * n_columns, most)

    def build_of_sites(self, sites: NDArray[np.int64], n_neighbors: int) -> ShardedGraph:
        """Search the neighbours of some training points alone."""
        return self._search(sites, n_neighbors, n_neighbors)

    def family(self, graph: ShardedGraph) -> ShardedFamily:
        """Describe the fields on a graph."""
        return ShardedFamily(
            graph, self.n_points, self.n_classes, self.kernel, self.is_directed, self.longest
        )

    def conditionals(self, graph: ShardedGraph, sites: NDArray[np.int64]) -> SubsampledConditionals:
        """Take the conditionals of some points on the graph of all points."""
        return self.family(graph).conditionals(sites)

    def directed_conditionals(
        self, sites: NDArray[np.int64], n_neighbors: int
    ) -> SubsampledConditionals:
        """Take the conditionals of some points by out-weights alone: a search of these points."""
        graph = self.build_of_sites(sites, n_neighbors)
        found = graph.collect(sites).compute()
        scale_range = neighbor_scale_range(self.kernel, n_neighbors, found.distances)
        return self.family(graph).conditionals_of(found, n_neighbors, None, scale_range)

    def _search(
        self, sites: NDArray[np.int64] | None, n_neighbors: int, n_columns: int
    ) -> ShardedGraph:
        build = partial(_search_rows, self.shards, sites, n_neighbors, n_columns)
        return ShardedGraph(Kept(build), n_neighbors)


def _search_rows(
    shards: Shards, sites: NDArray[np.int64] | None, n_neighbors: int, n_columns: int
) -> list[Delayed]:
    """Search the neighbours of training points, and cut the lists off after the last tie of all."""
    found = search_training(shards, n_columns, sites)
    last = delayed(max)([delayed(_last_tie)(lists, n_neighbors) for _, lists in found])
    return [delayed(_graph_rows)(home, lists, shards.n_classes, last) for home, lists in found]


def _last_tie(some: Any, n_neighbors: int) -> int:
    return last_tie(some.distances, n_neighbors)


def _n_columns(part: GraphRows) -> int:
    return part.distances.shape[1]


def _graph_rows(home: HomeLists, lists: NeighborLists, n_classes: int, n_columns: int) -> GraphRows:
    order = np.argsort(home.codes)
    rows, labels = np.divmod(home.codes[order], n_classes)
    neighbors, neighbor_labels = np.divmod(lists.rows[order, :n_columns], n_classes)
    return GraphRows(
        rows,
        labels,
        lists.distances[order, :n_columns],
        neighbors.astype(np.int32),
        neighbor_labels.astype(np.int32),
    )


def _each(function: Callable[[Any], Any], parts: Sequence[Delayed]) -> list[Delayed]:
    return [delayed(function)(part) for part in parts]


def _map_parts(parts: Sequence[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Apply a function where the parts are, and leave the results there."""
    return list(dask.persist(*_each(function, parts)))


def _sum_parts(parts: list[Any], function: Callable[[Any], Floats]) -> Floats:
    """Apply a function where the parts are, and add up the results on a worker."""
    return delayed(_add_up)(_each(function, parts)).compute()


def _add_up(tables: list[Floats]) -> Floats:
    return np.sum(tables, axis=0)


def _part(part: GraphRows, rows: NDArray[np.int64] | None) -> GraphRows:
    return part if rows is None else part.part(places_of(part.rows, rows))


def joined_rows(parts: list[GraphRows], rows: NDArray[np.int64] | None = None) -> GraphRows:
    """Put rows of the graph together, in a given order, or rising."""
    whole = GraphRows(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    order = np.argsort(whole.rows)
    if rows is not None:
        order = order[np.searchsorted(whole.rows[order], rows)]
    return whole.part(order)


def _edges(part: GraphRows, sites: NDArray[np.int64], n_points: int) -> GraphEdges:
    place_of_site = np.full(n_points, -1, dtype=np.int32)
    place_of_site[sites] = np.arange(len(sites))
    return GraphEdges.from_rows(part.distances, part.neighbors, part.labels, place_of_site)


def _nearest(part: GraphRows) -> tuple[float, Floats]:
    return float(part.distances.max(initial=0.0)), nearest_distances(part.distances)


def _scale_range(
    kernel: str, n_neighbors: int, parts: list[tuple[float, Floats]]
) -> tuple[float, float]:
    longest, nearest = zip(*parts, strict=True)
    return scale_range_from_nearest(kernel, n_neighbors, max(longest), np.concatenate(nearest))


def _longest(shards: Shards) -> float:
    """Find about the largest distance between points: from the one farthest from the first."""
    blocks = [delayed(attrgetter("block"))(shard) for shard in shards.shards]
    start = collect_rows(blocks, np.array([0]))
    for _ in range(2):
        found = [delayed(_farthest_from)(start, block, shards.space) for block in blocks]
        start = delayed(_farthest)(found)
    return start.compute().distance


class Farthest(NamedTuple):
    """The point that is farthest from another; of equals the first."""

    points: Floats  # shape (1, n_features)
    distance: float
    row: int


def _farthest_from(start: Any, block: Block, space: MetricSpace) -> Farthest:
    if len(block.rows) == 0:
        return Farthest(block.points, -np.inf, -1)
    distances = space.distances_between(start.points, block.points)[0]
    chosen = int(np.argmax(distances))
    some = block.part(np.array([chosen]))
    return Farthest(some.points, float(distances[chosen]), int(some.rows[0]))


def _farthest(parts: list[Farthest]) -> Farthest:
    return min(parts, key=lambda part: (-part.distance, part.row))
