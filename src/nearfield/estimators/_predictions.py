"""What every classifier with a posterior predicts: probabilities, intervals, influences."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_level
from nearfield.estimators._decisions import DecisionMixin
from nearfield.estimators._explanations import ExplanationMixin
from nearfield.estimators._validation import check_new_points
from nearfield.prediction import multiply_odds

Floats = NDArray[np.float64]


class PosteriorMixin(DecisionMixin, ExplanationMixin):
    """Predictions averaged over a posterior, decisions and explanations."""

    _predict_gaps: Callable[..., tuple[Floats, ...]]

    @abstractmethod
    def _averages_of(self, points: Any) -> Floats:
        """Average the class probabilities of checked points, by the proportions of training."""

    @abstractmethod
    def _bounds_of(self, points: Any, level: float, odds: Floats | None) -> tuple[Floats, Floats]:
        """Bound the class probabilities of checked points, given factors of the classes' odds."""

    def predict_proba(self, X: Any) -> Floats:
        """Give the probability of each class, averaged over the posterior of the parameters.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances to the training points, shape
            (n_samples, n_training). A row with missing values in columns that had none in
            training is averaged over the values that its ten nearest training points have there;
            one without any value gets the class proportions of training, or `class_prior`.

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        odds = self._class_odds()
        return self._predict_gaps(X, odds, lambda points: (self._proba_of(points),))[0]

    def _proba_of(self, points: Any) -> Floats:
        """Give the class probabilities of checked points."""
        return multiply_odds(self._averages_of(points), self._class_odds())

    def predict_proba_interval(self, X: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """Give credible intervals of the class probabilities.

        What is uncertain here are the parameters, and which estimator of an average is right;
        given these, the class of a point has one probability.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        level : float
            The probability of the equal-tailed intervals.

        Returns
        -------
        lower, upper : ndarray, shape (n_samples, n_classes)
        """
        check_level(level)
        return self._interval(X, level, self._class_odds())

    def _interval(self, X: Any, level: float, odds: Floats | None) -> tuple[Floats, Floats]:
        """Bound the class probabilities, given factors of the classes' odds."""
        check_is_fitted(self)
        lower, upper = self._predict_gaps(
            X, odds, lambda points: self._bounds_of(points, level, odds)
        )
        return lower, upper

    def influence(self, X: Any) -> Floats:
        r"""Tell how much each training point adds to the score of its class in a prediction.

        .. math:: \operatorname{E}[\beta c^*_j \mid y], \qquad
                  \log p(g) = \text{const} + \beta \sum_j c^*_j 1[y_j = g]

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        influence : ndarray, shape (n_samples, n_training)
            In units of log odds; of an average, the weighted mean over its estimators.
        """
        check_is_fitted(self)
        return self._influence_of(check_new_points(self, X))
