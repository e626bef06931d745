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
from nearfield._fitting import all_or_nothing
from nearfield.dask._kept import Holder, Kept
from nearfield.dask._rows import Rows, aligned
from nearfield.dask._training import TrainingBlocks, checked_points
from nearfield.estimators import array_options, calibration_rows, check_words, decisions_from
from nearfield.prediction import check_class_prior, class_odds, multiply_odds
from nearfield.prediction.conformal import (
    held_out_membership,
    membership_p_values,
    set_p_values,
)


class LazyClassifier:
    """A classifier on Dask arrays and frames, whose predictions are lazy.

    Comes before the estimator of one machine among the bases of a class. That estimator has the
    settings; `_model` has what is on the workers.
    """

    _model: Any
    _training: TrainingBlocks
    _local_class: Any
    classes_: NDArray[Any]
    class_counts_: NDArray[np.int64]
    calibration_rows_: NDArray[np.int64]
    calibration_points_: NDArray[np.float64]
    calibration_labels_: NDArray[np.int64]
    metric: Any
    class_prior: Any
    class_weight: Any

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Infer the parameters from labelled points.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
            In blocks of rows, which may be empty, lack a class or be of unknown length.
        y : dask Array or Series, shape (n_samples,)
            In any blocks; those of X are taken.
        sample_weight : None
            Weights are refused on Dask.

        Returns
        -------
        self : object
        """
        self._check_settings()
        if sample_weight is not None or self.class_weight is not None:
            raise ValueError(
                "Expected points without weights on Dask; got sample_weight or class_weight. Fit "
                f"nearfield.{type(self).__name__} to as many points as one machine holds, or use "
                "class_prior."
            )
        features, classes = Rows.from_collection(X, "X"), Rows.from_collection(y, "y")
        self._check_features(features, reset=True)
        options = array_options(self.metric)
        return self._fit_training(TrainingBlocks.from_rows(features, classes, options))

    def _fit_training(self, training: TrainingBlocks) -> Self:
        """Infer the parameters from rows that were checked."""
        check_class_prior(self.class_prior, training.n_classes)
        self._keep_model(training, *self._fit_model(training))
        training.release()
        return self

    def _keep_model(self, training: TrainingBlocks, model: Any, fitted: dict[str, Any]) -> None:
        """Set what is fitted, all at once."""
        self.classes_, self.class_counts_ = training.classes, training.class_counts
        self.n_features_in_ = training.n_features
        for name, value in fitted.items():
            setattr(self, name, value)
        self._model = model
        for name in ("calibration_rows_", "_held_out_proba", "_membership"):
            self.__dict__.pop(name, None)
        self._training = training

    def predict_proba(self, X: Any) -> Any:
        """Give the probability of each class, averaged over the posterior of the parameters.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)

        Returns
        -------
        probabilities : dask Array or DataFrame, shape (n_samples, n_classes)
            Lazy.
        """
        rows = self._new_rows(X)
        return rows.lazily(self._probabilities, list(self.classes_), np.float64)

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
        arguments = level, self._class_odds()
        intervals = {block.key: self._apply("interval", block, *arguments) for block in rows.blocks}

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

    @all_or_nothing
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Refuse: points are added on one machine."""
        raise _refusal("partial_fit")

    def influence(self, X: Any) -> Any:
        """Refuse: the result has a column for each training point."""
        raise _refusal("influence")

    def explain(self, X: Any, *, n_samples: int = 10) -> Any:
        """Refuse: explanations need the influence of every training point."""
        raise _refusal("explain")

    def membership(self, X: Any, *, class_conditional: bool = True) -> Any:
        """Give the p-value that each point belongs to each class, lazily.

        As `nearfield.DistanceNeighborsClassifier.membership`: at most 2,000 training points, by
        which it is calibrated, come here at first use.

        Returns
        -------
        p_values : dask Array or DataFrame, shape (n_samples, n_classes)
        """
        membership = partial(self._membership_of, class_conditional=class_conditional)
        return self._new_rows(X).lazily(membership, list(self.classes_), np.float64)

    def predict_set(self, X: Any, coverage: float = 0.9, *, class_conditional: bool = True) -> Any:
        """Give prediction sets, lazily: as `nearfield.DistanceNeighborsClassifier.predict_set`.

        Returns
        -------
        sets : dask Array or DataFrame of bool, shape (n_samples, n_classes)
        """
        check_level(coverage, "coverage")
        rows = self._new_rows(X)

        def in_set(block: Delayed) -> Delayed:
            membership = self._membership_of(block, class_conditional)
            p_values = self._p_values_of_sets(block, membership, class_conditional)
            return delayed(np.greater)(p_values, 1.0 - coverage)

        return rows.lazily(in_set, list(self.classes_), np.bool_)

    def decide(self, X: Any, level: float = 0.05) -> Any:
        """Decide, lazily: as `nearfield.DistanceNeighborsClassifier.decide`.

        Returns
        -------
        decisions : dask Array or Series of object, shape (n_samples,)
        """
        check_level(level, usual=0.05)
        rows = self._new_rows(X)
        check_words(self.classes_)

        def decision(block: Delayed) -> Delayed:
            membership = self._membership_of(block, False)
            p_values = self._p_values_of_sets(block, membership, False)
            return delayed(decisions_from)(membership, p_values, self.classes_, level)

        return rows.lazily(decision, None, object)

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
        local = self._model.to_local(self._local())
        self._membership_scores()
        for name in ("calibration_rows_", "calibration_points_", "calibration_labels_"):
            setattr(local, name, getattr(self, name))
        return local

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

    def _class_odds(self) -> NDArray[np.float64] | None:
        return class_odds(self.class_prior, self.class_counts_)

    def _probabilities(self, block: Delayed) -> Delayed:
        return delayed(multiply_odds)(self._apply("probabilities", block), self._class_odds())

    def _membership_scores(self) -> Any:
        """Score the calibration points, which come here when they are first needed."""
        if not hasattr(self, "calibration_rows_"):
            training = self._training
            choose = partial(calibration_rows, n_features=training.n_features)
            rows = training.of_labels(choose)
            self.calibration_points_, self.calibration_labels_ = training.apply(_take, rows)
            self.calibration_rows_ = rows
            training.release()
        return super()._membership_scores()  # type: ignore[misc]

    def _membership_of(self, block: Delayed, class_conditional: bool) -> Delayed:
        points = delayed(checked_points)(block, array_options(self.metric))
        scores = self._membership_scores()
        return delayed(membership_p_values)(scores, points, class_conditional=class_conditional)

    def _p_values_of_sets(
        self, block: Delayed, membership: Delayed, class_conditional: bool
    ) -> Delayed:
        held_out = held_out_membership(
            self._membership_scores(),
            class_conditional=class_conditional,
        )
        return delayed(set_p_values)(
            membership,
            held_out,
            self._probabilities(block),
            multiply_odds(self.held_out_proba_, self._class_odds()),  # type: ignore[attr-defined]
            self.calibration_labels_,
            class_conditional=class_conditional,
        )

    def _held_out_probabilities(self) -> NDArray[np.float64]:
        return self._model.conditional_probabilities(self.calibration_rows_)

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

    def conditional_probabilities(self, sites: NDArray[np.int64]) -> NDArray[np.float64]:
        """Fetch the class probabilities of the calibration points, each held out."""
        return delayed(getattr)(self.estimator.value, "held_out_proba_").compute()

    def to_local(self, estimator: Any) -> Any:
        """Fetch the fitted estimator with its training points; it has the settings of another."""
        return self.estimator.value.compute().set_params(class_prior=estimator.class_prior)

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point; see `ShardedModel.apply`."""
        return delayed(_predict)(self.estimator.value, method, points, *arguments)


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


def _predict(estimator: Any, method: str, points: NDArray[np.float64], *arguments: Any) -> Any:
    if method == "interval":
        return estimator._interval(points, *arguments)
    return getattr(estimator, {"probabilities": "predict_proba"}.get(method, method))(points)


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


def _take(
    points: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return points, labels


def _choose(probabilities: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    return classes[np.argmax(probabilities, axis=1)]


def _log(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):  # a probability of zero is an answer
        return np.log(probabilities)


def _count_equal(predicted: NDArray[Any], truth: NDArray[Any]) -> int:
    return int((predicted == truth).sum())
