"""Predictions from a graph over shards: supports are summed over these, then averaged."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._graph import GraphRows, ShardedGraph
from nearfield.dask._kept import Kept
from nearfield.dask._search import WITH_TIES, Queries, answer, search_new
from nearfield.dask._shards import Shard, Shards, joined
from nearfield.dask._space import place
from nearfield.estimators._graph import ModelFit
from nearfield.field import NeighborFamily, NeighborKernel, check_external_field
from nearfield.inference import Posterior
from nearfield.neighbors import (
    NeighborGraph,
    NeighborLists,
    ShortLists,
    merge_lists,
    most_columns,
)
from nearfield.prediction import (
    NeighborOutliers,
    NeighborSums,
    PosteriorNodes,
    outlier_values,
    typical_scales,
)

Floats = NDArray[np.float64]

_COLUMNS_AT_ONCE = 8  # whose medians over all training points are taken on one worker


@dataclass(frozen=True, eq=False)
class SomeRows(NeighborFamily):
    """The fields over a graph of which some rows are at hand.

    Attributes
    ----------
    n_all : int
        The number of all training points.
    """

    n_all: int = 0

    @property
    def has_all_neighbors(self) -> bool:
        """Whether all points are neighbours of each other, so that a new point replaces none."""
        return not self.is_discrete and self.n_neighbors == self.n_all - 1


@dataclass(frozen=True, eq=False)
class Model:
    """A posterior of a field over shards: what each step of a prediction needs to know of it."""

    posterior: Posterior = field(repr=False)
    n_points: int
    n_classes: int
    kernel: str
    n_neighbors: int
    longest: float
    external_field: Any
    is_joint: bool

    @property
    def neighbor_kernel(self) -> NeighborKernel:
        """The kernel with its number of neighbours."""
        return NeighborKernel(self.kernel, self.n_neighbors)

    @property
    def most_columns(self) -> int:
        """The largest number of columns that ties may make a list have."""
        return most_columns(self.n_neighbors, self.n_points)

    def family(self, part: GraphRows) -> SomeRows:
        """Make the family of some rows of the graph."""
        return SomeRows(
            NeighborGraph(part.distances, part.neighbors, self.n_neighbors),
            self.n_classes,
            self.kernel,
            not self.is_joint,
            self.longest,
            self.external_field,
            self.n_points,
        )


@dataclass(frozen=True, eq=False)
class Averages:
    """The averages over a posterior of supports that are summed over the shards."""

    nodes: PosteriorNodes
    external_field: Floats

    @classmethod
    def from_model(cls, model: Model) -> "Averages":
        """Compress the posterior."""
        is_smooth = model.neighbor_kernel.is_smooth
        return cls(
            PosteriorNodes.from_posterior(model.posterior, is_smooth=is_smooth),
            check_external_field(model.external_field, model.n_classes),
        )

    def probabilities(self, support: Floats) -> Floats:
        """Average the class probabilities, shape (m, G)."""
        return self.nodes.mean(support, self.external_field)

    def interval(self, support: Floats, *levels: float) -> tuple[Floats, ...]:
        """Bound each class probability at some levels, from below and above in turn."""
        tails = [0.5 * (1.0 + sign * level) for level in levels for sign in (-1.0, 1.0)]
        return tuple(self.nodes.quantiles(support, self.external_field, np.array(tails)))


class ShardVisit(NamedTuple):
    """What a shard adds to the lists of new points, and to their support."""

    ties: ShortLists  # all within the k-th distance, of points whose ties were cut off
    places: NDArray[np.int64]  # of points with in-weights from this shard
    in_support: Floats  # shape (n_places, n_scales, G)


@dataclass(frozen=True, eq=False)
class PreparedShard:
    """A shard with its rows of the graph, ready for reverse queries at some scales."""

    shard: Shard
    model: Model
    sums: NeighborSums
    reverse_index: Any

    @classmethod
    def from_parts(
        cls, shard: Shard, part: GraphRows, model: Model, averages: Averages
    ) -> "PreparedShard":
        """Prepare for the scales of the compressed posterior."""
        family = model.family(part)
        sums = NeighborSums(family, part.labels, averages.nodes.scales)
        if not model.is_joint or shard.index is None:
            return cls(shard, model, sums, None)
        return cls(shard, model, sums, shard.index.reverse(family.reaches))

    def visit(self, points: Floats, lists: NeighborLists) -> ShardVisit:
        """Find ties and sum in-weights for new points, given their nearest training points."""
        k, n_classes = self.model.n_neighbors, self.model.n_classes
        is_open = cut_off_ties(lists, k)
        limits = lists.distances[is_open, k - 1] * WITH_TIES
        queries = Queries(np.flatnonzero(is_open), points[is_open], limits)
        ties = answer(self.shard, queries, self.model.most_columns)
        if self.reverse_index is None:
            none = np.empty((0, len(self.sums.scales), n_classes))
            return ShardVisit(ties, np.empty(0, dtype=np.int64), none)
        reverse = self.reverse_index.query(points)
        places = np.flatnonzero(np.diff(reverse.starts))
        some = reverse._replace(starts=reverse.starts[np.append(places, len(points))])
        return ShardVisit(ties, places, self.sums.in_support(some))


@dataclass(frozen=True, eq=False)
class ShardedModel:
    """A posterior of a field over shards, and what it predicts.

    Attributes
    ----------
    shards : Shards
    fit : ModelFit
        With a `ShardedFamily`.
    predictive : {"joint", "printed"}
    """

    shards: Shards
    fit: ModelFit
    predictive: str

    @cached_property
    def model(self) -> Model:
        """What the workers need to know of it."""
        family = self.fit.family
        return Model(
            self.fit.posterior,
            self.shards.n_points,
            self.shards.n_classes,
            family.kernel,
            family.graph.n_neighbors,
            family.longest,
            family.external_field,
            self.predictive == "joint" and not family.is_directed,
        )

    @property
    def graph(self) -> ShardedGraph:
        """The rows of the graph, on the workers."""
        return self.fit.family.graph

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        points : Delayed ndarray, shape (m, n_features)
        """
        model, shards = self.model, self.shards
        placed = delayed(place)(points, shards.space)
        lists = search_new(shards, placed, min(model.n_neighbors + 1, model.n_points))
        if method == "outlier_score":
            return delayed(_score)(self._outliers.value, lists)
        prepared = self._prepared.values
        visits = [delayed(PreparedShard.visit)(shard, placed, lists) for shard in prepared]
        averages = self._averages.value
        return delayed(_predict)(averages, model, lists, visits, method, arguments)

    def conditional_probabilities(
        self, sites: NDArray[np.int64]
    ) -> tuple[Floats, NDArray[np.int64]]:
        """Average the conditionals of some training points, shape (m, G); with their labels."""
        conditionals = self.fit.family.conditionals(sites)
        averages = self._averages.value.compute()
        supports = conditionals.supports(averages.nodes.scales, conditionals.labels)
        return averages.probabilities(np.stack(list(supports), axis=1)), conditionals.labels

    def to_local(self, estimator: Any) -> Any:
        """Give an estimator of one machine the training points, and what was fitted."""
        blocks = [delayed(attrgetter("block"))(shard) for shard in self.shards.shards]
        block, rows = dask.compute(delayed(joined)(blocks), self.graph.collect())
        sharded = self.fit.family
        family = NeighborFamily(
            NeighborGraph(rows.distances, rows.neighbors, sharded.graph.n_neighbors),
            sharded.n_classes,
            sharded.kernel,
            sharded.is_directed,
            sharded.longest,
            sharded.external_field,
        )
        space = replace(self.shards.space, points=block.points)
        estimator._keep(space, block.labels, *self.fit._replace(family=family))
        return estimator

    @cached_property
    def _averages(self) -> Kept:
        return Kept(partial(_compress, self.model))

    @cached_property
    def _prepared(self) -> Kept:
        return Kept(partial(_prepare, self.shards, self.graph, self.model, self._averages))

    @cached_property
    def _outliers(self) -> Kept:
        return Kept(partial(_take_medians, self.model, self.graph))


