"""Estimators of an average: one metric, learned in every fold, with several kernels."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from nearfield._checks import check_real, check_whole
from nearfield.distances import (
    LEARNED_METRICS,
    FeatureView,
    euclidean_distances_to,
)
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._metric import MetricSpace, is_named, make_learner
from nearfield.estimators._settings import check_choice, check_flag, make_priors
from nearfield.estimators._stacking import Fold
from nearfield.estimators._standardize import Standardization
from nearfield.estimators._training import TrainingPoints
from nearfield.field import DistanceFamily, take
from nearfield.prediction.grid import HeldOutPrior
from nearfield.prediction.heldout import (
    KERNEL_NAMES,
    HeldOutField,
    HeldOutFold,
    SmoothKernelName,
)

AveragingName = Literal["stacking", "evidence"]
AVERAGINGS: tuple[AveragingName, ...] = get_args(AveragingName)
METRICS = ("euclidean", "manhattan", "within", "ard", "discriminant", "quadratic")
"""The metrics of an average, unless others are given."""

# Wavelengths say little one by one, so that spectra have a metric that whitens; the discriminant
# metric had a larger log loss with each of five recipes, and takes twice the time. The shrinkage
# that the density of all wavelengths calls for, up to 0.9 for derivatives, tells classes apart less
# well than one of 0.1: with the meat and the Greek olive oil spectra, 0.01 to 0.3 were tried.
_SPECTRA_METRICS = ("within",)
_SHRUNK_METRICS = ("within", "discriminant")
_SPECTRA_PARAMS = {"max_shrinkage": 0.1}
# As a factor of the concentration: views of one spectrum are much alike. With 2, 3 and 5 the log
# loss of meat is 3%, 9% and 26% above that with 1, that of Greek olive oil the same within 3%; the
# errors on Greek olive oil, 25 training points, are 5.3, 5.2 and 4.9 instead of 6.4%.
_SPECTRA_CONCENTRATION = 2.0
# Of an intercept. With a wide kernel and a large beta the support is a mean distance to each class,
# and the intercepts make up for the spread of the classes; 1, 2 and 3 were tried on 22 data sets.
_SD_ALPHA = 2.0


def check_average(estimator: Any) -> None:
    """Refuse settings of an average that no estimators, folds or weights can come of."""
    _check_lists(estimator.kernels, METRICS if estimator.metrics is None else estimator.metrics)
    if estimator.preprocess is not None:
        check_choice(estimator.preprocess, "preprocess", ("spectra",))
        check_choice(estimator.averaging, "averaging of preprocessed spectra", ("stacking",))
    check_choice(estimator.averaging, "averaging", AVERAGINGS)
    check_flag(estimator.power_transform, "power_transform")
    check_flag(estimator.fit_intercept, "fit_intercept")
    if estimator.n_folds is not None:
        check_whole(estimator.n_folds, "n_folds", minimum=2)
    if check_real(estimator.concentration, "concentration") < 0.0:
        raise ValueError(f"Expected concentration >= 0; got {estimator.concentration!r}. Try 0.1.")


def metrics_of(estimator: Any, n_points: int, n_features: int) -> Sequence[Any]:
    """Give the metrics of an average: those asked for, or those that suit the points.

    The quadratic metric needs points for a covariance of each class.
    """
    if estimator.metrics is not None:
        return estimator.metrics
    if estimator.preprocess is not None:
        return _SPECTRA_METRICS
    if n_features * len(estimator.classes_) <= n_points:
        return METRICS
    return [metric for metric in METRICS if metric != "quadratic"]


def n_columns(points: NDArray[np.float64], view: FeatureView | None) -> int:
    """Count the columns of points that a view has."""
    return points.shape[1] if view is None else len(view.columns)


def intercept_spread(fit_intercept: bool) -> float:
    """Give the prior sd of an intercept; zero for none."""
    return _SD_ALPHA if fit_intercept else 0.0


def metric_params_of(estimator: Any, metric: Any) -> dict[str, Any] | None:
    """Give the arguments of a metric of an average."""
    has_params = estimator.preprocess is not None and is_named(metric, *_SHRUNK_METRICS)
    return dict(_SPECTRA_PARAMS) if has_params else None


def concentration_of(estimator: Any) -> float:
    """Give the concentration of the weights of an average."""
    factor = 1.0 if estimator.preprocess is None else _SPECTRA_CONCENTRATION
    return factor * float(estimator.concentration)


def _check_lists(kernels: Any, metrics: Any) -> None:
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


class TrainingData(NamedTuple):
    """What all estimators are fitted to.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
    standardized : ndarray, shape (n, n_features)
        The same by `standardization`, which takes no labels, and so need not be done by fold.
    coordinates : ndarray, shape (n, n_axes)
        The standardized points along an orthonormal basis of the space that they span: fewer
        numbers where there are more features than points, and the same distances.
    standardization : Standardization
    labels : ndarray of int, shape (n,)
    classes : ndarray, shape (n_classes,)
    repeats : sequence of sequence of Fold
        Several draws of folds.
    view : FeatureView or None
        Which columns of encoded points count; all by default.
    fit_intercept : bool
    multiplicities : ndarray, shape (n,), or None
        As how many points each point counts; one by default.
    """

    points: NDArray[np.float64]
    standardized: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    standardization: Standardization
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    repeats: Sequence[Sequence[Fold]]
    view: FeatureView | None
    fit_intercept: bool
    multiplicities: NDArray[np.float64] | None = None

    @classmethod
    def from_points(
        cls,
        points: NDArray[np.float64],
        labels: NDArray[np.int64],
        classes: NDArray[Any],
        repeats: Sequence[Sequence[Fold]],
        view: FeatureView | None,
        *rest: Any,
    ) -> "TrainingData":
        """Standardize the points."""
        training = TrainingPoints(points, labels)
        standardization = Standardization.fit(training, view)
        standardized = standardization.apply(points)
        coordinates = _in_span(standardized)
        return cls(
            points,
            standardized,
            coordinates,
            standardization,
            labels,
            classes,
            repeats,
            view,
            *rest,
        )


def fit_held_out(
    data: TrainingData,
    metric: Any,
    kernels: Sequence[SmoothKernelName],
    metric_params: dict[str, Any] | None = None,
) -> list[tuple[DistanceNeighborsClassifier, NDArray[np.float64]]]:
    """Fit a metric with each kernel by the conditionals of held-out labels.

    Returns
    -------
    fitted : list of (classifier, log_densities)
        For each kernel the classifier, and the log density of each label in each draw of folds,
        shape (n_repeats * n,).
    """
    is_learned = isinstance(metric, str) and metric in LEARNED_METRICS
    make = partial(make_learner, metric, metric_params or {})
    space = _learned_space(data, make()) if is_learned else _given_space(data, metric)
    distances = space.training_distances(None)
    hold_out = (
        partial(_hold_out_learned, data, make())
        if is_learned
        else partial(_hold_out_given, data, distances.astype(np.float32))  # digits enough
    )
    n_points, n_draws = len(data.labels), len(data.repeats)
    folds = [
        held_out._replace(rows=draw * n_points + held_out.rows)
        for draw, dealt in enumerate(data.repeats)
        for held_out in map(hold_out, dealt)
    ]
    labels = np.tile(data.labels, n_draws)
    given = data.multiplicities
    multiplicities = None if given is None else np.tile(given, n_draws)
    fitted = []
    for kernel in kernels:
        family = DistanceFamily.from_checked(
            distances, kernel, len(data.classes), multiplicities=data.multiplicities
        )
        priors = make_priors(family, None, None)
        prior = HeldOutPrior.from_priors(priors, intercept_spread(data.fit_intercept))
        field = HeldOutField(folds, labels, kernel, len(data.classes), multiplicities)
        found = field.infer(prior, family.scale_range, n_draws=n_draws)
        if data.fit_intercept:
            family = DistanceFamily.from_checked(
                distances, kernel, len(data.classes), found.external_field, data.multiplicities
            )
        estimator = DistanceNeighborsClassifier(
            kernel,
            metric=metric,
            inference="pseudolikelihood",
            metric_params=metric_params,
            fit_intercept=data.fit_intercept,
        )
        estimator.classes_, estimator.n_features_in_ = data.classes, data.points.shape[1]
        estimator._feature_view = data.view
        estimator._keep(space, data.labels, family, found.posterior, priors, "pseudolikelihood")
        fitted.append((estimator, found.log_densities))
    return fitted


def describe(estimators: Sequence[Any], weights: Any, log_scores: Any) -> dict[str, list[Any]]:
    """Describe each estimator, the weightiest first: columns by name."""
    order = np.argsort(-np.asarray(weights), kind="stable")
    means = [estimators[i].posterior_.mean() for i in order]
    views = [estimators[i]._feature_view for i in order]
    all_numbers = f"{estimators[0].n_features_in_} numbers"
    return {
        "features": [all_numbers if view is None else view.description for view in views],
        "kernel": [estimators[i].kernel for i in order],
        "metric": [estimators[i].metric for i in order],
        "weight": [float(weights[i]) for i in order],
        "log_score": [float(log_scores[i]) for i in order],
        "beta": [float(mean["beta"]) for mean in means],
        "sigma": [float(mean["sigma"]) for mean in means],
    }


def _given_space(data: TrainingData, metric: Any) -> MetricSpace:
    return MetricSpace.fit(
        data.points,
        data.labels,
        metric=metric,
        metric_params=None,
        standardize=True,
        view=data.view,
    )


def _in_span(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn wide points to an orthonormal basis of the space that they span."""
    n_points, n_features = points.shape
    if n_features <= n_points:
        return points
    return points @ np.linalg.svd(points, full_matrices=False)[2].T


