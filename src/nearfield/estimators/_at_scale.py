"""The average over candidates where there are too many points for all of their distances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nearfield.datasets import stratified_split
from nearfield.estimators._averages import Average
from nearfield.estimators._metric import learning_rows
from nearfield.estimators._settings import make_rng
from nearfield.estimators._stacking import stacking_weights
from nearfield.near._hashing import sample_rows
from nearfield.prediction import map_chunks
from nearfield.prediction.mixture import weighted_quantiles

_N_SAMPLE = 2_000  # points that choose among the candidates
_N_WEIGHING = 2_000  # points that weigh those chosen
_MAX_CHOSEN = 3
_LEAST_SAMPLE_WEIGHT = 0.1  # less is not worth a fit to all points
_LEAST_WEIGHT = 0.05  # less is not worth a search at every prediction
_MAX_NORMALIZING = 50_000
_NORMALIZING_STREAM = 4
_LEVELS = np.linspace(0.05, 0.95, 10)


def fit_at_scale(model: Any, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Average:
    r"""Choose candidates by a sample, fit them to all points, weigh them by labels they leave out.

    The conditional of a point, :math:`p(y_i \mid y_{-i})`, never sees its own label, and where a
    metric was learned, it was from few of many points: the conditionals of the others are
    densities of held-out labels, without a fit that holds anything out. Only the two parameters
    of a candidate, which thousands of points inform, may have seen them.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    points : ndarray, shape (n, n_features)
        Normalized, if they are to be.
    labels : ndarray of int, shape (n,)
    """
    rng, y = make_rng(model.random_state), model.classes_[labels]
    sample, _ = stratified_split(labels, _N_SAMPLE, random_state=rng)
    chosen = _choose(clone(model).set_params(normalize=False).fit(points[sample], y[sample]))
    candidates = [candidate.fit(points, y) for candidate in chosen]
    not_learned = np.setdiff1d(np.arange(len(y)), learning_rows(len(y)))
    weighing = rng.choice(not_learned, min(_N_WEIGHING, len(not_learned)), replace=False)
    log_densities = np.column_stack([_log_densities(each, weighing) for each in candidates])
    weights = stacking_weights(log_densities, model.concentration)
    kept = np.flatnonzero(weights >= min(_LEAST_WEIGHT, weights.max()))
    return Average(
        [candidates[k] for k in kept],
        log_densities[:, kept].mean(axis=0),
        weights[kept] / weights[kept].sum(),
    )


def some_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take as many points at random as tell how features are distributed, or all."""
    if len(points) <= _MAX_NORMALIZING:
        return points
    return points[sample_rows(len(points), _MAX_NORMALIZING, 0, _NORMALIZING_STREAM)]


def pooled_interval(
    candidates: list[tuple[float, Any]], points: NDArray[np.float64], level: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give equal-tailed intervals over weighted candidates, from twenty quantiles of each.

    Parameters
    ----------
    candidates : list of (weight, classifier)
    points : ndarray, shape (m, n_features)
    level : float

    Returns
    -------
    lower, upper : ndarray, shape (m, n_classes)
    """
    ends = [
        (weight, end)
        for weight, candidate in candidates
        for each in (*_LEVELS, level)
        for end in candidate.predict_proba_interval(points, each)
    ]
    tail = 0.5 * (1.0 - level)
    values, weights = np.array([end for _, end in ends]), np.array([weight for weight, _ in ends])
    lower, upper = weighted_quantiles(values, weights, [tail, 1.0 - tail])
    return lower, upper


def _choose(small: Any) -> list[Any]:
    """Take the weightiest candidates of a model of a sample.

    Without an external field: with many points neighbours tell all that it could.
    """
    weights = small.weights_
    settings = {"n_jobs": small.n_jobs, "random_state": small.random_state}
    order = np.argsort(-weights, kind="stable")[:_MAX_CHOSEN]
    return [
        clone(small.candidates_[k]).set_params(external_field="none", **settings)
        for k in order
        if weights[k] >= min(_LEAST_SAMPLE_WEIGHT, weights.max())
    ]


def _log_densities(fitted: Any, sites: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give the log density of the label of each of some training points, given all others."""
    predictor, near_field = fitted._current_predictor(), fitted.family_

    def own_probabilities(some: NDArray[np.int64]) -> NDArray[np.float64]:
        probabilities = predictor.probabilities_seen(near_field.look_from(some))
        return probabilities[np.arange(len(some)), near_field.labels[some]]

    densities = map_chunks(own_probabilities, sites, predictor.chunk_size, fitted.n_jobs)
    return np.log(np.maximum(densities, np.finfo(np.float64).tiny))
