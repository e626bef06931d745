"""Kernels of the distance on the k nearest neighbours, and the supports that they give."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field.kernels import (
    KERNEL_CODES,
    add_in_support,
    add_new_in_support,
    add_out_support,
    add_uniform_in_support,
    add_uniform_new_in_support,
    add_uniform_out_support,
    fill_log_normalizers,
    fill_weights,
)
from nearfield.field.multiplicities import NewEdges, sum_at
from nearfield.field.weights import RADIUS_EPSILON
from nearfield.neighbors import ReverseNeighbors, last_tie

Floats = NDArray[np.float64]

_LARGEST_RATE = 1e200  # times zero it is still zero, times a square of 1e100 finite


class NeighborKernel(NamedTuple):
    r"""A kernel of the distance on the k nearest neighbours.

    .. math:: w_{ij} = \frac{\kappa(d_{ij}; \sigma)}{\sum_{l \in N_k(i)} \kappa(d_{il}; \sigma)},
              \qquad j \in N_k(i)

    The uniform kernel, :math:`\kappa = 1`, has the scale k; the others have the scale sigma at
    a given k.
    """

    name: str
    n_neighbors: int  # k, and for the uniform kernel the largest k

    @property
    def is_uniform(self) -> bool:
        """Whether the scale is k."""
        return self.name == "uniform"

    @property
    def is_smooth(self) -> bool:
        """Whether weights change smoothly with the scale."""
        return self.name in ("gaussian", "exponential")

    def out_support(
        self,
        distances: Floats,
        neighbor_labels: NDArray[np.int64],
        scales: Floats,
        n_classes: int,
        multiplicities: Floats | None = None,
    ) -> Floats:
        """Sum the out-weights of some points by class, shape (m, n_scales, G).

        Parameters
        ----------
        distances, neighbor_labels : ndarray, shape (m, n_columns)
            Of the neighbours of each point, nearest first.
        scales : ndarray, shape (n_scales,)
            Rising if the kernel is uniform.
        n_classes : int
        multiplicities : ndarray, shape (m, n_columns), optional
            As how many points each neighbour counts.
        """
        support = np.zeros((len(distances), len(scales), n_classes))
        if multiplicities is not None:
            places = np.arange(len(distances))[:, None] * n_classes + neighbor_labels
            for s, scale in enumerate(scales):
                weights = self.weights(distances, scale, multiplicities)
                support[:, s] = sum_at(places, weights, support[:, s].shape)
        elif self.is_uniform:
            add_uniform_out_support(distances, neighbor_labels, scales, support)
        else:
            k, code, rates = self._compiled(scales)
            add_out_support(distances, neighbor_labels, k, code, rates, support)
        return support

    def in_support(
        self, edges: "GraphEdges", scales: Floats, n_sites: int, n_classes: int
    ) -> Floats:
        """Sum the in-weights of some sites by class, shape (n_sites, n_scales, G)."""
        support = np.zeros((n_sites, len(scales), n_classes))
        distances, labels, places, own, multiplicities = edges
        if own is not None and multiplicities is not None:
            is_site = places >= 0
            targets = (places * n_classes + labels[:, None])[is_site]
            for s, scale in enumerate(scales):
                # Row j gives s_j kappa_ji / Z_j to each of the copies of point i.
                weights = self.weights(distances, scale, multiplicities) / multiplicities
                given = (own[:, None] * weights)[is_site]
                support[:, s] = sum_at(targets, given, support[:, s].shape)
        elif self.is_uniform:
            add_uniform_in_support(distances, labels, places, scales, support)
        else:
            k, code, rates = self._compiled(scales)
            add_in_support(distances, labels, places, k, code, rates, support)
        return support

    def log_normalizers(self, distances: Floats, scales: Floats, k: int) -> Floats:
        """Compute log normalising constants relative to the nearest neighbour, (n, n_scales)."""
        log_normalizers = np.empty((len(distances), len(scales)))
        _, code, rates = self._compiled(scales)
        with np.errstate(divide="ignore"):  # k = 0 has none
            fill_log_normalizers(distances, k, code, rates, log_normalizers)
        return log_normalizers

    def log_ratios(self, distances: Floats, references: Floats, scale: float) -> Floats:
        """Evaluate log kappa(distance) - log kappa(reference), of any shapes, at one scale."""
        rate = float(self.rates(np.array([scale]))[0])
        if self.is_smooth:
            ratios = -rate * (distances - references)
            # A product: two squares of far points would cancel to noise.
            return ratios * (distances + references) if self.name == "gaussian" else ratios
        is_outside = np.subtract(distances >= rate, references >= rate, dtype=np.float64)
        return np.log(RADIUS_EPSILON) * is_outside * (self.name == "radius")

    def log_values(self, distances: Floats, scales: Floats) -> Floats:
        """Evaluate the log of a smooth kernel at some distances, shape (n, n_scales)."""
        powers = distances**2 if self.name == "gaussian" else distances
        return -powers[:, None] * self.rates(scales)

    def new_in_support(
        self,
        reverse: ReverseNeighbors,
        labels: NDArray[np.int64],
        distances: Floats,
        scales: Floats,
        n_classes: int,
        multiplicities: Floats | None = None,
        neighbor_multiplicities: Floats | None = None,
        *,
        has_all: bool = False,
    ) -> Floats:
        """Sum the in-weights of new points by class, shape (m, n_scales, G).

        Parameters
        ----------
        reverse : ReverseNeighbors
            The training points that each new point reaches.
        labels : ndarray of int, shape (n,)
            Of the training points.
        distances : ndarray, shape (n, n_columns)
            Their graph.
        scales : ndarray, shape (n_scales,)
        n_classes : int
        multiplicities, neighbor_multiplicities : ndarray, shape (n,) and (n, n_columns), optional
            As how many points the training points, and their neighbours on the graph, count.
        has_all : bool
            All points are neighbours of each other: a new point replaces none.
        """
        support = np.zeros((len(reverse.starts) - 1, len(scales), n_classes))
        if multiplicities is not None:
            edges = NewEdges.from_reverse(reverse, distances)
            places, nearest = edges.queries * n_classes + labels[edges.rows], distances[:, :1]
            for s, scale in enumerate(scales):
                k = check_k(scale) if self.is_uniform else self.n_neighbors
                weights = edges.in_weights(
                    neighbor_multiplicities * np.exp(self.log_ratios(distances, nearest, scale)),
                    self.log_ratios(edges.distances, nearest[edges.rows, 0], scale),
                    None if has_all else k,
                )
                given = multiplicities[edges.rows] * weights
                support[:, s] = sum_at(places, given, support[:, s].shape)
        elif self.is_uniform:
            add_uniform_new_in_support(tuple(reverse), labels, distances, scales, support)
        else:
            k, code, rates = self._compiled(scales)
            log_rest = self.log_normalizers(distances, scales, k if has_all else k - 1)
            add_new_in_support(
                tuple(reverse), labels, distances, k, code, rates, log_rest, has_all, support
            )
        return support

    def weights(
        self, distances: Floats, scale: float, multiplicities: Floats | None = None
    ) -> Floats:
        """Compute the weights of all neighbours on lists of distances, shape (n, n_columns).

        `multiplicities`, of the same shape, say as how many points each neighbour counts.
        """
        weights = np.empty(distances.shape)
        kernel = NeighborKernel(self.name, check_k(scale)) if self.is_uniform else self
        k, code, rates = kernel._compiled(np.array([scale], dtype=np.float64))
        fill_weights(distances, k, code, rates[0], weights)
        if multiplicities is not None:
            weights *= multiplicities
            weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def rates(self, scales: Floats) -> Floats:
        """Turn sigmas into rates: exp(-rate d^2), exp(-rate d); others stay as they are."""
        rates = np.asarray(scales, dtype=np.float64)
        if self.name == "gaussian":
            with np.errstate(over="ignore", divide="ignore"):
                rates = 0.5 / rates / rates
        return np.minimum(rates, _LARGEST_RATE)

    def _compiled(self, scales: Floats) -> tuple[int, int, Floats]:
        """Turn scales into what the compiled kernels take: k, a number for the kernel, rates."""
        return self.n_neighbors, KERNEL_CODES[self.name], self.rates(scales)


class ScaleOfKernel:
    """What a model on the graph says of its scale, by the name of its kernel."""

    kernel: Any

    @property
    def scale_name(self) -> Literal["sigma", "k"]:
        """``"k"`` for the uniform kernel, else ``"sigma"``."""
        return "k" if self.is_discrete else "sigma"

    @property
    def is_discrete(self) -> bool:
        """Whether the scale is k."""
        return self.kernel == "uniform"

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with the scale."""
        return self.kernel in ("gaussian", "exponential")


