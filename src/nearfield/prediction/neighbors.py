"""What a posterior says of new points, from the k-nearest-neighbour graph."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.field import NeighborFamily, NeighborKernel, check_external_field
from nearfield.inference import Posterior
from nearfield.neighbors import (
    Index,
    NeighborGraph,
    NeighborLists,
    ReverseNeighbors,
    search_with_ties,
)
from nearfield.prediction._influence import mean_influence
from nearfield.prediction._intervals import IntervalNodes, equal_nodes
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._outliers import OutlierScale, typical_scales
from nearfield.prediction._predictor import check_predictive, measure_of, normalized
from nearfield.prediction._rules import Floats, Measure, cells, gauss_nodes, lagrange_basis
from nearfield.prediction._smooth import GivenSupport, Nodes, smooth_average
from nearfield.sampling.mean_softmax import mean_softmax

_CHUNK = 4_096
_VALUES_A_CHUNK = 2**23  # of supports: 64 MB
_MAX_SCALES = 128  # of a field that jumps with sigma; more are sampled
_N_BETA_CELLS, _N_BETAS = 4, 4  # cells of beta at one scale, and nodes in each
_N_PROBES = 48
_FARTHER = 3.0


@dataclass(frozen=True, eq=False)
class Neighborhood:
    """Some points, by their nearest training points and by those that they reach.

    Attributes
    ----------
    lists : NeighborLists
        The nearest training points.
    neighbor_labels : ndarray of int, shape (m, n_columns)
        Their classes.
    reverse : ReverseNeighbors or None
        The training points that would have this one among their nearest; none where in-weights
        play no part.
    """

    lists: NeighborLists
    neighbor_labels: NDArray[np.int64]
    reverse: ReverseNeighbors | None

    def __len__(self) -> int:
        return len(self.neighbor_labels)

    def __getitem__(self, rows: slice) -> "Neighborhood":
        lists = NeighborLists(self.lists.distances[rows], self.lists.rows[rows])
        reverse = self.reverse
        if reverse is not None:
            start, stop, _ = rows.indices(len(self))
            starts = reverse.starts[start : stop + 1]
            entries = slice(starts[0], starts[-1])
            reverse = ReverseNeighbors(
                starts - starts[0], reverse.rows[entries], reverse.distances[entries]
            )
        return Neighborhood(lists, self.neighbor_labels[rows], reverse)


@dataclass(frozen=True, eq=False)
class NeighborSums:
    r"""The support of new points at some scales, in the field of n + 1 points.

    .. math:: c^*_j = w^*_j + \frac{\kappa(d^*_j)}{Z_j + \kappa(d^*_j)}

    with :math:`Z_j` the normalising constant of the k - 1 nearest neighbours of j: the new point
    replaces the k-th, and the second term is there only if it is closer to j than that one.

    Attributes
    ----------
    family : NeighborFamily
    labels : ndarray of int, shape (n,)
    scales : ndarray, shape (n_scales,)
    """

    family: NeighborFamily
    labels: NDArray[np.int64]
    scales: Floats

    def support(self, neighborhood: Neighborhood) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""
        support = self.out_support(neighborhood)
        if neighborhood.reverse is not None:
            support += self.in_support(neighborhood.reverse)
        return support

    def out_support(self, neighborhood: Neighborhood) -> Floats:
        """Sum the out-weights of new points by class, shape (m, n_scales, G)."""
        family = self.family
        kernel = NeighborKernel(family.kernel, family.n_neighbors_of_new)
        return kernel.out_support(
            neighborhood.lists.distances,
            neighborhood.neighbor_labels,
            self.scales,
            family.n_classes,
        )

    def in_support(self, reverse: ReverseNeighbors) -> Floats:
        """Sum the in-weights of new points by class, shape (m, n_scales, G)."""
        family, kernel = self.family, self.family.neighbor_kernel
        labels, distances, log_rest = self.labels, family.graph.distances, None
        if not family.is_discrete:  # the normalising constants of the points that are reached
            reached, places = np.unique(reverse.rows, return_inverse=True)
            reverse = reverse._replace(rows=places)
            labels, distances = labels[reached], distances[reached]
            n_kept = family.n_neighbors - (0 if family.has_all_neighbors else 1)
            log_rest = kernel.log_normalizers(distances, self.scales, n_kept)
        return kernel.new_in_support(
            reverse,
            labels,
            distances,
            self.scales,
            family.n_classes,
            log_rest,
            has_all=family.has_all_neighbors,
        )


@dataclass(frozen=True, eq=False)
class StepAverage:
    """The average over the posterior where the support jumps with the scale: at every scale."""

    make_sums: Callable[[Floats], Any]
    sums: Any
    nodes: Nodes
    external_field: Floats

    @classmethod
    def from_measure(
        cls, measure: Measure, make_sums: Callable[[Floats], NeighborSums], external_field: Floats
    ) -> "StepAverage":
        """Keep the scales of a measure, with few betas at each."""
        if len(np.unique(measure.scales)) > _MAX_SCALES:
            measure = equal_nodes(measure)
        nodes = Nodes.of(_with_few_betas(measure))
        return cls(make_sums, make_sums(nodes.scales), nodes, external_field)

    def probabilities(self, neighborhood: Neighborhood) -> Floats:
        """Average the class probabilities of points, shape (m, G)."""
        return self.average(self.sums.support(neighborhood))

    @property
    def scales(self) -> Floats:
        """The scales at which the support is computed."""
        return self.nodes.scales

    def of_supports(self) -> "StepAverage":
        """Take supports that were computed elsewhere for points."""
        return replace(self, make_sums=GivenSupport, sums=GivenSupport())

    def support_scales(self, scales: Floats) -> Floats:
        """Give the scales at which the support is computed for values at others: the same."""
        return scales

    def average(self, support: Floats) -> Floats:
        """Average the class probabilities of points with a given support, shape (m, G)."""
        probabilities = np.empty((len(support), len(self.external_field)))
        nodes = self.nodes
        mean_softmax(
            support,
            *Interpolation.none(len(nodes.scales)),
            nodes.starts,
            nodes.betas,
            nodes.weights,
            self.external_field,
            probabilities,
        )
        return probabilities

    def at(self, scales: Floats) -> Callable[[Neighborhood], tuple[Floats, Interpolation]]:
        """Prepare the support at other scales; no interpolation follows it."""
        sums = self.make_sums(scales)
        return lambda neighborhood: (sums.support(neighborhood), Interpolation.none(len(scales)))


@dataclass(frozen=True, eq=False)
class NeighborPredictor:
    """Class probabilities of new points, averaged over the posterior, from the graph.

    As `Predictor`, but it takes the points, which are searched for, and not their distances.

    Parameters
    ----------
    posterior : Posterior
    family : NeighborFamily
        Of the n training points.
    labels : ndarray of int, shape (n,)
    index : Index
        Over the training points.
    predictive : {"joint", "printed"}
        With in-weights, or with out-weights alone. The directed neighbourhood of Holmes and Adams
        has out-weights alone in either case.
    """

    posterior: Posterior = field(repr=False)
    family: NeighborFamily = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    index: Index = field(repr=False)
    predictive: str = "joint"

    @property
    def chunk_size(self) -> int:
        """How many new points to hand over at once, so that memory stays bounded."""
        n_values = len(self._average.scales) * self.family.n_classes
        return int(np.clip(_VALUES_A_CHUNK // n_values, 64, _CHUNK))

    def __post_init__(self) -> None:
        check_predictive(self.predictive, self.posterior, self.family)

    def probabilities(self, points: Any) -> Floats:
        """Average the class probabilities over the posterior, shape (m, G)."""
        order = self.index.query_order(points)
        probabilities = np.empty((len(order), self.family.n_classes))
        probabilities[order] = self._average.probabilities(self.neighborhood(points[order]))
        return normalized(probabilities)

    def interval(self, points: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bound each class probability, as the parameters vary by the posterior."""
        tail = 0.5 * (1.0 - level)
        levels = (tail, 1.0 - tail)
        lower, upper = self._interval_nodes.quantiles(self.neighborhood(points), levels)
        return lower, upper

    def outlier_score(self, points: Any) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior.

        See `NeighborOutliers`.
        """
        return self._outliers.score(self.index.query(points, self.family.n_neighbors).distances)

    def influence(self, points: Any) -> Floats:
        """Give the posterior mean of beta times the coupling to each training point, (m, n)."""
        neighborhood, n_points = self.neighborhood(points), len(self.labels)
        # With a class of its own for each training point, the support is the coupling.
        own = replace(self.family, n_classes=n_points, external_field=None)
        rows = np.arange(n_points)
        neighborhood = replace(neighborhood, neighbor_labels=neighborhood.lists.rows)

        def coupling(scale: float) -> Floats:
            return NeighborSums(own, rows, np.array([scale])).support(neighborhood)[:, 0]

        return mean_influence(self.posterior, coupling)

    def conditional_probabilities(self, sites: NDArray[np.int64]) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G).

        The parameters are those of all labels.
        """
        conditionals = self.family.conditionals(self.labels, sites)
        supports = conditionals.supports(self._average.scales, self.labels[sites])
        return normalized(self._average.average(np.stack(list(supports), axis=1)))

    def neighborhood(self, points: Any) -> Neighborhood:
        """Search for the training points that new points are near to, and that they reach."""
        lists = search_with_ties(
            partial(self.index.query, points), self.family.n_neighbors_of_new, len(self.labels)
        )
        reverse = self._reverse_index.query(points) if self.is_joint else None
        return Neighborhood(lists, self.labels[lists.rows], reverse)

    @property
    def is_joint(self) -> bool:
        """Whether in-weights play a part."""
        return self.predictive == "joint" and self.family.has_joint

    def sums_at(self, scales: Floats) -> NeighborSums:
        """Prepare the support at some scales."""
        return NeighborSums(self.family, self.labels, scales)

    @cached_property
    def _reverse_index(self) -> Any:
        return self.index.reverse(self.family.reaches)

    @cached_property
    def _average(self) -> Any:
        return choose_average(self.posterior, self.family, self.sums_at, lambda: self._probes)

    @cached_property
    def _interval_nodes(self) -> IntervalNodes:
        measure = measure_of(self.posterior, self.family)
        return IntervalNodes.of(self._average, measure, self._average.external_field)

    @cached_property
    def _probes(self) -> Neighborhood:
        """Some training points, each as it is and again farther from all: to choose nodes by."""
        graph, sites = self.family.graph, probe_sites(self.family.n_points)
        lists = NeighborLists(graph.distances[sites], graph.rows[sites].astype(np.int64))
        labels = self.labels[lists.rows]
        return make_probes(sites, lists, labels, graph if self.is_joint else None)

    @cached_property
    def _outliers(self) -> "NeighborOutliers":
        kernel, scales = self.family.neighbor_kernel, typical_scales(self.posterior)
        values = outlier_values(kernel, scales, self.family.graph.distances)
        return NeighborOutliers(kernel, scales, np.median(values, axis=0))


