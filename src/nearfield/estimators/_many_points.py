"""The average over estimators where there are too many points for all of their distances."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield._hashing import sample_rows
from nearfield.distances import FeatureView, PowerTransform
from nearfield.estimators._averages import Average
from nearfield.estimators._distance import DistanceNeighborsClassifier
from nearfield.estimators._graph import ModelFit, TrainingGraph, choose_neighbors
from nearfield.estimators._held_out import (
    intercept_spread,
    metric_params_of,
    metrics_of,
    n_columns,
)
from nearfield.estimators._metric import MetricSpace, learning_rows
from nearfield.estimators._settings import check_usable, make_priors, make_rng
from nearfield.estimators._sizes import sizes
from nearfield.estimators._stacking import stacking_weights
from nearfield.field import DistanceFamily, take
from nearfield.neighbors import NeighborGraph
from nearfield.prediction.grid import HeldOutPrior, approximate_log_evidence, infer_on_grid
from nearfield.prediction.heldout import HeldOutField, HeldOutFold

_MAX_CHOSEN = 3
_LEAST_SAMPLE_WEIGHT = 0.1  # less is not worth a fit to all points
_LEAST_WEIGHT = 0.05  # less is not worth a search at every prediction
_NORMALIZING_STREAM = 4

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def fit_many_points(
    model: Any,
    training: Any,
    fit: Callable[[Any, Rows], tuple[Any, Floats]],
    multiplicities: Floats | None = None,
) -> Average:
    r"""Choose estimators by a sample, fit them on the graph of all points, and stack.

    Metrics are learned from some of the points. The conditionals of others,
    :math:`p(y_i \mid y_{-i})`, are then densities of labels that the metric was not learned
    from: they choose the estimators, infer their parameters and weigh them, without folds.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    training : TrainingPoints
        Or another object with its methods; transformed, if they are to be.
    fit : callable
        Fits an estimator to all points by the conditionals of some rows; returns it, and the log
        densities of their labels.
    multiplicities : ndarray, shape (n,), optional
        As how many points each point counts.
    """
    draw = partial(draw_rows, make_rng(model.random_state))
    learning, neighbors, held_out = training.of_labels(draw)
    rows = np.concatenate([learning, neighbors, held_out[: len(neighbors)]])
    some = take(multiplicities, rows)
    choose = partial(choose_estimators, model, len(learning), len(neighbors), multiplicities=some)
    fitted = [fit(estimator, held_out) for estimator in training.apply(choose, rows)]
    estimators, log_densities = zip(*fitted, strict=True)
    counts = take(multiplicities, held_out)
    return weigh_estimators(
        list(estimators), np.column_stack(log_densities), model.concentration, counts
    )


def draw_rows(rng: np.random.Generator, labels: Rows) -> tuple[Rows, Rows, Rows]:
    """Draw the points that teach metrics, the neighbours of a sample, and the held-out points."""
    learning = learning_rows(len(labels))
    others = rng.permutation(np.setdiff1d(np.arange(len(labels)), learning))
    n_sample = min(sizes().n_sample, len(others) // 2)
    return learning, others[-n_sample:], others[: sizes().n_weighing]


def choose_estimators(
    model: Any,
    n_learning: int,
    n_neighbors: int,
    points: Floats,
    labels: Rows,
    multiplicities: Floats | None = None,
) -> list[Any]:
    """Choose kernels and metrics by held-out points among others; the estimators are not fitted.

    Without intercepts: these would favour metrics that need wide kernels, which a graph cannot
    have.

    Parameters
    ----------
    model : NearfieldClassifier
    n_learning, n_neighbors : int
        How many points teach the metrics, and how many follow as neighbours of the rest.
    points : ndarray, shape (n, n_features)
    labels : ndarray of int, shape (n,)
    multiplicities : ndarray, shape (n,), optional
    """
    parts = np.split(np.arange(len(labels)), [n_learning, n_learning + n_neighbors])
    readings = [
        (view, metric)
        for view in model._feature_views()
        for metric in metrics_of(model, n_learning, n_columns(points, view))
    ]
    choices = [(kernel, metric, view) for view, metric in readings for kernel in model.kernels]
    log_densities = Parallel(n_jobs=model.n_jobs, prefer="threads")(
        delayed(_sample_densities)(model, metric, view, points, labels, multiplicities, *parts)
        for view, metric in readings
    )
    counts = take(multiplicities, parts[-1])
    weights = stacking_weights(np.column_stack(log_densities), model.concentration, counts)
    order = np.argsort(-weights, kind="stable")[:_MAX_CHOSEN]
    chosen = [choices[k] for k in order if weights[k] >= min(_LEAST_SAMPLE_WEIGHT, weights.max())]
    settings = {
        "fit_intercept": model.fit_intercept,
        "n_jobs": model.n_jobs,
        "random_state": model.random_state,
    }
    estimators = []
    for kernel, metric, view in chosen:
        params = metric_params_of(model, metric)
        estimator = DistanceNeighborsClassifier(
            kernel, metric=metric, inference="pseudolikelihood", metric_params=params, **settings
        )
        estimator._feature_view = view
        estimators.append(estimator)
    return estimators


def _sample_densities(
    model: Any,
    metric: Any,
    view: FeatureView | None,
    points: Floats,
    labels: Rows,
    multiplicities: Floats | None,
    learning: Rows,
    near: Rows,
    out: Rows,
) -> Floats:
    """Give the log densities of held-out labels for a metric with each kernel, (m, n_kernels)."""
    space = MetricSpace.fit(
        points[learning],
        labels[learning],
        metric=metric,
        metric_params=metric_params_of(model, metric),
        standardize=True,
        view=view,
    )
    near = near[np.argsort(labels[near], kind="stable")]
    near_points, out_points = space.place(points[near]), space.place(points[out])
    among = check_usable(space.distances_between(near_points, near_points))
    distances = check_usable(space.distances_between(out_points, near_points))
    near_counts, out_counts = take(multiplicities, near), take(multiplicities, out)
    fold = HeldOutFold(
        np.arange(len(out)),
        labels[near],
        among.astype(np.float32),
        distances.astype(np.float32),
        near_counts,
    )
    found = []
    for kernel in model.kernels:
        family = DistanceFamily.from_checked(among, kernel, len(model.classes_))
        prior = HeldOutPrior.from_priors(make_priors(family, None, None))
        field = HeldOutField([fold], labels[out], kernel, len(model.classes_), out_counts)
        found.append(field.infer(prior, family.scale_range).log_densities)
    return np.column_stack(found)


def fit_on_held_out(training: Any, *, fit_intercept: bool) -> tuple[ModelFit, Floats]:
    """Infer k, beta and sigma of a smooth kernel from the conditionals of held-out points.

    Parameters
    ----------
    training : TrainingGraph
        Or another object with its methods, whose sites are the held-out points.
    fit_intercept : bool
        Whether the classes have intercepts.

    Returns
    -------
    fit : ModelFit
    log_densities : ndarray, shape (n_sites,)
        Of the labels, given all others.
    """
    arguments = partial(_grid_arguments, sd_alpha=intercept_spread(fit_intercept))
    graph = choose_neighbors(training, lambda some: approximate_log_evidence(*arguments(some)))
    found = infer_on_grid(*arguments(training.conditionals(graph, training.sites)))
    family = training.family(graph)
    priors = make_priors(family, None, None)
    if fit_intercept:
        family = replace(family, external_field=found.external_field)
    return ModelFit(family, found.posterior, priors, "pseudolikelihood"), found.log_densities


def _grid_arguments(conditionals: Any, sd_alpha: float) -> tuple[Any, ...]:
    """Give what inference on a grid takes of the conditionals of held-out points."""
    prior = HeldOutPrior.from_priors(make_priors(conditionals, None, None), sd_alpha)

    def supports(sigmas: Floats) -> Floats:
        return np.stack(list(conditionals.supports(sigmas, conditionals.labels)))

    labels, counts = conditionals.labels, conditionals.multiplicities
    return supports, labels, prior, conditionals.scale_range, counts


class GraphFits:
    """Fits estimators to points in one place.

    Those with the same metric have one metric space, index and search of neighbours, and one graph
    if k is the same: new points are then placed once for all of them, and a file holds the training
    points once.

    Parameters
    ----------
    model : NearfieldClassifier
        Its settings, and ``classes_``.
    points : ndarray, shape (n, n_features)
    labels : ndarray of int, shape (n,)
    multiplicities : ndarray, shape (n,), optional
    """

    def __init__(
        self, model: Any, points: Floats, labels: Rows, multiplicities: Floats | None = None
    ) -> None:
        self.model, self.points, self.labels = model, points, labels
        self.multiplicities = multiplicities
        self._shared: dict[Any, SharedGraph] = {}

    def __call__(self, estimator: Any, sites: Rows) -> tuple[Any, Floats]:
        """Fit an estimator by the conditionals of some rows; give the log densities there."""
        classes = self.model.classes_
        key = estimator.metric, id(estimator._feature_view)
        if key not in self._shared:
            space = estimator._fit_space(self.points, self.labels)
            self._shared[key] = SharedGraph(
                space,
                None,
                self.labels,
                len(classes),
                estimator.kernel,
                sites=sites,
                multiplicities=self.multiplicities,
                n_jobs=self.model.n_jobs,
            )
        training = self._shared[key].with_kernel(estimator.kernel)
        fit, log_densities = fit_on_held_out(training, fit_intercept=estimator.fit_intercept)
        estimator.classes_, estimator.n_features_in_ = classes, self.points.shape[1]
        estimator._keep(training.space, self.labels, *fit, index=training.index)
        return estimator, log_densities


class SharedGraph(TrainingGraph):
    """Training points whose graphs are kept, for several kernels."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._graphs: dict[int, NeighborGraph] = {}

    def with_kernel(self, kernel: str) -> "SharedGraph":
        """Take another kernel, on the same index and graphs."""
        other = copy(self)
        other.kernel = kernel
        return other

    def build(self, n_neighbors: int) -> NeighborGraph:
        """Search the neighbours of all training points, or cut a longer graph."""
        longer = [k for k in self._graphs if k >= n_neighbors]
        if longer:
            return self.first(self._graphs[min(longer)], n_neighbors)
        self._graphs[n_neighbors] = super().build(n_neighbors)
        return self._graphs[n_neighbors]

    def first(self, graph: NeighborGraph, n_neighbors: int) -> NeighborGraph:
        """Cut a graph to fewer neighbours; the same one each time."""
        if n_neighbors not in self._graphs:
            self._graphs[n_neighbors] = graph.first(n_neighbors)
        return self._graphs[n_neighbors]


