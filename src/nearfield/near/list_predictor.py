"""What a posterior of k says of new points, with many training points."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from nearfield.distances import distance_matrix
from nearfield.near.box_index import BoxIndex
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._outliers import OutlierScale, typical_scales
from nearfield.prediction._predictor import Predictor
from nearfield.prediction._rules import Floats
from nearfield.prediction._steps import NeighborAverage, gather
from nearfield.sampling.box_support import box_support
from nearfield.sampling.nearest import ABOVE

_LEAST_CHUNK = 16
_CHUNK = 512  # where memory does not grow with the training points


class ListPredictor(Predictor):
    """Class probabilities of new points from their distances to all training points.

    As `Predictor`, but what it knows of the distances between training points is how far the
    nearest ones of each are: `family` is `nearfield.near.lists.NeighborLists`.
    """

    family: Any

    @property
    def chunk_size(self) -> int:
        """How many new points to hand over at once; a few, if there are very many others."""
        return max(_LEAST_CHUNK, super().chunk_size)

    @cached_property
    def _average(self) -> NeighborAverage:
        lists = self.family
        nearest = lists.nearest
        if lists.is_directed:  # of how near others are only a first guess is wanted
            nearest = np.broadcast_to(lists.typical, (lists.n_points, len(lists.typical)))
        return NeighborAverage(
            self.labels,
            self._external_field,
            self._is_joint,
            gather(self._measure),
            nearest,
            lists.n_as_near,
        )

    @property
    def _is_joint(self) -> bool:
        return self.predictive == "joint" and not self.family.is_directed

    @cached_property
    def _outlier_scale(self) -> OutlierScale:
        return OutlierScale.of_neighbors(typical_scales(self.posterior), self.family.typical)


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxPredictor(ListPredictor):
    """The same from the new points themselves, whose near ones are found by an index of boxes.

    Parameters
    ----------
    posterior, family, labels, predictive
        As in `ListPredictor`.
    points : ndarray, shape (n, n_features)
        The training points.
    power : int
        2 for Euclidean distances, 1 for Manhattan distances.
    """

    points: Any = field(repr=False)
    power: int

    takes_points = True
    chunk_size = _CHUNK

    def outlier_score(self, points: Any) -> Floats:
        """Say how far points are from all training points, at the scale of the posterior."""
        n_neighbors = self._average.nearest.shape[1]
        return self._outlier_scale.score(self._average.look(self._check(points), n_neighbors))

    @cached_property
    def _average(self) -> "BoxAverage":
        lists: Any = self.family
        index = BoxIndex.of(self.points, power=self.power)
        bounds: tuple[Any, Any] = None, None
        if self._is_joint:
            bounds = index.bounds_within(lists.nearest[:, -1] * ABOVE)
        return BoxAverage(
            self.labels,
            self._external_field,
            self._is_joint,
            gather(self._measure),
            lists.nearest,
            lists.n_as_near,
            index,
            bounds,
        )

    def _check(self, points: Any) -> Floats:
        return np.ascontiguousarray(points, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BoxAverage(NeighborAverage):
    """The posterior average from the points in near boxes alone.

    These are the new point's nearest neighbours, and the training points which have it among
    theirs.
    """

    index: BoxIndex
    bounds: tuple[Any, Any]

    def at(self, scales: Floats) -> Callable[[Floats], tuple[Floats, Interpolation]]:
        """Prepare the support at some k of the posterior, which rise; it takes points."""
        ks = np.append(scales, np.inf)  # never reached: an end for the search

        def support(points: Floats) -> tuple[Floats, Interpolation]:
            values = np.empty((len(points), len(scales), len(self.external_field)))
            box_support(
                points,
                self.look(points, self.nearest.shape[1])[:, -1].copy(),
                self.index.tree,
                self.index.points,
                self.index.order,
                self.labels,
                ks,
                (self.nearest, self.n_as_near),
                self.bounds,
                values,
            )
            return values, Interpolation.none(len(scales))

        return support

    def look(self, points: Floats, n_neighbors: int) -> Floats:
        """Measure to the nearest training points, shape (m, n_neighbors), nearest first."""
        distances, _ = self.index.query(points, n_neighbors)
        is_finite = np.isfinite(distances[:, -1])
        if not is_finite.all():  # refused in the same words as everywhere
            metric = "euclidean" if self.index.tree.power == 2 else "manhattan"
            distance_matrix(points[~is_finite][:1], self.index.points, metric=metric)
        return distances
