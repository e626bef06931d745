"""The average over candidates where there are too many points for all of their distances."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nearfield.datasets import stratified_split
from nearfield.estimators._averages import Average
from nearfield.estimators._near import MAX_DENSE_AUTOMATIC
from nearfield.estimators._settings import make_rng
from nearfield.estimators._stacking import stacking_weights
from nearfield.prediction.mixture import weighted_quantiles

_N_SAMPLE = 2_000  # points that choose among the candidates
_N_HELD_OUT = 2_000  # points that weigh those chosen, or a tenth of all
_FEW_NEIGHBORS = 128  # for a first fit to so few points that it would see all of them
_MAX_CHOSEN = 3
_LEAST_WEIGHT = 0.05  # in the sample
_LEVELS = np.linspace(0.05, 0.95, 10)


def fit_at_scale(model: Any, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Average:
    """Choose candidates by a sample, fit them by near neighbours, weigh them by held-out points.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    points : ndarray, shape (n, n_features)
        Normalized, if they are to be.
    labels : ndarray of int, shape (n,)
    """
    rng, y = make_rng(model.random_state), model.classes_[labels]
    sample, rest = stratified_split(labels, _N_SAMPLE, random_state=rng)
    chosen = _choose(clone(model).set_params(normalize=False).fit(points[sample], y[sample]))
    n_held_out = min(_N_HELD_OUT, len(y) // 10)
    held_out = rest[stratified_split(labels[rest], n_held_out, random_state=rng)[0]]
    others = np.setdiff1d(np.arange(len(y)), held_out)
    n_neighbors = _FEW_NEIGHBORS if len(others) <= MAX_DENSE_AUTOMATIC else None
    trials = [clone(candidate).set_params(n_neighbors=n_neighbors) for candidate in chosen]
    log_densities = np.column_stack(
        [
            _log_densities(trial.fit(points[others], y[others]), points[held_out], y[held_out])
            for trial in trials
        ]
    )
    weights = stacking_weights(log_densities, model.concentration)
    candidates = [clone(candidate).fit(points, y) for candidate in chosen]
    return Average(candidates, log_densities.mean(axis=0), weights)


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
        small.candidates_[k].set_params(external_field="none", **settings)
        for k in order
        if weights[k] >= min(_LEAST_WEIGHT, weights.max())
    ]


def _log_densities(fitted: Any, points: Any, y: NDArray[Any]) -> NDArray[np.float64]:
    """Give the log density of each label; of a class that the model has not seen, next to none."""
    places = np.searchsorted(fitted.classes_, y).clip(max=len(fitted.classes_) - 1)
    own = fitted.predict_proba(points)[np.arange(len(y)), places]
    is_known = fitted.classes_[places] == y
    return np.log(np.maximum(np.where(is_known, own, 0.0), np.finfo(np.float64).tiny))
