"""How features become distances: standardized, by a metric, a learned one, or given as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

from nearfield._hashing import sample_rows
from nearfield.distances import (
    LEARNED_METRICS,
    FeatureView,
    check_distances,
    distance_matrix,
    euclidean_distances_to,
)
from nearfield.estimators._sizes import sizes
from nearfield.estimators._standardize import Standardization
from nearfield.estimators._training import TrainingPoints
from nearfield.neighbors import Index, box_power, make_index

MetricName = Literal[
    "ard",
    "braycurtis",
    "canberra",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "dice",
    "discriminant",
    "euclidean",
    "hamming",
    "haversine",
    "infinity",
    "jaccard",
    "jensenshannon",
    "l1",
    "l2",
    "mahalanobis",
    "manhattan",
    "minkowski",
    "mixed",
    "nan_euclidean",
    "p",
    "precomputed",
    "quadratic",
    "rogerstanimoto",
    "russellrao",
    "seuclidean",
    "sokalmichener",
    "sokalsneath",
    "sqeuclidean",
    "within",
    "yule",
]
"""The metrics by name: those of scikit-learn and SciPy, the learned ones, and given distances."""

Metric = MetricName | Callable[..., float]

# Standardized, these features would no longer be what the metric reads: truth values, counts,
# histograms, angles, directions from the origin, or distances themselves.
_AS_THEY_ARE = (
    *PAIRWISE_BOOLEAN_FUNCTIONS,
    "braycurtis",
    "canberra",
    "correlation",
    "cosine",
    "haversine",
    "jensenshannon",
    "precomputed",
    "sokalmichener",
)
_EUCLIDEAN = ("euclidean", "l2", "mixed")
_OF_TABLES = (*_EUCLIDEAN, "cityblock", "l1", "manhattan", *LEARNED_METRICS)
_LEARNING_STREAM = 3
_LARGEST = 1e150  # the square of a larger difference is no number
_SPARSE = (*_EUCLIDEAN, "manhattan", "cityblock", "l1")


def is_named(metric: Any, *names: str) -> bool:
    """Tell whether a metric is one of some names; a function is none of them."""
    return isinstance(metric, str) and metric in names


def takes_tables(metric: Any) -> bool:
    """Tell whether a metric is one on encoded tables, with categories and missing values."""
    return is_named(metric, *_OF_TABLES)


@dataclass(frozen=True, eq=False)
class MetricSpace:
    """The training points where distances are taken, and the way there for new points.

    Attributes
    ----------
    metric : str or callable
        The metric on the points: that of the estimator, or Euclidean where one was learned.
    params : dict
        Its further arguments, with the scale that some metrics take from the training points.
    standardization : Standardization or None
    learner : object or None
        The learned metric, whose ``transform`` takes the points to where it is Euclidean.
    points : ndarray or csr_matrix, shape (n, n_features)
        The training points there; their number alone counts where distances are precomputed.
    """

    metric: Metric
    params: dict[str, Any]
    standardization: Standardization | None
    learner: Any
    points: Any = field(repr=False)

    @classmethod
    def fit(
        cls,
        X: Any,
        labels: NDArray[np.int64],
        *,
        metric: Metric,
        metric_params: Mapping[str, Any] | None,
        standardize: bool,
        view: FeatureView | None = None,
    ) -> Self:
        """Learn from the training points, shape (n, n_features), what new ones are measured by.

        `view` says which columns of an encoded table count.
        """
        params = check_metric(metric, metric_params)
        if is_named(metric, "precomputed"):
            return cls(metric, params, None, None, np.empty((X.shape[0], 0)))
        stays_sparse = is_named(metric, *_SPARSE) and not params
        standardize = standardize and not sp.issparse(X)
        if sp.issparse(X) and not stays_sparse:
            X = X.toarray()
        space = cls.learn(TrainingPoints(X, labels), metric, metric_params, standardize, view)
        return replace(space, points=space.place(X))

    @classmethod
    def learn(
        cls,
        training: Any,
        metric: Metric,
        metric_params: Mapping[str, Any] | None,
        standardize: bool,
        view: FeatureView | None = None,
    ) -> Self:
        """Learn what new points are measured by, wherever the training points are; none is kept.

        Parameters
        ----------
        training : TrainingPoints
            Or another object with its methods.
        metric, metric_params, standardize
            Of the estimator.
        view : FeatureView, optional
            Which columns of an encoded table count.
        """
        params = check_metric(metric, metric_params)
        standardization = None if view is None else Standardization.unscaled(view)
        if is_standardized(metric, standardize):
            standardization = Standardization.fit(training, view)
        if standardization is not None:
            training = training.map(standardization.apply)
        metric = "euclidean" if is_named(metric, "mixed") else metric
        if isinstance(metric, str) and metric in LEARNED_METRICS:
            learn = partial(_fit_learner, make_learner(metric, params))
            learner = training.apply(learn, learning_rows(training.n_points))
            return cls("euclidean", {}, standardization, learner, learner.place(training.none))
        if is_named(metric, "seuclidean") and "V" not in params:
            variance = np.diag(_covariance(training))
            params["V"] = np.where(variance > 0.0, variance, 1.0)  # constant: carries no distance
        if is_named(metric, "mahalanobis") and not {"V", "VI"} & set(params):
            params["VI"] = _inverse(_covariance(training))
        return cls(metric, params, standardization, None, training.none)

    @property
    def n_points(self) -> int:
        """The number of training points."""
        return self.points.shape[0]

    def training_distances(self, X: Any, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Measure the training points against each other; `X` is read if they are precomputed."""
        if is_named(self.metric, "precomputed"):
            return check_distances(X)
        if self.power is not None and np.abs(self.points).max() < _LARGEST:
            return self.distances_between(self.points, self.points)
        return self._measure(self.points, None, n_jobs)

    def distances_to(self, X: Any) -> NDArray[np.float64]:
        """Measure new points, shape (m, n_features), to the training points, shape (m, n)."""
        if is_named(self.metric, "precomputed"):
            return distance_matrix(X, self.points, metric="precomputed")
        return self.distances_between(self.place(X), self.points)

    def extended(self, X: Any) -> "MetricSpace":
        """Add points, shape (m, n_features), to the training points."""
        stack = sp.vstack if sp.issparse(self.points) else np.concatenate
        return replace(self, points=stack([self.points, self.place(X)]))

    def distances_between(self, points: Any, others: Any) -> NDArray[np.float64]:
        """Measure points that are placed already, shape (m, n)."""
        if self.power is None or not np.abs(points).max() < _LARGEST:
            return self._measure(points, others, None)
        if self.power == 2:
            return euclidean_distances_to(points, others)
        return cdist(points, others, "cityblock")

    @property
    def power(self) -> int | None:
        """2 for Euclidean and 1 for Manhattan distances between rows of an array, else None."""
        return box_power(self.points, self.metric, self.params)

    def place_within_reach(self, X: Any) -> Any:
        """Take new points to where distances are taken; refuse those at an infinite distance."""
        points = self.place(X)
        values = points.data if sp.issparse(points) else points
        if values.size and not np.abs(values).max() < _LARGEST:
            self._measure(points, self.points[:1], None)
        return points

    def make_index(self, search: str) -> Index:
        """Build an index over the training points."""
        return make_index(self.points, metric=self.metric, metric_params=self.params, search=search)

    def place(self, X: Any) -> Any:
        """Take new points, shape (m, n_features), to where distances are taken."""
        if sp.issparse(self.points):
            X = sp.csr_matrix(X)  # dense ones too: as sparse ones they are not shifted
        elif sp.issparse(X):
            X = X.toarray()
        if self.standardization is not None:
            X = self.standardization.apply(X)
        with np.errstate(over="ignore", invalid="ignore"):  # the metric tells of an infinity
            return X if self.learner is None else self.learner.place(X)

    def _measure(self, points: Any, others: Any, n_jobs: int | None) -> NDArray[np.float64]:
        # What overflows on the way is no finite distance, and refused as such.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return distance_matrix(
                points, others, metric=self.metric, metric_params=self.params, n_jobs=n_jobs
            )


