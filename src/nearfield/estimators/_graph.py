"""Fitting on the k-nearest-neighbour graph: how many neighbours, and the posterior."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield._hashing import sample_rows
from nearfield._progress import progress
from nearfield.estimators._metric import MetricSpace
from nearfield.estimators._settings import (
    check_longest,
    choose_engine,
    make_priors,
    name_of_engine,
)
from nearfield.estimators._sizes import sizes
from nearfield.field import (
    NeighborFamily,
    NeighborKernel,
    SubsampledConditionals,
    neighbor_scale_range,
    take,
)
from nearfield.inference import (
    Posterior,
    Priors,
    fit_external_field,
    maximize_pseudolikelihood,
)
from nearfield.neighbors import NeighborGraph

NEIGHBOR_CHOICES = (8, 16, 32, 64, 128)
"""The numbers of neighbours k to choose from."""

_N_GUESS_SITES = 512  # of those that choose k, which tell how long the lists of neighbours must be
_SITE_STREAM, _PILOT_STREAM = 2, 3
_LEAST_K = 32  # neighbours on the graph of pk-nn
_MAX_TABLE = 2**26  # numbers in a table of supports: 512 MB
_LEAST_SITES = 256
_N_AT_ONCE = 2**16
_MAX_GRAPH = 2**25  # entries of a graph with k chosen: 32 neighbours of a million points


class ModelFit(NamedTuple):
    """A family, with the external field if one is fitted, and the posterior of its parameters."""

    family: Any
    posterior: Posterior
    priors: Priors
    engine_name: str


class Inference(NamedTuple):
    """How parameters are inferred: what an estimator's arguments say."""

    inference: Any
    prior_beta: Any
    prior_scale: Any
    fit_intercept: bool
    rng: np.random.Generator
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def from_estimator(cls, estimator: Any, rng: np.random.Generator) -> "Inference":
        """Take the arguments of a field classifier."""
        return cls(
            estimator.inference,
            estimator.prior_beta,
            estimator._prior_scale(),
            estimator.fit_intercept,
            rng,
            estimator.n_jobs,
            estimator.verbose,
        )

    @property
    def is_pseudolikelihood(self) -> bool:
        """Whether parameters are inferred by pseudolikelihood where there are many points."""
        name = name_of_engine(self.inference)
        return name in ("auto", "pseudolikelihood")

    def run(self, family: Any, labels: NDArray[np.int64]) -> "ModelFit":
        """Infer the parameters of a family."""
        name, engine = choose_engine(self.inference, family)
        priors = make_priors(family, self.prior_beta, self.prior_scale)
        if self.fit_intercept:
            family = replace(family, external_field=fit_external_field(family, labels, priors))
        posterior = engine.infer(
            self.rng, family, labels, priors, n_jobs=self.n_jobs, verbose=self.verbose
        )
        return ModelFit(family, posterior, priors, name)


