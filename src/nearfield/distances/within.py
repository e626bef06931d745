"""The within-class metric: directions in which points of one class differ count for little."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances.learned import LinearMetric, class_means

Floats = NDArray[np.float64]

_SHRINKAGES = np.append(np.geomspace(1e-7, 0.9, 64), 1.0)
_LEAST_AXIS = 1e-7  # of the largest singular value: an axis with less counts as half an axis
_FLOOR = 1e-10  # of the variance of all points: no class is narrower than that


class Whitening(NamedTuple):
    """What whitens standardised points within their classes, and how much it was shrunk.

    `presence` says as how much of an axis each row of the components counts.
    """

    components: Floats
    shrinkage: float
    variance_kept: float
    presence: Floats


class WithinMetric(LinearMetric):
    r"""Whiten by the pooled within-class covariance.

    .. math:: d^2(x, x') = (x - x')^T
              \big[(1 - \lambda) \hat\Sigma_W + \lambda \bar\sigma^2 I\big]^{-1} (x - x')

    The features are standardised first. With more features than points all this happens in the
    space that the points span: what a new point has outside of it is the same for all its
    distances, and is left out. The shrinkage lambda is the one under which points left out are
    most probable, as Gaussians about the mean of their class.

    No decision on a rank is made: an axis along which the points hardly vary (repeated features,
    indicators of categories that sum to one) fades out smoothly.

    Parameters
    ----------
    max_shrinkage : float
        The largest shrinkage to choose. The density of all features may call for more shrinkage
        than the classes do, where many features are noise, such as derivatives of spectra.

    Attributes
    ----------
    map_ : ndarray, shape (n_components_, n_features)
    mean_ : ndarray, shape (n_features,)
    n_components_ : int
        The number of axes along which the points vary beyond rounding errors.
    shrinkage_ : float
        lambda: 0 is the sample covariance, 1 the standardised Euclidean metric, up to a factor.
    variance_kept_ : float
        The share of the variance of the standardised points that lies between their classes, the
        part that whitening within them does not even out.

    Examples
    --------
    >>> from nearfield.datasets import load_crabs
    >>> X, y = load_crabs(return_X_y=True)
    >>> metric = WithinMetric().fit(X, y)
    >>> metric.transform(X).shape
    (200, 5)
    """

    shrinkage_: float
    variance_kept_: float

    def __init__(self, max_shrinkage: float = 1.0) -> None:
        self.max_shrinkage = max_shrinkage

    def _learn(self, points: Floats, labels: NDArray[np.int64]) -> Floats:
        whitening = whiten_within(points, labels, self.max_shrinkage)
        self.shrinkage_, self.variance_kept_ = whitening.shrinkage, whitening.variance_kept
        return whitening.components


def whiten_within(
    points: Floats, labels: NDArray[np.int64], max_shrinkage: float = 1.0
) -> Whitening:
    """Learn the map of standardised points that whitens them within their classes."""
    axes, presence = principal_axes(points)
    scores = points @ axes.T
    residuals = scores - class_means(scores, labels)[labels]
    spectrum, vectors = np.linalg.eigh(residuals.T @ residuals)
    spectrum = np.maximum(spectrum, 0.0)
    total, n_axes = np.sum(scores**2), presence.sum()
    kept = float(1.0 - spectrum.sum() / total) if total > 0.0 else 0.0
    class_sizes = np.bincount(labels)
    n_free = len(labels) - len(class_sizes)
    if n_free < 2 or total == 0.0:  # no class shows how its points differ
        return Whitening(axes, 1.0, kept, presence)
    level = spectrum.sum() / (n_free * n_axes)
    floor = _FLOOR * total / (len(labels) * n_axes)
    presence = presence @ vectors**2
    shrinkage = most_probable_shrinkage(
        residuals @ vectors, spectrum, presence, class_sizes[labels], level, floor
    )
    shrinkage = min(shrinkage, max_shrinkage)
    variances = (1.0 - shrinkage) * spectrum / n_free + shrinkage * level + floor
    return Whitening((vectors / np.sqrt(variances)).T @ axes, shrinkage, kept, presence)


def principal_axes(points: Floats) -> tuple[Floats, Floats]:
    r"""Give the principal axes of centred points, those of next to no variance faded out.

    With the singular values s, the presence of an axis is

    .. math:: u_j = s_j^2 / (s_j^2 + \epsilon^2 s_1^2)

    and its length the root of that. A basis of the space in which the points do not vary is
    arbitrary; its axes have a presence of zero.

    Returns
    -------
    axes : ndarray, shape (n_axes, n_features)
    presence : ndarray, shape (n_axes,)
    """
    _, singular, axes = np.linalg.svd(points, full_matrices=False)
    rounding = max(points.shape) * np.finfo(np.float64).eps * singular[0]
    n_axes = max(int(np.sum(singular > rounding)), 1)
    power = singular[:n_axes] ** 2
    presence = np.ones(n_axes)
    if power[0] > 0.0:
        presence = power / (power + _LEAST_AXIS**2 * power[0])
    return np.sqrt(presence)[:, None] * axes[:n_axes], presence


def most_probable_shrinkage(
    residuals: Floats,
    spectrum: Floats,
    presence: Floats,
    class_sizes: NDArray[np.int64],
    level: float,
    floor: float,
) -> float:
    r"""Choose the shrinkage by the Gaussian likelihood of each point left out.

    Without point i, of a class of m points, its residual about the mean of its class is
    :math:`c r_i` with :math:`c = m / (m - 1)`, and the scatter is :math:`S - c\, r_i r_i^T`: a
    rank-one change, so that with :math:`q = r_i^T (aS + bI)^{-1} r_i`

    .. math:: \log p_{-i} = -\tfrac12 \Big[\log |aS + bI| + \log(1 - a c q)
              + \frac{c^2 q}{1 - a c q}\Big] + \text{const.}

    In the determinant each axis counts by its presence.
    """
    has_fellows = class_sizes > 1
    squares = residuals[has_fellows] ** 2
    inflation = (class_sizes / np.maximum(class_sizes - 1, 1))[has_fellows, None]
    n_free = len(residuals) - 1.0 - np.sum(1.0 / class_sizes)  # 1/m summed counts the classes
    weight = (1.0 - _SHRINKAGES) / n_free
    variances = weight * spectrum[:, None] + _SHRINKAGES * level + floor
    quadratic = squares @ (1.0 / variances)
    left = np.maximum(1.0 - weight * inflation * quadratic, 1e-12)
    surprise = np.log(left) + inflation**2 * quadratic / left + presence @ np.log(variances)
    return float(_SHRINKAGES[np.argmin(surprise.sum(axis=0))])
