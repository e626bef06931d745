"""Lazy predictions on Dask collections from a model on the workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import getitem
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._checks import check_level
from nearfield.dask._kept import Holder, Kept
from nearfield.dask._rows import Rows, aligned
from nearfield.dask._training import TrainingBlocks, checked_points
from nearfield.estimators import array_options, check_class_prior, for_proportions


class LazyClassifier:
    """A classifier on Dask arrays and frames, whose predictions are lazy.

    Comes before the estimator of one machine among the bases of a class. That estimator has the
    settings; `_model` has what is on the workers.
    """

    _model: Any
    _local_class: Any
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
        options = array_options(self.metric)
        return self._fit_training(TrainingBlocks.from_rows(features, classes, options))

    def _fit_training(self, training: TrainingBlocks) -> Self:
        """Infer the parameters from rows that were checked."""
        model, fitted = self._fit_model(training)
        self.classes_, self.class_counts_ = training.classes, training.class_counts
        self.n_features_in_ = training.n_features
        for name, value in fitted.items():
            setattr(self, name, value)
        self._model = model
        training.release()
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
        probabilities = partial(self._probabilities, class_prior=class_prior)
        return rows.lazily(probabilities, list(self.classes_), np.float64)

    def predict_log_proba(self, X: Any) -> Any:
        """Give the log probability of each class, shape (n_samples, n_classes), lazily."""
        return self._new_rows(X).lazily(
            lambda block: delayed(_log)(self._probabilities(block)), list(self.classes_), np.float64
        )

    def predict(self, X: Any) -> Any:
        """Give the most probable class of each point, shape (n_samples,), lazily."""
        return self._new_rows(X).lazily(self._chosen, None, self.classes_.dtype)

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

        def bound(which: int) -> Any:
            return rows.lazily(
                lambda block: delayed(getitem)(intervals[block.key], which),
                list(self.classes_),
                np.float64,
            )

        return bound(0), bound(1)

    def outlier_score(self, X: Any) -> Any:
        """Tell how far each point is from all training points, shape (n_samples,), lazily."""
        return self._new_rows(X).lazily(partial(self._apply, "outlier_score"), None, np.float64)

    def predict_joint(self, X: Any, *arguments: Any, **keywords: Any) -> Any:
        """Refuse: joint draws need all points in one place."""
        raise _refusal("predict_joint")

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Refuse: points are added on one machine."""
        raise _refusal("partial_fit")

    def influence(self, X: Any) -> Any:
        """Refuse: the result has a column for each training point."""
        raise _refusal("influence")

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of points whose class is the predicted one.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        y : dask Array or Series, shape (n_samples,)
        """
        rows, truth = self._new_rows(X), Rows.from_collection(y, "y")
        lengths, y_lengths = rows.lengths(), truth.lengths()
        if sum(lengths) != sum(y_lengths):
            raise ValueError(
                f"Expected one class in y for each row of X; got {sum(y_lengths)} for "
                f"{sum(lengths)} rows."
            )
        flat = [delayed(np.ravel)(block) for block in truth.blocks]
        pairs = zip(rows.blocks, aligned(flat, y_lengths, lengths), strict=True)
        n_right = [delayed(_count_equal)(self._chosen(block), classes) for block, classes in pairs]
        return float(sum(dask.compute(*n_right)) / sum(lengths))

    def to_local(self) -> Any:
        """Bring the training points here, as the fitted estimator of one machine."""
        check_is_fitted(self)
        return self._model.to_local(self._local())

    def _check_settings(self) -> None:
        """Refuse settings that make no model."""
        raise NotImplementedError

    def _fit_model(self, training: TrainingBlocks) -> tuple[Any, dict[str, Any]]:
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
        if rows.sample.ndim != 2:
            raise ValueError(
                "Expected X of two dimensions, (n_samples, n_features); got one. "
                "Reshape it, or take a frame of one column."
            )
        validate_data(self, rows.sample, reset=reset, skip_check_array=True)

    def _apply(self, method: str, block: Delayed, *arguments: Any) -> Delayed:
        points = delayed(checked_points)(block, array_options(self.metric))
        results = self._model.apply(method, delayed(_at_least_one)(points), *arguments)
        return delayed(_cut)(results, points, Holder(self._model))

    def _probabilities(self, block: Delayed, class_prior: Any = None) -> Delayed:
        probabilities = self._apply("probabilities", block)
        if class_prior is None:
            return probabilities
        return delayed(for_proportions)(probabilities, self.class_counts_, class_prior)

    def _chosen(self, block: Delayed) -> Delayed:
        return delayed(_choose)(self._probabilities(block), self.classes_)


@dataclass(frozen=True, eq=False)
class WholeModel:
    """A training set small enough for one machine: an estimator that is fitted on one worker.

    Attributes
    ----------
    estimator : Kept
        One estimator of `nearfield`.
    """

    estimator: Kept

    @classmethod
    def from_training(cls, settings: Any, training: TrainingBlocks) -> "WholeModel":
        """Prepare to fit on all rows, in their order; nothing is computed yet."""
        build = partial(_fit_whole, settings, training.classes)
        return cls(Kept(build, training.points, training.labels))

    def fitted(self, describe: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Fetch a description of the estimator, which does not grow with its points."""
        return delayed(describe)(self.estimator.value).compute()

    def to_local(self, estimator: Any) -> Any:
        """Fetch the fitted estimator with its training points; it has the settings of another."""
        return self.estimator.value.compute()

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point; see `ShardedModel.apply`."""
        names = {"probabilities": "predict_proba", "interval": "predict_proba_interval"}
        return getattr(self.estimator.value, names.get(method, method))(points, *arguments)


def _fit_whole(
    settings: Any, classes: NDArray[Any], points: Sequence[Delayed], labels: Sequence[Delayed]
) -> list[Delayed]:
    return [delayed(_fit)(settings, classes, list(points), list(labels))]


def _fit(
    settings: Any,
    classes: NDArray[Any],
    points: list[NDArray[np.float64]],
    labels: list[NDArray[np.int64]],
) -> Any:
    return settings.fit(np.concatenate(points), classes[np.concatenate(labels)])


def _refusal(method: str) -> ValueError:
    return ValueError(
        f"Expected points on one machine for {method}; got an estimator on Dask. "
        f"Use to_local().{method}(...), if the training points fit there."
    )


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


def _count_equal(predicted: NDArray[Any], truth: NDArray[Any]) -> int:
    return int((predicted == truth).sum())
