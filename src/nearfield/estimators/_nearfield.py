"""The recommended classifier: kernels and metrics, averaged."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_whole
from nearfield._fitting import all_or_nothing
from nearfield._threads import one_blas_thread
from nearfield.distances import FeatureView
from nearfield.estimators._averages import fit_by_evidence, fit_by_stacking
from nearfield.estimators._base import ProbabilisticClassifier, mark_tables
from nearfield.estimators._decisions import held_out_probabilities
from nearfield.estimators._held_out import AveragingName, check_average, describe
from nearfield.estimators._many_points import GraphFits, fit_features, fit_many_points
from nearfield.estimators._metric import Metric
from nearfield.estimators._predictions import PosteriorMixin
from nearfield.estimators._settings import ClassWeight, check_dense, make_rng
from nearfield.estimators._sizes import sizes
from nearfield.estimators._spectra import check_spectra, spectra_views
from nearfield.estimators._training import TrainingPoints
from nearfield.estimators._validation import (
    check_further_data,
    check_further_weights,
    check_groups,
    check_new_points,
    check_weighted_data,
    to_dense,
    warn_of_lone_groups,
)
from nearfield.field import take
from nearfield.prediction import check_class_prior, map_chunks
from nearfield.prediction.heldout import SmoothKernelName
from nearfield.prediction.mixture import Mixture
from nearfield.spectra import SpectraRecipes

_LEAST_WEIGHT = 0.01  # estimators with less do not predict


class NearfieldClassifier(PosteriorMixin, ProbabilisticClassifier):
    r"""Bayesian nearest-neighbour classification that needs no settings.

    A distance nearest neighbour model is fitted with every kernel and metric, and the class
    probabilities of these estimators are averaged,

    .. math:: p(y^* = g) = \sum_k w_k\, p_k(y^* = g)

    Metrics are learned in cross-validation folds. The held-out labels give each estimator's
    posterior of beta and sigma, by a pseudolikelihood in which no label was used to learn the
    metric that explains it, and the weights (stacking).

    With more than 1,500 points there are no folds, unless `n_folds` or `groups` ask for them.
    Metrics are learned from half of the points, at most 2,000. Up to 1,000 other labels, given as
    many more, choose at most three estimators with a weight of at least 0.1, which are fitted on
    the k-nearest-neighbour graph of all points. Up to 2,000 labels that no metric was learned from,
    each given all other labels, determine k, the class intercepts, beta, sigma and the weights.
    Estimators with a weight below 0.05 are dropped.

    Parameters
    ----------
    kernels : sequence of str
        Among ``"gaussian"`` and ``"exponential"``.
    metrics : sequence of str or callable, optional
        As those of `DistanceNeighborsClassifier`, but ``"precomputed"``. By default
        ``"euclidean"``, ``"manhattan"``, ``"within"``, ``"ard"``, ``"discriminant"`` and, if
        metrics are learned from at least as many points as features times classes,
        ``"quadratic"``; of spectra ``"within"``.
    preprocess : {"spectra"}, optional
        With ``"spectra"``, features are wavelengths in their order, and each preprocessing of
        `nearfield.spectra.SpectraRecipes` has estimators of its own, weighed with the others; first
        derivatives have some for each third of the wavelengths too. The shrinkage of the metric is
        then at most 0.1. Not for tables with categories or missing values, or fewer than 20
        columns.
    power_transform : bool
        Whether features go through `nearfield.distances.PowerTransform` first: a power for each,
        which reduces skewness, chosen without labels from at most 10,000 points. Not done
        with spectra, or with as many features as points, where the powers would be noise.
    categorical_features : "from_dtype", None or array-like
        Which columns are categories: those whose type says so, and text; none; or a mask,
        positions or names. A table with categories is read in several ways, each with estimators
        of its own: see `nearfield.distances.TableEncoder`.
    averaging : {"stacking", "evidence"}
        How estimators are weighed: by their densities of held-out labels, or as in Bayesian model
        averaging by their evidence, from path sampling. The evidence takes a learned metric as
        given, and so favours it; it costs seconds to minutes an estimator.
    fit_intercept : bool
        Whether each estimator has class intercepts, fitted to its held-out labels: for classes of
        different sizes, or of different spread.
    class_weight : None, "balanced" or dict
        Factors of the weights of points, by class. ``"balanced"`` makes the classes weigh the
        same, and all points together as much as before. See the notes of
        `DistanceNeighborsClassifier`.
    class_prior : array-like, shape (n_classes,), optional
        The class proportions where the model is used, in the order of ``classes_``, if they
        differ from those of the training points: the odds of the classes are multiplied by the
        ratio. Read when predicting: ``set_params`` changes it without a new fit.
    n_folds : int, optional
        10 by default, 5 from 100 points on; none with more than 1,500 points, or if it is given
        with more than 2,000. Folds are drawn 8 times up to 100 points, 4 times up
        to 250 and twice up to 500, and the results are averaged.
    concentration : float
        How strongly the weights are shrunk towards equal ones: each estimator has a Dirichlet
        parameter of one plus this, or with spectra plus twice this.
    n_jobs : int, optional
        Parallel threads; no result depends on it.
    random_state : int, RandomState, Generator or None
        Draws the folds and, with many points, the samples.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    columns_, encoder_
        As in `DistanceNeighborsClassifier`.
    estimators_ : list of DistanceNeighborsClassifier
        Those with a weight of 0.01 or more, fitted on the normalized features.
    weights_ : ndarray, shape (n_estimators,)
    log_scores_ : ndarray, shape (n_estimators,)
        The mean log density of held-out labels, or the log evidence.
    power_transform_ : PowerTransform or None
        What the features go through first.
    preprocess_ : SpectraRecipes or None
        What spectra go through first.
    calibration_rows_, calibration_points_, calibration_labels_ : ndarray
        The training points that decisions are calibrated on: which rows they are, shape
        (n_calibration,), their features and their labels.
    labels_ : ndarray of int, shape (n_training,)
        The classes of the training points, as positions in ``classes_``.

    Notes
    -----
    With ``sample_weight`` or ``class_weight`` a point of weight s counts as s points, in every
    estimator and where held-out labels weigh these: see `DistanceNeighborsClassifier`. A point and
    its copies would be in different folds; a weighted point is in one. The powers of
    `power_transform` and the metrics are learned with each point counted once.

    Examples
    --------
    >>> from nearfield import NearfieldClassifier
    >>> from nearfield.datasets import load_wine, stratified_split
    >>> X, y = load_wine(return_X_y=True)
    >>> train, test = stratified_split(y, 0.25, random_state=0)
    >>> model = NearfieldClassifier(random_state=0).fit(X[train], y[train])
    >>> model.score(X[test], y[test]) > 0.95
    True
    >>> model.predict_proba(X[test[:1]]).round(2)
    array([[1., 0., 0.]])

    The classes that cannot be excluded, a decision, and one for values unlike any training point:

    >>> model.predict_set(X[test[:1]], coverage=0.9)
    array([[ True, False, False]])
    >>> model.decide(X[test[:1]]), model.decide(3 * X[test[:1]])
    (array([0], dtype=object), array(['none'], dtype=object))
    """

    metric = "euclidean"  # how features are read: dense or sparse numbers, or tables

    preprocess_: SpectraRecipes | None = None

    def __init__(
        self,
        kernels: Sequence[SmoothKernelName] = ("gaussian", "exponential"),
        metrics: Sequence[Metric] | None = None,
        *,
        preprocess: Literal["spectra"] | None = None,
        power_transform: bool = True,
        categorical_features: Any = "from_dtype",
        averaging: AveragingName = "stacking",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        class_prior: ArrayLike | None = None,
        n_folds: int | None = None,
        concentration: float = 0.1,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernels = kernels
        self.metrics = metrics
        self.preprocess = preprocess
        self.power_transform = power_transform
        self.categorical_features = categorical_features
        self.averaging = averaging
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.n_folds = n_folds
        self.concentration = concentration
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, groups: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit all estimators and weigh them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            A data frame of pandas or polars may have categories and missing values. Sparse
            features are made dense, up to 2 GB of them.
        y : array-like, shape (n_samples,)
            Classes of any kind: text, whole numbers, truth values.
        groups : array-like, shape (n_samples,), optional
            Points of one group, such as replicates of a sample, are held out together, so that
            none is explained by its fellows. For stacking, up to 2,000 points.
        sample_weight : array-like, shape (n_samples,), optional
            As how many points each point counts, at least zero; see the notes of the class. Not
            with ``averaging="evidence"``.
        """
        check_average(self)
        X, labels, multiplicities, kept = check_weighted_data(self, X, y, sample_weight)
        check_class_prior(self.class_prior, len(self.classes_))
        self._check_weights_have_folds(multiplicities)
        # Folds can hold groups out, and have as many as are asked for; the graph has none.
        wants_folds = groups is not None or self.n_folds is not None
        most = sizes().max_dense_automatic if wants_folds else sizes().max_folds
        is_large = X.shape[0] > most and self.averaging == "stacking"
        has_folds = self.averaging == "stacking" and not is_large
        codes = check_groups(groups, len(labels), kept, has_folds=has_folds)
        if codes is not None:
            warn_of_lone_groups(codes, labels, self.classes_)
        if not is_large:
            check_dense(X.shape[0])
        points = to_dense(X)
        features, self.preprocess_ = None, None
        if self.preprocess is not None:
            check_spectra(self.encoder_)
            self.preprocess_ = SpectraRecipes().fit(points)
            points = self.preprocess_.transform(points)
        elif self.power_transform and points.shape[1] < len(points):
            numbers = None if self.encoder_ is None else self.encoder_.is_number_
            features = fit_features(TrainingPoints(points, labels), numbers)
            points = features.transform(points)
        with one_blas_thread():
            if is_large:
                training = TrainingPoints(points, labels)
                fits = GraphFits(self, points, labels, multiplicities)
                average = fit_many_points(self, training, fits, multiplicities)
            elif self.averaging == "stacking":
                average = fit_by_stacking(self, points, labels, codes, multiplicities)
            else:
                average = fit_by_evidence(self, points, labels)
        estimators, log_scores, weights = average
        weights = np.where(weights < min(_LEAST_WEIGHT, weights.max()), 0.0, weights)
        self.power_transform_ = features
        self.labels_ = labels
        self._keep(estimators, log_scores, weights / weights.sum())
        self._keep_calibration(X, labels, codes)
        return self

    def _check_weights_have_folds(self, multiplicities: NDArray[np.float64] | None) -> None:
        if multiplicities is not None and self.averaging != "stacking":
            raise ValueError(
                'Expected averaging="stacking" with sample_weight or class_weight: labels of '
                "weighted points have no joint distribution, and so no evidence; got "
                f"averaging={self.averaging!r}. Use stacking, or repeat the points whose weights "
                "are whole numbers."
            )

    @property
    def _multiplicities(self) -> NDArray[np.float64] | None:
        return self.estimators_[0].family_.multiplicities

    @property
    def _has_conditionals(self) -> bool:
        return self.estimators_[0]._has_conditionals

    def _held_out_probabilities(self) -> NDArray[np.float64]:
        points = self._transform(self.calibration_points_)
        rows, groups = self.calibration_rows_, self._calibration_groups
        parts = [
            weight * held_out_probabilities(estimator, points, rows, groups)
            for weight, estimator in zip(self.weights_, self.estimators_, strict=True)
        ]
        return np.sum(parts, axis=0)

    def _keep(self, estimators: list[Any], log_scores: Any, weights: Any) -> None:
        """Keep the estimators that have weight, and a description of all."""
        kept = np.flatnonzero(weights)
        self.estimators_ = [estimators[k] for k in kept]
        self.log_scores_, self.weights_ = log_scores[kept], weights[kept]
        self._description = describe(estimators, weights, log_scores)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add labelled points to every estimator at its fitted parameters; else fit.

        The weights, metrics and posteriors stay as they are: see
        `DistanceNeighborsClassifier.partial_fit`.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Of the classes that the estimator was fitted to.
        classes : array-like, optional
            All classes, at the first call; for scikit-learn's sake, and not needed.
        sample_weight : array-like, shape (n_samples,), optional
            Of these points, as in `fit`; one by default. `class_weight` plays no part here.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight=sample_weight)
        n_known = len(self.labels_)
        X, y, weights = check_further_weights(X, y, sample_weight, self._multiplicities, n_known)
        X, labels = check_further_data(self, X, y)
        points, weights = self._transform(X), take(weights, np.s_[n_known:])
        for estimator in self.estimators_:
            estimator.partial_fit(points, self.classes_[labels], sample_weight=weights)
        self.labels_ = np.concatenate([self.labels_, labels])
        return self

    def _averages_of(self, points: Any) -> NDArray[np.float64]:
        return self._map(Mixture.probabilities, self._transform(points))

    def _bounds_of(
        self, points: Any, level: float, odds: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        tail = 0.5 * (1.0 - level)

        def interval(mixture: Mixture, points: list[Any]) -> tuple[Any, ...]:
            return tuple(mixture.quantiles(points, (tail, 1.0 - tail), odds))

        return self._map(interval, self._transform(points))

    def predict_joint(
        self, X: Any, n_draws: int = 1_000, *, random_state: Any = None
    ) -> NDArray[Any]:
        """Draw the classes of all points together: each draw from one estimator, by its weight.

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
            estimator._draw_joint(rng, points, int(count), self._class_odds())
            for estimator, count in zip(self.estimators_, counts, strict=True)
            if count > 0
        ]
        return rng.permutation(np.concatenate(draws))

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Tell how far each point is from all training points: the mean over estimators.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        points = self._place(X)
        pairs = zip(self.weights_, self.estimators_, strict=True)
        return np.asarray(sum(weight * each.outlier_score(points) for weight, each in pairs))

    def _influence_of(self, points: Any) -> NDArray[np.float64]:
        """Give the influences on checked points."""
        points = self._transform(points)
        pairs = zip(self.weights_, self.estimators_, strict=True)
        return np.asarray(sum(weight * each.influence(points) for weight, each in pairs))

    def _distances_of(self, points: Any) -> NDArray[np.float64]:
        """Average the distances of checked points, each metric in units of its mean distance."""
        points = self._transform(points)
        total = np.zeros((len(points), len(self.labels_)))
        for weight, estimator in zip(self.weights_, self.estimators_, strict=True):
            distances = estimator._distances_of(points)
            mean = distances.mean(axis=1, keepdims=True)
            total += weight * distances / np.where(mean > 0.0, mean, 1.0)
        return total

    def summary(self) -> pd.DataFrame:
        """Describe each estimator in a row, the weightiest first.

        Returns
        -------
        summary : DataFrame
            With columns features (what those of X are taken for), kernel, metric, weight,
            log_score, and the posterior means of beta and sigma.
        """
        check_is_fitted(self)
        return pd.DataFrame(self._description)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        mark_tables(tags)
        return tags

    def _feature_views(self) -> Sequence[FeatureView | None]:
        """Give the columns that each reading of a table, or of spectra, takes."""
        if self.preprocess_ is not None:
            return spectra_views(self.preprocess_)
        return [None] if self.encoder_ is None else list(self.encoder_.views_.values())

    @property
    def _reads_codes(self) -> bool:
        """Whether whole numbers of few values in data frames are read as categories too."""
        return self.preprocess is None

    def _place(self, X: Any) -> NDArray[np.float64]:
        """Check new points, and take them to where the estimators are."""
        check_is_fitted(self)
        return self._transform(check_new_points(self, X))

    def _transform(self, X: Any) -> NDArray[np.float64]:
        """Take checked features to where the estimators are."""
        points = to_dense(X)
        if self.preprocess_ is not None:
            return self.preprocess_.transform(points)
        return points if self.power_transform_ is None else self.power_transform_.place(points)

    def _views(self, points: NDArray[np.float64]) -> list[Any]:
        """Take points to what each predictor takes; estimators with one metric measure once."""
        views: dict[int, Any] = {}
        for estimator in self.estimators_:
            space = id(estimator.metric_space_)
            if space not in views:
                views[space] = estimator._view(points)
        return [views[id(estimator.metric_space_)] for estimator in self.estimators_]

    def _map(self, function: Callable[[Mixture, list[Any]], Any], points: Any) -> Any:
        """Apply to placed points, a chunk at a time, what a mixture offers."""
        predictors = [estimator._ready_predictor() for estimator in self.estimators_]
        mixture = Mixture(predictors, self.weights_)
        chunk_size = min(predictor.chunk_size for predictor in predictors)
        return map_chunks(
            lambda chunk: function(mixture, self._views(chunk)), points, chunk_size, self.n_jobs
        )
