"""Families of label fields: one field for each value of a scale, sigma or k.

This is all that inference sees of a model. A new kernel, metric or neighbourhood is a new family.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_whole
from nearfield.distances import check_distances
from nearfield.field import LabelField, check_external_field
from nearfield.weights import KERNELS, knn_weights


class FieldFamily(Protocol):
    """What inference needs of a model."""

    @property
    def scale_name(self) -> str:
        """``"sigma"`` or ``"k"``."""

    @property
    def is_discrete(self) -> bool:
        """Whether the scale is a whole number."""

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with the scale."""

    @property
    def has_joint(self) -> bool:
        """Whether there is a joint distribution at all, or conditionals only."""

    @property
    def scale_range(self) -> tuple[float, float]:
        """The scales between which the field changes; beyond them it is all but constant."""

    @property
    def n_points(self) -> int:
        """The number of points n."""

    @property
    def n_classes(self) -> int:
        """The number of classes G."""

    @property
    def external_field(self) -> ArrayLike | None:
        """The external field alpha, shape (G,), if there is one."""

    def at(self, scale: float) -> LabelField:
        """Return the field at a scale."""

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at a scale, shape (n, G)."""


@dataclass(frozen=True, eq=False)
class DistanceFamily:
    """The d-nn models of Friel and Pettitt: a kernel of the distance, with scale sigma.

    Parameters
    ----------
    distances : ndarray, shape (n, n)
    kernel : str
        ``"gaussian"``, ``"radius"`` or ``"exponential"``.
    n_classes : int
    external_field : array-like, shape (n_classes,), optional
    """

    distances: NDArray[np.float64] = field(repr=False)
    kernel: str
    n_classes: int
    external_field: ArrayLike | None = None

    scale_name = "sigma"
    is_discrete = False
    has_joint = True

    def __post_init__(self) -> None:
        _check_family(self)
        if self.kernel not in list(KERNELS):
            raise ValueError(
                f"Expected a kernel among {sorted(KERNELS)}; got kernel={self.kernel!r}. "
                "Choose one of them."
            )

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.kernel != "radius"

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.distances.shape[0]

    @cached_property
    def scale_range(self) -> tuple[float, float]:
        """From where only nearest neighbours count to where all points count alike."""
        positive = self.distances[self.distances > 0.0]
        if positive.size == 0:  # all points identical: every scale gives the uniform field
            return 0.5, 2.0
        nearest = np.where(self.distances > 0.0, self.distances, np.inf).min(axis=1)
        shortest, longest = float(np.quantile(nearest, 0.05)), float(positive.max())
        if self.kernel == "exponential":
            return 0.05 / longest, 20.0 / shortest
        if self.kernel == "radius":
            return float(positive.min()), 1.001 * longest
        return 0.1 * shortest, 5.0 * longest

    def at(self, scale: float) -> LabelField:
        """Return the field at sigma."""
        weights = KERNELS[self.kernel](self.distances, scale)
        return LabelField.from_weights(weights, self.n_classes, self.external_field)

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at sigma, shape (n, G)."""
        return self.at(scale).support(labels)


@dataclass(frozen=True, eq=False)
class NeighborFamily:
    """The pk-nn models: the k nearest neighbours, with scale k.

    Parameters
    ----------
    distances : ndarray, shape (n, n)
    n_classes : int
    is_directed : bool
        False for the symmetric model of Cucala et al., which has a joint distribution; True for
        that of Holmes and Adams, which consists of conditionals that belong to no joint.
    external_field : array-like, shape (n_classes,), optional
    """

    distances: NDArray[np.float64] = field(repr=False)
    n_classes: int
    is_directed: bool = False
    external_field: ArrayLike | None = None

    scale_name = "k"
    is_discrete = True
    is_smooth = False

    def __post_init__(self) -> None:
        _check_family(self)

    @property
    def has_joint(self) -> bool:
        """Whether there is a joint distribution: not for the directed model."""
        return not self.is_directed

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.distances.shape[0]

    @property
    def scale_range(self) -> tuple[float, float]:
        """All possible k."""
        return 1.0, float(self.n_points - 1)

    def at(self, scale: float) -> LabelField:
        """Return the field at k."""
        if self.is_directed:
            raise ValueError(
                "Expected a model with a joint distribution; got the directed neighbourhood of "
                "Holmes and Adams, whose conditionals belong to no joint. "
                "Use pseudolikelihood, or the symmetric neighbourhood."
            )
        k = _whole(scale)
        weights = knn_weights(self.distances, k)
        if 4 * k <= self.n_points:  # then a change of label touches few others
            weights = sp.csr_array(weights)
        return LabelField.from_weights(weights, self.n_classes, self.external_field)

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at k, shape (n, G)."""
        if not self.is_directed:
            return self.at(scale).support(labels)
        is_class = labels[:, None] == np.arange(self.n_classes)
        return knn_weights(self.distances, _whole(scale)) @ is_class


def _check_family(family: "DistanceFamily | NeighborFamily") -> None:
    """Check once what every field of a family is made of."""
    # The only assignments to a frozen family: the arguments in the form that the fields need.
    object.__setattr__(family, "distances", check_distances(family.distances))
    object.__setattr__(family, "n_classes", check_whole(family.n_classes, "n_classes", minimum=2))
    check_external_field(family.external_field, family.n_classes)


def _whole(k: float) -> int:
    """Turn a k that came as a float into the whole number that it is."""
    if k != int(k):
        raise ValueError(f"Expected a whole number k; got k={k!r}. Round it.")
    return int(k)
