"""Where distances are taken, from sums over blocks of training points."""

from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._shards import Block, collect_rows
from nearfield.dask._training import TrainingRows
from nearfield.distances import LEARNED_METRICS
from nearfield.estimators._metric import (
    MetricSpace,
    check_metric,
    fit_learner,
    is_named,
    is_standardized,
    learning_rows,
    make_learner,
)
from nearfield.estimators._standardize import Standardization, largest_values, scaled_sums

_MAX_BLOCKS = 32


def space_of(
    training: TrainingRows, metric: Any, metric_params: Any, standardize: bool
) -> MetricSpace:
    """Learn what new points are measured by, as `MetricSpace.fit`; no points are in it.

    Parameters
    ----------
    training : TrainingRows
    metric, metric_params, standardize
        Of the estimator.
    """
    params = check_metric(metric, metric_params)
    standardization = None
    if is_standardized(metric, standardize):
        standardization = _standardization_of(training.held.points)
    blocks = [delayed(_standardize)(block, standardization) for block in training.held.points]
    none = np.empty((0, training.n_features))
    if isinstance(metric, str) and metric in LEARNED_METRICS:
        learner = _learn(training, blocks, metric, params)
        return MetricSpace("euclidean", {}, standardization, learner, learner.place(none))
    if is_named(metric, "seuclidean") and "V" not in params:
        variance = np.diag(_covariance(blocks, training.n_points))
        params["V"] = np.where(variance > 0.0, variance, 1.0)  # constant: carries no distance
    if is_named(metric, "mahalanobis") and not {"V", "VI"} & set(params):
        params["VI"] = _inverse(_covariance(blocks, training.n_points))
    return MetricSpace(metric, params, standardization, None, none)


def placed_blocks(training: TrainingRows, space: MetricSpace) -> list[Delayed]:
    """Take training points to the metric space, in at most `_MAX_BLOCKS` blocks, `Block` each."""
    n_blocks = min(len(training.lengths), _MAX_BLOCKS)
    points, labels = training.recipes
    return [
        delayed(_place_blocks)(
            [points[b] for b in some],
            [labels[b] for b in some],
            int(training.first_rows[some[0]]),
            space,
        )
        for some in np.array_split(np.arange(len(training.lengths)), n_blocks)
    ]


def place(points: NDArray[np.float64], space: MetricSpace) -> NDArray[np.float64]:
    """Take points, of which there may be none, to the metric space."""
    return np.ascontiguousarray(space.place(points)) if len(points) else space.points


def _place_blocks(
    points: list[NDArray[np.float64]],
    labels: list[NDArray[np.int64]],
    first_row: int,
    space: MetricSpace,
) -> Block:
    placed = np.concatenate([place(some, space) for some in points])
    return _numbered(placed, np.concatenate(labels), first_row)


def _standardize(
    points: NDArray[np.float64], standardization: Standardization | None
) -> NDArray[np.float64]:
    return points if standardization is None else standardization.apply(points)


def _standardization_of(blocks: list[Delayed]) -> Standardization:
    """Reduce the largest values, the means and the variances, one after the other."""
    unit = np.max(dask.compute(*[delayed(largest_values)(block) for block in blocks]), axis=0)

    def mean_power(centre: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        parts = dask.compute(*[delayed(scaled_sums)(b, unit, centre, power) for b in blocks])
        n_values, sums = (np.sum(values, axis=0) for values in zip(*parts, strict=True))
        return sums / np.maximum(n_values, 1)

    mean = mean_power(np.zeros(len(unit)), 1)
    return Standardization.of_moments(unit, mean, mean_power(mean, 2))


def _learn(
    training: TrainingRows, blocks: list[Delayed], metric: str, params: dict[str, Any]
) -> Any:
    """Learn a metric on one worker, from the rows that one machine would take."""
    parts = numbered_blocks(training, blocks)
    sample = collect_rows(parts, learning_rows(training.n_points))
    return delayed(_fit)(make_learner(metric, params), sample).compute()


def numbered_blocks(training: TrainingRows, points: list[Delayed] | None = None) -> list[Delayed]:
    """Give the rows of blocks, or of others in their place, their numbers; `Block` each."""
    held, labels = training.held
    return [
        delayed(_numbered)(*block)
        for block in zip(points or held, labels, map(int, training.first_rows), strict=True)
    ]


def _numbered(points: NDArray[np.float64], labels: NDArray[np.int64], first_row: int) -> Block:
    return Block(points, labels, first_row + np.arange(len(labels)))


def _fit(learner: Any, sample: Block) -> Any:
    return fit_learner(learner, sample.points, sample.labels)


def _covariance(blocks: list[Delayed], n_points: int) -> NDArray[np.float64]:
    totals = dask.compute(*[delayed(np.sum)(block, axis=0) for block in blocks])
    mean = np.sum(totals, axis=0) / n_points
    return np.sum(dask.compute(*[delayed(_products)(b, mean) for b in blocks]), axis=0) / (
        n_points - 1
    )


def _products(points: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = points - mean
    return centred.T @ centred


def _inverse(covariance: NDArray[np.float64]) -> NDArray[Any]:
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0.0, scale, 1.0)
    rank, n_features = np.linalg.matrix_rank(covariance / np.outer(scale, scale)), len(scale)
    if rank < n_features:
        raise ValueError(
            'Expected features whose covariance has an inverse for metric="mahalanobis"; got rank '
            f"{rank} in {n_features} features. Give 'VI' in metric_params, or drop features."
        )
    return np.linalg.inv(covariance)
