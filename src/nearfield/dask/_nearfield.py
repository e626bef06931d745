"""The recommended classifier on Dask collections: kernels and metrics, averaged."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield import estimators
from nearfield.dask._classifier import DistanceNeighborsClassifier
from nearfield.dask._lazy import LazyClassifier, WholeModel
from nearfield.dask._model import Averages
from nearfield.dask._training import TrainingBlocks
from nearfield.distances import PowerTransform
from nearfield.estimators import (
    Average,
    check_average,
    fit_at_scale,
    fit_features,
    site_rows,
)
from nearfield.prediction import mixture_quantiles

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

    def _fit_model(self, training: TrainingBlocks) -> tuple[Any, dict[str, Any]]:
        n_points, n_classes = training.n_points, training.n_classes
        has_all_sites = len(site_rows(n_points, n_classes, "gaussian", 0)) == n_points
        if has_all_sites or self.averaging != "stacking":
            whole = WholeModel.from_training(self._local(), training)
            return whole, whole.fitted(_describe)
        features = None
        if self.normalize and training.n_features < n_points:
            features = fit_features(training)
            training = training.map(features.transform)

        def fit(candidate: Any, sites: NDArray[np.int64]) -> tuple[Any, Floats]:
            fitted = DistanceNeighborsClassifier(**candidate.get_params(deep=False))
            fitted._fit_training(training)
            return fitted, fitted._model.conditional_probabilities(sites)

        settings = self._local()
        settings.classes_ = training.classes
        model = AverageModel(features, fit_at_scale(settings, training, fit))
        return model, _describe(model.with_candidates(settings, model.average.candidates))


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
        models = [each._model for each in self.average.candidates]
        if method == "interval":
            averages = [model.averages for model in models]
            supports = [model.apply("support", placed) for model in models]
            return delayed(_interval)(self.average.weights, averages, supports, *arguments)
        parts = [model.apply(method, placed) for model in models]
        return delayed(_weighted_sum)(self.average.weights, parts)

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


def _transform(features: PowerTransform | None, points: Floats) -> Floats:
    return points if features is None or len(points) == 0 else features.transform(points)


def _weighted_sum(weights: Floats, parts: list[Floats]) -> Floats:
    return np.asarray(sum(w * part for w, part in zip(weights, parts, strict=True)))


def _interval(
    weights: Floats, averages: list[Averages], supports: list[Floats], level: float
) -> tuple[Floats, Floats]:
    tail = 0.5 * (1.0 - level)
    lower, upper = mixture_quantiles(weights, averages, supports, (tail, 1.0 - tail))
    return lower, upper
