"""Classifiers on Dask collections: the methods of one machine, applied to blocks."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial, wraps
from operator import itemgetter
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._fitting import all_or_nothing
from nearfield.dask._kept import each
from nearfield.dask._rows import Rows, aligned
from nearfield.dask._training import TrainingBlocks, checked_points
from nearfield.estimators import (
    FieldClassifier,
    PosteriorMixin,
    ProbabilisticClassifier,
    array_options,
)
from nearfield.prediction import check_class_prior

Floats = NDArray[np.float64]


def _lazy(name: str) -> Any:
    """Make a method that applies the one of this name of one machine to each block, lazily."""
    local = getattr(FieldClassifier, name)

    @wraps(local)
    def method(self: Any, X: Any, *arguments: Any, **settings: Any) -> Any:
        rows = self._new_rows(X)
        form, results = self._apply(name, rows, *arguments, **settings)
        if not isinstance(form, tuple):
            return rows.with_results(results, form, self.classes_)
        columns = (each(itemgetter(which), results) for which in range(len(form)))
        return tuple(map(partial(rows.with_results, names=self.classes_), columns, form))

    method.__doc__ = f"On Dask: X and the results are lazy arrays or frames. {local.__doc__}"
    return method


def _refused(name: str) -> Any:
    """Make a method that refuses, since it needs all training points in one place."""

    def method(self: Any, X: Any, *arguments: Any, **settings: Any) -> Any:
        """Refuse: this needs all training points in one place."""
        raise ValueError(
            f"Expected points on one machine for {name}; got an estimator on Dask. "
            f"Use to_local().{name}(...), if the training points fit there."
        )

    return method


class BlockClassifier(PosteriorMixin, ProbabilisticClassifier):
    """Predicts one block of points, on a worker, by the methods of one machine.

    Attributes
    ----------
    source : object
        Of the averages over the posterior, for the points of this block. Without one, all classes
        have the same probability.
    scores : Scores
        Of membership; where a decision needs them.
    held_out : ndarray, shape (n_calibration, n_classes)
        Probabilities of the calibration points; where a decision needs them.
    """

    metric: Any
    class_counts_: NDArray[np.int64]
    source: Any = None
    scores: Any
    held_out: Floats
    fit = n_jobs = None  # scikit-learn asks whether there is a method `fit`

    def _averages_of(self, points: Floats) -> Floats:
        if self.source is None:
            n_classes = len(self.classes_)
            return np.full((len(points), n_classes), 1.0 / n_classes)
        return self.source._averages_of(points)

    def _bounds_of(
        self, points: Floats, level: float, odds: Floats | None
    ) -> tuple[Floats, Floats]:
        if self.source is None:
            return self._averages_of(points), self._averages_of(points)
        return self.source._bounds_of(points, level, odds)

    def outlier_score(self, X: Floats) -> Floats:
        """Tell how far each point is from all training points."""
        return np.zeros(len(X)) if self.source is None else self.source.outlier_score(X)

    def _class_counts(self) -> NDArray[Any]:
        return self.class_counts_

    def _membership_scores(self) -> Any:
        return self.scores

    def _held_out_probabilities(self) -> Floats:
        return self.held_out


class LazyClassifier(PosteriorMixin, ProbabilisticClassifier):
    """A classifier on Dask arrays and frames, whose predictions are lazy.

    Comes before the estimator of one machine among the bases of a class. That estimator has the
    settings; `_model` has what is on the workers.
    """

    _model: Any
    _training: TrainingBlocks
    _local_class: Any
    _check_settings: Callable[[], None]
    _fit_model: Callable[[TrainingBlocks], Any]
    _fitted_names: Sequence[str]
    class_counts_: NDArray[np.int64]
    class_weight: Any

    predict_proba = _lazy("predict_proba")
    predict_log_proba = _lazy("predict_log_proba")
    predict = _lazy("predict")
    predict_proba_interval = _lazy("predict_proba_interval")
    outlier_score = _lazy("outlier_score")
    membership = _lazy("membership")
    predict_set = _lazy("predict_set")
    decide = _lazy("decide")
    predict_joint = _refused("predict_joint")
    partial_fit = _refused("partial_fit")
    influence = _refused("influence")
    explain = _refused("explain")

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
        training = TrainingBlocks.from_rows(features, classes, array_options(self.metric))
        check_class_prior(self.class_prior, training.n_classes)
        self._model, self._training = self._fit_model(training), training
        self.__dict__.update(self._model.fitted(self._fitted_names))
        self.classes_, self.class_counts_ = training.classes, training.class_counts
        for name in ("calibration_rows_", "_held_out_proba", "_membership"):
            self.__dict__.pop(name, None)
        training.blocks.release()
        return self

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of points whose class is the predicted one.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        y : dask Array or Series, shape (n_samples,)
        """
        rows, truth = self._new_rows(X), Rows.from_collection(y, "y")
        lengths, y_lengths = rows.lengths(), truth.lengths()
        n_rows = sum(lengths)
        if n_rows != sum(y_lengths):
            raise ValueError(
                f"Expected one class in y for each row of X; got {sum(y_lengths)} for "
                f"{n_rows} rows."
            )
        classes = aligned(each(np.ravel, truth.blocks), y_lengths, lengths)
        pairs = zip(self._apply("predict", rows)[1], classes, strict=True)
        return float(sum(dask.compute(*[(a == b).sum() for a, b in pairs])) / n_rows)

    def to_local(self) -> Any:
        """Bring the training points here, as the fitted estimator of one machine."""
        check_is_fitted(self)
        local = self._model.to_local().set_params(**self.get_params(deep=False))
        self._fetch_calibration()
        for name in ("calibration_rows_", "calibration_points_", "calibration_labels_"):
            setattr(local, name, getattr(self, name))
        return local

    def _local(self, classes: NDArray[Any], **settings: Any) -> Any:
        """Make the estimator of one machine, by the prior of the training points."""
        local = self._local_class(**self.get_params(deep=False) | {"class_prior": None} | settings)
        local.classes_ = classes
        for name in ("n_features_in_", "feature_names_in_"):
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

    def _apply(
        self, method: str, rows: Rows, *arguments: Any, **settings: Any
    ) -> tuple[Any, list[Delayed]]:
        """Apply a method of one machine to each block; give a result for its form, and theirs."""
        classifier = self._block_classifier(method)
        one_point = np.zeros((1, self.n_features_in_))
        form = getattr(classifier, method)(one_point, *arguments, **settings)  # checks the settings
        there, options, results = delayed(classifier), array_options(self.metric), []
        for block in rows.blocks:
            points = delayed(checked_points)(block, options)
            source = None
            if method != "membership":
                source = self._model.source(delayed(_at_least_one)(points), method)
            results.append(delayed(_predict)(there, source, points, method, *arguments, **settings))
        return form, results

    def _block_classifier(self, method: str) -> BlockClassifier:
        """Make what predicts blocks, with what this method needs of the calibration points."""
        classifier = BlockClassifier()
        for name in ("metric", "class_prior", "classes_", "class_counts_", "n_features_in_"):
            setattr(classifier, name, getattr(self, name))
        if method in ("membership", "predict_set", "decide"):
            classifier.scores = self._membership_scores()
            classifier.calibration_labels_ = self.calibration_labels_
        if method in ("predict_set", "decide"):
            classifier.held_out = self.held_out_proba_
        return classifier

    def _fetch_calibration(self) -> None:
        """Bring the calibration points here, when they are first needed."""
        if not hasattr(self, "calibration_rows_"):
            for name, value in self._model.calibration(self._training).items():
                setattr(self, name, value)
            self._training.blocks.release()

    def _membership_scores(self) -> Any:
        if not self._is_scored_by_features:
            raise ValueError(
                "Expected a metric of features without gaps for decisions on Dask; got "
                f"metric={self.metric!r}. Use to_local(), if the training points fit there."
            )
        self._fetch_calibration()
        return super()._membership_scores()

    def _held_out_probabilities(self) -> Floats:
        self._fetch_calibration()
        return self._model.conditional_probabilities(self.calibration_rows_)


def _predict(
    classifier: BlockClassifier,
    source: Any,
    points: Floats,
    method: str,
    *arguments: Any,
    **settings: Any,
) -> Any:
    """Apply a method to a block of points, which has a source of its own."""
    classifier = copy(classifier)
    classifier.source = source
    results = getattr(classifier, method)(_at_least_one(points), *arguments, **settings)
    if isinstance(results, tuple):
        return tuple(result[: len(points)] for result in results)
    return results[: len(points)]


def _at_least_one(points: Floats) -> Floats:
    """Give a block without points one, which is left out in the end: results have their form."""
    return points if len(points) else np.zeros((1, points.shape[1]))
