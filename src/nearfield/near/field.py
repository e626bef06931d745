"""A label field over many points: what any point sees of it, near by and from afar."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.distances.neighbors import NeighborIndex
from nearfield.inference._progress import progress
from nearfield.near._measure import Ruler
from nearfield.near._rows import sum_normalizers_by_rows, without_themselves
from nearfield.near._summing import SummingField
from nearfield.near.box_index import BoxIndex
from nearfield.near.cells import n_cells, nearest_centre, sort_into_cells
from nearfield.near.drawn import reference_rows, site_rows
from nearfield.near.normalizers import Normalizers, exact_sums, sum_normalizers
from nearfield.near.quick_index import quick_index
from nearfield.near.scales import TabulatedScales, nearest_elsewhere, usual_scales
from nearfield.near.support_table import SupportTable, n_batches, tabulate
from nearfield.sampling.near_terms import NEW, Neighborhood

N_PROBED = 512
"""So many references tell how near the nearest points are."""

N_PROBED_NEIGHBORS = 16
"""So many neighbours of each are looked at, for the first ones may be in the same place."""

_FAR = 1_024.0  # times the largest distance

_SHARED = ("index", "cells", "_place_of", "_plain_sources")  # by fields of the same points


@dataclass(frozen=True, eq=False)
class NearField(SummingField):
    r"""The training points of a label field, prepared for near neighbours and a background.

    A point sees its K nearest neighbours, and, of the 20,480 points, about, in the cells around it,
    those whose kernel is not so small that references do as well: N. For the others the references
    F stand,

    .. math:: \sum_j a_j \approx \sum_{j \in N} a_j + \frac{n - |N|}{|F|} \sum_{j \in F} a_j

    in every sum that its support is made of. Nothing is left out; up to 16,384 points the sums
    are exact. With an approximate search new points see those in the cells alone. By a metric that
    cells do not know, N are the K nearest ones alone, and up to 8,192 points all are references.

    Attributes
    ----------
    points : ndarray or sparse matrix, shape (n, n_features)
    labels : ndarray of int, shape (n,)
        0..G-1.
    n_classes : int
    kernel : str
    normalizers : Normalizers
        The total weight that each point gives away.
    references : ndarray of int, shape (R,)
    scale_range : tuple of float
        The sigmas between which the field changes.
    longest : float
        The largest distance, about.
    n_neighbors : int
        K
    metric : str or callable
    metric_params : dict
    search : {"exact", "approximate"}
    seed : int
        Of what was drawn.
    external_field : ndarray, shape (G,), optional
    cell_of : ndarray of int, shape (n,), optional
        The cell of each point, by its centre.
    """

    points: Any = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    n_classes: int
    kernel: str
    normalizers: Normalizers = field(repr=False)
    references: NDArray[np.int64] = field(repr=False)
    scale_range: tuple[float, float]
    longest: float
    n_neighbors: int
    metric: str | Callable[..., float] = "euclidean"
    metric_params: Mapping[str, Any] = field(default_factory=dict)
    search: str = "exact"
    seed: int = 0
    external_field: ArrayLike | None = None
    cell_of: NDArray[np.int32] | None = field(repr=False, default=None)

    has_joint = False
    is_discrete = False
    scale_name = "sigma"

    @classmethod
    def of(
        cls,
        points: Any,
        labels: NDArray[np.int64],
        n_classes: int,
        kernel: str,
        *,
        n_neighbors: int,
        seed: int,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: Mapping[str, Any] | None = None,
        search: str = "exact",
        n_references: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> "NearField":
        """Draw the references and sum the normalisers; all parameters are as the attributes."""
        n_points = points.shape[0]
        ruler = Ruler(metric, dict(metric_params or {}))
        n_neighbors = min(n_neighbors, n_points - 1)
        references = reference_rows(n_points, n_neighbors, seed, n_references)
        longest = ruler.longest(points)
        power = ruler.power(points)
        cell_of = cells = None
        if power is not None:
            centres = points[references[: n_cells(n_points)]]
            cell_of = nearest_centre(points, centres, n_jobs).astype(np.int32)
            cells = sort_into_cells(
                points, centres, points[references], seed, power=power, cell_of=cell_of
            )
        index = quick_index(points, metric=metric, metric_params=ruler.params, search=search)
        nearest = _nearest_distances(points, references[:N_PROBED], index)
        low, high = scale_range = usual_scales(kernel, nearest, longest)
        scales = TabulatedScales.covering(kernel, low, high)
        options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
        if cells is None:
            normalizers = sum_normalizers_by_rows(
                points, index, references, ruler, scales, **options
            )
        else:
            normalizers = sum_normalizers(points, *cells, scales, seed, **options)
        return cls(
            points,
            labels,
            n_classes,
            kernel,
            normalizers,
            references,
            scale_range,
            longest,
            n_neighbors,
            metric,
            ruler.params,
            search,
            seed,
            cell_of=cell_of,
        )._knowing(index=index, **({} if cells is None else {"cells": cells}))

    def changed(self, **changes: Any) -> "NearField":
        """Make another one of the same points with the same index and cells."""
        known = {name: self.__dict__[name] for name in _SHARED if name in self.__dict__}
        return replace(self, **changes)._knowing(**known)

    def _knowing(self, **known: Any) -> "NearField":
        self.__dict__.update(known)  # else it would be made anew
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    def look(
        self,
        points: Any,
        sites: NDArray[np.int64] | None = None,
        **options: Any,
    ) -> Neighborhood:
        """See what some points are near to.

        Parameters
        ----------
        points : ndarray or sparse matrix, shape (m, n_features)
        sites : ndarray of int, shape (m,), optional
            Which training points they are, if they are; none is a neighbour of itself.
        options
            `n_jobs` and `advance` of `NeighborIndex.query`.
        """
        n_found = self.n_neighbors + (sites is not None)
        found = self.index.query(points, n_found, **options)
        if sites is None:
            sites = np.full(points.shape[0], NEW)
        else:
            found = without_themselves(*found, sites)
        return self.neighborhood_of(points, *found, sites)

    @property
    def lists_new_points(self) -> bool:
        """Whether the nearest neighbours of new points are searched."""
        return self.search == "exact" or self.power is None

    def look_within(self, points: Any) -> Neighborhood:
        """See what new points are near to, but far ones from where differences have digits left.

        An approximate search is left out where cells know the metric: all points that matter are
        in the cells around, and measured there.
        """
        points = self.drawn_in(points)
        if self.lists_new_points:
            return self.look(points)
        none = np.empty((points.shape[0], 0))
        return self.neighborhood_of(points, none, none.astype(np.int64), np.full(len(points), NEW))

    def drawn_in(self, points: Any) -> Any:
        r"""Move points that are far from all training points towards these.

        From 1,024 times the largest distance on, which of the training points are the nearest,
        and by how much, depends on the direction alone, to one part in a thousand; farther out,
        differences of distances are lost in single precision. By Manhattan a coordinate beyond
        all others changes all distances alike, and is moved by itself. By other metrics points
        stay.
        """
        if self.power is None:
            return points
        centre, radius = self.cells[1].centres.mean(axis=0), _FAR * self.longest
        gaps = points - centre
        if self.power == 1:
            return np.where(np.abs(gaps) > radius, centre + np.clip(gaps, -radius, radius), points)
        # Not by squares, which are infinite before the distances are.
        sizes = np.abs(gaps).max(axis=1, keepdims=True)
        lengths = sizes * np.linalg.norm(gaps / np.where(sizes > 0.0, sizes, 1.0), axis=1)[:, None]
        is_far = lengths > radius
        return np.where(is_far, centre + gaps * (radius / np.where(is_far, lengths, 1.0)), points)

    def neighborhood_of(
        self,
        points: Any,
        distances: NDArray[np.float64],
        index: NDArray[np.int64],
        sites: NDArray[np.int64],
    ) -> Neighborhood:
        """Put together what was found near to some points."""
        n_points, none = len(sites), np.empty((len(sites), 0))
        is_by_cells = self.power is not None
        return Neighborhood(
            np.ascontiguousarray(distances),
            np.ascontiguousarray(index),
            np.ascontiguousarray(points, dtype=np.float64) if is_by_cells else none,
            (none if is_by_cells else self._ruler.distances(points, self._reference_points))
            .astype(np.float32)
            .reshape(n_points, -1),
            sites,
        )

    def look_from(self, sites: NDArray[np.int64], **options: Any) -> Neighborhood:
        """See what some of the training points are near to."""
        return self.look(self.points[sites], sites, **options)

    def tabulate(
        self, sites: NDArray[np.int64], *, n_jobs: int | None = None, verbose: int = 0
    ) -> tuple[Neighborhood, SupportTable]:
        """See what some training points are near to; compute their support at all scales."""
        scales = self.site_scales
        with progress(len(sites), "neighbours", verbose) as advance:
            neighborhood = self.look_from(sites, n_jobs=n_jobs, advance=advance)
        with progress(len(sites) * n_batches(scales), "conditionals", verbose) as advance:
            table = tabulate(
                neighborhood, scales, self.coarse_sums_at, n_jobs=n_jobs, advance=advance
            )
        return neighborhood, table

    def site_table(self, n_sites: int) -> SupportTable:
        """Compute the support of the first ones of the sites at all scales."""
        return self.tabulate(site_rows(self.n_points, n_sites, self.seed))[1]

    def exact_normalizers(self, rows: NDArray[np.int64]) -> Normalizers:
        """Sum the normalisers of some training points again, over all others as they are."""
        power = self._ruler.power(self.points)
        nearest, scales = self.normalizers.nearest[rows], self.normalizers.scales
        if power is None:
            raise ValueError(
                "Expected Euclidean or Manhattan distances for sums by cells; got "
                f"metric={self.metric!r}. Others are not estimated."
            )
        sums = exact_sums(
            self.points[rows], rows, nearest, self.points, scales, self.seed, power=power
        )
        return Normalizers.given(sums, nearest, scales)

    def support(
        self, neighborhood: Neighborhood, sigmas: NDArray[np.float64], is_joint: bool = True
    ) -> NDArray[np.float64]:
        """Sum the coupling of points to the training points of each class.

        Parameters
        ----------
        neighborhood : Neighborhood
            Of m points, by `look`.
        sigmas : ndarray, shape (n_sigmas,)
        is_joint : bool
            Whether with the weight that the others give to the point, or only that which it gives.

        Returns
        -------
        support : ndarray, shape (m, n_sigmas, G)
        """
        support = self.sums_at(sigmas).support(neighborhood, is_joint)
        return support.out + support.back if is_joint else support.out

    @cached_property
    def index(self) -> NeighborIndex | BoxIndex:
        """The index over the points."""
        return quick_index(
            self.points,
            metric=self.metric,
            metric_params=self.metric_params,
            search=self.search,
        )

    @cached_property
    def _reference_points(self) -> Any:
        return self.points[self.references]


def _nearest_distances(
    points: Any, rows: NDArray[np.int64], index: NeighborIndex | BoxIndex
) -> NDArray[np.float64]:
    """Measure to the nearest point that is not in the same place, where one is found."""
    n_found = min(N_PROBED_NEIGHBORS, points.shape[0])
    return nearest_elsewhere(index.query(points[rows], n_found)[0])
