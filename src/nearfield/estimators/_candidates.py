"""Candidates of an average: one metric, learned in every fold, with several kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield._checks import check_real, check_whole
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._settings import check_choice, make_priors
from nearfield.estimators._stacking import Fold
from nearfield.families import DistanceFamily
from nearfield.prediction.heldout import KERNEL_NAMES, HeldOutField, HeldOutFold

AVERAGINGS = ("stacking", "evidence")


def check_average(estimator: Any) -> None:
    """Refuse settings of an average that no candidates, folds or weights can come of."""
    _check_candidates(estimator.kernels, estimator.metrics)
    check_choice(estimator.averaging, "averaging", AVERAGINGS)
    if estimator.n_folds is not None:
        check_whole(estimator.n_folds, "n_folds", minimum=2)
    if check_real(estimator.concentration, "concentration") < 0.0:
        raise ValueError(f"Expected concentration >= 0; got {estimator.concentration!r}. Try 0.1.")


def _check_candidates(kernels: Any, metrics: Any) -> None:
    for names, what in ((kernels, "kernels"), (metrics, "metrics")):
        if isinstance(names, str) or not isinstance(names, Sequence) or len(names) == 0:
            raise ValueError(
                f"Expected {what} as a list of one or more; got {what}={names!r}. "
                "Put it into a list."
            )
    for kernel in kernels:
        check_choice(kernel, "kernels", KERNEL_NAMES)
    if "precomputed" in [metric for metric in metrics if isinstance(metric, str)]:
        raise ValueError(
            'Expected metrics of features; got "precomputed". '
            "Use DistanceNeighborsClassifier for given distances."
        )


def candidate_classifier(
    kernel: str, metric: Any, inference: str, n_jobs: int | None = None, random_state: Any = None
) -> DistanceNeighborsClassifier:
    """Make a candidate, not yet fitted."""
    return DistanceNeighborsClassifier(
        kernel, metric=metric, inference=inference, n_jobs=n_jobs, random_state=random_state
    )


def fit_held_out(
    points: NDArray[np.float64],
    labels: NDArray[np.int64],
    classes: NDArray[Any],
    metric: Any,
    kernels: Sequence[str],
    folds: Sequence[Fold],
) -> list[tuple[DistanceNeighborsClassifier, NDArray[np.float64]]]:
    """Fit a metric with each kernel by the conditionals of held-out labels.

    Returns
    -------
    fitted : list of (classifier, log_densities)
        For each kernel the classifier, and the log density of each held-out label, shape (n,).
    """
    space = _learn(metric, points, labels)
    distances = space.training_distances(points)
    held_out = [_hold_out(metric, points, labels, fold) for fold in folds]
    fitted = []
    for kernel in kernels:
        family = DistanceFamily(distances, kernel, len(classes))
        priors = make_priors(family, None, None)
        field = HeldOutField(held_out, labels, kernel, len(classes))
        low, high = family.scale_range
        found = field.infer(priors, (low, min(high, float(priors.scale.ppf(1.0 - 1e-9)))))
        candidate = candidate_classifier(kernel, metric, "pseudolikelihood")
        candidate.classes_, candidate.n_features_in_ = classes, points.shape[1]
        candidate._keep(space, family, labels, priors, found.posterior, "pseudolikelihood")
        fitted.append((candidate, found.log_densities))
    return fitted


def describe(
    candidates: Sequence[DistanceNeighborsClassifier],
    weights: NDArray[np.float64],
    log_scores: NDArray[np.float64],
) -> pd.DataFrame:
    """Describe each candidate in a row, the weightiest first."""
    means = [candidate.posterior_.mean() for candidate in candidates]
    frame = pd.DataFrame(
        {
            "kernel": [candidate.kernel for candidate in candidates],
            "metric": [candidate.metric for candidate in candidates],
            "weight": weights,
            "log_score": log_scores,
            "beta": [mean["beta"] for mean in means],
            "sigma": [mean["sigma"] for mean in means],
        }
    )
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def _learn(metric: Any, points: NDArray[np.float64], labels: NDArray[np.int64]) -> MetricSpace:
    return MetricSpace.fit(points, labels, metric=metric, metric_params=None, standardize=True)


def _hold_out(metric, points, labels, fold: Fold) -> HeldOutFold:
    space = _learn(metric, points[fold.training], labels[fold.training])
    return HeldOutFold(
        fold.held_out,
        labels[fold.training],
        space.training_distances(points[fold.training]),
        space.distances_to(points[fold.held_out]),
    )
