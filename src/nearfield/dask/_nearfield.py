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
from nearfield.dask._graph import ShardedTraining
from nearfield.dask._lazy import LazyClassifier, WholeModel
from nearfield.dask._model import Averages
from nearfield.dask._shards import Shards
from nearfield.dask._training import TrainingBlocks
from nearfield.distances import PowerTransform
from nearfield.estimators import (
    Average,
    MetricSpace,
    check_average,
    fit_features,
    fit_many_points,
    fit_on_held_out,
    site_rows,
)
from nearfield.prediction import mixture_quantiles

Floats = NDArray[np.float64]


class NearfieldClassifier(LazyClassifier, estimators.NearfieldClassifier):  # type: ignore[misc]
    """Bayesian nearest-neighbour classification that needs no settings, on Dask.

    The same model and answers as `nearfield.NearfieldClassifier`. With many points, one worker
    chooses metrics and kernels by a sample; each chosen model is fitted over the shards, and
    weighed by the conditionals of sampled points. See `nearfield.dask.DistanceNeighborsClassifier`
    for what is where.

    Parameters
    ----------
    kernels, metrics, preprocess, power_transform, categorical_features, averaging, fit_intercept, \
class_weight, class_prior, n_folds, concentration, n_jobs, random_state
        As those of `nearfield.NearfieldClassifier`; weights are refused.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X is a frame.
    weights_, log_scores_, power_transform_, preprocess_
        As those of `nearfield.NearfieldClassifier`; ``summary()`` describes the estimators.

    Examples
    --------
    >>> import dask.array as da
    >>> from nearfield.dask import NearfieldClassifier
    >>> from nearfield.datasets import load_wine
    >>> X, y = (da.from_array(part, chunks=60) for part in load_wine(return_X_y=True))
    >>> model = NearfieldClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X).chunks
    ((60, 60, 58), (3,))
    """

    _local_class = estimators.NearfieldClassifier

    def summary(self) -> pd.DataFrame:
        """Describe each estimator in a row, the weightiest first."""
        check_is_fitted(self)
        return self._summary.copy()

    def _check_settings(self) -> None:
        check_average(self)

    def _fit_model(self, training: TrainingBlocks) -> tuple[Any, dict[str, Any]]:
        n_points, n_classes = training.n_points, training.n_classes
        has_all_sites = len(site_rows(n_points, n_classes, "gaussian", 0)) == n_points
        if has_all_sites or self.averaging != "stacking":
            whole = WholeModel.from_training(self._local(class_prior=None), training)
            return whole, whole.fitted(_describe)
        if self.preprocess is not None:
            raise ValueError(
                f"Expected preprocess=None with as many as {n_points} points on Dask; got "
                f"preprocess={self.preprocess!r}. Put the transformers of nearfield.spectra "
                "before the classifier, or fit to fewer points."
            )
        features = None
        if self.power_transform and training.n_features < n_points:
            features = fit_features(training)
            training = training.map(features.transform)

        shards: dict[Any, Shards] = {}  # by metric

        def fit(estimator: Any, sites: NDArray[np.int64]) -> tuple[Any, Floats]:
            fitted, metric = DistanceNeighborsClassifier(**estimator.get_params()), estimator.metric
            if metric not in shards:
                shards[metric] = Shards.from_training(
                    training, MetricSpace.learn(training, metric, None, standardize=True)
                )
            sharded = ShardedTraining(shards[metric], estimator.kernel, False, sites=sites)
            fit, log_densities = fit_on_held_out(sharded)
            fitted._keep_model(training, *fitted._sharded_model(shards[metric], fit))
            return fitted, log_densities

        settings = self._local(class_prior=None)
        settings.classes_ = training.classes
        model = AverageModel(features, fit_many_points(settings, training, fit))
        return model, _describe(model.with_estimators(settings, model.average.estimators))


@dataclass(frozen=True, eq=False)
class AverageModel:
    """Estimators over shards, averaged.

    Attributes
    ----------
    features : PowerTransform or None
    average : Average
        With estimators of `nearfield.dask`.
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
        models = [each._model for each in self.average.estimators]
        if method == "interval":
            averages = [model.averages for model in models]
            supports = [model.apply("support", placed) for model in models]
            return delayed(_interval)(self.average.weights, averages, supports, *arguments)
        parts = [model.apply(method, placed) for model in models]
        return delayed(_weighted_sum)(self.average.weights, parts)

    def conditional_probabilities(self, sites: NDArray[np.int64]) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G)."""
        models = [each._model for each in self.average.estimators]
        parts = [model.conditional_probabilities(sites) for model in models]
        return _weighted_sum(self.average.weights, parts)

    def to_local(self, estimator: Any) -> Any:
        """Give an estimator of one machine the estimators with their training points."""
        estimators = [each.to_local() for each in self.average.estimators]
        local = self.with_estimators(estimator, estimators)
        local.labels_ = estimators[0].labels_
        return local

    def with_estimators(self, estimator: Any, estimators: list[Any]) -> Any:
        """Give an estimator what is fitted, with these estimators."""
        estimator.preprocess_, estimator.power_transform_ = None, self.features
        estimator._keep(estimators, self.average.log_scores, self.average.weights)
        return estimator


def _describe(estimator: Any) -> dict[str, Any]:
    """Name what is fitted and does not grow with the training points."""
    names = ("preprocess_", "power_transform_", "log_scores_", "weights_")
    fitted = {name: getattr(estimator, name) for name in names}
    return fitted | {"_summary": estimator.summary()}


def _transform(features: PowerTransform | None, points: Floats) -> Floats:
    return points if features is None or len(points) == 0 else features.transform(points)


def _weighted_sum(weights: Floats, parts: list[Floats]) -> Floats:
    return np.asarray(sum(w * part for w, part in zip(weights, parts, strict=True)))


def _interval(
    weights: Floats,
    averages: list[Averages],
    supports: list[Floats],
    level: float,
    odds: Floats | None,
) -> tuple[Floats, Floats]:
    tail = 0.5 * (1.0 - level)
    lower, upper = mixture_quantiles(weights, averages, supports, (tail, 1.0 - tail), odds)
    return lower, upper
