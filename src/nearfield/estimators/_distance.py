"""The distance nearest neighbour classifier, d-nn."""

from typing import Any

from numpy.typing import ArrayLike

from nearfield.estimators._field import FieldClassifier
from nearfield.estimators._metric import Metric, is_named
from nearfield.estimators._settings import ClassWeight, InferenceName, check_neighbors
from nearfield.estimators._sizes import sizes
from nearfield.field import KernelName, LogKernel, check_kernel
from nearfield.inference import Engine
from nearfield.neighbors import SearchName
from nearfield.prediction import PredictiveName


class DistanceNeighborsClassifier(FieldClassifier):
    r"""Bayesian classification by distance nearest neighbours (d-nn).

    The labels form a Markov random field in which near points tend to agree,

    .. math:: \pi(y \mid \beta, \sigma) \propto \exp\Big(\beta \sum_i \sum_{j \ne i} w_{ij}
              1[y_i = y_j]\Big), \qquad w_{ij} \propto \kappa(d_{ij}; \sigma)

    and how much (beta) and how near (sigma) is inferred. Friel and Pettitt (2011), section 3.

    Parameters
    ----------
    kernel : {"gaussian", "radius", "exponential"} or callable
        The weight of a neighbour at distance d, up to a factor:
        :math:`\exp(-d^2/2\sigma^2)` (d-nn1), one within a radius sigma and almost zero beyond
        it (d-nn2), or :math:`\exp(-d \sigma)` (d-nn3). A function of
        (distances, sigma) gives the log of a kernel of one's own, element by element; it should
        change smoothly with sigma, a length. All points then count as neighbours, and a model
        file cannot hold the function.
    metric : str or callable
        Any metric of scikit-learn or SciPy, a function of two vectors, ``"precomputed"``, or one
        that is learned from the labels: see ``nearfield.distances.LEARNED_METRICS``. Euclidean,
        Manhattan and learned metrics take tables with categories and missing values, encoded by
        `nearfield.distances.TableEncoder`; ``"mixed"`` is another name of the Euclidean one.
    metric_params : dict, optional
        Further arguments of the metric.
    standardize : bool
        Whether to subtract from each feature its mean over the training points and divide it by
        its standard deviation. Constant features then have no effect. Sparse features, and
        those that the metric reads as booleans, counts, histograms, angles or directions
        (cosine), stay as they are; learned metrics always have them standardized.
    categorical_features : "from_dtype", None or array-like
        Which columns are categories: those whose type says so, and text; none; or a mask,
        positions or names.
    inference : str or settings record
        ``"path"``, ``"exchange"``, ``"pseudolikelihood"``, ``"auxiliary_variable"``, a record of
        `nearfield.inference` such as ``Exchange(n_draws=2_000)``, or ``"auto"``: path sampling up
        to 1,000 training points, pseudolikelihood above.
    predictive : {"joint", "printed"}
        The predictive of the joint model, or the one that the paper prints.
    prior_beta : frozen scipy.stats distribution, optional
        ``halfnorm(scale=50)`` by default: the paper's N(0, 50^2) given that beta >= 0. Give
        ``scipy.stats.norm(0, 50)`` for the paper's own. In a stratified sample the classes are
        more balanced than chance would have them, which a large sigma with a very negative beta
        explains: under the paper's prior that spurious mode can hold a third of the posterior.
    prior_sigma : frozen scipy.stats distribution, optional
        ``uniform(0, 100)`` by default, the paper's, if the largest distance between training
        points is between 0.2 and 200, as it is for standardized features. Otherwise the same in
        the unit in which that distance is 10.
    fit_intercept : bool
        Whether to estimate an intercept for each class.
    class_weight : None, "balanced" or dict
        Factors of the weights of points, by class. ``"balanced"`` makes the classes weigh the
        same, and all points together as much as before. See the notes.
    class_prior : array-like, shape (n_classes,), optional
        The class proportions where the model is used, in the order of ``classes_``, if they
        differ from those of the training points: the odds of the classes are multiplied by the
        ratio. Read when predicting: ``set_params`` changes it without a new fit.
    n_neighbors : int, optional
        k: each point gives weight to its k nearest neighbours alone. By default, up to 2,000
        training points, all points; above, k is chosen among 8, 16, 32, 64 and 128 by the
        largest pseudolikelihood (32 at most with a million points). See ``docs/scaling.md``.
    search : {"exact", "approximate"}
        How neighbours are found: exactly, or, for Euclidean distances, by an approximate index
        (``pip install "nearfield[ann]"``).
    n_jobs : int, optional
        Parallel threads; no result depends on it.
    random_state : int, RandomState, Generator or None
        The seed of whatever is drawn.
    verbose : int
        From 1 on, the engine shows its progress on a terminal.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray, shape (n_features_in_,)
        Where X has names that are all text.
    columns_ : dict
        What each column was taken for: ``"number"``, ``"boolean"``, ``"ordered category"`` or
        ``"category"``, by its name.
    encoder_ : nearfield.distances.TableEncoder or None
        Where X has categories or missing values.
    posterior_ : nearfield.inference.Posterior
        The posterior of beta and sigma.
    inference_ : str
        The engine that was used.
    log_evidence_, log_evidence_error_ : float
        The log evidence and its standard error, where the engine gives them. That of
        pseudolikelihood is of the pseudolikelihood, and no evidence of the field.
    intercept_ : ndarray, shape (n_classes,)
        The class intercepts: zeros, or what was fitted.
    labels_ : ndarray of int, shape (n_training,)
        The classes of the training points, as positions in ``classes_``.
    calibration_rows_, calibration_points_, calibration_labels_ : ndarray
        The training points that decisions are calibrated on: which rows they are, shape
        (n_calibration,), their features and their labels.
    metric_space_ : object
        The metric with what was learned from the training points;
        ``metric_space_.distances_to(X)`` measures new points to these.
    metric_learner_ : object
        The learned metric, where it is one.
    family_ : nearfield.field.DistanceFamily or nearfield.field.NeighborFamily
        The fields over the training points, one for each sigma; the latter on the
        k-nearest-neighbour graph, with k in ``family_.n_neighbors``.
    priors_ : nearfield.inference.Priors
        The priors that were used.

    Notes
    -----
    With ``sample_weight`` or ``class_weight`` a point of weight s counts as s points: it has s
    times the weight of a neighbour at its distance, and the conditional of its label enters the
    pseudolikelihood s times,

    .. math:: w_{ij} \propto s_j \kappa(d_{ij}; \sigma), \qquad
              \prod_i p(y_i \mid y_{-i}, \beta, \sigma)^{s_i}

    Weights of whole numbers give the model of points that are repeated as often, except that the
    copies of a point give no weight to each other: repeated points are neighbours of each other at
    distance zero, each explained by its own copies, and look more predictable than they are. k
    counts points, not their weights, and features are standardized, and metrics learned, with
    each point counted once. A point of weight zero is left out: ``labels_`` and what else has one
    entry a training point has none for it. Multiplying all weights by c leaves the out-weights as
    they are, and the posterior becomes that of c times as many labels. Weights that say how
    reliable points are should therefore be about one on average. The labels of weighted points
    have no joint distribution (there are no s labels to draw), so that inference is by
    pseudolikelihood.

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris, stratified_split
    >>> X, y = load_iris(return_X_y=True)
    >>> train, test = stratified_split(y, 0.25, random_state=0)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[train], y[train])
    >>> print(f"{model.score(X[test], y[test]):.2f}")
    0.92
    >>> model.posterior_.summary()[["mean", "sd"]].round(1)
           mean   sd
    beta    4.0  1.6
    sigma   1.1  0.3

    The interval tells how sure the parameters allow to be of a class:

    >>> lower, upper = model.predict_proba_interval(X[test][:1])
    >>> lower.shape
    (1, 3)
    """

    def __init__(
        self,
        kernel: KernelName | LogKernel = "gaussian",
        *,
        metric: Metric = "euclidean",
        metric_params: dict[str, Any] | None = None,
        standardize: bool = True,
        categorical_features: Any = "from_dtype",
        inference: InferenceName | Engine = "auto",
        predictive: PredictiveName = "joint",
        prior_beta: Any = None,
        prior_sigma: Any = None,
        fit_intercept: bool = False,
        class_weight: ClassWeight = None,
        class_prior: ArrayLike | None = None,
        n_neighbors: int | None = None,
        search: SearchName = "exact",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.metric_params = metric_params
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.inference = inference
        self.predictive = predictive
        self.prior_beta = prior_beta
        self.prior_sigma = prior_sigma
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.n_neighbors = n_neighbors
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _kernel(self) -> Any:
        if not callable(self.kernel):
            check_kernel(self.kernel)
        return self.kernel

    def _uses_graph(self, n_points: int) -> bool:
        n_neighbors = check_neighbors(self.n_neighbors)
        if callable(self.kernel):
            if n_neighbors is not None:
                raise ValueError(
                    "Expected n_neighbors=None with a kernel of one's own, which weighs all "
                    f"points; got n_neighbors={n_neighbors}. Let the kernel fall to zero "
                    "instead, or choose a kernel by name."
                )
            return False
        if n_neighbors is not None and n_neighbors < n_points - 1:
            return True
        return n_points > sizes().max_dense_automatic and not is_named(self.metric, "precomputed")

    @property
    def _n_neighbors(self) -> int | None:
        return check_neighbors(self.n_neighbors)

    def _prior_scale(self) -> Any:
        return self.prior_sigma
