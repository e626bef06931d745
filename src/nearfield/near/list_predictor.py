"""What a posterior of k says of new points, with many training points."""

from functools import cached_property
from typing import Any

import numpy as np

from nearfield.prediction._outliers import OutlierScale
from nearfield.prediction._predictor import Predictor
from nearfield.prediction._steps import NeighborAverage, gather

_LEAST_CHUNK = 16
_N_OUTLIER_SCALES = 8


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
        levels = (np.arange(_N_OUTLIER_SCALES) + 0.5) / _N_OUTLIER_SCALES
        ranks = np.unique(self.posterior.quantile(levels)["k"].to_numpy()).astype(np.int64) - 1
        typical, none = self.family.typical, np.empty(0)
        positive = typical[typical > 0.0]
        unit = positive[0] if positive.size else 1.0
        reaches = np.where(typical[ranks] > 0.0, typical[ranks], unit)
        return OutlierScale(False, none, none, ranks, reaches)
