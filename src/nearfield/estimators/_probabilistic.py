"""The probabilistic k-nearest-neighbour classifier, pk-nn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.estimators._field import FieldClassifier
from nearfield.estimators._lists import fit_by_lists, wants_lists
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._near import NearFieldFit
from nearfield.estimators._settings import check_choice
from nearfield.field import NeighborFamily
from nearfield.near._measure import Ruler
from nearfield.near.list_predictor import BoxPredictor, ListPredictor
from nearfield.near.lists import NeighborLists

NEIGHBORHOODS = ("symmetric", "directed")


class ProbabilisticKNeighborsClassifier(FieldClassifier):
    r"""Bayesian classification by k nearest neighbours, k unknown (pk-nn).

    The labels form a Markov random field in which each point listens to its k nearest neighbours,

    .. math:: \pi(y \mid \beta, k) \propto \exp\Big(\frac{\beta}{k} \sum_i \sum_{j \sim_k i}
              1[y_i = y_j]\Big)

    and beta and k are inferred. Points that tie at the k-th distance share the weight that is
    left. Cucala, Marin, Robert and Titterington (2009); Holmes and Adams (2002).

    With more than 5,000 points and pseudolikelihood, neighbours are found by a search and not
    from all distances: the posterior is that of 4,096 conditionals (all up to 6,000 points), with
    neighbours from all points, and k goes up to 512. ``"directed"`` then searches for the
    neighbours of these alone. ``"symmetric"`` must know who listens to a point, and searches for
    the neighbours of all points: a third of a millisecond each with 100,000 points of ten
    features, some with a million, where ``search="approximate"`` takes a small part of it. A
    prediction measures the distances to all points. Where so many points are at the same distance
    that lists of twice the largest k do not hold them, some of them count for all.

    Parameters
    ----------
    neighborhood : {"symmetric", "directed"}
        ``"symmetric"`` is the model of Cucala et al., a joint distribution. ``"directed"`` is that
        of Holmes and Adams, whose conditionals count only the neighbours that a point has, not
        the points that have it as a neighbour. They belong to no joint distribution, so that
        inference is by their pseudolikelihood, and ``"auto"`` means that.
    metric, metric_params, standardize
        As in `DistanceNeighborsClassifier`.
    inference : str or settings record
        ``"path"``, ``"exchange"``, ``"pseudolikelihood"``, ``"auxiliary_variable"``, a record of
        `nearfield.inference`, or ``"auto"``: path sampling up to 1,000 training points,
        pseudolikelihood above.
    predictive : {"joint", "printed"}
        The predictive of the joint model, or the one that the paper prints.
    prior_beta : frozen scipy.stats distribution, optional
        ``halfnorm(scale=50)`` by default, as in `DistanceNeighborsClassifier`.
    prior_k : frozen discrete scipy.stats distribution, optional
        Uniform on 1..n/2 by default, but not beyond 512 with more than 5,000 points.
    external_field, n_jobs, random_state, verbose, search
        As in `DistanceNeighborsClassifier`.
    n_neighbors : None
        Nothing to choose here: k is inferred.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    posterior_ : nearfield.inference.Posterior
        The posterior of beta and k; ``posterior_.table()`` has the probability of each k.
    inference_, log_evidence_, log_evidence_error_, external_field_, metric_learner_, priors_
        As in `DistanceNeighborsClassifier`.
    family_ : nearfield.field.NeighborFamily or nearfield.near.lists.NeighborLists
        The fields over the training points, one for each k; the latter with more than 5,000
        points.

    Examples
    --------
    >>> from nearfield import ProbabilisticKNeighborsClassifier
    >>> from nearfield.datasets import load_iris, stratified_split
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = stratified_split(y, 0.25, random_state=0)
    >>> model = ProbabilisticKNeighborsClassifier(inference="pseudolikelihood")
    >>> print(f"{model.fit(X[train], y[train]).score(X[test], y[test]):.2f}")
    0.95
    >>> int(model.posterior_.table().idxmax())
    7
    """

    def __init__(
        self,
        neighborhood: str = "symmetric",
        *,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        standardize: bool = True,
        inference: Any = "auto",
        predictive: str = "joint",
        prior_beta: Any = None,
        prior_k: Any = None,
        external_field: str = "none",
        n_neighbors: None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        search: str = "exact",
    ) -> None:
        self.neighborhood = neighborhood
        self.metric = metric
        self.metric_params = metric_params
        self.standardize = standardize
        self.inference = inference
        self.predictive = predictive
        self.prior_beta = prior_beta
        self.prior_k = prior_k
        self.external_field = external_field
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.search = search

    def _make_family(self, distances: NDArray[np.float64], n_classes: int) -> NeighborFamily:
        return NeighborFamily(distances, n_classes, is_directed=self._is_directed)

    def _wants_near_field(self, n_points: int) -> bool:
        return wants_lists(self, n_points)

    def _fit_near(self, space: MetricSpace, labels: NDArray[np.int64]) -> NearFieldFit:
        return fit_by_lists(self, space, labels, self.prior_k, is_directed=self._is_directed)

    def _make_predictor(self) -> Any:
        family: Any = self.family_
        if not isinstance(family, NeighborLists):
            return super()._make_predictor()
        space = self.metric_space_
        power = Ruler(space.metric, space.params).power(space.points)
        arguments = self.posterior_, family, self.labels_, self.predictive
        if power is None:
            return ListPredictor(*arguments)  # type: ignore[arg-type]
        return BoxPredictor(*arguments, points=space.points, power=power)  # type: ignore[arg-type]

    @property
    def _is_directed(self) -> bool:
        return check_choice(self.neighborhood, "neighborhood", NEIGHBORHOODS) == "directed"

    def _prior_scale(self) -> Any:
        return self.prior_k