def weigh_estimators(
    estimators: list[Any],
    log_densities: Floats,
    concentration: float,
    counts: Floats | None = None,
) -> Average:
    """Weigh estimators by log densities, shape (n_sites, n_estimators); drop the lightest.

    `counts`, shape (n_sites,), say how often each label counts.
    """
    weights = stacking_weights(log_densities, concentration, counts)
    kept = np.flatnonzero(weights >= min(_LEAST_WEIGHT, weights.max()))
    return Average(
        [estimators[k] for k in kept],
        np.average(log_densities[:, kept], axis=0, weights=counts),
        weights[kept] / weights[kept].sum(),
    )


def fit_features(training: Any, columns: NDArray[np.bool_] | None = None) -> PowerTransform:
    """Fit the transformation of the features, or some of them, to at most 10,000 points."""
    fit = partial(_fit_transform, columns=columns)
    return training.apply(fit, normalizing_rows(training.n_points))


def normalizing_rows(n_points: int) -> NDArray[np.int64]:
    """Choose the points that tell how features are distributed."""
    if n_points <= sizes().max_normalizing:
        return np.arange(n_points)
    return sample_rows(n_points, sizes().max_normalizing, 0, _NORMALIZING_STREAM)


def _fit_transform(
    points: NDArray[np.float64], labels: NDArray[np.int64], columns: NDArray[np.bool_] | None
) -> PowerTransform:
    return PowerTransform(columns).fit(points)
