"""Families of label fields: one field for each value of a scale, sigma or k.

This is all that inference needs of a model. A new kernel, metric or neighbourhood is a new family.
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.distances import check_distances
from nearfield.field.label_field import LabelField, check_external_field
from nearfield.field.neighbor_kernel import nearest_distances, scale_range_from_nearest
from nearfield.field.weights import (
    RADIUS_EPSILON,
    Excess,
    KernelName,
    LogKernel,
    check_kernel,
    check_log_kernel,
    exponential_excess,
    gaussian_excess,
    log_kernel_weights,
    radius_weights,
)

_ROWS_AT_ONCE = 64  # of a matrix of distances, which stay in the cache


ScaleName = Literal["sigma", "k"]


class FieldFamily(Protocol):
    """What inference needs of a model."""

    @property
    def scale_name(self) -> ScaleName:
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
    def has_graph(self) -> bool:
        """Whether points have few neighbours, on a graph, or all other points."""

    @property
    def longest(self) -> float:
        """About the largest distance between any two points."""

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

    @property
    def multiplicities(self) -> NDArray[np.float64] | None:
        """As how many points each point counts, shape (n,); None for one each."""

    def at(self, scale: float) -> LabelField:
        """Return the field at a scale."""

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at a scale, shape (n, G)."""


