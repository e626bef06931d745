"""Averages over candidates: weighed by held-out labels, or by their evidence."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax

from nearfield.estimators._candidates import (
    TrainingData,
    candidate_classifier,
    distances_between,
    fit_held_out,
)
from nearfield.estimators._settings import make_rng
from nearfield.estimators._stacking import deal_folds, stacking_weights
from nearfield.prediction.mixture import QuickAverage


class Average(NamedTuple):
    """Fitted candidates, how well each predicts, and what each weighs."""

    candidates: list[Any]
    log_scores: NDArray[np.float64]
    weights: NDArray[np.float64]


def fit_by_stacking(model: Any, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Average:
    """Fit every candidate by its held-out conditionals, and stack.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    points : ndarray, shape (n, n_features)
    labels : ndarray of int, shape (n,)
    """
    n_points = len(labels)
    n_folds = model.n_folds or (10 if n_points < 100 else 5)
    folds = deal_folds(make_rng(model.random_state), labels, min(n_folds, n_points))
    data = TrainingData.of(points, labels, model.classes_, folds, model.external_field)
    fitted = Parallel(n_jobs=model.n_jobs, prefer="threads")(
        delayed(fit_held_out)(data, metric, model.kernels) for metric in model.metrics
    )
    candidates = [candidate for group in fitted for candidate, _ in group]
    log_densities = np.transpose([log_density for group in fitted for _, log_density in group])
    weights = stacking_weights(log_densities, model.concentration)
    return Average(candidates, log_densities.mean(axis=0), weights)


def fit_by_evidence(model: Any, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Average:
    """Fit every candidate by path sampling, and weigh them by their evidence."""
    candidates = [
        candidate_classifier(
            kernel,
            metric,
            "path",
            external_field=model.external_field,
            n_jobs=model.n_jobs,
            random_state=model.random_state,
        )
        for metric in model.metrics
        for kernel in model.kernels
    ]
    for candidate in candidates:
        candidate.fit(points, model.classes_[labels])
    log_evidences = np.array([candidate.log_evidence_ for candidate in candidates])
    return Average(candidates, log_evidences, softmax(log_evidences))


def mean_by_distances(
    voices: Iterable[tuple[float, Any]], n_classes: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Prepare the weighted mean of class probabilities; those that measure alike measure once.

    Parameters
    ----------
    voices : iterable of (weight, classifier)
        Fitted with the distances between all training points.
    n_classes : int

    Returns
    -------
    average : callable
        Takes new points, shape (m, n_features), to their probabilities, shape (m, n_classes).
    """
    by_space: dict[int, tuple[Any, list[tuple[float, Any]]]] = {}
    for weight, candidate in voices:
        space, predictor = candidate.metric_space_, candidate._current_predictor()
        quick = QuickAverage(predictor) if QuickAverage.suits(predictor) else predictor
        by_space.setdefault(id(space), (space, []))[1].append((weight, quick))

    def average(points: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros((len(points), n_classes))
        for space, averages in by_space.values():
            distances = distances_between(space, points)
            for weight, quick in averages:
                total += weight * quick.probabilities(distances)
        return total

    return average
