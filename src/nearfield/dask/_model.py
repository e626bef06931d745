"""Fitted models on the workers, and what they say of a block of new points.

A `source` predicts one block: it has the methods `_averages_of`, `_bounds_of` and `outlier_score`
of the estimators of one machine. With few training points it is such an estimator, with many it
holds what the shards have found for the block.
"""

import itertools
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._graph import GraphRows, family_of, take_conditionals
from nearfield.dask._kept import Kept
from nearfield.dask._shards import Queries, Shard, Shards, merge, search
from nearfield.dask._training import Block, TrainingBlocks, collect, join
from nearfield.estimators import ModelFit
from nearfield.field import NeighborFamily, NeighborKernel
from nearfield.neighbors import NeighborGraph, NeighborLists, ShortLists
from nearfield.prediction import (
    Neighborhood,
    NeighborOutliers,
    NeighborPredictor,
    NeighborSums,
    outlier_values,
    typical_scales,
)
from nearfield.prediction.mixture import Mixture

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

_COLUMNS_AT_ONCE = 8  # whose medians over all training points are taken on one worker


class WholeModel:
    """A training set small enough for one machine: an estimator that is fitted on one worker.

    Parameters
    ----------
    settings : estimator
        Of one machine, to be fitted to all rows in their order.
    training : TrainingBlocks
    """

    def __init__(self, settings: Any, training: TrainingBlocks) -> None:
        fit = partial(_fit, settings, training.classes)
        self._kept = Kept(lambda blocks: [delayed(fit)(blocks)], training.blocks)

    @property
    def estimator(self) -> Delayed:
        """The fitted estimator."""
        return self._kept.values[0]

    def fitted(self, names: Sequence[str]) -> dict[str, Any]:
        """Fetch fitted attributes, which do not grow with the training points."""
        return delayed(_fitted)(self.estimator, names).compute()

    def source(self, points: Delayed, method: str) -> Delayed:
        """Give what predicts a block of points."""
        return self.estimator

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Fetch the class probabilities of the calibration points, each held out."""
        return self.estimator.held_out_proba_.compute()

    def to_local(self, estimator: Any) -> Any:
        """Fetch the fitted estimator with its training points; it has the prior of another."""
        return self.estimator.compute().set_params(class_prior=estimator.class_prior)


class PreparedShard:
    """The rows of the graph of a shard, ready for reverse queries.

    Parameters
    ----------
    family : NeighborFamily
    shard : Shard
    part : GraphRows
    """

    def __init__(self, family: NeighborFamily, shard: Shard, part: GraphRows) -> None:
        self.family, self.labels, self.index = family_of(family, part), part.labels, shard.index
        self.reverse_index = shard.index.reverse(self.family.reaches)

    def visit(self, queries: Queries, scales: Floats) -> tuple[Numbers, Floats]:
        """Sum the in-weights from here of new points.

        Returns
        -------
        places : ndarray of int, shape (n_places,)
            The points that have some.
        in_support : ndarray, shape (n_places, n_scales, G)
        """
        points = queries.points
        order = self.index.query_order(points)
        reverse = self.reverse_index.query(points[order])
        places = np.flatnonzero(np.diff(reverse.starts))
        some = reverse._replace(starts=reverse.starts[np.append(places, len(points))])
        return order[places], NeighborSums(self.family, self.labels, scales).in_support(some)


class Answers(NamedTuple):
    """What the shards found for a block of new points."""

    queries: Queries
    lists: list[ShortLists]
    visits: list[tuple[Numbers, Floats]]  # of `PreparedShard`; none without in-weights
    outliers: NeighborOutliers | None  # what is typical; where points are scored


class ShardedPredictor(NeighborPredictor):
    """Averages over the posterior of supports that are summed over the shards.

    It takes `Answers` in the place of points; its family has no rows of the graph.
    """

    def support(self, points: Answers) -> Floats:
        """Add up the support over the shards, shape (m, n_scales, G)."""
        lists = self._nearest(points)
        new = Neighborhood(lists, lists.rows % self.family.n_classes, None)
        support = NeighborSums(self.family, self.labels, self.nodes.scales).out_support(new)
        for places, in_support in points.visits:
            support[places] += in_support
        return support

    def outlier_score(self, points: Answers) -> Floats:
        """Score new points by the distances of their neighbours on all shards."""
        assert points.outliers is not None
        distances = self._nearest(points).distances[:, : self.family.n_neighbors]
        return points.outliers.score(np.ascontiguousarray(distances))

    def _nearest(self, points: Answers) -> NeighborLists:
        n_queries, family = len(points.queries.points), self.family
        return merge(points.lists, n_queries, family.n_neighbors_of_new, family.n_points)


class ShardedMixture(Mixture):
    """Several of these predictors, averaged."""

    def outlier_score(self, points: list[Answers]) -> Floats:
        """Average the scores of new points."""
        pairs = zip(self.predictors, points, strict=True)
        return _average(self.weights, [each.outlier_score(some) for each, some in pairs])


class ShardedSource(NamedTuple):
    """A predictor, or a mixture of them, with what it takes of one block."""

    predictor: ShardedPredictor | ShardedMixture
    answers: Any  # `Answers`, or a list of them

    def _averages_of(self, points: Floats) -> Floats:
        return self.predictor.probabilities(self.answers)

    def _bounds_of(self, points: Floats, level: float, odds: Floats | None) -> tuple[Floats, ...]:
        tail = 0.5 * (1.0 - level)
        return tuple(self.predictor.quantiles(self.answers, (tail, 1.0 - tail), odds))

    def outlier_score(self, points: Floats) -> Floats:
        """Score the points of the block."""
        return self.predictor.outlier_score(self.answers)


class ShardedModel:
    """A posterior of a field over shards, and what it predicts.

    Parameters
    ----------
    shards : Shards
    fit : ModelFit
        Its family is on a `ShardedGraph`.
    predictive : {"joint", "printed"}
    """

    def __init__(self, shards: Shards, fit: ModelFit, predictive: str) -> None:
        self.shards, self.fit, self.family = shards, fit, family_of(fit.family)
        index: Any = None  # each shard has its own, and its labels
        labels = np.empty(0, dtype=np.int64)
        self.predictor = ShardedPredictor(fit.posterior, self.family, labels, index, predictive)

    def fitted(self, names: Sequence[str]) -> dict[str, Any]:
        """Give the fitted attributes."""
        fit = self.fit
        values = fit.posterior, fit.priors, fit.engine_name, self.predictor.external_field
        return dict(zip(names, (*values, self.shards.space), strict=True))

    def source(self, points: Delayed, method: str) -> Delayed:
        """Give what predicts a block of at least one point, shape (m, n_features)."""
        return delayed(ShardedSource)(self._predictor_there, self.answers(points, method))

    def answers(self, points: Delayed, method: str) -> Delayed:
        """Ask all shards about a block of at least one point."""
        queries = delayed(Queries.from_points)(points, self.shards.space, self.shards.cuts)
        lists = search(self.shards.kept.values, queries, self.family.n_neighbors_of_new)
        if method == "outlier_score":
            return delayed(Answers)(queries, lists, [], self._outliers.values[0])
        prepared = self._prepared.values if self.predictor.is_joint else ()
        visits = [shard.visit(queries, self.predictor.nodes.scales) for shard in prepared]
        return delayed(Answers)(queries, lists, visits, None)

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        conditionals, nodes = take_conditionals(self.fit.family, sites), self.predictor.nodes
        supports = conditionals.supports(nodes.scales, conditionals.labels)
        return nodes.mean(np.stack(list(supports), axis=1), self.predictor.external_field)

    def to_local(self, estimator: Any) -> Any:
        """Give an estimator of one machine the training points, and what was fitted."""
        family, blocks = self.fit.family, [shard.block for shard in self.shards.kept.values]
        block, rows = dask.compute(collect(blocks), collect(family.graph.parts.values))
        neighbors = (rows.codes // family.n_classes).astype(np.int32)
        graph = NeighborGraph(rows.distances, neighbors, family.n_neighbors)
        space = replace(self.shards.space, points=block.points)
        fit = self.fit._replace(family=replace(family, graph=graph))
        estimator._keep(space, block.labels, *fit)
        return estimator

    @cached_property
    def _predictor_there(self) -> Delayed:
        return delayed(self.predictor)

    @cached_property
    def _prepared(self) -> Kept:
        prepare = partial(delayed(PreparedShard), self.family)
        parents = self.shards.kept, self.fit.family.graph.parts
        return Kept(lambda *values: list(map(prepare, *values)), *parents)

    @cached_property
    def _outliers(self) -> Kept:
        scales = typical_scales(self.fit.posterior)
        take = partial(_take_medians, self.family.neighbor_kernel, scales)
        return Kept(take, self.fit.family.graph.parts)


@dataclass(frozen=True, eq=False)
class AverageModel:
    """Estimators over shards, averaged.

    Attributes
    ----------
    estimator : NearfieldClassifier
        Of one machine, with all that is fitted but the training points.
    models : list of ShardedModel
        Those of its estimators.
    """

    estimator: Any
    models: list[ShardedModel]

    def fitted(self, names: Sequence[str]) -> dict[str, Any]:
        """Give fitted attributes."""
        return _fitted(self.estimator, names)

    def source(self, points: Delayed, method: str) -> Delayed:
        """Give what predicts a block of at least one point, shape (m, n_features)."""
        features = self.estimator.power_transform_
        placed = points if features is None else delayed(features.transform)(points)
        answers = [model.answers(placed, method) for model in self.models]
        return delayed(ShardedSource)(self._mixture_there, answers)

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        parts = [model.conditional_probabilities(sites) for model in self.models]
        return _average(self.estimator.weights_, parts)

    def to_local(self, estimator: Any) -> Any:
        """Give the estimator of one machine its training points; it has the prior of another."""
        local = copy(self.estimator).set_params(class_prior=estimator.class_prior)
        pairs = zip(self.models, local.estimators_, strict=True)
        local.estimators_ = [model.to_local(copy(each)) for model, each in pairs]
        local.labels_ = local.estimators_[0].labels_
        return local

    @cached_property
    def _mixture_there(self) -> Delayed:
        predictors = [model.predictor for model in self.models]
        return delayed(ShardedMixture)(predictors, self.estimator.weights_)


def _fit(settings: Any, classes: NDArray[Any], blocks: list[Block]) -> Any:
    block = join(blocks)
    return settings.fit(block.points, classes[block.labels])


def _fitted(estimator: Any, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(estimator, name) for name in names}
    if "metric_space_" in values:
        space = values["metric_space_"]
        values["metric_space_"] = replace(space, points=space.points[:0])
    return values


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


def _average(weights: Floats, parts: list[Floats]) -> Floats:
    return np.asarray(sum(w * part for w, part in zip(weights, parts, strict=True)))
