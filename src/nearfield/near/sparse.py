"""The joint field over the nearest neighbours alone, sparse: for engines that need a joint."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive
from nearfield.field import LabelField, check_external_field
from nearfield.field.weights import RADIUS_EPSILON
from nearfield.near._family import FamilyOfNearField
from nearfield.near.field import NearField


@dataclass(frozen=True, eq=False)
class SparseFamily(FamilyOfNearField):
    r"""The d-nn models with the K nearest neighbours of each point in place of all others.

    .. math:: w_{ij} = \frac{\kappa(d_{ij})}{\sum_{l \in N_i} \kappa(d_{il})}, \qquad j \in N_i

    The background is left out: a joint distribution with it would be dense again.

    Attributes
    ----------
    near_field : NearField
    distances : ndarray, shape (n, K)
        To the neighbours.
    index : ndarray of int, shape (n, K)
    external_field : ndarray, shape (G,), optional
    """

    near_field: NearField
    distances: NDArray[np.float64] = field(repr=False)
    index: NDArray[np.int64] = field(repr=False)
    external_field: ArrayLike | None = None

    has_joint = True

    @classmethod
    def of(cls, near_field: NearField, **options: Any) -> "SparseFamily":
        """Search the neighbours of all points; `options` are those of `NearField.look_from`."""
        seen = near_field.look_from(np.arange(near_field.n_points), **options)
        return cls(near_field, seen.near_distances, seen.near_index)

    @property
    def n_points(self) -> int:
        """The number of points n."""
        return len(self.index)

    @property
    def scale_steps(self) -> NDArray[np.float64]:
        """The distances to neighbours, for the radius; none for the other kernels."""
        return np.empty(0) if self.is_smooth else np.unique(self.distances[self.distances > 0.0])

    def at(self, scale: float) -> LabelField:
        """Return the field at sigma."""
        n_points, n_neighbors = self.index.shape
        starts = np.arange(0, n_points * n_neighbors + 1, n_neighbors)
        shape = (n_points, n_points)
        weights = sp.csr_array((self._weights(scale).ravel(), self.index.ravel(), starts), shape)
        coupling = sp.csr_array(weights + weights.T)
        alpha = check_external_field(self.external_field, self.n_classes)
        return LabelField(coupling, self.n_classes, alpha)

    def support(self, scale: float, labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the support of each class in the conditionals at sigma, shape (n, G)."""
        return self.at(scale).support(labels)

    def _weights(self, scale: float) -> NDArray[np.float64]:
        sigma = check_positive(scale, "sigma")
        if self.kernel == "radius":
            kernel = np.where(self.distances < sigma, 1.0, RADIUS_EPSILON)
        else:
            scales = self.near_field.normalizers.scales
            powers = self.distances**2 if scales.is_squared else self.distances
            rate = scales.values_of(np.array([sigma]))[0]
            kernel = np.exp(-rate * (powers - powers.min(axis=1, keepdims=True)))
        return kernel / kernel.sum(axis=1, keepdims=True)
