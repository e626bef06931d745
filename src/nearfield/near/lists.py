"""k nearest neighbours among many points: lists of neighbours in place of all distances."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray

from nearfield.distances.neighbors import NeighborIndex
from nearfield.field import LabelField
from nearfield.field.weights import tie_groups
from nearfield.inference._progress import progress
from nearfield.near._rows import without_themselves
from nearfield.near.box_index import BoxIndex

_N_AT_ONCE = 512


class Ramps(NamedTuple):
    """Who counts at whom, from which k on: a neighbour's share rises as k goes through its ties.

    Each array has shape (n_ramps,).
    """

    sites: NDArray[Any]  # the site that hears, by its number among the sites
    labels: NDArray[np.int64]  # the class that it hears of
    first: NDArray[np.int32]  # how many are closer
    stop: NDArray[np.int32]  # how many are as close or closer


@dataclass(frozen=True, eq=False)
class ListSearch:
    """A search for the neighbours of training points among all of them.

    Attributes
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
    labels : ndarray of int, shape (n,)
    index : NeighborIndex or BoxIndex
        Over the points.
    sites : ndarray of int, shape (m,)
        The training points whose conditionals count.
    n_jobs : int, optional
    verbose : int
    """

    points: Any = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    index: NeighborIndex | BoxIndex
    sites: NDArray[np.int64] = field(repr=False)
    n_jobs: int | None = None
    verbose: int = 0

    def from_sites(self, n_neighbors: int) -> tuple[NDArray[np.float64], Ramps]:
        """Find what each site listens to: the distances of its neighbours, and their ramps."""
        with progress(len(self.sites), "neighbours", self.verbose) as advance:
            distances, index = self._find(
                self.sites, n_neighbors, n_jobs=self.n_jobs, advance=advance
            )
        first, stop = tie_groups(distances)
        rows = np.repeat(np.arange(len(self.sites)), n_neighbors)
        return distances, Ramps(rows, self.labels[index].ravel(), first.ravel(), stop.ravel())

    def from_all(self, n_neighbors: int) -> tuple[NDArray[np.float64], Ramps]:
        """Find who listens to the sites, in the lists of all points.

        Returns
        -------
        distances : ndarray, shape (n, n_neighbors)
            Of the neighbours of every training point.
        ramps : Ramps
        """
        n_points = len(self.labels)
        distances = np.empty((n_points, n_neighbors))
        # Neighbours in turn: what one reads of the others serves the next.
        order = self.index.order if isinstance(self.index, BoxIndex) else np.arange(n_points)
        place_of_site = np.full(n_points, -1, dtype=np.int32)
        place_of_site[self.sites] = np.arange(len(self.sites))

        def hear(start: int) -> Ramps:
            rows = order[start : start + _N_AT_ONCE]
            distances[rows], index = self._find(rows, n_neighbors)
            first, stop = tie_groups(distances[rows])
            sites = place_of_site[index]
            is_site = sites >= 0
            labels = np.broadcast_to(self.labels[rows, None], index.shape)
            advance(len(rows))
            return Ramps(sites[is_site], labels[is_site], first[is_site], stop[is_site])

        with progress(n_points, "neighbours", self.verbose) as advance:
            parts = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                delayed(hear)(start) for start in range(0, n_points, _N_AT_ONCE)
            )
        return distances, Ramps(*map(np.concatenate, zip(*parts, strict=True)))

    def _find(
        self, rows: NDArray[np.int64], n_neighbors: int, **options: Any
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        found = self.index.query(self.points[rows], n_neighbors + 1, **options)
        distances, index = without_themselves(*found, rows)
        # An approximate search sorts by distances that it knows to seven digits.
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(distances, order, 1), np.take_along_axis(index, order, 1)


@dataclass(frozen=True, eq=False)
class ListConditionals:
    r"""The conditionals of some sites given all other labels, for every k; a family of fields.

    k times the support of a class is a sum of ramps in k, so that two running sums give it for
    all k at once.

    Attributes
    ----------
    table : ndarray of float32, shape (n_sites, k_max, G)
        The support.
    labels : ndarray of int, shape (n_sites,)
    external_field : ndarray, shape (G,), optional
    """

    table: NDArray[np.float32] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    external_field: ArrayLike | None = None

    scale_name = "k"
    is_discrete = True
    is_smooth = False
    has_joint = False

    @classmethod
    def of(
        cls, ramps: list[Ramps], labels: NDArray[np.int64], n_classes: int, k_max: int
    ) -> "ListConditionals":
        """Add up ramps, at k up to some k."""
        shape = len(labels), k_max + 1, n_classes  # one row to spare for what ends beyond k_max
        corners = np.zeros(np.prod(shape))
        for sites, classes, first, stop in ramps:
            share = 1.0 / (stop - first)
            for k, change in ((first, share), (stop, -share)):
                places = np.ravel_multi_index((sites, np.minimum(k, k_max), classes), shape)
                corners += np.bincount(places, change, minlength=corners.size)
        heights = corners.reshape(shape)[:, :k_max]
        np.cumsum(np.cumsum(heights, axis=1), axis=1, out=heights)
        heights /= np.arange(1.0, k_max + 1.0)[:, None]
        return cls(heights.astype(np.float32), labels)

    @property
    def n_points(self) -> int:
        """The number of sites."""
        return self.table.shape[0]

    @property
    def n_classes(self) -> int:
        """The number of classes G."""
        return self.table.shape[2]

    @property
    def scale_range(self) -> tuple[float, float]:
        """The k that the lists are long enough for."""
        return 1.0, float(self.table.shape[1])

    @property
    def scale_steps(self) -> NDArray[np.float64]:
        """All of these k."""
        return np.arange(1.0, self.table.shape[1] + 1.0)

    def at(self, scale: float) -> LabelField:
        """Refuse: some conditionals are not a field."""
        raise ValueError(
            "Expected a model with a joint distribution; got the conditionals of some of many "
            "points. Use pseudolikelihood, or fit on a subset."
        )

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give the support of each class at k, shape (n_sites, G); `labels` are not read."""
        return self.table[:, int(scale) - 1].astype(np.float64)


@dataclass(frozen=True, eq=False)
class NeighborLists:
    """What prediction needs to know of many training points: how near their k nearest are.

    Attributes
    ----------
    n_points : int
    n_classes : int
    is_directed : bool
    typical : ndarray, shape (k_max,)
        The median distance of the k-th neighbour, k = 1, 2, ...
    nearest : ndarray, shape (n, k_max), or (0, k_max) if directed
        The distances of the nearest neighbours of each training point.
    n_as_near : ndarray of int, shape (n,) or (0,)
        How many are no farther than the last of these, or tie with it.
    external_field : ndarray, shape (G,), optional
    """

    n_points: int
    n_classes: int
    is_directed: bool
    typical: NDArray[np.float64] = field(repr=False)
    nearest: NDArray[np.float64] = field(repr=False)
    n_as_near: NDArray[np.int64] = field(repr=False)
    external_field: ArrayLike | None = None

    scale_name = "k"
    is_discrete = True
    is_smooth = False
    has_joint = False
