"""What a posterior of k says of new points, with many training points."""

from functools import cached_property
from typing import Any

import numpy as np

from nearfield.prediction._outliers import OutlierScale, typical_scales
from nearfield.prediction._predictor import Predictor
from nearfield.prediction._steps import NeighborAverage, gather

_LEAST_CHUNK = 16


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
        lists, n_as_near = self.family, self.family.n_as_near
        nearest = lists.nearest
        if lists.is_directed:  # of how near others are only a first guess is wanted
            nearest = np.broadcast_to(lists.typical, (lists.n_points, len(lists.typical)))
        return NeighborAverage(
            self.labels,
            self._external_field,
            self.predictive == "joint" and not lists.is_directed,
            gather(self._measure),
            nearest,
            n_as_near,
        )

    @cached_property
    def _outlier_scale(self) -> OutlierScale:
        return OutlierScale.of_neighbors(typical_scales(self.posterior), self.family.typical)
