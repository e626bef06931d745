"""Families of label fields: one field for each value of a scale, sigma or k.

This is all that inference sees of a model. A new kernel, metric or neighbourhood is a new family.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.distances import check_distances
from nearfield.field.label_field import LabelField, check_external_field
from nearfield.field.weights import (
    RADIUS_EPSILON,
    Excess,
    Ranks,
    check_kernel,
    exponential_excess,
    gaussian_excess,
    neighbor_ranks,
    radius_weights,
)


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
    def scale_steps(self) -> NDArray[np.float64]:
        """The scales at which a field that does not change smoothly changes, ascending."""

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
        check_kernel(self.kernel)

    @classmethod
    def of_checked(
        cls,
        distances: NDArray[np.float64],
        kernel: str,
        n_classes: int,
        external_field: ArrayLike | None = None,
    ) -> "DistanceFamily":
        """Make a family of distances that need no check, for they were made by this library."""
        family = object.__new__(cls)
        family.__dict__.update(
            distances=distances, kernel=kernel, n_classes=n_classes, external_field=external_field
        )
        return family

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.kernel != "radius"

    @property
    def scale_steps(self) -> NDArray[np.float64]:
        """The distances, for the radius; none for the other kernels."""
        if self.is_smooth:
            return np.empty(0)
        return np.unique(self.distances[self.distances > 0.0])

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return self.distances.shape[0]

    def __getstate__(self) -> dict[str, Any]:
        return _arguments(self)

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
        return _field(self, self._weights(scale))

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at sigma, shape (n, G)."""
        is_class = _indicators(labels, self.n_classes)
        if self.kernel == "radius":
            return _radius_support(self.distances, check_positive(scale, "sigma"), is_class)
        weights = self._weights(scale)
        return weights @ is_class + weights.T @ is_class

    def _weights(self, scale: float) -> NDArray[np.float64]:
        if self.kernel == "radius":
            return radius_weights(self.distances, scale)
        return self._excess.weights(check_positive(scale, "sigma"))

    @cached_property
    def _excess(self) -> Excess:
        """What does not depend on sigma, kept: a chain asks for a field at thousands of them."""
        prepare = gaussian_excess if self.kernel == "gaussian" else exponential_excess
        return prepare(self.distances)


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

    def __getstate__(self) -> dict[str, Any]:
        return _arguments(self)

    @property
    def scale_range(self) -> tuple[float, float]:
        """All possible k."""
        return 1.0, float(self.n_points - 1)

    @property
    def scale_steps(self) -> NDArray[np.float64]:
        """All possible k."""
        return np.arange(1.0, self.n_points)

    def at(self, scale: float) -> LabelField:
        """Return the field at k."""
        if self.is_directed:
            raise ValueError(
                "Expected a model with a joint distribution; got the directed neighbourhood of "
                "Holmes and Adams, whose conditionals belong to no joint. "
                "Use pseudolikelihood, or the symmetric neighbourhood."
            )
        weights: Any = self._weights(scale)
        if 4 * scale <= self.n_points:  # then a change of label touches few others
            weights = sp.csr_array(weights)
        return _field(self, weights)

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at k, shape (n, G)."""
        weights = self._weights(scale)
        is_class = _indicators(labels, self.n_classes)
        support = weights @ is_class
        return support if self.is_directed else support + weights.T @ is_class

    def supports(
        self, scales: Iterable[float], labels: NDArray[np.int64]
    ) -> Iterator[NDArray[np.float64]]:
        """Give the support at each k of a rising sequence: from one to the next few things change.

        For all k up to K this takes O(n K), and not O(n^2) for each of them.
        """
        sums, k = np.zeros((self.n_points, self.n_classes)), 0
        for scale in scales:
            for k in range(k + 1, _check_k(scale, self.n_points) + 1):  # noqa: B020 goes on from k
                self._ranks.add_shares(k, labels, self.has_joint, sums)
            yield sums / k

    def _weights(self, scale: float) -> NDArray[np.float64]:
        return self._ranks.weights(_check_k(scale, self.n_points))

    @cached_property
    def _ranks(self) -> Ranks:
        """What does not depend on k, kept."""
        return neighbor_ranks(self.distances)


def _check_family(family: "DistanceFamily | NeighborFamily") -> None:
    """Check once what every field of a family is made of."""
    # The only assignments to a frozen family: the arguments in the form that the fields need.
    object.__setattr__(family, "distances", check_distances(family.distances))
    object.__setattr__(family, "n_classes", check_whole(family.n_classes, "n_classes", minimum=2))
    check_external_field(family.external_field, family.n_classes)


def _arguments(family: "DistanceFamily | NeighborFamily") -> dict[str, Any]:
    """Give what a family is made of, without what it keeps only to save time."""
    return {argument.name: getattr(family, argument.name) for argument in fields(family)}


def _field(family: "DistanceFamily | NeighborFamily", weights: Any) -> LabelField:
    """Make the field of weights that need no check, for they are made here."""
    coupling = weights + weights.T
    if sp.issparse(coupling):
        coupling = sp.csr_array(coupling)
    alpha = check_external_field(family.external_field, family.n_classes)
    return LabelField(coupling, family.n_classes, alpha)


def _indicators(labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    return (labels[:, None] == np.arange(n_classes)).astype(np.float64)


def _radius_support(
    distances: NDArray[np.float64], sigma: float, is_class: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum the coupling of `radius_weights` by class, without the weights themselves.

    All but few weights are one of two numbers a row: counting those inside is enough.
    """
    is_inside = (distances < sigma).astype(np.float64)
    np.fill_diagonal(is_inside, 0.0)

    def weigh(columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply the kernel, not normalized, with some columns."""
        all_others = columns.sum(axis=0) - columns
        return (1.0 - RADIUS_EPSILON) * (is_inside @ columns) + RADIUS_EPSILON * all_others

    by_class = weigh(is_class)
    total = by_class.sum(axis=1, keepdims=True)
    return by_class / total + weigh(is_class / total)


def _check_k(k: float, n_points: int) -> int:
    """Turn a k that came as a float into the whole number that it is, of neighbours there are."""
    if k != int(k):
        raise ValueError(f"Expected a whole number k; got k={k!r}. Round it.")
    if not 1 <= k < n_points:
        raise ValueError(
            f"Expected 1 <= k < n_points; got k={int(k)}, n_points={n_points}. "
            "Choose k among the other points."
        )
    return int(k)
