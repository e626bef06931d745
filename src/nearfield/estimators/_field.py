"""A label field over the training points: fitted to their labels, and what it predicts."""

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_whole
from nearfield._fitting import all_or_nothing
from nearfield.estimators._base import MetricClassifier
from nearfield.estimators._decisions import held_out_probabilities
from nearfield.estimators._graph import Inference, TrainingGraph, draw_seed, fit_on_graph
from nearfield.estimators._joint import joint_family
from nearfield.estimators._measured import MeasuredFamily
from nearfield.estimators._metric import MetricSpace, is_named
from nearfield.estimators._predictions import PosteriorMixin
from nearfield.estimators._settings import (
    check_choice,
    check_common,
    check_flag,
    check_usable,
    make_rng,
)
from nearfield.estimators._sizes import sizes
from nearfield.estimators._validation import (
    check_further_data,
    check_further_weights,
    check_new_points,
    check_weighted_data,
)
from nearfield.field import DistanceFamily
from nearfield.inference import Posterior, Priors, pack_prior, unpack_prior
from nearfield.neighbors import SEARCHES, Index
from nearfield.prediction import (
    PREDICTIVES,
    NeighborPredictor,
    Predictor,
    check_class_prior,
    draw_joint_labels,
    map_chunks,
)


class FieldClassifier(PosteriorMixin, MetricClassifier):
    """A label field over the training points, its parameters inferred, and its predictions."""

    inference: Any
    predictive: Any
    prior_beta: Any
    fit_intercept: Any
    class_weight: Any
    class_prior: Any
    search: Any
    n_jobs: Any
    random_state: Any
    verbose: Any
    posterior_: Posterior

    @property
    @abstractmethod
    def _kernel(self) -> Any:
        """The kernel of this model; refuse arguments that make no model."""

    @abstractmethod
    def _prior_scale(self) -> Any:
        """Return the prior of sigma or k that was asked for."""

    @abstractmethod
    def _uses_graph(self, n_points: int) -> bool:
        """Tell whether the model is on the k-nearest-neighbour graph, or on all distances."""

    @property
    def _n_neighbors(self) -> int | None:
        """The number of neighbours that was asked for."""
        return None

    @property
    def _is_directed(self) -> bool:
        """Whether the model has out-weights alone."""
        return False

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Infer the parameters of the field from labelled points.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances, shape (n_samples, n_samples).
        y : array-like, shape (n_samples,)
            Classes of any kind: text, whole numbers, truth values.
        sample_weight : array-like, shape (n_samples,), optional
            As how many points each point counts, at least zero; see the notes of the class.

        Returns
        -------
        self : object
        """
        self._check_settings()
        X, labels, multiplicities, _ = check_weighted_data(self, X, y, sample_weight)
        check_class_prior(self.class_prior, len(self.classes_))
        space = self._fit_space(X, labels)
        rng = make_rng(self.random_state)
        inference = Inference.from_estimator(self, rng)
        is_given = is_named(self.metric, "precomputed")
        index = None
        if self._uses_graph(len(labels)):
            training = TrainingGraph(
                space,
                check_usable(space.training_distances(X)) if is_given else None,
                labels,
                len(self.classes_),
                self._kernel,
                is_directed=self._is_directed,
                seed=draw_seed(rng, len(labels)),
                multiplicities=multiplicities,
                search=self.search,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
            )
            fitted = fit_on_graph(inference, training, self._n_neighbors)
            index = training.index
        else:
            distances = check_usable(space.training_distances(X, self.n_jobs))
            family = DistanceFamily(
                distances, self._kernel, len(self.classes_), multiplicities=multiplicities
            )
            fitted = inference.run(family, labels)
        self._keep(space, labels, *fitted, index=index)
        self._keep_calibration(X, labels)
        return self

    @property
    def _has_conditionals(self) -> bool:
        """Whether conditionals on the graph stand for points held out: some taught no metric."""
        return bool(self.family_.has_graph) and len(self.labels_) > sizes().max_learning

    def _held_out_probabilities(self) -> NDArray[np.float64]:
        return held_out_probabilities(self, self.calibration_points_, self.calibration_rows_)

    def _check_settings(self) -> None:
        """Refuse settings that make no model."""
        check_choice(self.predictive, "predictive", PREDICTIVES)
        check_flag(self.fit_intercept, "fit_intercept")
        check_choice(self.search, "search", SEARCHES)
        check_common(self)

    @property
    def _multiplicities(self) -> NDArray[np.float64] | None:
        return self.family_.multiplicities

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add labelled points at the fitted parameters; an estimator that is not fitted is fitted.

        The posterior, the metric and the standardization stay as they are: the model is that of
        all points at these parameters. Fit anew when the number of points has grown by half, or
        when the new points come from another population.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            Not with ``metric="precomputed"``.
        y : array-like, shape (n_samples,)
            Of the classes that the estimator was fitted to.
        classes : array-like, optional
            All classes, at the first call; for scikit-learn's sake, and not needed.
        sample_weight : array-like, shape (n_samples,), optional
            Of these points, as in `fit`; one by default. `class_weight` plays no part here.

        Returns
        -------
        self : object
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight=sample_weight)
        X, y, multiplicities = check_further_weights(
            X, y, sample_weight, self._multiplicities, len(self.labels_)
        )
        X, labels = check_further_data(self, X, y)
        space = self.metric_space_.extended(X)
        labels = np.concatenate([self.labels_, labels])
        family, index = self.family_, None
        if family.has_graph:
            index, graph = space.make_index(self.search), family.graph
            if graph.n_points == len(self.labels_):  # else that of some points, which stays
                graph = graph.extended(index, space.points, n_jobs=self.n_jobs)
            family = replace(family, graph=graph, multiplicities=multiplicities)
        else:
            distances = space.training_distances(None, self.n_jobs)
            family = family.with_distances(distances, multiplicities)
        self._keep(
            space, labels, family, self.posterior_, self.priors_, self.inference_, index=index
        )
        return self

    def _keep(
        self,
        space: MetricSpace,
        labels: NDArray[np.int64],
        family: Any,
        posterior: Posterior,
        priors: Priors,
        engine_name: str,
        index: Index | None = None,
    ) -> None:
        """Set what is fitted, all at once, so that a fit that ends early leaves nothing half."""
        self.metric_space_ = space
        if not (family.has_graph or is_named(space.metric, "precomputed")):
            family = MeasuredFamily(family, space)
        self.family_ = family
        self.labels_ = labels
        self.priors_ = priors
        self.posterior_ = posterior
        self.inference_ = engine_name
        alpha = family.external_field
        self.intercept_ = np.zeros(family.n_classes) if alpha is None else np.asarray(alpha)
        self._predictor = self._make_predictor(index)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest, and describe priors by their names."""
        state = dict(super().__getstate__())
        state.pop("_predictor", None)
        if self._measures_graph():
            graph = self.family_.graph.without_distances()
            state["family_"] = replace(self.family_, graph=graph)
        return {n: pack_prior(v) if n.startswith("prior_") else v for n, v in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(
            {n: unpack_prior(v) if n.startswith("prior_") else v for n, v in state.items()}
        )
        if not hasattr(self, "family_"):
            return
        if self.family_.has_graph and self.family_.graph.distances.size == 0:
            graph = self.family_.graph
            points, power = self.metric_space_.points, self.metric_space_.power
            self.family_ = replace(self.family_, graph=graph.with_distances(points, power))
        self._predictor = self._make_predictor()

    def _measures_graph(self) -> bool:
        """Tell whether the distances on the graph follow from the training points."""
        if not hasattr(self, "family_") or not self.family_.has_graph:
            return False
        is_whole = self.family_.graph.n_points == len(self.labels_)
        return is_whole and self.metric_space_.power is not None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def _averages_of(self, points: Any) -> NDArray[np.float64]:
        return self._map_points(lambda predictor: predictor.probabilities, points)

    def _bounds_of(
        self, points: Any, level: float, odds: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._map_points(
            lambda predictor: partial(predictor.interval, level=level, odds=odds), points
        )

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        r"""Tell how far each point is from all training points, at the scale of the posterior.

        High where a nearest-neighbour method must not be sure, whatever its class probabilities.
        As a point moves away in a direction u of a Euclidean space its score rises without bound,
        while the class probabilities tend to a limit, that of its weights of the training points:

        - Gaussian kernel: all on the one that is farthest in that direction, the largest
          :math:`\langle u, x_j \rangle`;
        - exponential kernel: proportional to :math:`\exp(\sigma \langle u, x_j \rangle)`;
        - radius kernel: the same on each;
        - k neighbours: 1/k on each of the k that are farthest in that direction.

        The in-weights of the point tend to zero, except from training points with no other within
        their radius, which give the same weight to all. On the k-nearest-neighbour graph only the
        k nearest training points count.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._map(lambda predictor: predictor.outlier_score, X)

    def _influence_of(self, points: Any) -> NDArray[np.float64]:
        """Give the influences on checked points."""
        return self._map_points(lambda predictor: predictor.influence, points)

    def _distances_of(self, points: Any) -> NDArray[np.float64]:
        """Measure checked points to the training points."""
        return self.metric_space_.distances_to(points)

    def predict_joint(
        self,
        X: Any,
        n_draws: int = 1_000,
        *,
        update_parameters: bool = False,
        random_state: Any = None,
    ) -> NDArray[Any]:
        """Draw the classes of all points together, so that new points inform each other.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances to the training points and then to the new
            points themselves, shape (n_samples, n_training + n_samples).
        n_draws : int
        update_parameters : bool
            Whether the new points also inform the parameters.
        random_state : int, RandomState or Generator, optional
            That of the estimator by default.

        Returns
        -------
        draws : ndarray, shape (n_draws, n_samples)
            Classes; the share of a class in a column is its probability.
        """
        check_is_fitted(self)
        if not self.family_.has_joint:
            raise ValueError(
                'Expected neighborhood="symmetric" for joint draws; got "directed", whose '
                "conditionals belong to no joint distribution. Use predict_proba."
            )
        n_draws = check_whole(n_draws, "n_draws", minimum=1)
        check_flag(update_parameters, "update_parameters")
        rng = make_rng(self.random_state if random_state is None else random_state)
        odds = self._class_odds()
        return self._draw_joint(rng, X, n_draws, odds, update_parameters=update_parameters)

    def _draw_joint(
        self, rng: np.random.Generator, X: Any, n_draws: int, odds: Any, **settings: Any
    ) -> NDArray[Any]:
        """Draw the classes of all points together, with these factors of their odds."""
        draws = draw_joint_labels(
            rng,
            self.posterior_,
            joint_family(self, X),
            self.labels_,
            n_draws,
            odds=odds,
            priors=self.priors_,
            **settings,
        )
        return self.classes_[draws]

    @property
    def log_evidence_(self) -> float:
        """The log of the likelihood averaged over the priors, if the engine gives it."""
        return self._of_posterior("log_evidence")

    @property
    def log_evidence_error_(self) -> float:
        """The standard error of ``log_evidence_``, if the engine gives it."""
        return self._of_posterior("log_evidence_error")

    @property
    def metric_learner_(self) -> Any:
        """The learned metric, if it is one."""
        if self.metric_space_.learner is None:
            raise AttributeError(f"Expected a learned metric; got metric={self.metric!r}.")
        return self.metric_space_.learner

    def _of_posterior(self, name: str) -> float:
        value = getattr(self.posterior_, name)
        if value is None:
            raise AttributeError(
                f'Expected an engine that gives the {name}; got inference "{self.inference_}". '
                'Fit with inference="path".'
            )
        return value

    def _map(self, method: Any, X: Any) -> Any:
        """Apply to new points or their distances, a chunk at a time, what a predictor offers."""
        check_is_fitted(self)
        return self._map_points(method, check_new_points(self, X))

    def _map_points(self, method: Any, points: Any) -> Any:
        """Apply to checked points, a chunk at a time, what a predictor offers."""
        predictor = self._ready_predictor()
        function = method(predictor)
        return map_chunks(
            lambda chunk: function(self._view(chunk)), points, predictor.chunk_size, self.n_jobs
        )

    def _view(self, X: Any) -> Any:
        """Take new points to what the predictor takes: distances, or points to search from."""
        space = self.metric_space_
        has_points = self.family_.has_graph and not is_named(space.metric, "precomputed")
        return space.place_within_reach(X) if has_points else space.distances_to(X)

    def _make_predictor(self, index: Any = None) -> Any:
        check_choice(self.predictive, "predictive", PREDICTIVES)
        if not self.family_.has_graph:
            return Predictor(self.posterior_, self.family_, self.labels_, self.predictive)
        if index is None:
            index = self.metric_space_.make_index(self.search)
        return NeighborPredictor(
            self.posterior_, self.family_, self.labels_, index, self.predictive
        )

    def _ready_predictor(self) -> Any:
        """Return the predictor with all that it keeps, and let go of what is n x n."""
        predictor = self._current_predictor()
        predictor.prepare()
        self.family_.forget_distances()
        return predictor

    def _current_predictor(self) -> Any:
        """Return the predictor kept, or one for a `predictive` that changed since."""
        predictor = getattr(self, "_predictor", None)
        is_current = predictor is not None and predictor.predictive == self.predictive
        if is_current:
            return predictor
        return self._make_predictor(getattr(predictor, "index", None))