class TrainingGraph:
    """Training points with an index, and what a fit needs of their graph.

    `nearfield.dask` has training points in shards, with the same methods.

    Parameters
    ----------
    space : MetricSpace
    distances : ndarray, shape (n, n), or None
        Where these are precomputed.
    labels : ndarray of int, shape (n,)
    n_classes : int
    kernel : str
        ``"uniform"``, whose scale is k, or one with the scale sigma.
    is_directed : bool
    seed : int
        Draws the points whose conditionals the parameters are inferred from.
    sites : ndarray of int, optional
        These points themselves; they choose k as well.
    multiplicities : ndarray, shape (n,), optional
        As how many points each point counts.
    search : {"exact", "approximate"}
    n_jobs : int, optional
    verbose : int
    """

    def __init__(
        self,
        space: MetricSpace,
        distances: NDArray[np.float64] | None,
        labels: NDArray[np.int64],
        n_classes: int,
        kernel: str,
        *,
        is_directed: bool = False,
        seed: int = 0,
        sites: NDArray[np.int64] | None = None,
        multiplicities: NDArray[np.float64] | None = None,
        search: str = "exact",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.space, self.distances, self.labels = space, distances, labels
        self.n_classes, self.kernel, self.is_directed = n_classes, kernel, is_directed
        self.n_jobs, self.verbose, self.multiplicities = n_jobs, verbose, multiplicities
        self._prepare(seed, sites)
        self.index = space.make_index(search)

    def _prepare(self, seed: int, sites: NDArray[np.int64] | None) -> None:
        """Measure the extent of the points, and draw those that the parameters come from."""
        self.longest = self._longest()  # refuses what the metric cannot measure
        check_longest(self.longest)
        if sites is not None:
            self.sites = self.pilot_sites = sites
            return
        n_points = self.n_points
        self.sites = site_rows(n_points, self.n_classes, self.kernel, seed)
        self.pilot_sites = sample_rows(n_points, sizes().n_pilot_sites, seed, _PILOT_STREAM)

    @property
    def n_points(self) -> int:
        """The number of training points."""
        return len(self.labels)

    def build(self, n_neighbors: int) -> NeighborGraph:
        """Search the neighbours of all training points."""
        if self.distances is not None:
            return NeighborGraph.from_distances(self.distances, n_neighbors)
        with progress(self.n_points, "neighbours", self.verbose) as advance:
            return NeighborGraph.from_index(
                self.index, self.space.points, n_neighbors, n_jobs=self.n_jobs, advance=advance
            )

    def first(self, graph: NeighborGraph, n_neighbors: int) -> NeighborGraph:
        """Cut a graph to fewer neighbours."""
        return graph.first(n_neighbors)

    def build_of_sites(self, sites: NDArray[np.int64], n_neighbors: int) -> NeighborGraph:
        """Search the neighbours of some training points alone."""
        if self.distances is not None:
            whole = NeighborGraph.from_distances(self.distances, n_neighbors)
            return NeighborGraph(whole.distances[sites], whole.rows[sites], n_neighbors)
        queries = self.space.points[sites]
        lists = self.index.query(queries, n_neighbors + 1, n_jobs=self.n_jobs).without(sites)
        return NeighborGraph(lists.distances, lists.rows.astype(np.int32), n_neighbors)

    def family(self, graph: NeighborGraph) -> NeighborFamily:
        """Make the family of fields on a graph."""
        return NeighborFamily(
            graph,
            self.n_classes,
            self.kernel,
            self.is_directed,
            self.longest,
            multiplicities=self.multiplicities,
        )

    def conditionals(
        self, graph: NeighborGraph, sites: NDArray[np.int64]
    ) -> SubsampledConditionals:
        """Take the conditionals of some points on the graph of all points."""
        return self.family(graph).conditionals(self.labels, sites)

    def directed_conditionals(
        self, sites: NDArray[np.int64], n_neighbors: int
    ) -> SubsampledConditionals:
        """Take the conditionals of some points by out-weights alone: a search of these points."""
        graph, counts = self.build_of_sites(sites, n_neighbors), self.multiplicities
        return SubsampledConditionals(
            graph.distances,
            self.labels[graph.rows],
            self.labels[sites],
            self.n_classes,
            NeighborKernel(self.kernel, n_neighbors),
            None,
            neighbor_scale_range(self.kernel, n_neighbors, graph.distances),
            self.longest,
            multiplicities=take(counts, sites),
            neighbor_multiplicities=take(counts, graph.rows),
        )

    def _longest(self) -> float:
        """Find about the largest distance between points: from the one farthest from the first."""
        if self.distances is not None:
            return float(self.distances.max())
        farthest = int(np.argmax(self._distances_from(0)))
        return float(self._distances_from(farthest).max())

    def _distances_from(self, row: int) -> NDArray[np.float64]:
        points = self.space.points
        return np.concatenate(
            [
                self.space.distances_between(
                    points[row : row + 1], points[start : start + _N_AT_ONCE]
                )[0]
                for start in range(0, self.n_points, _N_AT_ONCE)
            ]
        )


def fit_on_graph(
    inference: Inference, training: TrainingGraph, n_neighbors: int | None = None
) -> ModelFit:
    """Infer the parameters of a field on the k-nearest-neighbour graph.

    Parameters
    ----------
    inference : Inference
    training : TrainingGraph
    n_neighbors : int, optional
        k of a kernel with the scale sigma; chosen from the data if it is not given.
    """
    if training.kernel == "uniform" and inference.prior_scale is None:
        largest = _largest_k(None, training.n_points)
        inference = inference._replace(prior_scale=stats.randint(1, largest + 1))
    if training.is_directed and _is_large(training, inference):
        largest = _largest_k(inference.prior_scale, training.n_points)
        conditionals = training.directed_conditionals(training.sites, largest)
        conditionals, posterior, priors, name = inference.run(conditionals, conditionals.labels)
        # Predictions need no graph: that of some points tells what is typical.
        k_top = int(posterior.scale.max())
        family = training.family(training.build_of_sites(training.pilot_sites, k_top))
        family = replace(family, external_field=conditionals.external_field)
        return ModelFit(family, posterior, priors, name)
    if training.kernel == "uniform":
        graph = build_for_k(inference, training)
    elif n_neighbors is None:
        graph = choose_neighbors(training)
    else:
        graph = training.build(n_neighbors)
    family = training.family(graph)
    if inference.is_pseudolikelihood and len(training.sites) < training.n_points:
        conditionals = training.conditionals(graph, training.sites)
        conditionals, posterior, priors, name = inference.run(conditionals, conditionals.labels)
        family = replace(family, external_field=conditionals.external_field)
    else:
        family, posterior, priors, name = inference.run(family, training.labels)
    return ModelFit(family, posterior, priors, name)


def profile_maximum(conditionals: SubsampledConditionals) -> float:
    """Maximise the log pseudolikelihood over beta and sigma."""
    return maximize_pseudolikelihood(conditionals, conditionals.labels).log_pseudolikelihood


def choose_neighbors(
    training: TrainingGraph,
    log_likelihood: Callable[[SubsampledConditionals], float] = profile_maximum,
) -> NeighborGraph:
    """Build the graph with the number of neighbours that has the largest pseudolikelihood.

    The out-weights of some points, whose neighbours are found by a search of these points alone,
    tell about how many neighbours to search for: the graph has twice as many, and more if the
    largest number turns out best.

    Parameters
    ----------
    training : TrainingGraph
    log_likelihood : callable
        Of conditionals: their largest one, or its mean over the prior.

    Returns
    -------
    graph : NeighborGraph
    """
    most, sites = most_neighbors(training.n_points), training.pilot_sites
    some = sites[:: max(len(sites) // _N_GUESS_SITES, 1)]
    pilot = training.directed_conditionals(some, most)
    best = best_choice(pilot, most, min(32, most), log_likelihood)
    while True:
        n_neighbors = min(2 * best, most)
        graph = training.build(n_neighbors)
        conditionals = training.conditionals(graph, sites)
        best = best_choice(conditionals, n_neighbors, best, log_likelihood)
        if best < n_neighbors or n_neighbors == most:
            return training.first(graph, best)


def most_neighbors(n_points: int) -> int:
    """Give the largest k to choose: so many neighbours that the graph stays below 400 MB."""
    fitting = [k for k in NEIGHBOR_CHOICES if k * n_points <= _MAX_GRAPH]
    return min(max(fitting, default=NEIGHBOR_CHOICES[0]), n_points - 1)


def best_choice(
    conditionals: SubsampledConditionals,
    most: int,
    start: int,
    log_likelihood: Callable[[SubsampledConditionals], float] = profile_maximum,
) -> int:
    """Climb from one number of neighbours to the one with the largest pseudolikelihood around it.

    Parameters
    ----------
    conditionals : SubsampledConditionals
    most : int
        The largest possible number.
    start : int
        Where to begin, among `NEIGHBOR_CHOICES`.
    log_likelihood : callable
        Of the conditionals of some k.
    """
    choices = [k for k in NEIGHBOR_CHOICES if k < most] + [most]

    @cache
    def value(place: int) -> float:
        if not 0 <= place < len(choices):
            return -np.inf
        return log_likelihood(conditionals.first(choices[place]))

    place = choices.index(min(start, most))
    while True:
        best = max((place, place - 1, place + 1), key=value)
        if best == place:
            return choices[place]
        place = best


def build_for_k(inference: Inference, training: TrainingGraph) -> NeighborGraph:
    """Build a graph with as many neighbours as the posterior of k needs.

    With few points, as many as the prior allows. With many, twice the k that the out-weights of
    some points suggest, and more while the posterior reaches the end.
    """
    most = _largest_k(inference.prior_scale, training.n_points)
    if not _is_large(training, inference):
        return training.build(most)
    pilot = training.directed_conditionals(training.pilot_sites, most)
    _, posterior, _, _ = inference.run(pilot, pilot.labels)
    while True:
        n_neighbors = min(max(2 * upper_end(posterior), _LEAST_K), most)
        graph = training.build(n_neighbors)
        conditionals = training.conditionals(graph, training.sites)
        _, posterior, _, _ = inference.run(conditionals, conditionals.labels)
        if n_neighbors == most or upper_end(posterior) < 0.9 * n_neighbors:
            _warn_of_end(upper_end(posterior), most)
            return graph.first(int(posterior.scale.max()))


def _is_large(training: TrainingGraph, inference: Inference) -> bool:
    return training.n_points > sizes().max_dense_automatic and inference.is_pseudolikelihood


def _largest_k(prior_k: Any, n_points: int) -> int:
    most = n_points // 2
    if hasattr(prior_k, "ppf"):  # what is no distribution is refused with the priors
        most = int(np.fmin(prior_k.ppf(1.0 - 1e-10), n_points - 1))
    return max(1, min(most, sizes().max_k) if n_points > sizes().max_dense_automatic else most)


def upper_end(posterior: Posterior) -> int:
    """Give the k up to which all but a thousandth of the posterior is."""
    return int(posterior.quantile([0.999])["k"].iloc[0])


def _warn_of_end(upper_end: int, most: int) -> None:
    if most == sizes().max_k and upper_end > 0.9 * most:  # else there are no larger ones
        warnings.warn(
            f"Expected a posterior of k below {most}, the largest k with more than "
            f"{sizes().max_dense_automatic} points; got one that reaches {upper_end}. Larger k may "
            "be more probable: use DistanceNeighborsClassifier.",
            ConvergenceWarning,
            stacklevel=6,
        )


def draw_seed(rng: np.random.Generator, n_points: int) -> int:
    """Draw a seed for the choice of some points, where not all of them are taken."""
    return int(rng.integers(2**63)) if n_points > sizes().max_dense_automatic else 0


def site_rows(n_points: int, n_classes: int, kernel: str, seed: int) -> NDArray[np.int64]:
    """Draw the points whose conditionals the parameters are inferred from; all of a few."""
    n_sites = n_points if n_points <= sizes().max_all_sites else sizes().n_sites
    if kernel == "uniform" and n_points > sizes().max_dense_automatic:  # a table of all k
        n_sites = min(n_sites, max(_LEAST_SITES, _MAX_TABLE // (sizes().max_k * n_classes)))
    if n_sites == n_points:
        return np.arange(n_points)
    return sample_rows(n_points, n_sites, seed, _SITE_STREAM)
