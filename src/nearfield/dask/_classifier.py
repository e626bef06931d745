"""The distance nearest neighbour and k-nearest-neighbour classifiers on Dask collections."""

from dataclasses import replace
from typing import Any

import numpy as np

from nearfield import estimators
from nearfield.dask._graph import ShardedTraining
from nearfield.dask._lazy import LazyClassifier, WholeModel
from nearfield.dask._model import ShardedModel
from nearfield.dask._shards import Shards
from nearfield.dask._training import TrainingBlocks
from nearfield.estimators import (
    FieldClassifier,
    Inference,
    MetricSpace,
    ModelFit,
    draw_seed,
    fit_on_graph,
    make_rng,
    site_rows,
)


class LazyFieldClassifier(LazyClassifier, FieldClassifier):
    """A label field on Dask, fitted on one worker where its points are few, else over shards."""

    def _check_settings(self) -> None:
        FieldClassifier._check_settings(self)
        if isinstance(self.metric, str) and self.metric == "precomputed":
            raise ValueError(
                'Expected a metric of features on Dask; got metric="precomputed". '
                f"Use nearfield.{type(self).__name__} for given distances."
            )

    def _fit_model(self, training: TrainingBlocks) -> tuple[Any, dict[str, Any]]:
        n_points, n_classes = training.n_points, training.n_classes
        rng = make_rng(self.random_state)
        has_all_sites = len(site_rows(n_points, n_classes, self._kernel, 0)) == n_points
        if has_all_sites or not self._uses_graph(n_points):
            model = WholeModel.from_training(
                self._local(random_state=rng, class_prior=None), training
            )
            return model, model.fitted(_describe)
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
        return self._sharded_model(shards, fit)

    def _sharded_model(self, shards: Shards, fit: ModelFit) -> tuple[Any, dict[str, Any]]:
        """Make a model over shards; give it, and what is fitted by its names."""
        alpha = fit.family.external_field
        return ShardedModel.from_fit(shards, fit, self.predictive), {
            "posterior_": fit.posterior,
            "priors_": fit.priors,
            "inference_": fit.engine_name,
            "intercept_": np.zeros(shards.n_classes) if alpha is None else np.asarray(alpha),
            "metric_space_": shards.space,
        }

    def _make_predictor(self, index: Any = None) -> None:
        """Predictions are made on the workers."""


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


def _describe(estimator: Any) -> dict[str, Any]:
    """Name what is fitted and does not grow with the training points."""
    names = ("posterior_", "priors_", "inference_", "intercept_")
    space = replace(estimator.metric_space_, points=estimator.metric_space_.points[:0])
    return {name: getattr(estimator, name) for name in names} | {"metric_space_": space}