def _learned_space(data: TrainingData, learner: Any) -> MetricSpace:
    learner.learn(data.standardized, data.labels)
    points = learner.place(data.standardized)
    return MetricSpace("euclidean", {}, data.standardization, learner, points)


def _hold_out_given(data: TrainingData, distances: Any, fold: Fold) -> HeldOutFold:
    """Hold points out where the metric knows no labels: the distances stay as they are."""
    rows = fold.training, fold.held_out  # twice `take` needs a third of the time of `np.ix_`
    among, out = (distances.take(some, axis=0).take(fold.training, axis=1) for some in rows)
    labels, multiplicities = data.labels[fold.training], take(data.multiplicities, fold.training)
    return HeldOutFold(fold.held_out, labels, among, out, multiplicities)


def _hold_out_learned(data: TrainingData, learner: Any, fold: Fold) -> HeldOutFold:
    """Hold points out, and learn the metric without them."""
    labels = data.labels[fold.training]
    present = np.unique(labels, return_inverse=True)[1]  # a class of one point may be gone
    points = data.standardized if learner.depends_on_axes else data.coordinates
    learner.learn(points[fold.training], present)
    places = learner.place(points)
    training = places[fold.training]
    return HeldOutFold(
        fold.held_out,
        labels,
        euclidean_distances_to(training, training, np.float32),
        euclidean_distances_to(places[fold.held_out], training, np.float32),
        take(data.multiplicities, fold.training),
    )
