"""The quadratic metric: points that are equally far from every class are close."""

import numpy as np
from numpy.typing import NDArray

from nearfield.distances.learned import LearnedMetric, class_means
from nearfield.distances.within import most_probable_shrinkage, whiten_within

Floats = NDArray[np.float64]

# Of the variance within classes. A class in which a feature does not vary, such as the indicator of
# a rare category, would else make its distance from all points that do vary infinite.
_FLOOR = 0.01


class QuadraticMetric(LearnedMetric):
    r"""Compare points by their distances from the classes, each with its own covariance.

    .. math:: d(x, x') = \lVert D(x) - D(x') \rVert, \qquad
              D_g(x) = \lVert \Sigma_g^{-1/2} (W x - m_g) \rVert

    W is the map of the within-class metric, :math:`m_g` the mean and :math:`\Sigma_g` the
    covariance of class g there, shrunk to a multiple of the identity by the shrinkage under which
    points of the class that are left out are most probable. Quadratic discriminant analysis knows
    no more of a point than D. The metric suits classes of different spread, where the nearest
    neighbours by the features are mostly of the narrower class. With G classes the points have G
    coordinates.

    Attributes
    ----------
    map_ : ndarray, shape (n_axes, n_features)
        W.
    mean_ : ndarray, shape (n_features,)
        What W maps to the origin.
    centers_ : ndarray, shape (n_classes, n_axes)
        The class means after W.
    class_maps_ : ndarray, shape (n_classes, n_axes, n_axes)
        The inverse roots of the covariances.

    Examples
    --------
    >>> from nearfield.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticMetric().fit_transform(X, y).shape
    (150, 3)
    """

    centers_: Floats
    class_maps_: Floats

    def _learn(self, points: Floats, labels: NDArray[np.int64]) -> Floats:
        whitening = whiten_within(points, labels)
        white = points @ whitening.components.T
        self.centers_ = class_means(white, labels)
        residuals = white - self.centers_[labels]
        self.class_maps_ = np.stack(
            [
                _inverse_root(residuals[labels == g], whitening.presence)
                for g in range(len(self.centers_))
            ]
        )
        return whitening.components

    def place(self, points: Floats) -> Floats:
        """Give the distances of checked points from the classes, shape (m, n_classes)."""
        white = super().place(points)
        pairs = zip(self.centers_, self.class_maps_, strict=True)
        return np.column_stack(
            [np.linalg.norm((white - center) @ own, axis=1) for center, own in pairs]
        )

    @property
    def n_components_(self) -> int:
        """The dimension of the space that points are mapped to: the number of classes."""
        return len(self.centers_)


def _inverse_root(residuals: Floats, presence: Floats) -> Floats:
    """Give the inverse root of the shrunk covariance of a class, shape (n_axes, n_axes).

    Parameters
    ----------
    residuals : ndarray, shape (n, n_axes)
        Of its points, in axes along which the pooled variance is about one.
    presence : ndarray, shape (n_axes,)
        As how much of an axis each axis counts.
    """
    n_points = len(residuals)
    spectrum, vectors = np.linalg.eigh(residuals.T @ residuals)
    spectrum = np.maximum(spectrum, 0.0)
    # One point more, as far out as those of all classes: a class may have one point.
    level = (spectrum.sum() / max(presence.sum(), 1.0) + 1.0) / n_points
    shrinkage = 1.0
    if n_points > 2:
        shrinkage = most_probable_shrinkage(
            residuals @ vectors,
            spectrum,
            presence @ vectors**2,
            np.full(n_points, n_points),
            level,
            _FLOOR,
        )
    own = (1.0 - shrinkage) * spectrum / max(n_points - 1, 1)
    variances = own + shrinkage * level + _FLOOR
    return (vectors / np.sqrt(variances)) @ vectors.T
