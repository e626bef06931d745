r"""How well a point fits among the training points of a class: scores for conformal p-values.

A metric that tells the known classes apart hides the directions in which a stranger differs from
all of them, so that these scores take no learned metric: they see every feature.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances import in_units, mean_and_deviation

Floats = NDArray[np.float64]

# Share of the mean variance within classes. Swept from 1e-5 to 0.1 on wine and the meat spectra:
# the share of a left-out class that is refused at 5% changes by 0.02 from 1e-4 to 1e-3, and falls
# by 0.08 at 1e-2 on the spectra.
_RIDGE = 1e-3
_N_NEAREST = 3
_VALUES_AT_ONCE = 2**20


class ClassScores(NamedTuple):
    """Scores under the assumption that each new point belongs to one class; high is unusual.

    Attributes
    ----------
    training : ndarray, shape (n, m) or (n, 1)
        Of the training points, each in its own class, given the new point and the other points.
    new : ndarray, shape (m,)
        Of the new points.
    """

    training: Floats
    new: Floats


@dataclass(frozen=True, eq=False)
class WithinClassDistance:
    r"""Mahalanobis distance from the mean of a class, by the covariance within classes.

    With standardized features, class means :math:`m_g`, residuals :math:`r_i = x_i - m_{y_i}`,
    scatter :math:`W = \sum_i r_i r_i^T` and a ridge :math:`\lambda` of 1e-3 times its mean
    diagonal, the score of a point of class g that is not among the training points is

    .. math:: u = \log \frac{n_g}{n_g + 1} (x - m_g)^T (W + \lambda I)^{-1} (x - m_g)

    The ridge stands for the variance outside of the span of the training points, so that all of
    the space counts, however many features there are. Scores of training points are those of
    leaving one out, with the new point added to the class in question (full conformal
    prediction): both follow from updates of rank one, and with the class given the scores of its
    points and of a new one are exchangeable.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    mean, scale : ndarray, shape (n_features,)
        The standardization.
    centers : ndarray, shape (G, n_features)
        The class means, standardized.
    axes : ndarray, shape (n_features, n_axes)
        Eigenvectors of the scatter, each over the root of its eigenvalue plus the ridge.
    directions : ndarray, shape (n_features, n_axes)
        The same with length one.
    ridge : float
    residuals : ndarray, shape (n, n_axes)
        Of the training points, along the axes.
    """

    labels: NDArray[np.int64]
    mean: Floats
    scale: Floats
    centers: Floats
    axes: Floats
    directions: Floats
    ridge: float
    residuals: Floats

    @classmethod
    def from_points(
        cls, points: Floats, labels: NDArray[np.int64], n_classes: int
    ) -> "WithinClassDistance":
        """Take means and covariance from training points, shape (n, n_features)."""
        mean, scale = mean_and_deviation(points)
        scale = np.where(scale > 0.0, scale, 1.0)
        standardized = in_units(points, mean, scale)
        counts = np.bincount(labels, minlength=n_classes)
        sums = np.zeros((n_classes, points.shape[1]))
        np.add.at(sums, labels, standardized)
        centers = sums / np.maximum(counts, 1)[:, None]
        residuals = standardized - centers[labels]
        ridge = max(_RIDGE * np.square(residuals).sum() / points.shape[1], 1e-12)
        directions, eigenvalues = _principal_axes(residuals)
        axes = directions / np.sqrt(eigenvalues + ridge)
        return cls(labels, mean, scale, centers, axes, directions, ridge, residuals @ axes)

    @cached_property
    def training_scores(self) -> Floats:
        """Scores of the training points, each left out, with no new point; shape (n,)."""
        return _left_out(np.square(self.residuals).sum(axis=1), self.counts[self.labels])

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of training points of each class, shape (G,)."""
        return np.bincount(self.labels, minlength=len(self.centers))

    @property
    def n_classes(self) -> int:
        """The number of classes G."""
        return len(self.centers)

    def conform(self, points: Floats) -> Iterator[ClassScores]:
        """Score new points, shape (m, n_features), with each class in turn."""
        standardized = in_units(points, self.mean, self.scale)
        products = self.residuals @ (standardized @ self.axes).T
        own = np.square(self.residuals).sum(axis=1)[:, None]
        for g, center in enumerate(self.centers):
            difference = standardized - center
            along = difference @ self.axes
            outside = np.square(difference).sum(axis=1)
            outside -= np.square(difference @ self.directions).sum(axis=1)
            quadratic = np.square(along).sum(axis=1) + np.maximum(outside, 0.0) / self.ridge
            cross = products - (self.residuals @ (center @ self.axes))[:, None]
            yield self._scores(g, own, cross, quadratic)

    def _scores(self, g: int, own: Floats, cross: Floats, quadratic: Floats) -> ClassScores:
        """Add each new point to class g, and leave each training point out."""
        count = self.counts[g]
        share, kept = (self.labels == g)[:, None] / (count + 1.0), count / (count + 1.0)
        # The mean of class g moves towards the new point; then the scatter grows by rank one.
        moved = own - 2.0 * share * cross + share**2 * quadratic
        leaning = cross - share * quadratic
        updated = moved - kept * leaning**2 / (1.0 + kept * quadratic)
        counts = self.counts + (np.arange(len(self.counts)) == g)
        with np.errstate(divide="ignore"):  # a new point may be at the mean
            new = np.log(kept * quadratic)
        return ClassScores(_left_out(updated, counts[self.labels][:, None]), new)


