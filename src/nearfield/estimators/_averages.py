"""Averages over candidates: weighed by held-out labels, or by their evidence."""

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax

from nearfield.estimators._candidates import (
    TrainingData,
    candidate_classifier,
    fit_held_out,
)
from nearfield.estimators._settings import make_rng
from nearfield.estimators._stacking import deal_folds, stacking_weights


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
