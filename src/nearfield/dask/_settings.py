"""What a near field on shards is made by."""

from typing import NamedTuple

import numpy as np

from nearfield.near._measure import Ruler


class Settings(NamedTuple):
    """What a near field is made by."""

    n_points: int
    n_features: int
    n_classes: int
    kernel: str
    ruler: Ruler
    search: str
    seed: int

    @property
    def power(self) -> int | None:
        """2 for Euclidean distances, 1 for Manhattan distances, none for others."""
        return self.ruler.power(np.empty((0, self.n_features)))
