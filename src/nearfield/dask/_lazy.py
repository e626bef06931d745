"""Lazy predictions on Dask collections from a model on the workers."""

from operator import getitem
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._checks import check_level
from nearfield.dask._kept import Holder
from nearfield.dask._rows import Rows, aligned, lengths_of
from nearfield.dask._training import TrainingRows, checked_points
from nearfield.estimators._base import for_proportions
from nearfield.estimators._validation import array_options, check_class_prior


class LazyClassifier:
    """A classifier on Dask arrays and frames, whose predictions are lazy.

    Comes before the estimator of one machine among the bases of a class. That estimator has the
    settings; `_model` has what is on the workers.
    """

    _model: Any
    classes_: NDArray[Any]
    class_counts_: NDArray[np.int64]
    metric: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Infer the parameters from labelled points.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
            In blocks of rows, which may be empty, lack a class or be of unknown length.
        y : dask Array or Series, shape (n_samples,)
            In any blocks; those of X are taken.

        Returns
        -------
        self : object
        """
        self._check_settings()
        features, classes = Rows.from_collection(X, "X"), Rows.from_collection(y, "y")
        self._check_features(features, reset=True)
        return self._fit_training(
            TrainingRows.from_rows(features, classes, array_options(self.metric))
        )

    def _fit_training(self, training: TrainingRows) -> Self:
        """Infer the parameters from rows that were checked."""
        model, fitted = self._fit_model(training)
        self.classes_, self.class_counts_ = training.classes, training.class_counts
        self.n_features_in_ = training.n_features
        for name, value in fitted.items():
            setattr(self, name, value)
        self._model = model
        return self

    def predict_proba(self, X: Any, class_prior: ArrayLike | None = None) -> Any:
        """Give the probability of each class, averaged over the posterior of the parameters.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        class_prior : array-like, shape (n_classes,), optional
            The class proportions where the model is used, in the order of ``classes_``, if they
            differ from those of the training points: the odds are multiplied by their ratio.

        Returns
        -------
        probabilities : dask Array or DataFrame, shape (n_samples, n_classes)
            Lazy.
        """
        rows = self._new_rows(X)
        if class_prior is not None:
            class_prior = check_class_prior(class_prior, len(self.classes_))

        def probabilities(block: Delayed) -> Delayed:
            return self._probabilities(block, class_prior)

        return rows.lazily(probabilities, list(self.classes_), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """Give the log probability of each class, shape (n_samples, n_classes), lazily."""
        rows = self._new_rows(X)

        def log_probabilities(block: Delayed) -> Delayed:
            return delayed(_log)(self._probabilities(block))

        return rows.lazily(log_probabilities, list(self.classes_), np.float64)

    def predict(self, X: Any) -> Any:
        """Give the most probable class of each point, shape (n_samples,), lazily."""
        rows = self._new_rows(X)
        return rows.lazily(self._chosen, None, self.classes_.dtype)

    def predict_proba_interval(self, X: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Give credible intervals of the class probabilities.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        level : float
            The probability of the equal-tailed intervals.

        Returns
        -------
        lower, upper : dask Array or DataFrame, shape (n_samples, n_classes)
            Lazy; compute them together, for they come of the same work.
        """
        check_level(level)
        rows = self._new_rows(X)
        intervals = {block.key: self._apply("interval", block, level) for block in rows.blocks}

        def bounds(which: int) -> Any:
            return rows.lazily(
                lambda block: delayed(getitem)(intervals[block.key], which),
                list(self.classes_),
                np.float64,
            )

        return bounds(0), bounds(1)

    def outlier_score(self, X: Any) -> Any:
        """Tell how far each point is from all training points, shape (n_samples,), lazily."""
        rows = self._new_rows(X)
        return rows.lazily(lambda block: self._apply("outlier_score", block), None, np.float64)

    def predict_joint(self, X: Any, *arguments: Any, **keywords: Any) -> Any:
        """Refuse: joint draws need all points in one place."""
        raise ValueError(
            "Expected points on one machine for joint draws; got an estimator on Dask. "
            "Use to_local().predict_joint(...), if the training points fit there."
        )

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Refuse: points are added on one machine."""
        raise ValueError(
            "Expected points on one machine to be added to; got an estimator on Dask. "
            "Use to_local().partial_fit(...), if the training points fit there, or fit."
        )

    def influence(self, X: Any) -> Any:
        """Refuse: the result has a column for each training point."""
        raise ValueError(
            "Expected points on one machine for their influence; got an estimator on Dask. "
            "Use to_local().influence(...), if the training points fit there."
        )

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of points whose class is the predicted one.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        y : dask Array or Series, shape (n_samples,)
        """
        rows, classes = self._new_rows(X), Rows.from_collection(y, "y")
        lengths, class_lengths = lengths_of(rows, classes)
        if sum(lengths) != sum(class_lengths):
            raise ValueError(
                f"Expected one class in y for each row of X; got {sum(class_lengths)} for "
                f"{sum(lengths)} rows."
            )
        expected = aligned(classes.blocks, class_lengths, lengths)
        n_right = [
            delayed(_count_equal)(self._chosen(block), truth)
            for block, truth in zip(rows.blocks, expected, strict=True)
        ]
        return float(sum(dask.compute(*n_right)) / sum(lengths))

    def to_local(self) -> Any:
        """Bring the training points here, as the fitted estimator of one machine."""
        check_is_fitted(self)
        return self._model.to_local(self._local())

    def _check_settings(self) -> None:
        """Refuse settings that make no model."""
        raise NotImplementedError

    def _fit_model(self, training: TrainingRows) -> tuple[Any, dict[str, Any]]:
        """Fit a model on the workers; give it, and what is fitted by its names."""
        raise NotImplementedError

    def _local(self, **settings: Any) -> Any:
        """Make the estimator of one machine."""
        local = self._local_class(**self.get_params(deep=False) | settings)  # type: ignore[attr-defined]
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        return local

    def _new_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = Rows.from_collection(X, "X")
        self._check_features(rows, reset=False)
        return rows

    def _check_features(self, rows: Rows, *, reset: bool) -> None:
        sample = rows.sample
        if sample.ndim != 2:
            raise ValueError(
                "Expected X of two dimensions, (n_samples, n_features); got one. "
                "Reshape it, or take a frame of one column."
            )
        validate_data(self, sample, reset=reset, skip_check_array=True)

    def _apply(self, method: str, block: Delayed, *arguments: Any) -> Delayed:
        points = delayed(checked_points)(block, array_options(self.metric))
        some = delayed(_at_least_one)(points)
        results = self._model.apply(method, some, *arguments)
        return delayed(_cut)(results, points, Holder(self._model))

    def _probabilities(self, block: Delayed, class_prior: Any = None) -> Delayed:
        probabilities = self._apply("probabilities", block)
        if class_prior is None:
            return probabilities
        return delayed(for_proportions)(probabilities, self.class_counts_, class_prior)

    def _chosen(self, block: Delayed) -> Delayed:
        return delayed(_choose)(self._probabilities(block), self.classes_)


def _at_least_one(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give a block without points one, which `_cut` leaves out: results then have their form."""
    return points if len(points) else np.zeros((1, points.shape[1]))


def _cut(results: Any, points: NDArray[np.float64], model: Holder) -> Any:
    if isinstance(results, tuple):
        return tuple(result[: len(points)] for result in results)
    return results[: len(points)]


def _choose(probabilities: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    return classes[np.argmax(probabilities, axis=1)]


def _log(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # a probability of zero is an answer
        return np.log(probabilities)


def _count_equal(predicted: NDArray[Any], truth: Any) -> int:
    return int((predicted == np.asarray(truth).ravel()).sum())