def choose_average(
    posterior: Posterior,
    family: NeighborFamily,
    make_sums: Callable[[Floats], NeighborSums],
    make_probes: Callable[[], Neighborhood],
) -> Any:
    """Choose the average over a posterior: by steps, or by as few nodes as the probes allow."""
    measure = measure_of(posterior, family)
    alpha = check_external_field(family.external_field, family.n_classes)
    if not family.is_smooth:
        return StepAverage.from_measure(measure, make_sums, alpha)
    return smooth_average(measure, make_sums, make_probes(), alpha)


@dataclass(frozen=True, eq=False)
class NeighborOutliers:
    """How far points are from all training points, compared with what is typical of these.

    With a smooth kernel, how much less the k nearest training points weigh on the point than
    on a typical one of them; else the distance to the k-th neighbour in units of what is
    typical, less one. See `nearfield.prediction.Predictor.outlier_score`.

    Attributes
    ----------
    kernel : NeighborKernel
    scales : ndarray, shape (n_scales,)
        The `typical_scales` of the posterior.
    medians : ndarray, shape (n_values,)
        Of the `outlier_values` over the training points.
    """

    kernel: NeighborKernel
    scales: Floats
    medians: Floats

    def score(self, distances: Floats) -> Floats:
        """Score points by the distances of their k nearest neighbours, shape (m, k)."""
        if self.kernel.is_smooth:
            values = outlier_values(self.kernel, self.scales, distances)
            return (self.medians - values).mean(axis=1)
        if self.kernel.is_uniform:
            return OutlierScale.of_neighbors(self.scales, self.medians).score(distances)
        ranks = np.maximum(np.searchsorted(self.medians, self.scales) - 1, 0)
        none = np.empty(0)
        return OutlierScale(False, none, none, ranks, self.scales).score(distances)


