"""Fitting an estimator on Dask: on one worker where its points are few, else on all of them."""

from functools import partial
from typing import Any

import numpy as np

from nearfield.dask._field import ShardedField
from nearfield.dask._near import NearModel
from nearfield.dask._settings import Settings
from nearfield.dask._space import placed_blocks, space_of
from nearfield.dask._training import TrainingRows
from nearfield.dask._whole import WholeModel
from nearfield.estimators import DistanceNeighborsClassifier
from nearfield.estimators._near import infer_parameters, is_pseudolikelihood, warn_of_error
from nearfield.estimators._settings import check_dense, make_priors, make_rng
from nearfield.near._measure import Ruler
from nearfield.near.fit import CHOICES

Attributes = dict[str, Any]


def fit_whole(estimator: Any, training: TrainingRows) -> tuple[WholeModel, Attributes]:
    """Fit on one worker, which gets all training points; return what is fitted by its names."""
    check_dense(estimator.n_neighbors, training.n_points)
    model = WholeModel.of(_local(estimator, make_rng(estimator.random_state)), training)
    return model, model.fitted()


def fit_near(estimator: Any, training: TrainingRows) -> tuple[NearModel, Attributes]:
    """Fit by the near field, on all workers; return what is fitted by its names."""
    if not is_pseudolikelihood(estimator):
        raise ValueError(
            "Expected pseudolikelihood where the near field is used on Dask; got "
            f'inference={estimator.inference!r}. Use inference="auto".'
        )
    rng = make_rng(estimator.random_state)
    n_neighbors = None if estimator.n_neighbors is None else int(estimator.n_neighbors)
    space = space_of(training, estimator.metric, estimator.metric_params, estimator.standardize)
    settings = Settings(
        n_points=training.n_points,
        n_features=space.points.shape[1],
        n_classes=len(training.classes),
        kernel=estimator.kernel,
        ruler=Ruler(space.metric, space.params),
        search=estimator.search,
        seed=int(rng.integers(2**63)),
    )
    blocks = placed_blocks(training, space)
    sharded = ShardedField.of(settings, blocks, n_neighbors or CHOICES[0])
    prior_sigma = estimator.prior_sigma
    infer = partial(
        infer_parameters, estimator=_local(estimator, rng), prior_sigma=prior_sigma, rng=rng
    )
    model = NearModel.of(sharded, space, infer, n_neighbors, estimator.predictive)
    summary = model.summary()
    warn_of_error(summary.neighborhood_error, model.n_neighbors)
    alpha = summary.external_field
    return model, {
        "posterior_": summary.posterior,
        "priors_": make_priors(summary.outline, estimator.prior_beta, prior_sigma),
        "inference_": "pseudolikelihood",
        "external_field_": np.zeros(len(training.classes)) if alpha is None else alpha,
        "neighborhood_error_": summary.neighborhood_error,
        "metric_space_": space,
    }


def _local(estimator: Any, rng: np.random.Generator) -> DistanceNeighborsClassifier:
    """Make the estimator of one machine; a generator makes it fit alike whenever it does."""
    return DistanceNeighborsClassifier(**estimator.get_params(deep=False) | {"random_state": rng})
