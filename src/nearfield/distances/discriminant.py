"""The discriminant metric: within-class whitening, then the relevance of discriminant axes."""

import numpy as np
from numpy.typing import NDArray

from nearfield.distances._relevance import RelevanceLearner
from nearfield.distances.learned import LinearMetric, class_means
from nearfield.distances.within import whiten_within

_LEAST_AXIS = 1e-4  # of the largest singular value: an axis with less is half like the rest


class DiscriminantMetric(RelevanceLearner, LinearMetric):
    r"""Whiten within the classes, turn to the axes that separate them, and scale those.

    .. math:: d(x, x') = \lVert \mathrm{diag}(s)\, V\, W (x - x') \rVert

    W is the map of the within-class metric. The rows of V are orthonormal: first the axes along
    which the class means differ, then the rest. The scales s are learned as those of
    `ArdMetric`, one for each of the first axes and a common one for the rest: no basis of the
    rest is better than another.

    Parameters
    ----------
    spread : float
        The prior standard deviation of a log scale.
    max_iter : int
        Steps of L-BFGS in each of two rounds.
    max_shrinkage : float
        As of `WithinMetric`.

    Attributes
    ----------
    scales_ : ndarray, shape (n_components_,)
    n_discriminant_ : int
        How many of the axes separate class means: at most one less than there are classes.
    shrinkage_, variance_kept_ : float
        As of `WithinMetric`.
    log_pseudolikelihood_ : float
    n_iter_ : int
    map_, mean_, n_components_
        As of every `LinearMetric`.

    Examples
    --------
    >>> from nearfield.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> metric = DiscriminantMetric().fit(X, y)
    >>> metric.n_discriminant_, metric.n_components_
    (2, 13)
    """

    shrinkage_: float
    variance_kept_: float
    n_discriminant_: int

    def __init__(self, spread: float = 1.0, max_iter: int = 50, max_shrinkage: float = 1.0) -> None:
        super().__init__(spread, max_iter)
        self.max_shrinkage = max_shrinkage

    def _learn(self, points: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
        learned = whiten_within(points, labels, self.max_shrinkage)
        self.shrinkage_, self.variance_kept_ = learned.shrinkage, learned.variance_kept
        whitening = learned.components
        white = points @ whitening.T
        axes, independence = discriminant_axes(white, labels)
        self.n_discriminant_ = min(int(labels.max()), len(axes))
        scales = self._learn_scales(white @ axes.T, labels, independence)
        return scales[:, None] * (axes @ whitening)


def discriminant_axes(
    points: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Give an orthonormal basis, those axes first along which the class means differ most.

    Returns
    -------
    axes : ndarray, shape (n_features, n_features)
    independence : ndarray, shape (n_features,)
        :math:`s_j^2 / (s_j^2 + \epsilon^2 s_1^2)` with the singular values s of the class means:
        zero for axes that the means do not tell apart from any other basis.
    """
    sizes = np.bincount(labels)
    means = class_means(points, labels)
    deviations = np.sqrt(sizes)[:, None] * (means - sizes @ means / sizes.sum())
    _, singular, axes = np.linalg.svd(deviations, full_matrices=True)
    power, independence = singular[: len(sizes) - 1] ** 2, np.zeros(len(axes))
    if power.any():
        independence[: len(power)] = power / (power + _LEAST_AXIS**2 * power[0])
    return axes, independence