def outlier_values(kernel: NeighborKernel, scales: Floats, distances: Floats) -> Floats:
    """Give the log sums of a smooth kernel, (m, n_scales), or the distances of k neighbours."""
    if not kernel.is_smooth:
        return distances[:, : kernel.n_neighbors]
    relative = kernel.log_normalizers(distances, scales, kernel.n_neighbors)
    return relative + kernel.log_values(distances[:, 0], scales)


def probe_sites(n_points: int) -> NDArray[np.int64]:
    """Choose the training points that serve as probes."""
    return np.unique(np.linspace(0, n_points - 1, _N_PROBES).astype(np.int64))


def make_probes(
    sites: NDArray[np.int64],
    lists: NeighborLists,
    neighbor_labels: NDArray[np.int64],
    graph: NeighborGraph | None,
) -> Neighborhood:
    """Take some training points each as it is and again farther from all.

    Parameters
    ----------
    sites : ndarray of int, shape (m,)
        Rising.
    lists : NeighborLists
        Of these points.
    neighbor_labels : ndarray of int, shape (m, n_columns)
    graph : NeighborGraph or None
        All rows with one of the points among their neighbours; none where in-weights play no part.
    """
    distances = np.concatenate([lists.distances, _FARTHER * lists.distances])
    both = NeighborLists(distances, np.tile(lists.rows, (2, 1)))
    reverse = None
    if graph is not None:
        is_site = np.zeros(graph.rows.max() + 1, dtype=bool)
        is_site[sites[sites < len(is_site)]] = True
        rows, columns = np.nonzero(is_site[graph.rows])
        queries = np.searchsorted(sites, graph.rows[rows, columns])
        order = np.argsort(queries, kind="stable")
        starts = np.searchsorted(queries[order], np.arange(len(distances) + 1))
        reverse = ReverseNeighbors(starts, rows[order], graph.distances[rows, columns][order])
    return Neighborhood(both, np.tile(neighbor_labels, (2, 1)), reverse)


def _with_few_betas(measure: Measure) -> Measure:
    """Replace many betas at a scale by the few nodes of a Gauss rule."""
    scales, index = np.unique(measure.scales, return_inverse=True)
    parts = []
    for number in range(len(scales)):
        part = measure.part(np.flatnonzero(index == number))
        if len(part.betas) <= _N_BETA_CELLS * _N_BETAS:
            parts.append(part)
            continue
        # In arcsinh(beta): near zero, within about one, is where probabilities turn.
        for in_cell in cells(np.arcsinh(part.betas), part.weights, _N_BETA_CELLS):
            cell = part.part(in_cell)
            betas = gauss_nodes(cell.betas, cell.weights, _N_BETAS)
            weights = cell.weights @ lagrange_basis(betas, cell.betas)
            parts.append(Measure(betas, np.full(len(betas), scales[number]), weights))
    return Measure(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
