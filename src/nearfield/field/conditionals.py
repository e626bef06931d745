"""Conditionals of some points given the labels of all others: what pseudolikelihood needs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.field.label_field import LabelField
from nearfield.field.neighbor_kernel import GraphEdges, NeighborKernel, ScaleOfKernel, take
from nearfield.neighbors import last_tie

Floats = NDArray[np.float64]

_SCALES_AT_ONCE = 16


def _map_here(parts: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    return [function(part) for part in parts]


def _sum_here(parts: list[Any], function: Callable[[Any], Floats]) -> Floats:
    return np.sum(_map_here(parts, function), axis=0)


@dataclass(frozen=True, eq=False)
class SubsampledConditionals(ScaleOfKernel):
    """The conditionals of some sites given all other labels: a family for pseudolikelihood.

    The neighbours of a site come from all points. The product of the conditionals is not scaled
    up: it holds less information than that of all sites, and its posterior is as much wider.

    Parameters
    ----------
    distances, neighbor_labels : ndarray, shape (n_sites, n_columns)
        Of the neighbours of each site, nearest first.
    labels : ndarray of int, shape (n_sites,)
    n_classes : int
    neighbor_kernel : NeighborKernel
    edges : list of GraphEdges, or None
        The rows of the graph that lead to the sites, in parts; none if the model is directed.
    scale_range : tuple of float
    longest : float
    external_field : array-like, shape (G,), optional
    multiplicities : ndarray, shape (n_sites,), optional
        How often the conditional of each site counts; once by default.
    neighbor_multiplicities : ndarray, shape (n_sites, n_columns), optional
        As how many points each neighbour counts; one by default.
    map_parts, sum_parts : callable, optional
        Take the edges and a function of one part, and give its results, or add them up: here, or
        where the parts are.
    """

    distances: Floats = field(repr=False)
    neighbor_labels: NDArray[np.int64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    n_classes: int
    neighbor_kernel: NeighborKernel
    edges: list[Any] | None = field(repr=False)
    scale_range: tuple[float, float]
    longest: float
    external_field: ArrayLike | None = None
    multiplicities: Floats | None = field(default=None, repr=False)
    neighbor_multiplicities: Floats | None = field(default=None, repr=False)
    map_parts: Callable[[list[Any], Callable[[Any], Any]], list[Any]] = _map_here
    sum_parts: Callable[[list[Any], Callable[[Any], Floats]], Floats] = _sum_here

    has_joint = False
    has_graph = True

    @property
    def kernel(self) -> str:
        """The kernel by its name."""
        return self.neighbor_kernel.name

    @property
    def n_points(self) -> int:
        """The number of sites."""
        return len(self.labels)

    @property
    def scale_steps(self) -> Floats:
        """All k; none for the other kernels."""
        n_neighbors = self.neighbor_kernel.n_neighbors
        return np.arange(1.0, n_neighbors + 1.0) if self.is_discrete else np.empty(0)

    def first(self, n_neighbors: int) -> "SubsampledConditionals":
        """Take fewer neighbours."""
        columns = np.s_[:, : last_tie(self.distances, n_neighbors)]
        edges = self.edges
        if edges is not None:
            edges = self.map_parts(edges, partial(GraphEdges.first, n_neighbors=n_neighbors))
        return replace(
            self,
            distances=np.ascontiguousarray(self.distances[columns]),
            neighbor_labels=np.ascontiguousarray(self.neighbor_labels[columns]),
            neighbor_multiplicities=take(self.neighbor_multiplicities, columns),
            neighbor_kernel=NeighborKernel(self.kernel, n_neighbors),
            edges=edges,
            scale_range=(1.0, float(n_neighbors)) if self.is_discrete else self.scale_range,
        )

    def at(self, scale: float) -> LabelField:
        """Refuse: conditionals are not a field."""
        raise ValueError(
            "Expected a model with a joint distribution; got the conditionals of some points. "
            "Use pseudolikelihood, or the family of all points."
        )

    def support(self, scale: float, labels: NDArray[np.int64]) -> Floats:
        """Return the support of each class in the conditionals at a scale, shape (n_sites, G)."""
        return next(self.supports([scale], labels))

    def supports(self, scales: Iterable[float], labels: NDArray[np.int64]) -> Iterator[Floats]:
        """Give the support at each of some rising scales; `labels` are those of the sites."""
        values = np.asarray(list(scales), dtype=np.float64)
        n_at_once = len(values) if self.is_discrete else _SCALES_AT_ONCE
        for start in range(0, len(values), max(n_at_once, 1)):
            some = values[start : start + n_at_once]
            yield from np.moveaxis(self._support_at(some), 1, 0)

    def _support_at(self, scales: Floats) -> Floats:
        kernel, n_classes = self.neighbor_kernel, self.n_classes
        support = kernel.out_support(
            self.distances, self.neighbor_labels, scales, n_classes, self.neighbor_multiplicities
        )
        if self.edges is not None:
            of_part = partial(
                kernel.in_support, scales=scales, n_sites=self.n_points, n_classes=n_classes
            )
            support += self.sum_parts(self.edges, of_part)
        return support
