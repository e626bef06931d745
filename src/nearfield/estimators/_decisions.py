"""Decisions with stated error rates: p-values of membership, prediction sets, "none of these"."""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_level
from nearfield.datasets import stratified_split
from nearfield.estimators._joint import all_training_distances, family_over
from nearfield.estimators._metric import is_named, learning_rows
from nearfield.estimators._settings import check_flag
from nearfield.estimators._sizes import sizes
from nearfield.estimators._stacking import deal_folds
from nearfield.estimators._validation import check_new_points
from nearfield.field import take
from nearfield.prediction import map_chunks, multiply_odds
from nearfield.prediction.conformal import (
    held_out_membership,
    membership_p_values,
    set_p_values,
)
from nearfield.prediction.membership import (
    NearestInClass,
    Scores,
    WithinClassDistance,
    rows_at_once,
)

Floats = NDArray[np.float64]

_MAX_VALUES = 2**24  # of the features of calibration points: 128 MB
_N_FOLDS = 10

NONE, UNDECIDED = "none", "undecided"


class DecisionMixin:
    """Membership, prediction sets and decisions of a classifier with class probabilities.

    Attributes
    ----------
    calibration_rows_ : ndarray of int, shape (n_calibration,)
        The training points that decisions are calibrated by, at most 2,000: all, or on the
        k-nearest-neighbour graph of more than 1,500 points those that no metric was learned from.
    calibration_points_ : ndarray, shape (n_calibration, n_features)
        Their features.
    calibration_labels_ : ndarray of int, shape (n_calibration,)
        Their classes, as places in ``classes_``.
    """

    classes_: NDArray[Any]
    labels_: NDArray[np.int64]
    metric: Any
    metric_space_: Any
    n_jobs: Any
    predict_proba: Callable[..., Floats]
    _held_out_probabilities: Callable[[], Floats]
    _class_odds: Callable[[], Floats | None]
    calibration_rows_: NDArray[np.int64]
    calibration_points_: Floats
    calibration_labels_: NDArray[np.int64]

    @property
    @abstractmethod
    def _has_conditionals(self) -> bool:
        """Whether conditionals on the graph stand for probabilities of points held out."""

    def membership(self, X: Any, *, class_conditional: bool = True) -> Floats:
        r"""Give the p-value of "this point belongs to class g" for every class.

        A small value means that the point is unusual among the training points of the class, in
        the space of all features: the Mahalanobis distance by the covariance within classes, with
        a small ridge for the directions that the training points do not span; see
        `nearfield.prediction.membership.WithinClassDistance`. The p-values are conformal: a true
        member has one of at most alpha with probability at most alpha. With precomputed distances
        or missing values the score is the mean distance to the three nearest points of the class.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        class_conditional : bool
            Whether a class is compared with its own training points alone, so that the error rate
            holds for each class. The smallest p-value of a class of n points is then 1/(n+1).
            If not, it is compared with all training points, each by its score less the level of its
            class, which is the median of the class shrunk halfway to that of all points; the error
            rate holds on average over the classes.

        Returns
        -------
        p_values : ndarray, shape (n_samples, n_classes)
            In the order of ``classes_``; a row may sum to anything.
        """
        check_is_fitted(self)
        check_flag(class_conditional, "class_conditional")
        scores = self._membership_scores()
        points = self._scored_points(check_new_points(self, X))
        function = partial(membership_p_values, scores, class_conditional=class_conditional)
        return map_chunks(function, points, rows_at_once(len(scores.labels)), self.n_jobs)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, class_conditional: bool = True
    ) -> NDArray[np.bool_]:
        """Give the classes that a point may belong to: a conformal prediction set.

        The set contains the true class with probability `coverage` or more, for points like the
        training points. A class is left out if the point is unusual among its members (see
        `membership`), or if its probability is small beside that of held-out training points.
        The empty set means "none of these".

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        coverage : float
            Between 0 and 1.
        class_conditional : bool
            Whether the coverage holds for the points of each class, or over all points. With it,
            a class with fewer than coverage / (1 - coverage) training points is in every set.

        Returns
        -------
        sets : ndarray of bool, shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_level(coverage, "coverage")
        membership = self.membership(X, class_conditional=class_conditional)
        probabilities = self.predict_proba(X)
        return self._set_p_values(membership, probabilities, class_conditional) > 1.0 - coverage

    def decide(self, X: Any, level: float = 0.05) -> NDArray[Any]:
        """Give a class, or say that it is undecided or none of the known ones.

        A point is ``"none"`` if no class has a marginal p-value of `membership` above `level`: of
        points like the training points, at most this share is refused. Otherwise it gets the one
        class in its marginal prediction set of coverage 1 - `level`, and is ``"undecided"`` if
        there is not exactly one.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        level : float
            The error rate, between 0 and 1.

        Returns
        -------
        decisions : ndarray of object, shape (n_samples,)
            Values of ``classes_``, ``"undecided"`` and ``"none"``.
        """
        check_level(level, usual=0.05)
        check_is_fitted(self)
        check_words(self.classes_)
        membership = self.membership(X, class_conditional=False)
        p_values = self._set_p_values(membership, self.predict_proba(X), False)
        return decisions_from(membership, p_values, self.classes_, level)

    @property
    def held_out_proba_(self) -> Floats:
        """Class probabilities of the calibration points, each held out, (n_calibration, G).

        By the class proportions of the training points, whatever the `class_prior`. Computed at
        first use. They come from ten folds, in which the metric is learned anew and the posterior
        is that of all points; on the k-nearest-neighbour graph of more than 1,500 points they are
        the conditionals given all other labels.
        """
        check_is_fitted(self)
        if not hasattr(self, "_held_out_proba"):
            self._held_out_proba = self._held_out_probabilities()
        return self._held_out_proba

    def _set_p_values(
        self, membership: Floats, probabilities: Floats, class_conditional: bool
    ) -> Floats:
        held_out = held_out_membership(
            self._membership_scores(), class_conditional=class_conditional
        )
        return set_p_values(
            membership,
            held_out,
            probabilities,
            multiply_odds(self.held_out_proba_, self._class_odds()),
            self.calibration_labels_,
            class_conditional=class_conditional,
        )

    def _keep_calibration(
        self, X: Any, labels: NDArray[np.int64], groups: NDArray[np.int64] | None = None
    ) -> None:
        """Keep the training points that decisions are calibrated by, and their groups."""
        for name in ("_held_out_proba", "_membership"):
            self.__dict__.pop(name, None)
        self.calibration_rows_ = calibration_rows(
            labels, X.shape[1], is_learned=not self._has_conditionals
        )
        self.calibration_labels_ = labels[self.calibration_rows_]
        self._calibration_groups = None if groups is None else groups[self.calibration_rows_]
        points = X[self.calibration_rows_]
        if is_named(self.metric, "precomputed"):
            points = points[:, :0]
        self.calibration_points_ = points.toarray() if sp.issparse(points) else points

    @property
    def _is_scored_by_features(self) -> bool:
        """Whether the points have features without gaps; else only distances."""
        return not is_named(self.metric, "precomputed", "nan_euclidean")

    def _membership_scores(self) -> Scores:
        """Score the calibration points, each in its own class; kept until the next fit."""
        if not hasattr(self, "_membership"):
            labels, n_classes = self.calibration_labels_, len(self.classes_)
            self._membership: Scores = (
                WithinClassDistance.from_points(self.calibration_points_, labels, n_classes)
                if self._is_scored_by_features
                else NearestInClass.from_distances(self._calibration_distances(), labels, n_classes)
            )
        return self._membership

    def _scored_points(self, X: Any) -> Floats:
        """Take new points to what the scores of membership take: features, or distances."""
        if not self._is_scored_by_features:
            return self.metric_space_.distances_to(X)[:, self.calibration_rows_]
        return X.toarray() if sp.issparse(X) else X

    def _calibration_distances(self) -> Floats:
        distances = all_training_distances(self)
        return distances[np.ix_(self.calibration_rows_, self.calibration_rows_)]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the calibration points."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_membership"}


def check_words(classes: NDArray[Any]) -> None:
    """Refuse classes with the names of other decisions."""
    taken = sorted({NONE, UNDECIDED} & set(classes.tolist()))
    if taken:
        raise ValueError(
            f"Expected classes other than {NONE!r} and {UNDECIDED!r}, which decide uses; got "
            f"classes named {taken}. Use predict_set and membership."
        )


def decisions_from(
    membership: Floats, p_values: Floats, classes: NDArray[Any], level: float
) -> NDArray[Any]:
    """Decide by marginal p-values of membership and of prediction sets, each shape (m, G)."""
    is_in_set = p_values > level
    decisions = classes[is_in_set.argmax(axis=1)].astype(object)
    decisions[is_in_set.sum(axis=1) != 1] = UNDECIDED
    decisions[~(membership > level).any(axis=1)] = NONE
    return decisions


def calibration_rows(
    labels: NDArray[np.int64], n_features: int, *, is_learned: bool = False
) -> NDArray[np.int64]:
    """Choose the training points that decisions are calibrated by, class by class.

    All of up to 2,000. Unless metrics are learned again without them (`is_learned`), only such as
    no metric was learned from.
    """
    rows = np.arange(len(labels))
    most = min(sizes().max_calibration, max(_MAX_VALUES // max(n_features, 1), 100))
    if not is_learned and len(labels) > sizes().max_learning:
        rows = np.setdiff1d(rows, learning_rows(len(labels)))
    if len(rows) <= most:
        return rows
    chosen, _ = stratified_split(labels[rows], most, random_state=0)
    return rows[chosen]


def held_out_probabilities(
    model: Any,
    points: Floats,
    rows: NDArray[np.int64],
    groups: NDArray[np.int64] | None = None,
) -> Floats:
    """Give class probabilities of some training points, each held out, shape (m, G).

    Parameters
    ----------
    model : FieldClassifier
    points : ndarray, shape (m, n_features)
        The features of these points, if the model has features.
    rows : ndarray of int, shape (m,)
        Which of the training points they are.
    groups : ndarray of int, shape (m,), optional
        Points of one group are held out together.
    """
    if model._has_conditionals:
        return model._current_predictor().conditional_probabilities(rows)
    labels = model.labels_[rows]
    probabilities = np.empty((len(rows), len(model.classes_)))
    is_given = is_named(model.metric, "precomputed")
    distances = all_training_distances(model)[np.ix_(rows, rows)] if is_given else None
    for training, held_out in deal_folds(np.random.default_rng(0), labels, _N_FOLDS, groups):
        if distances is None:
            X, new = points[training], points[held_out]
        else:
            X, new = distances[np.ix_(training, training)], distances[np.ix_(held_out, training)]
        weights = take(model._multiplicities, rows[training])
        part = model_of_points(model, X, labels[training], weights)
        predictor = part._ready_predictor()
        predict = partial(_predict, part, predictor)
        probabilities[held_out] = map_chunks(predict, new, predictor.chunk_size)
    return probabilities


def _predict(model: Any, predictor: Any, X: Any) -> Floats:
    return predictor.probabilities(model._view(X))


def model_of_points(
    model: Any, X: Any, labels: NDArray[np.int64], multiplicities: Floats | None = None
) -> Any:
    """Make the model of other training points with the same parameters; its metric is learned."""
    other, space = copy(model), model._fit_space(X, labels)
    distances = X if is_named(model.metric, "precomputed") else None
    family, index = family_over(model, space, distances, multiplicities)
    fitted = family, model.posterior_, model.priors_, model.inference_
    other._keep(space, labels, *fitted, index=index)
    return other
