"""The recommended classifier: kernels and metrics, averaged."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_level, check_whole
from nearfield._threads import one_blas_thread
from nearfield.estimators import _graph
from nearfield.estimators._at_scale import fit_at_scale, fit_features, share_spaces
from nearfield.estimators._averages import fit_by_evidence, fit_by_stacking
from nearfield.estimators._base import ProbabilisticClassifier, with_class_prior
from nearfield.estimators._candidates import check_average, describe
from nearfield.estimators._settings import check_dense, make_rng
from nearfield.estimators._training import TrainingPoints
from nearfield.estimators._validation import (
    check_further_data,
    check_new_points,
    check_training_data,
)
from nearfield.prediction import map_chunks
from nearfield.prediction.mixture import Mixture

_LEAST_WEIGHT = 0.01  # what a candidate must have to be asked at all


class NearfieldClassifier(ProbabilisticClassifier):
    r"""Bayesian nearest-neighbour classification that needs no settings.

    Every kernel with every metric is a candidate, a label field over the training points; the
    probabilities of the candidates are averaged,

    .. math:: p(y^* = g) = \sum_k w_k\, p_k(y^* = g)

    In every fold the metrics are learned anew, without the points held out. These give, for each
    candidate, the posterior of beta and sigma (a pseudolikelihood in which no label was seen by
    the metric that explains it) and the densities by which the weights are chosen.

    With more than 2,000 points, 1,000 of them choose the candidates, those with a weight of 0.1
    or more, at most three; these are fitted to all points on the k-nearest-neighbour graph, as
    `DistanceNeighborsClassifier` does, and weighted by the labels of up to 2,000 points that no
    metric was learned from, each given all other labels. Those with a weight below 0.05 are
    dropped.

    Parameters
    ----------
    kernels : sequence of str
        Among ``"gaussian"`` and ``"exponential"``.
    metrics : sequence of str or callable
        As those of `DistanceNeighborsClassifier`, but ``"precomputed"``.
    normalize : bool
        Whether features go through `nearfield.distances.PowerTransform` first: a power each,
        which takes their skewness, chosen without labels, from at most 50,000 points. Not done
        with as many features as points, where the powers would be noise.
    averaging : {"stacking", "evidence"}
        How candidates are weighed: by their densities of held-out labels, or as in Bayesian model
        averaging by their evidence, from path sampling. The evidence takes a learned metric as
        given, and so favours it; it costs seconds to minutes a candidate.
    external_field : {"none", "fitted"}
        Whether classes may be favoured before any neighbour speaks; by how much is fitted to the
        held-out labels of each candidate. Not with more than 2,000 points.
    n_folds : int, optional
        10 by default, 5 from 100 points on.
    concentration : float
        How much the weights are drawn together: each candidate has a Dirichlet parameter of one
        plus this.
    n_jobs : int, optional
        Parallel threads; no result depends on it.
    random_state : int, RandomState, Generator or None
        Deals the folds.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    candidates_ : list of DistanceNeighborsClassifier
        Those with a weight of 0.01 or more, fitted on the normalized features.
    weights_ : ndarray, shape (n_candidates,)
    log_scores_ : ndarray, shape (n_candidates,)
        The mean log density of held-out labels, or the log evidence.
    features_ : PowerTransform or None

    Examples
    --------
    >>> from nearfield import NearfieldClassifier
    >>> from nearfield.datasets import load_wine, stratified_split
    >>> X, y = load_wine(return_X_y=True)
    >>> train, test = stratified_split(y, 0.25, random_state=0)
    >>> model = NearfieldClassifier().fit(X[train], y[train])
    >>> model.score(X[test], y[test]) > 0.95
    True
    """

    metric = "euclidean"  # how features are read: dense or sparse numbers, all of them finite

    def __init__(
        self,
        kernels: Sequence[str] = ("gaussian", "exponential"),
        metrics: Sequence[Any] = ("euclidean", "manhattan", "within", "ard", "discriminant"),
        *,
        normalize: bool = True,
        averaging: str = "stacking",
        external_field: str = "fitted",
        n_folds: int | None = None,
        concentration: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.kernels = kernels
        self.metrics = metrics
        self.normalize = normalize
        self.averaging = averaging
        self.external_field = external_field
        self.n_folds = n_folds
        self.concentration = concentration
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all candidates and weigh them.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Classes of any kind: text, whole numbers, truth values.
        """
        check_average(self)
        X, labels = check_training_data(self, X, y)
        is_large = X.shape[0] > _graph.MAX_DENSE_AUTOMATIC and self.averaging == "stacking"
        if not is_large:
            check_dense(X.shape[0])
        points = X.toarray() if sp.issparse(X) else X
        features = None
        if self.normalize and points.shape[1] < len(points):
            features = fit_features(TrainingPoints(points, labels))
            points = features.transform(points)
        with one_blas_thread():
            if is_large:
                training = TrainingPoints(points, labels)
                candidates, log_scores, weights = fit_at_scale(
                    self, training, partial(_fit_candidate, points, self.classes_[labels])
                )
                share_spaces(candidates)
            elif self.averaging == "stacking":
                candidates, log_scores, weights = fit_by_stacking(self, points, labels)
            else:
                candidates, log_scores, weights = fit_by_evidence(self, points, labels)
        weights = np.where(weights < min(_LEAST_WEIGHT, weights.max()), 0.0, weights)
        self.features_ = features
        self.labels_ = labels
        self._keep(candidates, log_scores, weights / weights.sum())
        return self

    def _keep(self, candidates: list[Any], log_scores: Any, weights: Any) -> None:
        """Keep the candidates that have weight, and a description of all."""
        kept = np.flatnonzero(weights)
        self.candidates_ = [candidates[k] for k in kept]
        self.log_scores_, self.weights_ = log_scores[kept], weights[kept]
        self._description = describe(candidates, weights, log_scores)

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        """Add labelled points to every candidate at its fitted parameters; else fit.

        The weights, metrics and posteriors stay as they are: see
        `DistanceNeighborsClassifier.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Of the classes that the estimator was fitted to.
        classes : array-like, optional
            All classes, at the first call; for scikit-learn's sake, and not needed.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X, labels = check_further_data(self, X, y)
        points = self._transform(X)
        for candidate in self.candidates_:
            candidate.partial_fit(points, self.classes_[labels])
        self.labels_ = np.concatenate([self.labels_, labels])
        return self

    def predict_proba(self, X: Any, class_prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Give the probability of each class, averaged over candidates and their parameters.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        class_prior : array-like, shape (n_classes,), optional
            The class proportions where the model is used, in the order of ``classes_``, if they
            differ from those of the training points: the odds are multiplied by their ratio.

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
        """
        probabilities = self._map(Mixture.probabilities, X)
        return with_class_prior(probabilities, self.labels_, class_prior)

    def predict_proba_interval(
        self, X: Any, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give credible intervals of the class probabilities, over candidates and parameters.

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
        tail = 0.5 * (1.0 - level)

        def interval(mixture: Mixture, points: list[Any]) -> tuple[Any, ...]:
            return tuple(mixture.quantiles(points, (tail, 1.0 - tail)))

        return self._map(interval, X)

    def predict_joint(
        self, X: Any, n_draws: int = 1_000, *, random_state: Any = None
    ) -> NDArray[Any]:
        """Draw the classes of all points together: each draw from one candidate, by its weight.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        n_draws : int
        random_state : int, RandomState, Generator or None
            That of the estimator by default.

        Returns
        -------
        draws : ndarray, shape (n_draws, n_samples)
        """
        points = self._place(X)
        n_draws = check_whole(n_draws, "n_draws", minimum=1)
        rng = make_rng(self.random_state if random_state is None else random_state)
        counts = rng.multinomial(n_draws, self.weights_)
        draws = [
            candidate.predict_joint(points, int(count), random_state=rng)
            for candidate, count in zip(self.candidates_, counts, strict=True)
            if count > 0
        ]
        return rng.permutation(np.concatenate(draws))

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Tell how far each point is from all training points: the mean over candidates.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        points = self._place(X)
        pairs = zip(self.weights_, self.candidates_, strict=True)
        return np.asarray(sum(weight * each.outlier_score(points) for weight, each in pairs))

    def influence(self, X: Any) -> NDArray[np.float64]:
        """Tell how much each training point adds to the score of its class: a weighted mean.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        influence : ndarray, shape (n_samples, n_training)
            In units of log odds, as `DistanceNeighborsClassifier.influence`.
        """
        points = self._place(X)
        pairs = zip(self.weights_, self.candidates_, strict=True)
        return np.asarray(sum(weight * each.influence(points) for weight, each in pairs))

    def summary(self) -> pd.DataFrame:
        """Describe each candidate in a row, the weightiest first.

        Returns
        -------
        summary : DataFrame
            With columns kernel, metric, weight, log_score, and the posterior means of beta and
            sigma.
        """
        check_is_fitted(self)
        return pd.DataFrame(self._description)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _place(self, X: Any) -> NDArray[np.float64]:
        """Check new points, and take them to where the candidates are."""
        check_is_fitted(self)
        return self._transform(check_new_points(self, X))

    def _transform(self, X: Any) -> NDArray[np.float64]:
        """Take checked features to where the candidates are."""
        points = X.toarray() if sp.issparse(X) else X
        return points if self.features_ is None else self.features_.transform(points)

    def _views(self, points: NDArray[np.float64]) -> list[Any]:
        """Take points to what each predictor takes; candidates with one metric measure once."""
        views: dict[int, Any] = {}
        for candidate in self.candidates_:
            space = id(candidate.metric_space_)
            if space not in views:
                views[space] = candidate._view(points)
        return [views[id(candidate.metric_space_)] for candidate in self.candidates_]

    def _map(self, function: Callable[[Mixture, list[Any]], Any], X: Any) -> Any:
        """Apply to new points, a chunk at a time, what a mixture offers."""
        points = self._place(X)
        predictors = [candidate._ready_predictor() for candidate in self.candidates_]
        mixture = Mixture(predictors, self.weights_)
        chunk_size = min(predictor.chunk_size for predictor in predictors)
        return map_chunks(
            lambda chunk: function(mixture, self._views(chunk)), points, chunk_size, self.n_jobs
        )


def _fit_candidate(
    points: NDArray[np.float64], y: NDArray[Any], candidate: Any, sites: NDArray[np.int64]
) -> tuple[Any, NDArray[np.float64]]:
    """Fit a candidate to all points; give it, and its conditionals at some of them."""
    fitted = candidate.fit(points, y)
    return fitted, fitted._current_predictor().conditional_probabilities(sites)