@dataclass(frozen=True, eq=False)
class NearestInClass:
    """Mean distance to the three nearest training points of a class, by any metric.

    For points that have distances and no complete features.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    n_classes : int
    training_scores : ndarray, shape (n,)
        The log of the mean distance to others of the own class.
    """

    labels: NDArray[np.int64]
    n_classes: int
    training_scores: Floats

    @classmethod
    def from_distances(
        cls, distances: Floats, labels: NDArray[np.int64], n_classes: int
    ) -> "NearestInClass":
        """Score the training points by the distances among them, shape (n, n)."""
        others = np.array(distances, dtype=np.float64)
        np.fill_diagonal(others, np.inf)
        scores = _nearest_in_class(others, labels, n_classes)
        return cls(labels, n_classes, scores[np.arange(len(labels)), labels])

    def conform(self, distances: Floats) -> Iterator[ClassScores]:
        """Score new points by their distances to the training points, shape (m, n)."""
        for new in _nearest_in_class(distances, self.labels, self.n_classes).T:
            yield ClassScores(self.training_scores[:, None], new)


Scores = WithinClassDistance | NearestInClass


def rows_at_once(n_training: int) -> int:
    """How many new points to score at once, so that memory stays bounded."""
    return max(1, _VALUES_AT_ONCE // max(n_training, 1))


def _left_out(quadratic: Floats, counts: NDArray[np.int64]) -> Floats:
    """Take the point itself out of the mean and scatter of its class, of so many points."""
    inflated = quadratic * counts / np.maximum(counts - 1.0, 1e-9)
    with np.errstate(divide="ignore"):  # the only point of its class is at its mean
        return np.log(inflated / np.maximum(1.0 - inflated, 1e-12))


def _principal_axes(residuals: Floats) -> tuple[Floats, Floats]:
    """Give eigenvectors, (n_features, n_axes), and eigenvalues of the scatter of residuals."""
    n_points, n_features = residuals.shape
    if n_features <= n_points:
        eigenvalues, directions = np.linalg.eigh(residuals.T @ residuals)
        return directions, np.maximum(eigenvalues, 0.0)
    eigenvalues, weights = np.linalg.eigh(residuals @ residuals.T)
    is_kept = eigenvalues > 1e-10 * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    directions = residuals.T @ (weights[:, is_kept] / np.sqrt(eigenvalues[is_kept]))
    return directions, eigenvalues[is_kept]


def _nearest_in_class(distances: Floats, labels: NDArray[np.int64], n_classes: int) -> Floats:
    """Give the log mean distance to the nearest points of each class, shape (m, G)."""
    scores = np.full((len(distances), n_classes), np.inf)
    for g in range(n_classes):
        nearest = np.sort(distances[:, labels == g], axis=1)[:, :_N_NEAREST]
        is_there = np.isfinite(nearest)
        counts = is_there.sum(axis=1)
        with np.errstate(divide="ignore"):  # a distance of zero
            logs = np.log(np.where(is_there, nearest, 0.0).sum(axis=1) / np.maximum(counts, 1))
        scores[:, g] = np.where(counts > 0, logs, np.inf)
    return scores
