"""Fitted models on the workers, and what they say of a block of new points.

A `source` predicts one block: it has the methods `_averages_of`, `_bounds_of` and `outlier_score`
of the estimators of one machine. With few training points it is such an estimator. With many it
holds the supports of the block's points, summed over the shards, and the predictor of one machine
averages these over the posterior.
"""

import itertools
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._graph import GraphRows, ShardedFamily, build_graph
from nearfield.dask._kept import Kept
from nearfield.dask._shards import Queries, Shard, Shards, merge, search
from nearfield.dask._training import Block, TrainingBlocks, collect, join
from nearfield.estimators import ModelFit, calibration_rows
from nearfield.field import NeighborKernel
from nearfield.neighbors import NeighborGraph, NeighborLists
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

_CALIBRATION = "calibration_rows_", "calibration_points_", "calibration_labels_"
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

    def calibration(self, training: TrainingBlocks) -> dict[str, Any]:
        """Fetch the calibration points."""
        return self.fitted(_CALIBRATION)

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Fetch the class probabilities of the calibration points, each held out."""
        return self.estimator.held_out_proba_.compute()

    def to_local(self) -> Any:
        """Fetch the fitted estimator with its training points."""
        return self.estimator.compute()


class BlockSource(NamedTuple):
    """What the shards have found for a block of new points."""

    predictor: Any  # `SupportPredictor`, or a mixture of them
    supports: Any = None  # what it takes in the place of points
    scores: Any = None  # of outliers; where these are asked for

    def _averages_of(self, points: Floats) -> Floats:
        return self.predictor.probabilities(self.supports)

    def _bounds_of(self, points: Floats, level: float, odds: Floats | None) -> tuple[Floats, ...]:
        tail = 0.5 * (1.0 - level)
        return tuple(self.predictor.quantiles(self.supports, (tail, 1.0 - tail), odds))

    def outlier_score(self, points: Floats) -> Floats:
        """Give the scores of the block."""
        return self.scores


class ShardedModel:
    """A model over shards: one field, or an average over several.

    Attributes
    ----------
    estimator : estimator
        Of one machine, with all that is fitted but the training points.
    predictor : SupportPredictor or Mixture
    supports, outlier_scores : callable
        What the predictor takes of a block of at least one point, and the scores of one.
    """

    estimator: Any
    predictor: Any
    supports: Callable[[Delayed], Any]
    outlier_scores: Callable[[Delayed], Delayed]

    def fitted(self, names: Sequence[str]) -> dict[str, Any]:
        """Give fitted attributes."""
        return _fitted(self.estimator, names)

    def source(self, points: Delayed, method: str) -> Delayed:
        """Give what predicts a block of at least one point, shape (m, n_features)."""
        if method == "outlier_score":
            return delayed(BlockSource)(None, scores=self.outlier_scores(points))
        return delayed(BlockSource)(self._predictor_there, self.supports(points))

    def calibration(self, training: TrainingBlocks) -> dict[str, Any]:
        """Fetch the calibration points from where the training points are."""
        rows = training.of_labels(partial(calibration_rows, n_features=training.n_features))
        values = training.apply(lambda points, labels: (rows, points, labels), rows)
        return dict(zip(_CALIBRATION, values, strict=True))

    @cached_property
    def _predictor_there(self) -> Delayed:
        return delayed(self.predictor)


class SupportPredictor(NeighborPredictor):
    """Averages over the posterior; it takes the supports of points in the place of points."""

    def support(self, points: Floats) -> Floats:
        """Give the support as it is, shape (m, n_scales, G)."""
        return points


class ShardedField(ShardedModel):
    """A label field over shards.

    Parameters
    ----------
    estimator : FieldClassifier
        Of one machine, with its classes; what is fitted is set here.
    shards : Shards
    fit : ModelFit
        Its family is on a `ShardedGraph`.
    """

    def __init__(self, estimator: Any, shards: Shards, fit: ModelFit) -> None:
        self.estimator, self.shards, self.fit = estimator, shards, fit
        self.family = fit.family.on_worker()
        index: Any = None  # each shard has its own, and its labels
        self.predictor = SupportPredictor(
            fit.posterior, self.family, np.empty(0, dtype=np.int64), index, estimator.predictive
        )
        estimator.posterior_, estimator.priors_ = fit.posterior, fit.priors
        estimator.inference_, estimator.metric_space_ = fit.engine_name, shards.space
        estimator.intercept_ = self.predictor.external_field

    def supports(self, points: Delayed) -> Delayed:
        """Sum the supports of a block over the shards, shape (m, n_scales, G)."""
        queries, lists = self._search(points)
        scales = self.predictor.nodes.scales
        prepared = self._prepared.values if self.predictor.is_joint else ()
        visits = [shard.visit(queries, scales) for shard in prepared]
        return delayed(_add_supports)(self._predictor_there, lists, visits)

    def outlier_scores(self, points: Delayed) -> Delayed:
        """Score a block by the distances of its points' neighbours on all shards."""
        lists = self._search(points)[1].first(self.family.n_neighbors)
        return self._outliers.values[0].score(delayed(np.ascontiguousarray)(lists.distances))

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        family = self.fit.family
        if family.is_directed:  # its graph has some of the points alone
            graph = build_graph(self.shards, family.n_neighbors, sites)
            family = replace(family, graph=graph)
        return replace(self.predictor, family=family).conditional_probabilities(sites)

    def to_local(self) -> Any:
        """Give the estimator of one machine the training points, and what was fitted."""
        family, blocks = self.fit.family, [shard.block for shard in self.shards.kept.values]
        block, rows = dask.compute(collect(blocks), collect(family.graph.parts.values))
        neighbors = (rows.codes // family.n_classes).astype(np.int32)
        family = family.in_one_place(NeighborGraph(rows.distances, neighbors, family.n_neighbors))
        local = copy(self.estimator)
        space = replace(self.shards.space, points=block.points)
        local._keep(space, block.labels, *self.fit._replace(family=family))
        return local

    def _search(self, points: Delayed) -> tuple[Delayed, Delayed]:
        """Search the neighbours of a block on all shards; give the queries, and merged lists."""
        n_neighbors, shards = self.family.n_neighbors_of_new, self.shards
        queries = delayed(Queries.from_points)(points, shards.space, shards.cuts)
        answers = search(shards.kept.values, queries, n_neighbors)
        return queries, delayed(merge)(answers, queries, n_neighbors, shards.n_points)

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


class PreparedShard:
    """The rows of the graph of a shard, ready for reverse queries.

    Parameters
    ----------
    family : ShardedFamily
    shard : Shard
    part : GraphRows
    """

    def __init__(self, family: ShardedFamily, shard: Shard, part: GraphRows) -> None:
        self.family, self.labels, self.index = family.on_worker(part), part.labels, shard.index
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


class ShardedAverage(ShardedModel):
    """Fields over shards, averaged.

    Parameters
    ----------
    estimator : NearfieldClassifier
        Of one machine, with all that is fitted but the training points.
    fields : list of ShardedField
        Those of its estimators.
    """

    def __init__(self, estimator: Any, fields: list[ShardedField]) -> None:
        self.estimator, self.fields = estimator, fields
        self.predictor = Mixture([field.predictor for field in fields], estimator.weights_)

    def supports(self, points: Delayed) -> list[Delayed]:
        """Give the supports of each field for a block."""
        placed = self._placed(points)
        return [field.supports(placed) for field in self.fields]

    def outlier_scores(self, points: Delayed) -> Delayed:
        """Average the scores of a block."""
        placed = self._placed(points)
        return self._average([field.outlier_scores(placed) for field in self.fields])

    def conditional_probabilities(self, sites: Numbers) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        return self._average([field.conditional_probabilities(sites) for field in self.fields])

    def to_local(self) -> Any:
        """Give the estimator of one machine its training points."""
        local = copy(self.estimator)
        local.estimators_ = [field.to_local() for field in self.fields]
        local.labels_ = local.estimators_[0].labels_
        return local

    def _placed(self, points: Delayed) -> Delayed:
        """Take a block to where the fields are."""
        features = self.estimator.power_transform_
        return points if features is None else delayed(features.transform)(points)

    def _average(self, parts: list[Any]) -> Any:
        weights = self.estimator.weights_
        return sum(weight * part for weight, part in zip(weights, parts, strict=True))


def _fit(settings: Any, classes: NDArray[Any], blocks: list[Block]) -> Any:
    block = join(blocks)
    return settings.fit(block.points, classes[block.labels])


def _fitted(estimator: Any, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(estimator, name) for name in names}
    if "metric_space_" in values:
        space = values["metric_space_"]
        values["metric_space_"] = replace(space, points=space.points[:0])
    return values


def _add_supports(
    predictor: SupportPredictor, lists: NeighborLists, visits: list[tuple[Numbers, Floats]]
) -> Floats:
    """Add up out-weights by the merged lists, and what `PreparedShard.visit` gives."""
    family, scales = predictor.family, predictor.nodes.scales
    new = Neighborhood(lists, lists.rows % family.n_classes, None)
    support = NeighborSums(family, predictor.labels, scales).out_support(new)
    for places, in_support in visits:
        support[places] += in_support
    return support


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
