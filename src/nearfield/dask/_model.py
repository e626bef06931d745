"""Predictions from a graph over shards: supports are summed over these, then averaged."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._graph import GraphRows, family_of, take_conditionals
from nearfield.dask._kept import Kept
from nearfield.dask._shards import Queries, Shard, Shards, merge, place, search_home
from nearfield.dask._training import collect
from nearfield.estimators import ModelFit
from nearfield.field import NeighborFamily, NeighborKernel, check_external_field
from nearfield.inference import Posterior
from nearfield.neighbors import NeighborGraph, ShortLists
from nearfield.prediction import (
    Neighborhood,
    NeighborOutliers,
    NeighborSums,
    PosteriorNodes,
    outlier_values,
    typical_scales,
)

Floats = NDArray[np.float64]

_COLUMNS_AT_ONCE = 8  # whose medians over all training points are taken on one worker


@dataclass(frozen=True, eq=False)
class Averages:
    """The averages over a posterior of supports that are summed over the shards."""

    nodes: PosteriorNodes
    external_field: Floats

    @classmethod
    def from_posterior(cls, posterior: Posterior, family: NeighborFamily) -> "Averages":
        """Compress the posterior."""
        return cls(
            PosteriorNodes.from_posterior(posterior, is_smooth=family.is_smooth),
            check_external_field(family.external_field, family.n_classes),
        )

    def probabilities(self, support: Floats) -> Floats:
        """Average the class probabilities, shape (m, G)."""
        return self.nodes.mean(support, self.external_field)

    def interval(
        self, support: Floats, level: float, odds: Floats | None = None
    ) -> tuple[Floats, ...]:
        """Bound each class probability, given the factors of the classes' odds."""
        tails = np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
        return tuple(self.nodes.quantiles(support, self.external_field, tails, odds))


class Answer(NamedTuple):
    """What a shard adds to the lists of new points, and to their support."""

    lists: ShortLists
    places: NDArray[np.int64]  # of points with in-weights from this shard
    in_support: Floats  # shape (n_places, n_scales, G)


@dataclass(frozen=True, eq=False)
class PreparedShard:
    """A shard with its rows of the graph, ready for reverse queries where there are in-weights."""

    shard: Shard
    labels: NDArray[np.int64]
    family: NeighborFamily
    reverse_index: Any

    @classmethod
    def from_part(cls, family: NeighborFamily, shard: Shard, part: GraphRows) -> "PreparedShard":
        """Prepare the reverse queries."""
        own = family_of(family, part)
        reverse_index = None
        if shard.index is not None and not family.is_directed:
            reverse_index = shard.index.reverse(own.reaches)
        return cls(shard, part.labels, own, reverse_index)

    def visit(self, queries: Queries, scales: Floats, n_neighbors: int) -> Answer:
        """Find neighbours here, and sum the in-weights from here, for new points."""
        lists, points = self.shard.answer(queries, n_neighbors), queries.points
        if self.shard.index is None or self.reverse_index is None or len(scales) == 0:
            none = np.empty((0, len(scales), self.family.n_classes))
            return Answer(lists, np.empty(0, dtype=np.int64), none)
        order = self.shard.index.query_order(points)
        reverse = self.reverse_index.query(points[order])
        places = np.flatnonzero(np.diff(reverse.starts))
        some = reverse._replace(starts=reverse.starts[np.append(places, len(points))])
        sums = NeighborSums(self.family, self.labels, scales)
        return Answer(lists, order[places], sums.in_support(some))