class GraphEdges(NamedTuple):
    """Rows of the graph that lead to some sites."""

    distances: Floats  # shape (n_rows, n_columns)
    labels: NDArray[np.int64]  # shape (n_rows,): the class of the point of each row
    places: NDArray[np.int32]  # shape (n_rows, n_columns): which site a neighbour is, or -1
    multiplicities: Floats | None = None  # shape (n_rows,): of the point of each row, if not one
    neighbor_multiplicities: Floats | None = None  # shape (n_rows, n_columns)

    @classmethod
    def from_rows(
        cls,
        distances: Floats,
        neighbor_rows: NDArray[Any],
        labels: NDArray[np.int64],
        place_of_site: NDArray[np.int32],
        multiplicities: Floats | None = None,
    ) -> "GraphEdges":
        """Keep the rows of a graph with a site among their neighbours.

        Parameters
        ----------
        distances, neighbor_rows : ndarray, shape (n, n_columns)
        labels : ndarray of int, shape (n,)
        place_of_site : ndarray of int, shape (n_points,)
            The number of each site, -1 for the other points.
        multiplicities : ndarray, shape (n,), optional
            As how many points each point counts.
        """
        of_neighbors = take(multiplicities, neighbor_rows)
        places = place_of_site[neighbor_rows]
        return cls(distances, labels, places, multiplicities, of_neighbors)._with_sites()

    def first(self, n_neighbors: int) -> "GraphEdges":
        """Keep the first neighbours, with the ties of the last of them."""
        columns = np.s_[:, : last_tie(self.distances, n_neighbors)]
        of_neighbors = self.neighbor_multiplicities
        return GraphEdges(
            self.distances[columns],
            self.labels,
            self.places[columns],
            self.multiplicities,
            take(of_neighbors, columns),
        )._with_sites()

    def _with_sites(self) -> "GraphEdges":
        is_kept = (self.places >= 0).any(axis=1)
        parts: Any = (None if part is None else part[is_kept] for part in self)
        return GraphEdges(*parts)


