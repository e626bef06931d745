r"""The support of new points from their distances to all training points.

.. math:: h^*_g = \sum_{j \in g} c^*_j, \qquad
          c^*_j = \frac{\kappa(d^*_j)}{\sum_l \kappa(d^*_l)}
          + \frac{\kappa(d^*_j)}{Z_j + \kappa(d^*_j)}, \qquad Z_j = \sum_{l \ne j} \kappa(d_{jl})

Normalising constants are computed once for some scales; no distance between training points is
kept.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nearfield.field import RADIUS_EPSILON, DistanceFamily, NeighborKernel, log_kernel_values
from nearfield.prediction._quadrature import Floats
from nearfield.prediction.kernels.radius import fill_in_weights, radius_support, search_table
from nearfield.prediction.kernels.smooth import (
    LARGEST_EXPONENT,
    SAFE,
    smooth_support,
    training_totals,
)


class Sums(Protocol):
    """The support of new points at some scales."""

    def support(self, points: Any, /) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""


def dense_sums(
    family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, *, is_joint: bool
) -> Sums:
    """Prepare the support at some rising scales, with in-weights if the model has them."""
    kind: Any = SmoothSums if family.is_smooth else RadiusSums
    if family.is_custom or family.multiplicities is not None:
        kind = PlainSums
    return kind.from_family(family, labels, scales, is_joint)


def kernel_rates(family: DistanceFamily, scales: Floats) -> tuple[bool, Floats]:
    """Write a smooth kernel as exp(-rate x d^2), or as exp(-rate x d): which, and the rates."""
    kernel = NeighborKernel(str(family.kernel), family.n_points - 1)
    return family.kernel == "gaussian", kernel.rates(scales)


@dataclass(frozen=True, eq=False)
class SmoothSums:
    """The support under the Gaussian or the exponential kernel.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Sorts the training points by class.
    class_starts : ndarray of int, shape (G + 1,)
    is_squared, is_joint : bool
    rates : ndarray, shape (n_scales,)
    nearest : ndarray, shape (n,)
        The distance of each training point to its nearest neighbour.
    log_normalizers : ndarray, shape (n_scales, n)
        log Z relative to the kernel at that distance.
    """

    order: NDArray[np.int64]
    class_starts: NDArray[np.int64]
    is_squared: bool
    is_joint: bool
    rates: Floats
    nearest: Floats
    log_normalizers: Floats

    @classmethod
    def from_family(
        cls, family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, is_joint: bool
    ) -> "SmoothSums":
        """Sum over the training points at each of the scales."""
        is_squared, rates = kernel_rates(family, scales)
        order = np.argsort(labels, kind="stable")
        class_starts = np.searchsorted(labels[order], np.arange(family.n_classes + 1))
        nearest, log_normalizers = training_normalizers(family, rates, is_squared)
        by_class = np.ascontiguousarray(log_normalizers[:, order])
        return cls(order, class_starts, is_squared, is_joint, rates, nearest[order], by_class)

    def support(self, distances: Floats) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""
        support = np.empty((len(distances), len(self.rates), len(self.class_starts) - 1))
        smooth_support(
            distances,
            self.order,
            self.class_starts,
            self.rates,
            self.is_squared,
            self._totals,
            self.is_joint,
            np.empty((2, len(self.order))),
            np.empty(len(self.order)),
            support,
        )
        return support

    @cached_property
    def _totals(self) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """The normalising constants, also as they are, and where none is near underflow."""
        powers = self.nearest**2 if self.is_squared else self.nearest
        exponents = self.rates[:, None] * powers
        normalizers = np.exp(self.log_normalizers - np.minimum(exponents, LARGEST_EXPONENT))
        is_safe = np.all(exponents < SAFE, axis=1)
        return self.nearest, self.log_normalizers, normalizers, is_safe


def training_normalizers(
    family: DistanceFamily, rates: Floats, is_squared: bool
) -> tuple[Floats, Floats]:
    """Compute the nearest distances, (n,), and log Z relative to their kernel, (n_rates, n)."""
    nearest, log_normalizers = np.empty(family.n_points), np.empty((len(rates), family.n_points))
    kernel = np.empty(family.n_points)
    training_totals(family.distances, rates, is_squared, kernel, log_normalizers, nearest)
    return nearest, log_normalizers


@dataclass(frozen=True, eq=False)
class RadiusSums:
    """The support under the radius kernel.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    class_sizes : ndarray, shape (G,)
    search : tuple
        The rising scales, ready to be searched.
    gains : ndarray, shape (n, n_scales)
        How much larger the in-weight of a new point is inside the radius than outside.
    outside : ndarray, shape (G, n_scales)
        In-weights outside the radius, summed by class.
    """

    labels: NDArray[np.int64]
    class_sizes: Floats
    search: Any
    gains: Floats
    outside: Floats

    @classmethod
    def from_family(
        cls, family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, is_joint: bool
    ) -> "RadiusSums":
        """Tabulate the in-weights at each of the scales."""
        gains, outside = np.zeros((2, family.n_points, len(scales)))
        if is_joint:
            fill_in_weights(family.distances, scales, RADIUS_EPSILON, gains, outside)
        is_class = (labels == np.arange(family.n_classes)[:, None]).astype(np.float64)
        return cls(labels, is_class.sum(axis=1), search_table(scales), gains, is_class @ outside)

    def support(self, distances: Floats) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""
        n_classes, n_scales = self.outside.shape
        support = np.empty((len(distances), n_scales, n_classes))
        radius_support(
            distances,
            self.labels,
            self.class_sizes,
            self.search,
            self.gains,
            self.outside,
            RADIUS_EPSILON,
            support,
        )
        return support


@dataclass(frozen=True, eq=False)
class PlainSums:
    r"""The support under a kernel of one's own, or where training points count as several.

    .. math:: c^*_j = \frac{s_j \kappa(d^*_j)}{\sum_l s_l \kappa(d^*_l)}
              + s_j \frac{\kappa(d^*_j)}{Z_j + \kappa(d^*_j)}, \qquad
              Z_j = \sum_{l \ne j} s_l \kappa(d_{jl})

    Attributes
    ----------
    kernel : str or callable
    scales : ndarray, shape (n_scales,)
    class_multiplicities : ndarray, shape (n, G)
        The multiplicity of each training point, one or given, in the column of its class.
    nearest : ndarray, shape (n,)
        The distance of each training point to its nearest neighbour.
    log_normalizers : ndarray, shape (n_scales, n)
        log Z, of a kernel by name relative to the kernel at that distance; infinite where
        in-weights play no part.
    """

    kernel: Any
    scales: Floats
    class_multiplicities: Floats
    nearest: Floats
    log_normalizers: Floats

    @classmethod
    def from_family(
        cls, family: DistanceFamily, labels: NDArray[np.int64], scales: Floats, is_joint: bool
    ) -> "PlainSums":
        """Sum over the training points at each of the scales."""
        n_points, given = family.n_points, family.multiplicities
        multiplicities = np.ones(n_points) if given is None else given
        by_class = np.zeros((n_points, family.n_classes))
        by_class[np.arange(n_points), labels] = multiplicities
        others = np.array(family.distances)
        np.fill_diagonal(others, np.inf)
        nearest = others.min(axis=1)
        log_normalizers = np.full((len(scales), n_points), np.inf)
        if is_joint:
            np.fill_diagonal(others, nearest)  # a finite number: it is left out of the sums below
            for row, scale in zip(log_normalizers, scales, strict=True):
                log_values = _log_values(family.kernel, others, nearest[:, None], scale)
                np.fill_diagonal(log_values, -np.inf)
                top = log_values.max(axis=1)
                row[:] = top + np.log(np.exp(log_values - top[:, None]) @ multiplicities)
        return cls(family.kernel, scales, by_class, nearest, log_normalizers)

    def support(self, distances: Floats) -> Floats:
        """Give the support of each class at each scale, shape (m, n_scales, G)."""
        n_classes = self.class_multiplicities.shape[1]
        support = np.empty((len(distances), len(self.scales), n_classes))
        closest = distances.min(axis=1, keepdims=True)
        for s, scale in enumerate(self.scales):
            log_values = _log_values(self.kernel, distances, closest, scale)
            values = np.exp(log_values - log_values.max(axis=1, keepdims=True))
            out_support = values @ self.class_multiplicities
            if not callable(self.kernel):
                log_values = _log_values(self.kernel, distances, self.nearest, scale)
            in_weights = expit(log_values - self.log_normalizers[s])
            support[:, s] = out_support / out_support.sum(axis=1, keepdims=True)
            support[:, s] += in_weights @ self.class_multiplicities
        return support


def _log_values(kernel: Any, distances: Floats, references: Floats, scale: float) -> Floats:
    """Evaluate the log of a kernel: relative to references, which keeps digits, if it has a name.

    Of a kernel of one's own the log itself, whose largest value need not be at the nearest point.
    """
    if callable(kernel):
        return log_kernel_values(distances, kernel, scale)
    return NeighborKernel(kernel, distances.shape[1]).log_ratios(distances, references, scale)
