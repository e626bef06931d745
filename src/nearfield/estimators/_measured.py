"""A dense field over points: its distances are measured when needed, and never saved."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.estimators._metric import MetricSpace
from nearfield.field import DistanceFamily


class MeasuredFamily(DistanceFamily):
    """The d-nn models over the points of a metric space.

    Parameters
    ----------
    family : DistanceFamily
        Of the distances between these points.
    space : MetricSpace
        Not of precomputed distances.
    """

    space: MetricSpace

    def __init__(self, family: DistanceFamily, space: MetricSpace) -> None:
        self.__dict__.update(
            distances=family.distances,
            kernel=family.kernel,
            n_classes=family.n_classes,
            external_field=family.external_field,
            multiplicities=family.multiplicities,
            space=space,
        )

    @cached_property
    def distances(self) -> NDArray[np.float64]:
        """The distances between all points, shape (n, n)."""
        return self.space.training_distances(None)

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.space.n_points

    def forget_distances(self) -> None:
        """Free the memory of distances; they are measured again when needed."""
        for name in ("distances", "_excess"):
            self.__dict__.pop(name, None)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("kernel", "n_classes", "external_field", "multiplicities", "space")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