def cut_off_ties(lists: NeighborLists, n_neighbors: int) -> NDArray[np.bool_]:
    """Tell which lists of k + 1 neighbours end in ties with neighbour k."""
    if lists.distances.shape[1] == n_neighbors:
        return np.zeros(len(lists.distances), dtype=bool)
    return lists.distances[:, n_neighbors] <= lists.distances[:, n_neighbors - 1] * WITH_TIES


def _compress(model: Model) -> list[Delayed]:
    return [delayed(Averages.from_model)(model)]


def _prepare(shards: Shards, graph: ShardedGraph, model: Model, averages: Kept) -> list[Delayed]:
    pairs = zip(shards.shards, graph.parts.values, strict=True)
    return [
        delayed(PreparedShard.from_parts)(shard, part, model, averages.value)
        for shard, part in pairs
    ]


def _take_medians(model: Model, graph: ShardedGraph) -> list[Delayed]:
    kernel, scales = model.neighbor_kernel, typical_scales(model.posterior)
    n_values = len(scales) if kernel.is_smooth else kernel.n_neighbors
    values = [delayed(_outlier_values)(part, kernel, scales) for part in graph.parts.values]
    medians = [
        delayed(_medians)([delayed(_columns)(some, start) for some in values])
        for start in range(0, n_values, _COLUMNS_AT_ONCE)
    ]
    return [delayed(NeighborOutliers)(kernel, scales, delayed(np.concatenate)(medians))]


def _outlier_values(part: GraphRows, kernel: NeighborKernel, scales: Floats) -> Floats:
    return outlier_values(kernel, scales, part.distances)


def _columns(values: Floats, start: int) -> Floats:
    return values[:, start : start + _COLUMNS_AT_ONCE]


def _medians(parts: list[Floats]) -> Floats:
    return np.median(np.concatenate(parts), axis=0)


def _score(outliers: NeighborOutliers, lists: NeighborLists) -> Floats:
    return outliers.score(np.ascontiguousarray(lists.first(outliers.kernel.n_neighbors).distances))


def _predict(
    averages: Averages,
    model: Model,
    lists: NeighborLists,
    visits: list[ShardVisit],
    method: str,
    arguments: tuple[Any, ...],
) -> Any:
    """Add up the support of new points over the shards, and average over the posterior."""
    distances, codes = _with_ties(model, lists, visits)
    scales, n_classes = averages.nodes.scales, model.n_classes
    support = model.neighbor_kernel.out_support(distances, codes % n_classes, scales, n_classes)
    for visit in visits:
        support[visit.places] += visit.in_support
    return getattr(averages, method)(support, *arguments)


def _with_ties(model: Model, lists: NeighborLists, visits: list[ShardVisit]) -> NeighborLists:
    """Replace the lists that end in ties by the longer ones that the shards found."""
    is_open = cut_off_ties(lists, model.n_neighbors)
    if not is_open.any():
        return lists
    ties = [visit.ties for visit in visits]
    longer = merge_lists(ties, len(is_open), model.most_columns)
    n_columns = lists.rows.shape[1]
    for long, short in zip(longer, lists, strict=True):
        long[~is_open, :n_columns] = short[~is_open]
    return longer