@dataclass(frozen=True, eq=False)
class DistanceFamily:
    r"""The d-nn models of Friel and Pettitt: a kernel of the distance, with scale sigma.

    Parameters
    ----------
    distances : ndarray, shape (n, n)
    kernel : str or callable
        ``"gaussian"``, ``"radius"`` or ``"exponential"``, or a function of (distances, sigma) that
        gives the log of a kernel, up to a constant, in the shape of the distances. It should
        change smoothly with sigma, a length.
    n_classes : int
    external_field : array-like, shape (n_classes,), optional
    multiplicities : array-like, shape (n,), optional
        As how many points each point counts, above zero; one by default. Point i gives weight to
        point j in proportion to :math:`s_j \kappa(d_{ij})`. A point gives no weight to itself,
        whatever its multiplicity.

    Examples
    --------
    A kernel of one's own, :math:`1 / (1 + d^2 / \sigma^2)`:

    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> def cauchy(distances, sigma):
    ...     return -np.log1p((distances / sigma) ** 2)
    >>> family = DistanceFamily(distance_matrix([[0.0], [1.0], [3.0]]), cauchy, n_classes=2)
    >>> family.at(1.0).coupling.round(2)
    array([[0.  , 1.55, 0.5 ],
           [1.55, 0.  , 0.95],
           [0.5 , 0.95, 0.  ]])
    """

    distances: NDArray[np.float64] = field(repr=False)
    kernel: KernelName | LogKernel
    n_classes: int
    external_field: ArrayLike | None = None
    multiplicities: NDArray[np.float64] | None = None

    is_discrete = False
    has_joint = True
    has_graph = False

    def __post_init__(self) -> None:
        _check_family(self)
        if callable(self.kernel):
            check_log_kernel(self.distances, self.kernel)
        else:
            check_kernel(self.kernel)

    @classmethod
    def from_checked(
        cls,
        distances: NDArray[Any],
        kernel: Any,
        n_classes: int,
        external_field: ArrayLike | None = None,
        multiplicities: NDArray[np.float64] | None = None,
    ) -> "DistanceFamily":
        """Make a family of distances that need no check, for they were made by this library."""
        family = object.__new__(cls)
        family.__dict__.update(
            distances=distances,
            kernel=kernel,
            n_classes=n_classes,
            external_field=external_field,
            multiplicities=multiplicities,
        )
        return family

    @property
    def scale_name(self) -> ScaleName:
        """``"sigma"``."""
        return "sigma"

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.kernel != "radius"

    @property
    def is_custom(self) -> bool:
        """Whether the kernel is a function of one's own, without compiled code."""
        return callable(self.kernel)

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

    @property
    def longest(self) -> float:
        """The largest distance between any two points."""
        return float(self.distances.max())

    def with_distances(
        self,
        distances: NDArray[np.float64],
        multiplicities: NDArray[np.float64] | None = None,
    ) -> "DistanceFamily":
        """Give the same model over points at other distances, and their multiplicities."""
        return DistanceFamily(
            distances, self.kernel, self.n_classes, self.external_field, multiplicities
        )

    def forget_distances(self) -> None:
        """Do nothing: distances that were given cannot be measured again."""

    def __getstate__(self) -> dict[str, Any]:
        return _arguments(self)

    @cached_property
    def scale_range(self) -> tuple[float, float]:
        """From where only nearest neighbours count to where all points count alike."""
        blocks = np.array_split(self.distances, -(-self.n_points // _ROWS_AT_ONCE))
        nearest = np.concatenate([nearest_distances(block) for block in blocks])
        return scale_range_from_nearest(self.kernel, self.n_points - 1, self.longest, nearest)

    def at(self, scale: float) -> LabelField:
        """Return the field at sigma: of the points, each labelled once, with their multiplicities.

        With multiplicities the coupling is :math:`s_i w_{ij} + s_j w_{ji}`: that of all copies of
        i with all copies of j. It is right for the labels of further points, of multiplicity one,
        given those of the others.
        """
        weights = self._weights(scale)
        if self.multiplicities is not None:
            weights = weights * self.multiplicities[:, None]
        return _field(self, weights)

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at sigma, shape (n, G)."""
        is_class = _indicators(labels, self.n_classes)
        if self.multiplicities is not None:  # the conditional of one of the copies of each point
            return self.at(scale).support(labels) / self.multiplicities[:, None]
        if self.kernel == "radius":
            return _radius_support(self.distances, check_positive(scale, "sigma"), is_class)
        weights = self._weights(scale)
        return weights @ is_class + weights.T @ is_class

    def _weights(self, scale: float) -> NDArray[np.float64]:
        weights = self._kernel_weights(scale)
        if self.multiplicities is not None:
            weights = weights * self.multiplicities
            weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def _kernel_weights(self, scale: float) -> NDArray[np.float64]:
        if not isinstance(self.kernel, str):
            return log_kernel_weights(self.distances, self.kernel, scale)
        if self.kernel == "radius":
            return radius_weights(self.distances, scale)
        return self._excess.weights(check_positive(scale, "sigma"))

    @cached_property
    def _excess(self) -> Excess:
        """What does not depend on sigma, kept: a chain asks for a field at thousands of them."""
        prepare = gaussian_excess if self.kernel == "gaussian" else exponential_excess
        return prepare(self.distances)


def _check_family(family: DistanceFamily) -> None:
    """Check once what every field of a family is made of."""
    # The only assignments to a frozen family: the arguments in the form that the fields need.
    object.__setattr__(family, "distances", check_distances(family.distances))
    object.__setattr__(family, "n_classes", check_whole(family.n_classes, "n_classes", minimum=2))
    check_external_field(family.external_field, family.n_classes)
    multiplicities = check_multiplicities(family.multiplicities, family.n_points)
    object.__setattr__(family, "multiplicities", multiplicities)


def check_multiplicities(multiplicities: ArrayLike | None, n_points: int) -> Any:
    """Accept one finite number above zero a point; None where all are one."""
    if multiplicities is None:
        return None
    checked = np.asarray(multiplicities, dtype=np.float64)
    if checked.shape != (n_points,) or not ((checked > 0.0) & (checked < np.inf)).all():
        raise ValueError(
            f"Expected {n_points} finite multiplicities above zero, one a point; got shape "
            f"{checked.shape}, from {checked.min(initial=np.inf):g} to "
            f"{checked.max(initial=-np.inf):g}. Leave out points of multiplicity zero."
        )
    return None if (checked == 1.0).all() else checked


def _arguments(family: DistanceFamily) -> dict[str, Any]:
    """Give what a family is made of, without what it keeps only to save time."""
    return {argument.name: getattr(family, argument.name) for argument in fields(family)}


def _field(family: DistanceFamily, weights: Any) -> LabelField:
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
