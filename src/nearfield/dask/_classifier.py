"""The distance nearest neighbour classifier on Dask collections."""

from dataclasses import replace
from operator import getitem
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield import estimators
from nearfield._checks import check_level
from nearfield.dask._fit import fit_near, fit_whole
from nearfield.dask._near import NearModel
from nearfield.dask._rows import Rows, aligned, lengths_of
from nearfield.dask._training import TrainingRows, checked_points
from nearfield.dask._whole import WholeModel
from nearfield.estimators._base import for_proportions
from nearfield.estimators._field import EXTERNAL_FIELDS
from nearfield.estimators._metric import is_named
from nearfield.estimators._settings import check_choice, check_common
from nearfield.estimators._validation import array_options, check_class_prior
from nearfield.prediction import PREDICTIVES


class DistanceNeighborsClassifier(estimators.DistanceNeighborsClassifier):
    """Bayesian classification by distance nearest neighbours, on Dask arrays and frames.

    The same model, parameters and answers as `nearfield.DistanceNeighborsClassifier` has with
    exact search. The training points stay spread over the workers; the client sees counts, sums,
    a few thousand sampled rows at most, and the posterior. Predictions are lazy: Dask arrays with
    the chunks of X, or frames and series with its partitions and index.

    Works on the active `distributed.Client`, or by any other scheduler of Dask. The values of a
    worker that is lost are computed again from what X and y are made of. A pickled copy holds how
    the training points come about, and brings them to its workers when it first predicts.

    Parameters
    ----------
    kernel, metric, metric_params, standardize, inference, predictive, prior_beta, prior_sigma, \
external_field, n_neighbors, n_jobs, random_state, verbose
        As those of `nearfield.DistanceNeighborsClassifier`; ``metric="precomputed"`` is refused,
        and so, where the near field is used, is any inference but pseudolikelihood. `n_jobs`
        counts the threads of one worker.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X is a frame.
    posterior_, priors_, inference_, external_field_
        As those of `nearfield.DistanceNeighborsClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from nearfield.dask import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_wine
    >>> X, y = (da.from_array(part, chunks=60) for part in load_wine(return_X_y=True))
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> model.predict_proba(X).chunks
    ((60, 60, 58), (3,))
    >>> model.score(X, y) > 0.95
    True
    """

    _model: WholeModel | NearModel

    def fit(self, X: Any, y: Any) -> Self:
        """Infer the parameters of the field from labelled points.

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
        features, classes = Rows.of(X, "X"), Rows.of(y, "y")
        self._check_features(features, reset=True)
        training = TrainingRows.of(features, classes, array_options(self.metric))
        self.classes_, self.class_counts_ = training.classes, training.class_counts
        is_near = self._wants_near_field(training.n_points)
        model, fitted = (fit_near if is_near else fit_whole)(self, training)
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

    def score(self, X: Any, y: Any) -> float:
        """Compute the share of points whose class is the predicted one.

        Parameters
        ----------
        X : dask Array or DataFrame, shape (n_samples, n_features)
        y : dask Array or Series, shape (n_samples,)
        """
        rows, classes = self._new_rows(X), Rows.of(y, "y")
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

    def to_local(self) -> estimators.DistanceNeighborsClassifier:
        """Bring the training points here, as the fitted estimator of one machine."""
        check_is_fitted(self)
        if isinstance(self._model, WholeModel):
            return self._model.to_local()
        local = estimators.DistanceNeighborsClassifier(**self.get_params(deep=False))
        for name in ("classes_", "n_features_in_", "feature_names_in_", "neighborhood_error_"):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        field = self._model.near_field()
        space = replace(self.metric_space_, points=field.points)
        local._keep(space, field, field.labels, self.priors_, self.posterior_, self.inference_)
        return local

    def _check_settings(self) -> None:
        check_choice(self.predictive, "predictive", PREDICTIVES)
        check_choice(self.external_field, "external_field", EXTERNAL_FIELDS)
        check_common(self)
        if is_named(self.metric, "precomputed"):
            raise ValueError(
                'Expected a metric of features on Dask; got metric="precomputed". '
                "Use nearfield.DistanceNeighborsClassifier for given distances."
            )

    def _new_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = Rows.of(X, "X")
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
        return delayed(_cut)(self._model.apply(method, some, *arguments), points)

    def _probabilities(self, block: Delayed, class_prior: Any = None) -> Delayed:
        probabilities = self._apply("probabilities", block)
        if class_prior is None:
            return probabilities
        return delayed(for_proportions)(probabilities, self.class_counts_, class_prior)

    def _chosen(self, block: Delayed) -> Delayed:
        return delayed(_choose)(self._probabilities(block), self.classes_)

    def _make_predictor(self) -> None:
        """Predictions are made on the workers."""


def _at_least_one(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give a block without points one, which `_cut` leaves out: results then have their form."""
    return points if len(points) else np.zeros((1, points.shape[1]))


def _cut(results: Any, points: NDArray[np.float64]) -> Any:
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
