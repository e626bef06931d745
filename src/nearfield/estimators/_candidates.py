"""Candidates of an average: one metric, learned in every fold, with several kernels."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield._checks import check_real, check_whole
from nearfield.distances import LEARNED_METRICS, CompiledObjective, euclidean_distances_to
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._field import EXTERNAL_FIELDS
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._settings import check_choice, make_priors
from nearfield.estimators._stacking import Fold
from nearfield.estimators._standardize import Standardization
from nearfield.estimators._training import TrainingPoints
from nearfield.field import DistanceFamily
from nearfield.prediction.heldout import (
    KERNEL_NAMES,
    HeldOutField,
    HeldOutFold,
    HeldOutPrior,
)

AVERAGINGS = ("stacking", "evidence")
_SD_ALPHA = 1.0  # of an intercept: odds of 2.7 are usual


def check_average(estimator: Any) -> None:
    """Refuse settings of an average that no candidates, folds or weights can come of."""
    _check_candidates(estimator.kernels, estimator.metrics)
    check_choice(estimator.averaging, "averaging", AVERAGINGS)
    check_choice(estimator.external_field, "external_field", EXTERNAL_FIELDS)
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
    kernel: str, metric: Any, inference: str, **settings: Any
) -> DistanceNeighborsClassifier:
    """Make a candidate, not yet fitted."""
    return DistanceNeighborsClassifier(kernel, metric=metric, inference=inference, **settings)


class TrainingData(NamedTuple):
    """What all candidates are fitted to.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
    standardized : ndarray, shape (n, n_features)
        The same by `standardization`, which takes no labels, and so need not be done by fold.
    standardization : Standardization
    labels : ndarray of int, shape (n,)
    classes : ndarray, shape (n_classes,)
    folds : sequence of Fold
    external_field : str
        ``"none"`` or ``"fitted"``.
    """

    points: NDArray[np.float64]
    standardized: NDArray[np.float64]
    standardization: Standardization
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    folds: Sequence[Fold]
    external_field: str

    @classmethod
    def of(
        cls, points: NDArray[np.float64], labels: NDArray[np.int64], *rest: Any
    ) -> "TrainingData":
        """Standardize the points."""
        standardization = Standardization.fit(TrainingPoints(points, labels))
        return cls(points, standardization.apply(points), standardization, labels, *rest)


def fit_held_out(
    data: TrainingData, metric: Any, kernels: Sequence[str]
) -> list[tuple[DistanceNeighborsClassifier, NDArray[np.float64]]]:
    """Fit a metric with each kernel by the conditionals of held-out labels.

    Returns
    -------
    fitted : list of (classifier, log_densities)
        For each kernel the classifier, and the log density of each held-out label, shape (n,).
    """
    is_learned = isinstance(metric, str) and metric in LEARNED_METRICS
    space = _learned_space(data, metric) if is_learned else _given_space(data, metric)
    distances = space.training_distances(None)
    hold_out = _hold_out_learned if is_learned else _hold_out_given
    single = distances.astype(np.float32)  # what held-out labels tell needs no more digits
    held_out = [hold_out(data, metric, single, fold) for fold in data.folds]
    fitted = []
    for kernel in kernels:
        family = DistanceFamily.of_checked(distances, kernel, len(data.classes))
        priors = make_priors(family, None, None)
        sd_beta, max_sigma = float(priors.beta.kwds["scale"]), float(priors.scale.args[1])
        sd_alpha = _SD_ALPHA if data.external_field == "fitted" else 0.0
        low, high = family.scale_range
        found = HeldOutField(held_out, data.labels, kernel, len(data.classes)).infer(
            HeldOutPrior(sd_beta, max_sigma, sd_alpha), (low, min(high, max_sigma))
        )
        if sd_alpha > 0.0:
            family = DistanceFamily.of_checked(
                distances, kernel, len(data.classes), found.external_field
            )
        candidate = candidate_classifier(
            kernel, metric, "pseudolikelihood", external_field=data.external_field
        )
        candidate.classes_, candidate.n_features_in_ = data.classes, data.points.shape[1]
        candidate._keep(space, data.labels, family, found.posterior, priors, "pseudolikelihood")
        fitted.append((candidate, found.log_densities))
    return fitted


def describe(candidates: Sequence[Any], weights: Any, log_scores: Any) -> dict[str, list[Any]]:
    """Describe each candidate, the weightiest first: columns by name."""
    order = np.argsort(-np.asarray(weights), kind="stable")
    means = [candidates[i].posterior_.mean() for i in order]
    return {
        "kernel": [candidates[i].kernel for i in order],
        "metric": [candidates[i].metric for i in order],
        "weight": [float(weights[i]) for i in order],
        "log_score": [float(log_scores[i]) for i in order],
        "beta": [float(mean["beta"]) for mean in means],
        "sigma": [float(mean["sigma"]) for mean in means],
    }


def _given_space(data: TrainingData, metric: Any) -> MetricSpace:
    return MetricSpace.fit(
        data.points, data.labels, metric=metric, metric_params=None, standardize=True
    )


def _learned_space(data: TrainingData, metric: str) -> MetricSpace:
    learner = LEARNED_METRICS[metric]().learn(data.standardized, data.labels, CompiledObjective)
    points = learner.place(data.standardized)
    return MetricSpace("euclidean", {}, data.standardization, learner, points)


def _hold_out_given(data: TrainingData, metric: Any, distances: Any, fold: Fold) -> HeldOutFold:
    """Hold points out where the metric knows no labels: the distances stay as they are."""
    among = distances[np.ix_(fold.training, fold.training)]
    out = distances[np.ix_(fold.held_out, fold.training)]
    return HeldOutFold(fold.held_out, data.labels[fold.training], among, out)


def _hold_out_learned(data: TrainingData, metric: str, distances: Any, fold: Fold) -> HeldOutFold:
    """Hold points out, and learn the metric without them."""
    labels = data.labels[fold.training]
    present = np.unique(labels, return_inverse=True)[1]  # a class of one point may be gone
    learner = LEARNED_METRICS[metric]()
    learner.learn(data.standardized[fold.training], present, CompiledObjective)
    places = learner.place(data.standardized)
    training = places[fold.training]
    return HeldOutFold(
        fold.held_out,
        labels,
        euclidean_distances_to(training, training, np.float32),
        euclidean_distances_to(places[fold.held_out], training, np.float32),
    )
