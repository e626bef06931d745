"""The average over candidates where there are too many points for all of their distances."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nearfield._hashing import sample_rows
from nearfield.datasets import stratified_split
from nearfield.distances import PowerTransform
from nearfield.estimators._averages import Average
from nearfield.estimators._metric import learning_rows
from nearfield.estimators._settings import make_rng
from nearfield.estimators._stacking import stacking_weights

_N_SAMPLE = 1_000  # points that choose among the candidates
_N_WEIGHING = 2_000  # points that weigh those chosen
_MAX_CHOSEN = 3
_LEAST_SAMPLE_WEIGHT = 0.1  # less is not worth a fit to all points
_LEAST_WEIGHT = 0.05  # less is not worth a search at every prediction
_MAX_NORMALIZING = 50_000
_NORMALIZING_STREAM = 4


def fit_at_scale(
    model: Any, training: Any, fit: Callable[[Any, NDArray[np.int64]], tuple[Any, Any]]
) -> Average:
    r"""Choose candidates by a sample, fit them to all points, weigh them by labels they leave out.

    The conditional of a point, :math:`p(y_i \mid y_{-i})`, never sees its own label, and where a
    metric was learned, it was from few of many points: the conditionals of the others are
    densities of held-out labels, without a fit that holds anything out. Only the two parameters
    of a candidate, which thousands of points inform, may have seen them.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    training : TrainingPoints
        Or another object with its methods; normalized, if they are to be.
    fit : callable
        Fits a candidate to all points; returns it, and its conditionals at some rows, shape (m, G).
    """
    draw = partial(draw_rows, make_rng(model.random_state))
    sample, weighing = training.of_labels(draw)
    labels = training.of_labels(partial(np.take, indices=weighing))
    candidates, log_densities = [], []
    for candidate in training.apply(partial(choose_candidates, model), sample):
        fitted, probabilities = fit(candidate, weighing)
        candidates.append(fitted)
        log_densities.append(log_density(probabilities, labels))
    return weigh_candidates(candidates, np.column_stack(log_densities), model.concentration)


def share_spaces(candidates: list[Any]) -> None:
    """Let candidates with the same metric have one metric space, and one graph if k is the same.

    New points are then placed once for all of them, and a file holds the training points once.
    """
    for i, candidate in enumerate(candidates):
        for other in candidates[:i]:
            if candidate.metric == other.metric:
                candidate.share_space(other)


def draw_rows(
    rng: np.random.Generator, labels: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the points that choose among the candidates, and those that weigh the chosen."""
    sample, _ = stratified_split(labels, _N_SAMPLE, random_state=rng)
    not_learned = np.setdiff1d(np.arange(len(labels)), learning_rows(len(labels)))
    size = min(_N_WEIGHING, len(not_learned))
    return sample, rng.choice(not_learned, size, replace=False)


def weigh_candidates(
    candidates: list[Any], log_densities: NDArray[np.float64], concentration: float
) -> Average:
    """Weigh candidates by log densities, shape (n_sites, n_candidates); drop the lightest."""
    weights = stacking_weights(log_densities, concentration)
    kept = np.flatnonzero(weights >= min(_LEAST_WEIGHT, weights.max()))
    return Average(
        [candidates[k] for k in kept],
        log_densities[:, kept].mean(axis=0),
        weights[kept] / weights[kept].sum(),
    )


def fit_features(training: Any) -> PowerTransform:
    """Fit the transformation of the features to at most 50,000 points."""
    return training.apply(_fit_transform, normalizing_rows(training.n_points))


def normalizing_rows(n_points: int) -> NDArray[np.int64]:
    """Choose the points that tell how features are distributed."""
    if n_points <= _MAX_NORMALIZING:
        return np.arange(n_points)
    return sample_rows(n_points, _MAX_NORMALIZING, 0, _NORMALIZING_STREAM)


def _fit_transform(points: NDArray[np.float64], labels: NDArray[np.int64]) -> PowerTransform:
    return PowerTransform().fit(points)


def choose_candidates(
    model: Any, points: NDArray[np.float64], labels: NDArray[np.int64]
) -> list[Any]:
    """Take the weightiest candidates of a model of a sample, not fitted.

    Without an external field: with many points neighbours tell all that it could.
    """
    small = clone(model).set_params(normalize=False).fit(points, model.classes_[labels])
    weights = small.weights_
    settings = {"n_jobs": small.n_jobs, "random_state": small.random_state}
    order = np.argsort(-weights, kind="stable")[:_MAX_CHOSEN]
    return [
        clone(small.candidates_[k]).set_params(external_field="none", **settings)
        for k in order
        if weights[k] >= min(_LEAST_SAMPLE_WEIGHT, weights.max())
    ]


def log_density(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Give the log density of some labels, given the probabilities of all classes."""
    densities = probabilities[np.arange(len(labels)), labels]
    return np.log(np.maximum(densities, np.finfo(np.float64).tiny))
