"""Relevance: one scale a feature, learned by the pseudolikelihood of the Gaussian-kernel field."""

import numpy as np
from numpy.typing import NDArray

from nearfield.datasets import stratified_split
from nearfield.distances._scale_objective import ScaleObjective, ScaleProblem
from nearfield.distances._scale_search import search_scales

_MAX_POINTS = 600  # more say nothing new about a few scales, and cost their square


class RelevanceLearner:
    """A mixin for metrics that learn scales: their settings, and what they report.

    Parameters
    ----------
    spread : float
        tau, the prior standard deviation of a log scale.
    max_iter : int
        Steps of L-BFGS a round.

    Attributes
    ----------
    scales_ : ndarray
        The factor of each standardised feature, or axis; their squares, times the variances,
        average to one.
    log_pseudolikelihood_ : float
        Of the labels, at the most probable strength and length of the Gaussian-kernel field.
    n_iter_ : int
    """

    scales_: NDArray[np.float64]
    log_pseudolikelihood_: float
    n_iter_: int

    def __init__(self, spread: float = 1.0, max_iter: int = 50) -> None:
        self.spread = spread
        self.max_iter = max_iter

    def _learn_scales(
        self,
        points: NDArray[np.float64],
        labels: NDArray[np.int64],
        independence: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        r"""Learn the scales under which the labels of neighbours explain each other best.

        .. math:: \max_{u, \beta} \sum_i \log p(y_i \mid y_{-i}; \beta, \ell, u)
                  - \frac{\lVert u \rVert^2}{2 \tau^2}, \qquad
                  d_{ij}^2 = \sum_f e^{2 u_f} (x_{if} - x_{jf})^2

        The scales are divided by a common factor that keeps the mean squared distance as it was:
        free in their level, they would run off to the nearest neighbour, which explains the
        training labels best. The length of the kernel is the most probable one before, found again
        once.

        Parameters
        ----------
        points : ndarray, shape (n, n_features)
            Centred.
        labels : ndarray, shape (n,)
        independence : ndarray, shape (n_features,), optional
            1 (by default) for a feature with a log scale of its own, 0 for one with a common log
            scale, whose prior standard deviation is 3 tau; between them for an average of both.
        """
        self.scales_, self.log_pseudolikelihood_, self.n_iter_ = np.ones(points.shape[1]), 0.0, 0
        is_varied = len(np.unique(labels)) > 1 and len(labels) > 2 and np.ptp(points, axis=0).any()
        if not is_varied:  # nothing to learn from
            return self.scales_
        if len(labels) > _MAX_POINTS:
            kept, _ = stratified_split(labels, _MAX_POINTS, random_state=0)
            points, labels = points[kept], np.unique(labels[kept], return_inverse=True)[1]
        # L-BFGS follows rounding errors, which depend on the order of the features: one that their
        # values alone decide, whatever the signs of axes and the last digits.
        order = np.lexsort(np.abs(points).round(6))
        if independence is not None:
            independence = independence[order]
        problem = ScaleProblem.from_points(points[:, order], labels, self.spread, independence)
        objective = ScaleObjective(problem)
        found = search_scales(objective, self.max_iter)
        self.scales_ = np.exp(objective.log_scales(found.parameters)[np.argsort(order)])
        self.log_pseudolikelihood_ = objective.penalty(found.parameters) - found.value
        self.n_iter_ = found.n_iter
        return self.scales_