def neighbor_scale_range(kernel: str, n_neighbors: int, distances: Floats) -> tuple[float, float]:
    """Find the scales between which the weights change, given lists of distances."""
    longest = float(distances.max())
    return scale_range_from_nearest(kernel, n_neighbors, longest, nearest_distances(distances))


def nearest_distances(distances: Floats) -> Floats:
    """Take the smallest distance above zero of each list that has one."""
    nearest = np.where(distances > 0.0, distances, np.inf).min(axis=1)
    return nearest[np.isfinite(nearest)]


def scale_range_from_nearest(
    kernel: Any, n_neighbors: int, longest: float, nearest: Floats
) -> tuple[float, float]:
    """Find the scales between which the weights change.

    Parameters
    ----------
    kernel : str or callable
    n_neighbors : int
    longest : float
        The largest distance on the graph.
    nearest : ndarray
        The `nearest_distances` of all points, in any order.
    """
    if kernel == "uniform":
        return 1.0, float(n_neighbors)
    if longest == 0.0:  # all points identical: every scale gives the same weights
        return 0.5, 2.0
    shortest = float(np.quantile(nearest, 0.05))
    if kernel == "exponential":
        return 0.05 / longest, 20.0 / shortest
    if kernel == "radius":
        return float(nearest.min()), 1.001 * longest
    return 0.1 * shortest, 5.0 * longest


def check_neighbor_kernel(kernel: Any) -> None:
    """Accept the name of a kernel on the graph."""
    if kernel not in list(KERNEL_CODES):
        raise ValueError(
            f"Expected a kernel among {sorted(KERNEL_CODES)}; got kernel={kernel!r}. "
            "Choose one of them."
        )


def check_k(k: float) -> int:
    """Turn a k that came as a float into the whole number that it is."""
    if k != int(k):
        raise ValueError(f"Expected a whole number k; got k={k!r}. Round it.")
    return int(k)


def take(multiplicities: Floats | None, index: Any) -> Floats | None:
    """Give the multiplicities of some points, shape that of the index; None where all are one."""
    return None if multiplicities is None else multiplicities[index]
