"""The recommended classifier on Dask collections: kernels and metrics, averaged."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield import estimators
from nearfield.dask._classifier import DistanceNeighborsClassifier
from nearfield.dask._lazy import LazyClassifier
from nearfield.dask._shards import Block, collect_rows
from nearfield.dask._space import numbered_blocks
from nearfield.dask._training import Blocks, TrainingRows
from nearfield.dask._whole import WholeModel
from nearfield.distances import PowerTransform
from nearfield.estimators._at_scale import (
    INTERVAL_LEVELS,
    choose_candidates,
    draw_rows,
    log_density,
    normalizing_rows,
    pool_ends,
    weigh_candidates,
)
from nearfield.estimators._averages import Average
from nearfield.estimators._candidates import check_average
from nearfield.estimators._graph import site_rows
from nearfield.estimators._settings import make_rng

Floats = NDArray[np.float64]


class NearfieldClassifier(LazyClassifier, estimators.NearfieldClassifier):
    """Bayesian nearest-neighbour classification that needs no settings, on Dask.

    The same model and answers as `nearfield.NearfieldClassifier`. With many points, one worker
    chooses metrics and kernels by a sample; each chosen model is fitted over the shards, and
    weighed by the conditionals of sampled points. See `nearfield.dask.DistanceNeighborsClassifier`
    for what is where.

    Parameters
    ----------
    kernels, metrics, normalize, averaging, external_field, n_folds, concentration, n_jobs, \
random_state
        As those of `nearfield.NearfieldClassifier`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X is a frame.
    weights_, log_scores_, features_
        As those of `nearfield.NearfieldClassifier`; ``summary()`` describes the candidates.
    """

    _local_class = estimators.NearfieldClassifier

    def summary(self) -> pd.DataFrame:
        """Describe each candidate in a row, the weightiest first."""
        check_is_fitted(self)
        return self._summary.copy()

    def _check_settings(self) -> None:
        check_average(self)

    def _fit_model(self, training: TrainingRows) -> tuple[Any, dict[str, Any]]:
        n_points, n_classes = training.n_points, len(training.classes)
        has_all_sites = len(site_rows(n_points, n_classes, "gaussian", 0)) == n_points
        if has_all_sites or self.averaging != "stacking":
            whole = WholeModel.from_training(self._local(), training)
            return whole, whole.fitted(_describe)
        features = None
        if self.normalize and training.n_features < n_points:
            features = _fit_features(training)
            training = _transformed(training, features)
        average = _fit_average(self._local(), training)
        model = AverageModel(features, average)
        return model, _describe(model.with_candidates(self._local(), average.candidates))


@dataclass(frozen=True, eq=False)
class AverageModel:
    """Candidates over shards, averaged.

    Attributes
    ----------
    features : PowerTransform or None
    average : Average
        With candidates of `nearfield.dask`.
    """

    features: Any
    average: Average

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        points : Delayed ndarray, shape (m, n_features)
        """
        placed = delayed(_transform)(self.features, points)
        levels = (*INTERVAL_LEVELS, *arguments) if method == "interval" else ()
        parts = [each._model.apply(method, placed, *levels) for each in self.average.candidates]
        combine = _pool if method == "interval" else _weighted_sum
        return delayed(combine)(self.average.weights, parts, *arguments)

    def to_local(self, estimator: Any) -> Any:
        """Give an estimator of one machine the candidates with their training points."""
        candidates = [each.to_local() for each in self.average.candidates]
        local = self.with_candidates(estimator, candidates)
        local.labels_ = candidates[0].labels_
        return local

    def with_candidates(self, estimator: Any, candidates: list[Any]) -> Any:
        """Give an estimator what is fitted, with these candidates."""
        estimator.features_ = self.features
        estimator._keep(candidates, self.average.log_scores, self.average.weights)
        return estimator


def _describe(estimator: Any) -> dict[str, Any]:
    """Name what is fitted and does not grow with the training points."""
    names = ("features_", "log_scores_", "weights_")
    fitted = {name: getattr(estimator, name) for name in names}
    return fitted | {"_summary": estimator.summary()}


def _fit_features(training: TrainingRows) -> PowerTransform:
    """Fit the transformation of the features on one worker, from the rows of one machine."""
    blocks = numbered_blocks(training)
    some = collect_rows(blocks, normalizing_rows(training.n_points))
    return delayed(_fit_transform)(some).compute()


def _transformed(training: TrainingRows, features: PowerTransform) -> TrainingRows:
    def transformed(blocks: Blocks) -> Blocks:
        return blocks._replace(points=[delayed(_transform)(features, b) for b in blocks.points])

    return replace(training, recipes=transformed(training.recipes), held=transformed(training.held))


def _fit_average(model: Any, training: TrainingRows) -> Average:
    """Choose candidates by a sample, fit them to all points, weigh them, as one machine does.

    Parameters
    ----------
    model : nearfield.NearfieldClassifier
    training : TrainingRows
    """
    rng = make_rng(model.random_state)
    sample, weighing = delayed(_draw)(rng, training.held.labels).compute()
    some = collect_rows(numbered_blocks(training), sample)
    chosen = delayed(_choose)(model, some, training.classes).compute()
    candidates, log_densities = [], []
    for candidate in chosen:
        fitted = DistanceNeighborsClassifier(**candidate.get_params(deep=False))
        candidates.append(fitted._fit_training(training))
        log_densities.append(log_density(*fitted._model.conditional_probabilities(weighing)))
    return weigh_candidates(candidates, np.column_stack(log_densities), model.concentration)


def _draw(
    rng: np.random.Generator, labels: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return draw_rows(rng, np.concatenate(labels))


def _choose(model: Any, some: Block, classes: NDArray[Any]) -> list[Any]:
    return choose_candidates(model, some.points, classes[some.labels])


def _fit_transform(some: Block) -> PowerTransform:
    return PowerTransform().fit(some.points)


def _transform(features: PowerTransform | None, points: Floats) -> Floats:
    return points if features is None or len(points) == 0 else features.transform(points)


def _weighted_sum(weights: Floats, parts: list[Floats]) -> Floats:
    return np.asarray(sum(w * part for w, part in zip(weights, parts, strict=True)))


def _pool(weights: Floats, parts: list[tuple[Floats, ...]], level: float) -> tuple[Floats, Floats]:
    return pool_ends(weights, np.array([end for ends in parts for end in ends]), level)
