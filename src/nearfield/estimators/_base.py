"""What the classifiers share: prediction from probabilities, and a metric on the features."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from nearfield.distances import FeatureView, fill_from_donors
from nearfield.estimators._metric import MetricSpace, is_named, takes_tables
from nearfield.estimators._validation import check_new_points, missing_values
from nearfield.prediction import class_odds, multiply_odds


class ProbabilisticClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose every prediction follows from its class probabilities."""

    classes_: NDArray[Any]
    labels_: NDArray[np.int64]
    class_prior: Any = None
    n_features_in_: int
    encoder_: Any = None
    calibration_points_: NDArray[np.float64]
    categorical_features: Any = "from_dtype"

    @property
    def columns_(self) -> dict[Any, str]:
        """What each column was taken for, by its name, or by its position without names."""
        check_is_fitted(self)
        if self.encoder_ is not None:
            return self.encoder_.columns_
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return dict.fromkeys(names, "number")

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

    def _class_odds(self) -> NDArray[np.float64] | None:
        """Give the factor of each class's odds by which it is more frequent than in training."""
        check_is_fitted(self)
        if self.class_prior is None:
            return None
        return class_odds(self.class_prior, self._class_counts())

    def _class_counts(self) -> NDArray[Any]:
        """Count the training points of each class, by their weights."""
        n_classes = len(self.classes_)
        return np.bincount(self.labels_, weights=self._multiplicities, minlength=n_classes)

    def _predict_gaps(
        self,
        X: Any,
        odds: NDArray[Any] | None,
        predict: Callable[[Any], tuple[NDArray[np.float64], ...]],
    ) -> tuple[NDArray[np.float64], ...]:
        """Predict probabilities, or bounds of them; rows with missing values in their own way.

        A row with gaps in columns that had none in training is averaged over the values that its
        nearest training points have there. A row without any value gets the class proportions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            As the user gave it.
        odds : ndarray, shape (G,), or None
            Factors of the classes' odds.
        predict : callable
            Takes checked points and gives arrays of shape (n_samples, G).
        """
        points = check_new_points(self, X)
        predicted = predict(points)
        is_gap = missing_values(X)
        if is_gap is None:
            return predicted
        is_empty = is_gap.all(axis=1)
        is_filled = self._gaps_to_fill(is_gap)
        rows = np.flatnonzero(is_filled.any(axis=1) & ~is_empty)
        if len(rows):
            filled = fill_from_donors(points[rows], is_filled[rows], self.calibration_points_)
            of_copies = predict(filled.reshape(-1, points.shape[1]))
            for each, values in zip(predicted, of_copies, strict=True):
                each[rows] = values.reshape(*filled.shape[:2], -1).mean(axis=1)
        counts = self._class_counts()
        for each in predicted:
            each[is_empty] = multiply_odds((counts / counts.sum())[None], odds)[0]
        return predicted

    def _gaps_to_fill(self, is_gap: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which columns of checked points to fill from donors, shape (n_samples, n_columns).

        Those of features without gaps in training: a model knows what to make of other gaps.
        """
        return np.zeros_like(is_gap)

    @property
    def _multiplicities(self) -> NDArray[np.float64] | None:
        """The weights of the training points; None where all are one."""
        return None


class MetricClassifier(ProbabilisticClassifier):
    """A classifier by the distances between points."""

    metric: Any
    metric_params: Any
    standardize: Any
    _feature_view: FeatureView | None = None  # which columns of encoded points count, if told

    def _fit_space(self, X: Any, labels: NDArray[np.int64]) -> MetricSpace:
        """Learn from the training points what new ones are measured by."""
        return MetricSpace.fit(
            X,
            labels,
            metric=self.metric,
            metric_params=self.metric_params,
            standardize=self.standardize,
            view=self.encoder_.views_["types"] if self.encoder_ else self._feature_view,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_precomputed = is_named(self.metric, "precomputed")
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.positive_only = is_precomputed
        tags.input_tags.sparse = not is_precomputed
        tags.input_tags.allow_nan = is_named(self.metric, "nan_euclidean")
        if takes_tables(self.metric):
            mark_tables(tags)
        return tags


def mark_tables(tags: Any) -> None:
    """Tell scikit-learn that categories, text and missing values are taken."""
    tags.input_tags.allow_nan = True
    tags.input_tags.categorical = True
    tags.input_tags.string = True


def split_pipeline(fitted: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the last step of a fitted pipeline and the features it takes; else both as given."""
    check_is_fitted(fitted)
    if not isinstance(fitted, Pipeline):
        return fitted, X
    if X is not None and len(fitted) > 1:
        X = fitted[:-1].transform(X)
    return fitted[-1], X