@dataclass(frozen=True, eq=False)
class ShardedModel:
    """A posterior of a field over shards, and what it predicts.

    Attributes
    ----------
    shards : Shards
    fit : ModelFit
        Its family is on a `ShardedGraph`.
    family : NeighborFamily
        To predict by, without the parts of the graph: directed where in-weights are left out.
    averages : Averages
    """

    shards: Shards
    fit: ModelFit
    family: NeighborFamily
    averages: Averages

    @classmethod
    def from_fit(cls, shards: Shards, fit: ModelFit, predictive: str) -> "ShardedModel":
        """Compress the posterior."""
        is_directed = fit.family.is_directed or predictive == "printed"
        graph = fit.family.graph.without_parts()
        family = replace(fit.family, graph=graph, is_directed=is_directed)
        return cls(shards, fit, family, Averages.from_posterior(fit.posterior, family))

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score", "support"}
        points : Delayed ndarray, shape (m, n_features)
        """
        family, shards, is_score = self.family, self.shards, method == "outlier_score"
        k = family.n_neighbors if is_score else family.n_neighbors_of_new
        placed = delayed(place)(points, shards.space)
        queries, lists = search_home(shards.kept.values, placed, k)
        scales = np.empty(0) if is_score else self.averages.nodes.scales
        answers = [shard.visit(queries, scales, k) for shard in self._prepared.values]
        if is_score:
            lists += [answer.lists for answer in answers]
            return delayed(_score)(self._outliers.value, lists, queries, shards.n_points)
        support = delayed(_support)(family, scales, queries, lists, answers)
        if method == "support":
            return support
        return getattr(self._averages, method)(support, *arguments)

    def conditional_probabilities(self, sites: NDArray[np.int64]) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        conditionals = take_conditionals(self.fit.family, sites)
        supports = conditionals.supports(self.averages.nodes.scales, conditionals.labels)
        return self.averages.probabilities(np.stack(list(supports), axis=1))

    def to_local(self, estimator: Any) -> Any:
        """Give an estimator of one machine the training points, and what was fitted."""
        blocks = [shard.block for shard in self.shards.kept.values]
        family = self.fit.family
        block, rows = dask.compute(collect(blocks), collect(family.graph.parts.values))
        neighbors = (rows.codes // family.n_classes).astype(np.int32)
        graph = NeighborGraph(rows.distances, neighbors, family.n_neighbors)
        family = replace(family, graph=graph)
        space = replace(self.shards.space, points=block.points)
        estimator._keep(space, block.labels, *self.fit._replace(family=family))
        return estimator

    @cached_property
    def _averages(self) -> Delayed:
        return delayed(self.averages)

    @cached_property
    def _prepared(self) -> Kept:
        build = partial(_prepare, self.family)
        return Kept(build, self.shards.kept, self.fit.family.graph.parts)

    @cached_property
    def _outliers(self) -> Kept:
        take = partial(
            _take_medians, self.family.neighbor_kernel, typical_scales(self.fit.posterior)
        )
        return Kept(take, self.fit.family.graph.parts)


def _prepare(
    family: NeighborFamily, shards: Sequence[Delayed], parts: Sequence[Delayed]
) -> list[Delayed]:
    prepare = partial(PreparedShard.from_part, family)
    return [delayed(prepare)(*pair) for pair in zip(shards, parts, strict=True)]


def _take_medians(
    kernel: NeighborKernel, scales: Floats, parts: Sequence[Delayed]
) -> list[Delayed]:
    n_values = len(scales) if kernel.is_smooth else kernel.n_neighbors
    values = [delayed(outlier_values)(kernel, scales, part.distances) for part in parts]
    medians = [
        delayed(np.median)(
            delayed(np.concatenate)([some[:, start:stop] for some in values]), axis=0
        )
        for start, stop in itertools.pairwise([*range(0, n_values, _COLUMNS_AT_ONCE), n_values])
    ]
    return [delayed(NeighborOutliers)(kernel, scales, delayed(np.concatenate)(medians))]


def _score(
    outliers: NeighborOutliers, lists: list[ShortLists], queries: Queries, n_points: int
) -> Floats:
    k = outliers.kernel.n_neighbors
    distances, _ = merge(lists, len(queries.points), k, n_points)
    return outliers.score(np.ascontiguousarray(distances[:, :k]))


def _support(
    family: NeighborFamily,
    scales: Floats,
    queries: Queries,
    lists: list[ShortLists],
    answers: list[Answer],
) -> Floats:
    """Add up the support of new points over the shards, shape (m, n_scales, G)."""
    found = [*lists, *(answer.lists for answer in answers)]
    merged = merge(found, len(queries.points), family.n_neighbors_of_new, family.n_points)
    new = Neighborhood(merged, merged.rows % family.n_classes, None)
    support = NeighborSums(family, np.empty(0, dtype=np.int64), scales).out_support(new)
    for answer in answers:
        support[answer.places] += answer.in_support
    return support
