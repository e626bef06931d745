"""What a posterior says of new points, from the k-nearest-neighbour graph."""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.field import NeighborFamily, NeighborKernel, take
from nearfield.inference import Posterior
from nearfield.neighbors import Index, NeighborLists, ReverseNeighbors, search_with_ties
from nearfield.prediction._outliers import RankOutliers, typical_scales
from nearfield.prediction._predictor import FieldPredictor, check_predictive
from nearfield.prediction._quadrature import Floats

_CHUNK = 4_096
_VALUES_A_CHUNK = 2**23  # of supports: 64 MB


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
            take(family.multiplicities, neighborhood.lists.rows),
        )

    def in_support(self, reverse: ReverseNeighbors) -> Floats:
        """Sum the in-weights of new points by class, shape (m, n_scales, G)."""
        family, graph = self.family, self.family.graph
        reached: Any = np.s_[:]
        is_weighted = family.multiplicities is not None
        if is_weighted or not family.is_discrete:
            # The points that are reached, and no others, need normalising constants.
            reached, places = np.unique(reverse.rows, return_inverse=True)
            reverse = reverse._replace(rows=places)
        return family.neighbor_kernel.new_in_support(
            reverse,
            self.labels[reached],
            graph.distances[reached],
            self.scales,
            family.n_classes,
            take(family.multiplicities, reached),
            take(family.multiplicities, graph.rows[reached]) if is_weighted else None,
            has_all=family.has_all_neighbors,
        )


@dataclass(frozen=True, eq=False)
class NeighborPredictor(FieldPredictor):
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
        n_values = len(self.nodes.scales) * self.family.n_classes
        return int(np.clip(_VALUES_A_CHUNK // n_values, 64, _CHUNK))

    def __post_init__(self) -> None:
        check_predictive(self.predictive, self.posterior, self.family)

    def support(self, points: Any) -> Floats:
        """Give the support of new points at the scales of `nodes`, shape (m, n_scales, G)."""
        order = self.index.query_order(points)
        support = np.empty((len(order), len(self.nodes.scales), self.family.n_classes))
        support[order] = self.sums_at(self.nodes.scales).support(self.neighborhood(points[order]))
        return support

    def outlier_score(self, points: Any) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior.

        See `NeighborOutliers`.
        """
        return self._outliers.score(self.index.query(points, self.family.n_neighbors).distances)

    def prepare(self) -> None:
        """Build and keep the index of reverse queries."""
        if self.is_joint:
            _ = self._reverse_index

    def coupling(self, points: Any) -> Floats:
        """Give the coupling to each training point at these scales, shape (m, n_scales, n)."""
        neighborhood, n_points = self.neighborhood(points), len(self.labels)
        # With a class of its own for each training point, the support is the coupling.
        own = replace(self._used, n_classes=n_points, external_field=None)
        neighborhood = replace(neighborhood, neighbor_labels=neighborhood.lists.rows)
        return NeighborSums(own, np.arange(n_points), self.nodes.scales).support(neighborhood)

    def conditional_probabilities(self, sites: NDArray[np.int64]) -> Floats:
        """Average the conditionals of some training points given all other labels, shape (m, G).

        The parameters are those of all labels.
        """
        return self.nodes.mean(self._conditional_support(sites), self.external_field)

    def _conditional_support(self, sites: NDArray[np.int64]) -> Floats:
        scales, n_points = self.nodes.scales, len(self.labels)
        if self.family.is_directed and self.family.graph.n_points < n_points:
            # The graph of many points under the directed model has some of them alone.
            points = self.index.points_at(sites)

            def search(n_columns: int) -> NeighborLists:
                return self.index.query(points, min(n_columns + 1, n_points)).without(sites)

            lists = search_with_ties(search, self.family.n_neighbors, n_points - 1)
            return self.sums_at(scales).support(Neighborhood(lists, self.labels[lists.rows], None))
        conditionals = self.family.conditionals(self.labels, sites)
        return np.stack(list(conditionals.supports(scales, conditionals.labels)), axis=1)

    def neighborhood(self, points: Any) -> Neighborhood:
        """Search for the training points that new points are near to, and that they reach."""
        lists = search_with_ties(
            partial(self.index.query, points), self._used.n_neighbors_of_new, len(self.labels)
        )
        reverse = self._reverse_index.query(points) if self.is_joint else None
        return Neighborhood(lists, self.labels[lists.rows], reverse)

    def sums_at(self, scales: Floats) -> NeighborSums:
        """Prepare the support at some scales."""
        return NeighborSums(self._used, self.labels, scales)

    @cached_property
    def _reverse_index(self) -> Any:
        return self.index.reverse(self._used.reaches)

    @cached_property
    def _used(self) -> NeighborFamily:
        """The family up to the largest k of the posterior: no neighbour beyond it counts."""
        if not self.family.is_discrete:
            return self.family
        return replace(self.family, graph=self.family.graph.first(int(self.nodes.scales[-1])))

    @cached_property
    def _outliers(self) -> "NeighborOutliers":
        kernel, scales = self.family.neighbor_kernel, typical_scales(self.posterior)
        values = outlier_values(kernel, scales, self.family.graph.distances)
        return NeighborOutliers(kernel, scales, np.median(values, axis=0))


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
            return RankOutliers.from_ks(self.scales, self.medians).score(distances)
        return RankOutliers.from_radii(self.scales, self.medians).score(distances)


def outlier_values(kernel: NeighborKernel, scales: Floats, distances: Floats) -> Floats:
    """Give the log sums of a smooth kernel, (m, n_scales), or the distances of k neighbours."""
    if not kernel.is_smooth:
        return distances[:, : kernel.n_neighbors]
    relative = kernel.log_normalizers(distances, scales, kernel.n_neighbors)
    return relative + kernel.log_values(distances[:, 0], scales)