def is_standardized(metric: Any, standardize: bool) -> bool:
    """Tell whether a metric is to see standardized features; learned ones always are."""
    is_asked = standardize and not is_named(metric, *_AS_THEY_ARE)
    return is_asked or is_named(metric, *LEARNED_METRICS)


def check_metric(metric: Any, metric_params: Any) -> dict[str, Any]:
    """Accept a metric and the further arguments of it, which are returned."""
    names = get_args(MetricName)
    if not (callable(metric) or is_named(metric, *names)):
        raise ValueError(
            f"Expected metric as a function of two vectors or a name among {list(names)}; got "
            f"metric={metric!r}. Choose one of them."
        )
    if not isinstance(metric_params, Mapping | None):
        raise TypeError(
            "Expected metric_params as a dict of further arguments of the metric, or None; got "
            f"metric_params={metric_params!r}. Leave it out for none."
        )
    return dict(metric_params or {})


def learning_rows(n_points: int) -> NDArray[np.int64]:
    """Choose the training points that a metric is learned from: all, or half, at most 2,000."""
    if n_points <= sizes().max_learning:
        return np.arange(n_points)
    size = min(sizes().n_learning, n_points // 2)
    return np.sort(sample_rows(n_points, size, 0, _LEARNING_STREAM))


def _fit_learner(learner: Any, X: Any, labels: NDArray[np.int64]) -> Any:
    """Learn a metric from points of which some classes may be missing."""
    return learner.learn(X, np.unique(labels, return_inverse=True)[1])


def make_learner(metric: str, params: Mapping[str, Any]) -> Any:
    """Make a learned metric, not yet fitted."""
    try:
        return LEARNED_METRICS[metric](**params)
    except TypeError as error:
        raise ValueError(
            f"Expected metric_params that metric {metric!r} takes; got {sorted(params)}: {error}."
        ) from error


def _covariance(training: Any) -> NDArray[np.float64]:
    mean = training.total(partial(np.sum, axis=0)) / training.n_points
    return training.total(partial(_products, mean=mean)) / (training.n_points - 1)


def _products(points: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = points - mean
    return centred.T @ centred


def _inverse(covariance: NDArray[np.float64]) -> NDArray[Any]:
    scale = np.sqrt(np.diag(covariance))
    scale = np.where(scale > 0.0, scale, 1.0)  # the units must not set the rank
    rank, n_features = np.linalg.matrix_rank(covariance / np.outer(scale, scale)), len(scale)
    if rank < n_features:
        raise ValueError(
            "Expected points whose covariance has an inverse; metric 'mahalanobis' could not "
            f"measure these points: their covariance has rank {rank} in {n_features} features. "
            "Give 'VI' in metric_params, drop features, or supply more points."
        )
    return np.linalg.inv(covariance)
