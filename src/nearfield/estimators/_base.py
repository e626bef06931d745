"""What the classifiers share: prediction from probabilities, and data seen through distances."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from nearfield.estimators._metric import MetricSpace, is_named
from nearfield.estimators._validation import check_class_prior


class ProbabilisticClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose every prediction follows from its class probabilities."""

    classes_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, shape (n_samples, n_classes)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class of each point, shape (n_samples,); of equals the first."""
        probabilities = self.predict_proba(X)  # first: it says if there is nothing fitted
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the log probability of each class, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):  # a probability of zero is an answer
            return np.log(self.predict_proba(X))


class MetricClassifier(ProbabilisticClassifier):
    """A classifier that sees the points through their distances."""

    metric: Any
    metric_params: Any
    standardize: Any

    def _fit_space(self, X: Any, labels: NDArray[np.int64]) -> MetricSpace:
        """Learn from the training points what new ones are measured by."""
        return MetricSpace.fit(
            X,
            labels,
            metric=self.metric,
            metric_params=self.metric_params,
            standardize=self.standardize,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_precomputed = is_named(self.metric, "precomputed")
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.positive_only = is_precomputed
        tags.input_tags.sparse = not is_precomputed
        tags.input_tags.allow_nan = is_named(self.metric, "nan_euclidean")
        return tags


def with_class_prior(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], class_prior: ArrayLike | None
) -> NDArray[np.float64]:
    """Multiply the odds of the classes, shape (m, G), by how the prior differs from the labels."""
    if class_prior is None:
        return probabilities
    n_classes = probabilities.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    return for_proportions(probabilities, counts, check_class_prior(class_prior, n_classes))


def for_proportions(
    probabilities: NDArray[np.float64],
    counts: NDArray[np.int64],
    expected: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Do so for class proportions that were checked, given the counts of the training labels."""
    ratio = expected / (counts / counts.sum())
    weighted = probabilities * ratio
    total = weighted.sum(axis=1, keepdims=True)
    # All probability may be on classes that are not expected at all: then these alone are left.
    fallback = ratio / ratio.sum()
    return np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), fallback)
