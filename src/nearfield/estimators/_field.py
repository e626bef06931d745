"""A label field over the training points: fitted to their labels, and what it predicts."""

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_level, check_whole
from nearfield.estimators._base import MetricClassifier, with_class_prior
from nearfield.estimators._joint import joint_distances
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._near import NearFieldFit, fit_by_near_field
from nearfield.estimators._settings import (
    check_choice,
    check_common,
    check_dense,
    check_flag,
    check_usable,
    choose_engine,
    make_priors,
    make_rng,
)
from nearfield.estimators._validation import (
    check_new_points,
    check_training_data,
)
from nearfield.inference._priors import pack_prior, unpack_prior
from nearfield.inference.intercepts import fit_external_field
from nearfield.near import NearField, NearPredictor
from nearfield.prediction import PREDICTIVES, Predictor, draw_joint_labels, map_chunks

EXTERNAL_FIELDS = ("none", "fitted")


class FieldClassifier(MetricClassifier):
    """A label field over the training points, its parameters inferred, and its predictions."""

    inference: Any
    predictive: Any
    prior_beta: Any
    external_field: Any
    n_neighbors: Any
    n_jobs: Any
    random_state: Any
    verbose: Any

    @abstractmethod
    def _make_family(self, distances: NDArray[np.float64], n_classes: int) -> Any:
        """Return the family of fields of this model; check the arguments that it is made of."""

    @abstractmethod
    def _prior_scale(self) -> Any:
        """Return the prior of sigma or k that was asked for."""

    def _wants_near_field(self, n_points: int) -> bool:
        """Tell whether near neighbours are to stand in for all points; not unless a model can."""
        return False

    def _fit_near(self, space: MetricSpace, labels: NDArray[np.int64]) -> NearFieldFit:
        """Infer the parameters from near neighbours."""
        return fit_by_near_field(self, space, labels, self._prior_scale())

    def fit(self, X: Any, y: Any) -> Self:
        """Infer the parameters of the field from labelled points.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances, shape (n_samples, n_samples).
        y : array-like, shape (n_samples,)
            Classes of any kind: text, whole numbers, truth values.

        Returns
        -------
        self : object
        """
        check_choice(self.predictive, "predictive", PREDICTIVES)
        check_choice(self.external_field, "external_field", EXTERNAL_FIELDS)
        check_common(self)
        X, labels = check_training_data(self, X, y)
        is_near = self._wants_near_field(X.shape[0])
        if not is_near:
            check_dense(self.n_neighbors, X.shape[0])
        space = self._fit_space(X, labels)
        if is_near:
            near = self._fit_near(space, labels)
            self._keep(space, near.family, labels, near.priors, near.posterior, near.engine_name)
            self.neighborhood_error_ = near.neighborhood_error
            return self
        distances = check_usable(space.training_distances(X, self.n_jobs))
        family = self._make_family(distances, len(self.classes_))
        name, engine = choose_engine(self.inference, family)
        priors = make_priors(family, self.prior_beta, self._prior_scale())
        if self.external_field == "fitted":
            alpha = fit_external_field(family, labels, priors)
            family = replace(family, external_field=alpha)
        rng = make_rng(self.random_state)
        posterior = engine.infer(
            rng, family, labels, priors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        self._keep(space, family, labels, priors, posterior, name)
        self.neighborhood_error_ = 0.0
        return self

    def _keep(self, space, family, labels, priors, posterior, engine_name) -> None:
        """Set what is fitted, all at once, so that a fit that ends early leaves nothing half."""
        self.metric_space_ = space
        self.family_ = family
        self.labels_ = labels
        self.priors_ = priors
        self.posterior_ = posterior
        self.inference_ = engine_name
        alpha = family.external_field
        self.external_field_ = np.zeros(family.n_classes) if alpha is None else np.asarray(alpha)
        self._predictor = self._make_predictor()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the rest, and describe priors by their names."""
        state = dict(super().__getstate__())
        state.pop("_predictor", None)
        return {n: pack_prior(v) if n.startswith("prior_") else v for n, v in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(
            {n: unpack_prior(v) if n.startswith("prior_") else v for n, v in state.items()}
        )
        if hasattr(self, "posterior_"):
            self._predictor = self._make_predictor()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def predict_proba(self, X: Any, class_prior: ArrayLike | None = None) -> NDArray[np.float64]:
        """Give the probability of each class, averaged over the posterior of the parameters.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances to the training points, shape
            (n_samples, n_training).
        class_prior : array-like, shape (n_classes,), optional
            The class proportions where the model is used, in the order of ``classes_``, if they
            differ from those of the training points: the odds are multiplied by their ratio.

        Returns
        -------
        probabilities : ndarray, shape (n_samples, n_classes)
        """
        probabilities = self._map(lambda predictor: predictor.probabilities, X)
        return with_class_prior(probabilities, self.labels_, class_prior)

    def predict_proba_interval(
        self, X: Any, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give credible intervals of the class probabilities.

        What is uncertain here are the parameters; given these, the class of a point has one
        probability.

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
        return self._map(lambda predictor: partial(predictor.interval, level=level), X)

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

        No training point listens to it in the end, but for those with none of the others within
        their radius, which go on to listen to all alike.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray, shape (n_samples,)
        """
        return self._map(lambda predictor: predictor.outlier_score, X)

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
        if not hasattr(self.family_, "distances"):
            raise ValueError(
                "Expected a model with all training points as neighbours for joint draws; got the "
                f"near neighbours of {self.family_.n_points} points. Use predict_proba, or fit on "
                "a subset with n_neighbors=None."
            )
        if not self.family_.has_joint:
            raise ValueError(
                'Expected neighborhood="symmetric" for joint draws; got "directed", whose '
                "conditionals belong to no joint distribution. Use predict_proba."
            )
        n_draws = check_whole(n_draws, "n_draws", minimum=1)
        check_flag(update_parameters, "update_parameters")
        distances = joint_distances(self, X)
        draws = draw_joint_labels(
            make_rng(self.random_state if random_state is None else random_state),
            self.posterior_,
            replace(self.family_, distances=distances),
            self.labels_,
            n_draws,
            update_parameters=update_parameters,
            priors=self.priors_,
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
        X = check_new_points(self, X)
        predictor = self._current_predictor()
        function = method(predictor)
        space = self.metric_space_
        measure = space.place if predictor.takes_points else space.distances_to
        return map_chunks(
            lambda chunk: function(measure(chunk)),
            X,
            predictor.chunk_size,
            self.n_jobs,
        )

    def _make_predictor(self) -> Any:
        check_choice(self.predictive, "predictive", PREDICTIVES)
        if isinstance(self.family_, NearField):
            return NearPredictor(self.posterior_, self.family_, self.predictive)
        return Predictor(self.posterior_, self.family_, self.labels_, self.predictive)

    def _current_predictor(self) -> Any:
        """Return the predictor kept, or one for a `predictive` that changed since."""
        predictor = getattr(self, "_predictor", None)
        is_current = predictor is not None and predictor.predictive == self.predictive
        return predictor if is_current else self._make_predictor()
