"""The three probabilistic classifiers on Dask collections."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield import estimators
from nearfield.dask._graph import ShardedTraining
from nearfield.dask._lazy import LazyClassifier
from nearfield.dask._model import ShardedAverage, ShardedField, WholeModel
from nearfield.dask._shards import Shards
from nearfield.dask._training import TrainingBlocks
from nearfield.estimators import (
    FieldClassifier,
    Inference,
    MetricSpace,
    check_average,
    draw_seed,
    fit_features,
    fit_many_points,
    fit_on_graph,
    fit_on_held_out,
    make_rng,
    site_rows,
)


class LazyFieldClassifier(LazyClassifier, FieldClassifier):
    """A label field on Dask, fitted on one worker where its points are few, else over shards."""

    _fitted_names = ("posterior_", "priors_", "inference_", "intercept_", "metric_space_")

    def _check_settings(self) -> None:
        FieldClassifier._check_settings(self)
        if isinstance(self.metric, str) and self.metric == "precomputed":
            raise ValueError(
                'Expected a metric of features on Dask; got metric="precomputed". '
                f"Use nearfield.{type(self).__name__} for given distances."
            )

    def _fit_model(self, training: TrainingBlocks) -> Any:
        n_points = training.n_points
        rng = make_rng(self.random_state)
        settings = self._local(training.classes, random_state=rng)
        if _has_all_sites(training, self._kernel) or not self._uses_graph(n_points):
            return WholeModel(settings, training)
        inference = Inference.from_estimator(self, rng)
        if not inference.is_pseudolikelihood:
            raise ValueError(
                f"Expected pseudolikelihood with {n_points} points on Dask; got "
                f'inference={self.inference!r}. Use inference="auto".'
            )
        space = MetricSpace.learn(training, self.metric, self.metric_params, self.standardize)
        shards = Shards.from_training(training, space, self.search)
        seed = draw_seed(rng, n_points)
        sharded = ShardedTraining(shards, self._kernel, self._is_directed, seed=seed)
        fit = fit_on_graph(inference, sharded, self._n_neighbors)
        return ShardedField(settings, shards, fit)


class DistanceNeighborsClassifier(LazyFieldClassifier, estimators.DistanceNeighborsClassifier):
    """Bayesian classification by distance nearest neighbours, on Dask arrays and frames.

    The same model, parameters and answers as `nearfield.DistanceNeighborsClassifier` has with
    exact search. The training points stay spread over the workers; the client gets counts, sums,
    the neighbour lists of a few thousand sampled points at most, and the posterior. Predictions
    are lazy: Dask arrays with the chunks of X, or frames and series with its partitions and index.

    Works on the active `distributed.Client`, or by any other scheduler of Dask. The values of a
    worker that is lost are computed again from what X and y are made of. A pickled copy holds how
    the training points come about, and brings them to its workers when it first predicts;
    `nearfield.save` writes what ``to_local()`` gives.

    Parameters
    ----------
    kernel, metric, metric_params, standardize, categorical_features, inference, predictive, \
prior_beta, prior_sigma, fit_intercept, class_weight, class_prior, n_neighbors, search, n_jobs, \
random_state, verbose
        As those of `nearfield.DistanceNeighborsClassifier`; ``metric="precomputed"`` and weights
        are refused, and so, with more than 6,000 points, is any inference but pseudolikelihood. Up
        to 6,000 points are fitted on one worker, whose threads `n_jobs` counts.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X is a frame.
    posterior_, priors_, inference_, intercept_
        As those of `nearfield.DistanceNeighborsClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from nearfield.dask import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_wine
    >>> X, y = (da.from_array(part, chunks=60) for part in load_wine(return_X_y=True))
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> model.predict_proba(X).chunks
    ((60, 60, 58), (3,))
    >>> model.score(X, y) > 0.95
    True
    """

    _local_class = estimators.DistanceNeighborsClassifier


class ProbabilisticKNeighborsClassifier(
    LazyFieldClassifier, estimators.ProbabilisticKNeighborsClassifier
):
    """Bayesian classification by k nearest neighbours, k unknown, on Dask arrays and frames.

    The same model, parameters and answers as `nearfield.ProbabilisticKNeighborsClassifier` has
    with exact search; on the workers as in `nearfield.dask.DistanceNeighborsClassifier`.

    Parameters
    ----------
    neighborhood, metric, metric_params, standardize, categorical_features, inference, \
predictive, prior_beta, prior_k, fit_intercept, class_weight, class_prior, search, n_jobs, \
random_state, verbose
        As those of `nearfield.ProbabilisticKNeighborsClassifier`; ``metric="precomputed"`` and
        weights are refused, and so, with more than 6,000 points, is any inference but
        pseudolikelihood.

    Examples
    --------
    >>> import dask.array as da
    >>> from nearfield.dask import ProbabilisticKNeighborsClassifier
    >>> from nearfield.datasets import load_wine
    >>> X, y = (da.from_array(part, chunks=60) for part in load_wine(return_X_y=True))
    >>> model = ProbabilisticKNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> model.predict_proba(X).chunks
    ((60, 60, 58), (3,))
    """

    _local_class = estimators.ProbabilisticKNeighborsClassifier


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
    _fitted_names = ("preprocess_", "power_transform_", "log_scores_", "weights_", "_description")

    def _check_settings(self) -> None:
        check_average(self)

    def _fit_model(self, training: TrainingBlocks) -> Any:
        settings = self._local(training.classes)
        if _has_all_sites(training, "gaussian") or self.averaging != "stacking":
            return WholeModel(settings, training)
        if self.preprocess is not None:
            raise ValueError(
                f"Expected preprocess=None with as many as {training.n_points} points on Dask; got "
                f"preprocess={self.preprocess!r}. Put the transformers of nearfield.spectra "
                "before the classifier, or fit to fewer points."
            )
        features = None
        if self.power_transform and training.n_features < training.n_points:
            features = fit_features(training)
            training = training.map(features.transform)
        settings.power_transform_ = features
        shards: dict[Any, Shards] = {}  # by metric

        def fit(estimator: Any, sites: NDArray[np.int64]) -> tuple[Any, NDArray[np.float64]]:
            metric = estimator.metric
            if metric not in shards:
                space = MetricSpace.learn(training, metric, None, standardize=True)
                shards[metric] = Shards.from_training(training, space)
            sharded = ShardedTraining(shards[metric], estimator.kernel, sites=sites)
            fit, log_densities = fit_on_held_out(sharded, fit_intercept=estimator.fit_intercept)
            estimator.classes_, estimator.n_features_in_ = training.classes, training.n_features
            return ShardedField(estimator, shards[metric], fit), log_densities

        fields, log_scores, weights = fit_many_points(settings, training, fit)
        training.blocks.release()
        settings._keep([field.estimator for field in fields], log_scores, weights)
        return ShardedAverage(settings, fields)


def _has_all_sites(training: TrainingBlocks, kernel: str) -> bool:
    """Tell whether points are so few that the conditionals of all of them are used."""
    n_points, n_classes = training.n_points, training.n_classes
    return len(site_rows(n_points, n_classes, kernel, 0)) == n_points
