"""Fields over the k-nearest-neighbour graph: one family over (kernel, sigma, k)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.distances import check_distances
from nearfield.field.conditionals import SubsampledConditionals
from nearfield.field.families import check_multiplicities
from nearfield.field.label_field import LabelField, check_external_field
from nearfield.field.neighbor_kernel import (
    GraphEdges,
    NeighborKernel,
    ScaleOfKernel,
    check_k,
    check_neighbor_kernel,
    neighbor_scale_range,
    take,
)
from nearfield.field.weights import KernelName
from nearfield.neighbors import NeighborGraph, past_ties

Floats = NDArray[np.float64]

_LEAST_SPARSE = 4  # points a neighbour: then a change of label touches few others


@dataclass(frozen=True, eq=False)
class NeighborFamily(ScaleOfKernel):
    """The d-nn and pk-nn models on the k-nearest-neighbour graph.

    Parameters
    ----------
    graph : NeighborGraph
        Of the n training points; ``graph.n_neighbors`` is k, and for the uniform kernel the
        largest k.
    n_classes : int
    kernel : {"uniform", "gaussian", "radius", "exponential"}
    is_directed : bool
        False for the symmetric model (Cucala et al.), which has a joint distribution; True for
        that of Holmes and Adams, whose conditionals belong to no joint.
    longest : float
        About the largest distance between any two points; 0 stands for the largest on the graph.
    external_field : array-like, shape (n_classes,), optional
    multiplicities : array-like, shape (n,), optional
        As how many points each point counts, above zero; one by default. k counts points,
        whatever their multiplicity.

    Examples
    --------
    >>> from nearfield import ProbabilisticKNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProbabilisticKNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    >>> family = model.family_
    >>> family.at(5).coupling.shape  # the field with five neighbours
    (150, 150)
    """

    graph: NeighborGraph = field(repr=False)
    n_classes: int
    kernel: str = "uniform"
    is_directed: bool = False
    longest: float = 0.0
    external_field: ArrayLike | None = None
    multiplicities: Floats | None = None

    has_graph = True

    def __post_init__(self) -> None:
        # The only assignments to a frozen family: the arguments in the form that the fields need.
        object.__setattr__(self, "n_classes", check_whole(self.n_classes, "n_classes", minimum=2))
        if self.longest == 0.0:
            object.__setattr__(self, "longest", float(self.graph.distances.max(initial=0.0)))
        check_external_field(self.external_field, self.n_classes)
        check_neighbor_kernel(self.kernel)
        if self.multiplicities is not None:  # the graph may be that of some of the points
            n_points = max(self.n_points, len(self.multiplicities))
            checked = check_multiplicities(self.multiplicities, n_points)
            object.__setattr__(self, "multiplicities", checked)

    @classmethod
    def from_distances(
        cls,
        distances: ArrayLike,
        n_classes: int,
        kernel: Literal["uniform"] | KernelName = "uniform",
        *,
        n_neighbors: int | None = None,
        is_directed: bool = False,
        external_field: ArrayLike | None = None,
    ) -> "NeighborFamily":
        """Build the graph from the distances between all points, shape (n, n)."""
        checked = check_distances(distances)
        n_neighbors = len(checked) - 1 if n_neighbors is None else n_neighbors
        graph = NeighborGraph.from_distances(checked, n_neighbors)
        longest = float(checked.max())
        return cls(graph, n_classes, kernel, is_directed, longest, external_field)

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    def forget_distances(self) -> None:
        """Do nothing: a graph holds no distances between all points."""

    @property
    def has_joint(self) -> bool:
        """Whether there is a joint distribution: not for the directed model."""
        return not self.is_directed

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.graph.n_points

    @property
    def n_neighbors(self) -> int:
        """k, and for the uniform kernel the largest k."""
        return self.graph.n_neighbors

    @property
    def has_all_neighbors(self) -> bool:
        """Whether all points are neighbours of each other, so that a new point replaces none."""
        return not self.is_discrete and self.n_neighbors == self.n_points - 1

    @property
    def n_neighbors_of_new(self) -> int:
        """The number of neighbours of a new point: k, or all points."""
        return self.n_points if self.has_all_neighbors else self.n_neighbors

    @property
    def reaches(self) -> Floats:
        """How near a new point must be to each point to be among its neighbours, shape (n,)."""
        if self.has_all_neighbors:
            return np.full(len(self.graph.rows), np.inf)
        return past_ties(self.graph.distances[:, self.n_neighbors - 1])

    @property
    def neighbor_multiplicities(self) -> Floats | None:
        """The multiplicities of the neighbours on the graph, shape (n, n_columns)."""
        return take(self.multiplicities, self.graph.rows)

    @property
    def neighbor_kernel(self) -> NeighborKernel:
        """The kernel with its number of neighbours."""
        return NeighborKernel(self.kernel, self.n_neighbors)

    @cached_property
    def scale_range(self) -> tuple[float, float]:
        """From where only the nearest neighbours count to where all on the graph count alike."""
        return neighbor_scale_range(self.kernel, self.n_neighbors, self.graph.distances)

    @property
    def scale_steps(self) -> Floats:
        """All k, or for the radius the distances on the graph."""
        if self.is_discrete:
            return np.arange(1.0, self.n_neighbors + 1.0)
        if self.is_smooth:
            return np.empty(0)
        return np.unique(self.graph.distances[self.graph.distances > 0.0])

    def at(self, scale: float) -> LabelField:
        """Return the field at sigma or k; its coupling is sparse if neighbours are few."""
        if self.is_directed:
            raise ValueError(
                "Expected a model with a joint distribution; got the directed neighbourhood of "
                "Holmes and Adams, whose conditionals belong to no joint. "
                "Use pseudolikelihood, or the symmetric neighbourhood."
            )
        self._check_scale(scale)
        weights = self.neighbor_kernel.weights(
            self.graph.distances, scale, self.neighbor_multiplicities
        )
        if self.multiplicities is not None:  # as in `DistanceFamily.at`
            weights *= self.multiplicities[:, None]
        alpha = check_external_field(self.external_field, self.n_classes)
        field = LabelField(self._coupling(weights), self.n_classes, alpha)
        n_neighbors = scale if self.is_discrete else self.n_neighbors
        return field.to_dense() if _LEAST_SPARSE * n_neighbors > self.n_points else field

    def support(self, scale: float, labels: NDArray[np.int64]) -> Floats:
        """Return the support of each class in the conditionals at a scale, shape (n, G)."""
        self._check_scale(scale)
        return next(self.supports([scale], labels))

    def supports(self, scales: Iterable[float], labels: NDArray[np.int64]) -> Iterator[Floats]:
        """Give the support at each of some rising scales."""
        return self.conditionals(labels).supports(scales, labels)

    def conditionals(
        self, labels: NDArray[np.int64], sites: NDArray[np.int64] | None = None
    ) -> SubsampledConditionals:
        """Take the conditionals of all points, or of some sites, given all other labels."""
        sites = np.arange(self.n_points) if sites is None else sites
        place_of_site = np.full(self.n_points, -1, dtype=np.int32)
        place_of_site[sites] = np.arange(len(sites))
        graph = self.graph
        edges = GraphEdges.from_rows(
            graph.distances, graph.rows, labels, place_of_site, self.multiplicities
        )
        return SubsampledConditionals(
            graph.distances[sites],
            labels[graph.rows[sites]],
            labels[sites],
            self.n_classes,
            self.neighbor_kernel,
            None if self.is_directed else [edges],
            self.scale_range,
            self.longest,
            self.external_field,
            multiplicities=take(self.multiplicities, sites),
            neighbor_multiplicities=take(self.multiplicities, graph.rows[sites]),
        )

    def _check_scale(self, scale: float) -> None:
        if not self.is_discrete:
            check_positive(scale, "sigma")
        elif not 1 <= check_k(scale) <= self.n_neighbors:
            raise ValueError(
                f"Expected 1 <= k <= n_neighbors; got k={int(scale)}, "
                f"n_neighbors={self.n_neighbors}, n_points={self.n_points}. "
                "Choose k among the other points."
            )

    def _coupling(self, weights: Floats) -> Any:
        """Add the weights and their transpose, as a CSR array."""
        n_points, n_columns = weights.shape
        is_kept = weights.ravel() > 0.0
        starts = np.concatenate([[0], np.cumsum(is_kept)])[::n_columns]
        rows = self.graph.rows.ravel()[is_kept]
        directed = sp.csr_array((weights.ravel()[is_kept], rows, starts), (n_points, n_points))
        return sp.csr_array(directed + directed.T)
