"""A label field over many points: what any point sees of it, near by and from afar."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.distances.neighbors import NeighborIndex
from nearfield.near._hashing import sample_rows
from nearfield.near._measure import Ruler
from nearfield.near._rows import sum_normalizers_by_rows, without_themselves
from nearfield.near.cells import n_cells, sort_into_cells
from nearfield.near.normalizers import Normalizers, exact_sums, sum_normalizers
from nearfield.near.scales import TabulatedScales, nearest_elsewhere, usual_scales
from nearfield.near.tables import scale_table, training_table
from nearfield.sampling.near_radius import near_radius_support
from nearfield.sampling.near_support import (
    Neighborhood,
    ScaleTable,
    TrainingTable,
    near_support,
)
from nearfield.weights import RADIUS_EPSILON

N_REFERENCES = 4_096
"""So many points, drawn at random, stand for all that are not near."""

MAX_ALL_REFERENCES = 8_192
"""Up to so many points all do, and no sum is an estimate."""

N_PROBED = 512
"""So many references tell how near the nearest points are."""

N_PROBED_NEIGHBORS = 16
"""So many neighbours of each are looked at, for the first ones may be in the same place."""

_REFERENCE_STREAM = 1


@dataclass(frozen=True, eq=False)
class NearField:
    r"""The training points of a label field, prepared for near neighbours and a background.

    A point has K near neighbours N. Of the other points, the references F stand for all,

    .. math:: \sum_j a_j \approx \sum_{j \in N} a_j + \frac{n - K}{|F|} \sum_{j \in F} a_j

    in every sum that its support is made of. Nothing is left out. With all points as references
    the sums are exact.

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
        index = NeighborIndex.of(points, metric=metric, metric_params=ruler.params, search=search)
        n_neighbors = min(n_neighbors, n_points - 1)
        references = reference_rows(n_points, n_neighbors, seed, n_references)
        longest = ruler.longest(points)
        nearest = _nearest_distances(points, references[:N_PROBED], index)
        low, high = scale_range = usual_scales(kernel, nearest, longest)
        scales = TabulatedScales.covering(kernel, low, high)
        progress: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
        power = ruler.power(points)
        if power is None:
            normalizers = sum_normalizers_by_rows(
                points, index, references, ruler, scales, **progress
            )
        else:
            centres = points[references[: n_cells(n_points)]]
            far = points[references]
            order, table = sort_into_cells(points, centres, far, seed, power=power, n_jobs=n_jobs)
            normalizers = sum_normalizers(points, order, table, scales, seed, **progress)
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
        )._with_index(index)

    @property
    def n_points(self) -> int:
        """The number of training points."""
        return self.points.shape[0]

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.kernel != "radius"

    def changed(self, **changes: Any) -> "NearField":
        """Make another one of the same points with the same index."""
        return replace(self, **changes)._with_index(self.index)

    def _with_index(self, index: NeighborIndex) -> "NearField":
        self.__dict__["index"] = index  # else it would be built anew
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    def look(
        self, points: Any, sites: NDArray[np.int64] | None = None, **options: Any
    ) -> Neighborhood:
        """See what some points are near to, and how far the references are.

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
        far_distances = self._ruler.distances(points, self._reference_points)
        if sites is None:
            sites = np.full(points.shape[0], -1)
        else:
            found = without_themselves(*found, sites)
        distances, index = found
        return Neighborhood(
            np.ascontiguousarray(distances), np.ascontiguousarray(index), far_distances, sites
        )

    def look_from(self, sites: NDArray[np.int64], **options: Any) -> Neighborhood:
        """See what some of the training points are near to."""
        return self.look(self.points[sites], sites, **options)

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
        return self._sums(neighborhood, sigmas, is_joint)[0]

    def log_sums(
        self, neighborhood: Neighborhood, sigmas: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Give the log of a smooth kernel summed over all training points, shape (m, n_sigmas)."""
        return self._sums(neighborhood, sigmas, False)[1]

    def _sums(
        self, neighborhood: Neighborhood, sigmas: NDArray[np.float64], is_joint: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        scales = self.scale_table(np.asarray(sigmas, dtype=np.float64))
        shape = len(neighborhood.sites), len(scales.values)
        support, log_sums = np.empty((*shape, self.n_classes)), np.empty(shape)
        if self.is_smooth:
            near_support(neighborhood, self.training_table, scales, is_joint, support, log_sums)
        else:
            near_radius_support(
                neighborhood, self.training_table, scales, is_joint, RADIUS_EPSILON, support
            )
        return support, log_sums

    @cached_property
    def index(self) -> NeighborIndex:
        """The index over the points."""
        return NeighborIndex.of(
            self.points, metric=self.metric, metric_params=self.metric_params, search=self.search
        )

    @cached_property
    def training_table(self) -> TrainingTable:
        """What compiled sums need to know of the training points."""
        return training_table(
            self.n_points, self.labels, self.normalizers, self.references, self.n_classes
        )

    def scale_table(self, sigmas: NDArray[np.float64]) -> ScaleTable:
        """Prepare sums at some sigmas."""
        return scale_table(sigmas, self.n_points, self.normalizers, self.references)

    @cached_property
    def _ruler(self) -> Ruler:
        return Ruler(self.metric, self.metric_params)

    @cached_property
    def _reference_points(self) -> Any:
        return self.points[self.references]


def reference_rows(
    n_points: int, n_neighbors: int, seed: int, n_references: int | None = None
) -> NDArray[np.int64]:
    """Draw the references; fewer of them are the first ones of more."""
    if n_references is None:
        n_references = n_points if n_points <= MAX_ALL_REFERENCES else N_REFERENCES
    # Twice as many as neighbours: some of them are sure not to be neighbours.
    size = min(max(n_references, 2 * n_neighbors), n_points)
    return sample_rows(n_points, size, seed, _REFERENCE_STREAM)


def _nearest_distances(
    points: Any, rows: NDArray[np.int64], index: NeighborIndex
) -> NDArray[np.float64]:
    """Measure to the nearest point that is not in the same place, where one is found."""
    n_found = min(N_PROBED_NEIGHBORS, points.shape[0])
    return nearest_elsewhere(index.query(points[rows], n_found)[0])
