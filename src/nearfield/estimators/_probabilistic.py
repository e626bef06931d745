"""The probabilistic k-nearest-neighbour classifier, pk-nn."""

from typing import Any, Literal, get_args

from numpy.typing import ArrayLike

from nearfield.estimators._field import FieldClassifier
from nearfield.estimators._metric import Metric
from nearfield.estimators._settings import ClassWeight, InferenceName, check_choice
from nearfield.inference import Engine
from nearfield.neighbors import SearchName
from nearfield.prediction import PredictiveName

NeighborhoodName = Literal["symmetric", "directed"]
NEIGHBORHOODS: tuple[NeighborhoodName, ...] = get_args(NeighborhoodName)


class ProbabilisticKNeighborsClassifier(FieldClassifier):
    r"""Bayesian classification by k nearest neighbours, k unknown (pk-nn).

    The labels form a Markov random field in which each point gives weight to its k nearest
    neighbours,

    .. math:: \pi(y \mid \beta, k) \propto \exp\Big(\frac{\beta}{k} \sum_i \sum_{j \sim_k i}
              1[y_i = y_j]\Big)

    and beta and k are inferred. Points that tie at the k-th distance share the weight that is
    left. Cucala, Marin, Robert and Titterington (2009); Holmes and Adams (2002).

    With more than 2,000 points and pseudolikelihood, k goes up to 512; with more than 6,000, the
    posterior is that of 4,096 conditionals, with neighbours from all points. Of many points at
    the same distance, more than the list of a point holds, the first ones count.

    Parameters
    ----------
    neighborhood : {"symmetric", "directed"}
        ``"symmetric"`` is the model of Cucala et al., a joint distribution. ``"directed"`` is that
        of Holmes and Adams, whose conditionals count only the neighbours that a point has, not
        the points that have it as a neighbour. They belong to no joint distribution, so that
        inference is by their pseudolikelihood, and ``"auto"`` means that.
    metric, metric_params, standardize, categorical_features
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
        Uniform on 1..n/2 by default, but not beyond 512 with more than 2,000 points.
    fit_intercept, class_weight, class_prior, search, n_jobs, random_state, verbose
        As in `DistanceNeighborsClassifier`.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    columns_, encoder_
        As in `DistanceNeighborsClassifier`.
    posterior_ : nearfield.inference.Posterior
        The posterior of beta and k; ``posterior_.table()`` has the probability of each k.
    inference_, log_evidence_, log_evidence_error_, intercept_, priors_
        As in `DistanceNeighborsClassifier`.
    calibration_rows_, calibration_points_, calibration_labels_
        As in `DistanceNeighborsClassifier`.
    labels_, metric_space_, metric_learner_
        As in `DistanceNeighborsClassifier`.
    family_ : nearfield.field.NeighborFamily
        The fields over the k-nearest-neighbour graph of the training points, one for each k.

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
        neighborhood: NeighborhoodName = "symmetric",
        *,
        metric: Metric = "euclidean",
        metric_params: dict[str, Any] | None = None,
        standardize: bool = True,
        categorical_features: Any = "from_dtype",
        inference: InferenceName | Engine = "auto",
        predictive: PredictiveName = "joint",
        prior_beta: Any = None,
        prior_k: Any = None,
        fit_intercept: bool = False,
        class_weight: ClassWeight = None,
        class_prior: ArrayLike | None = None,
        search: SearchName = "exact",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.neighborhood = neighborhood
        self.metric = metric
        self.metric_params = metric_params
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.inference = inference
        self.predictive = predictive
        self.prior_beta = prior_beta
        self.prior_k = prior_k
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _kernel(self) -> str:
        return "uniform"

    def _uses_graph(self, n_points: int) -> bool:
        return True

    @property
    def _is_directed(self) -> bool:
        return check_choice(self.neighborhood, "neighborhood", NEIGHBORHOODS) == "directed"

    def _prior_scale(self) -> Any:
        return self.prior_k
