"""Relevance: one scale a feature, learned by the pseudolikelihood of the Gaussian-kernel field."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nearfield.datasets import stratified_split

_PRIOR_SD_BETA = 50.0  # the paper's prior of beta, here for beta > 0
_MAX_BETA = 200.0
_N_LENGTHS = 14
_N_ROUNDS = 2  # of learning scales at one length and finding the length again
_MAX_POINTS = 600  # more say nothing new about a few scales, and cost their square


class Relevance(NamedTuple):
    """What was learned: log scales of the features, and the field that they were learned in."""

    log_scales: NDArray[np.float64]
    beta: float
    length: float
    log_pseudolikelihood: float
    n_iter: int


class RelevanceLearner:
    """A mixin for metrics that learn scales: their settings, and what they report.

    Attributes
    ----------
    scales_ : ndarray
        The factor of each standardised feature, or axis; their squares, times the variances,
        average to one.
    log_pseudolikelihood_ : float
        Of the labels, at the most probable strength and length of the Gaussian-kernel field.
    n_iter_ : int
    """

    spread: float
    max_iter: int
    scales_: NDArray[np.float64]
    log_pseudolikelihood_: float
    n_iter_: int

    def _learn_scales(self, points, labels, n_first: int | None = None) -> NDArray[np.float64]:
        relevance = learn_relevance(
            points, labels, spread=self.spread, max_iter=self.max_iter, n_first=n_first
        )
        self.scales_ = np.exp(relevance.log_scales)
        self.log_pseudolikelihood_ = relevance.log_pseudolikelihood
        self.n_iter_ = relevance.n_iter
        return self.scales_


def learn_relevance(
    points: NDArray[np.float64],
    labels: NDArray[np.int64],
    *,
    spread: float = 1.0,
    max_iter: int = 50,
    n_first: int | None = None,
) -> Relevance:
    r"""Learn the scales under which the labels of neighbours explain each other best.

    .. math:: \max_{u, \beta} \sum_i \log p(y_i \mid y_{-i}; \beta, \ell, u)
              - \frac{\lVert u \rVert^2}{2 \tau^2}, \qquad
              d_{ij}^2 = \sum_f e^{2 u_f} (x_{if} - x_{jf})^2

    The scales are divided by a common factor that keeps the mean squared distance as it was: free
    in their level, they would run off to the nearest neighbour, which explains the training labels
    best. The length of the kernel is the most probable one before, found again once.

    Parameters
    ----------
    points : ndarray, shape (n, n_features)
        Centred.
    labels : ndarray, shape (n,)
    spread : float
        tau, the prior standard deviation of a log scale.
    max_iter : int
        Steps of L-BFGS a round.
    n_first : int, optional
        Features up to here, and those after it, each have a common log scale beside their own,
        with prior standard deviation 2 tau.
    """
    is_varied = len(np.unique(labels)) > 1 and len(labels) > 2 and np.ptp(points, axis=0).any()
    if not is_varied:  # nothing to learn from
        return Relevance(np.zeros(points.shape[1]), 0.0, 1.0, 0.0, 0)
    if len(labels) > _MAX_POINTS:
        kept, _ = stratified_split(labels, _MAX_POINTS, random_state=0)
        points, labels = points[kept], np.unique(labels[kept], return_inverse=True)[1]
    scales = _ScaleModel(points, spread, n_first)
    is_class = (labels[:, None] == np.arange(labels.max() + 1)).astype(np.float64)
    theta = np.zeros(scales.n_parameters)
    n_iter = 0
    for _ in range(_N_ROUNDS):
        log_scales = scales.log_scales(theta)
        length, beta = best_length(_squared_distances(points, log_scales), is_class)
        objective = _Objective(points / length, is_class, scales)
        start = np.append(theta, np.log(beta))
        bounds = [(None, None)] * len(theta) + [(np.log(1e-3), np.log(_MAX_BETA))]
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_iter},
        )
        theta, n_iter = found.x[:-1], n_iter + int(found.nit)
    log_scales = scales.log_scales(theta)
    beta = float(np.exp(found.x[-1]))
    value, _, _ = field_gradient(_squared_distances(points / length, log_scales), is_class, beta)
    return Relevance(log_scales, beta, length, value, n_iter)


class _ScaleModel:
    """From free parameters to log scales of a fixed mean squared distance, and their prior."""

    def __init__(self, points, spread, n_first):
        n_features = points.shape[1]
        variances = np.mean(points**2, axis=0)
        self.shares = variances / variances.sum()
        self.groups = np.zeros((0, n_features))
        if n_first is not None and 0 < n_first < n_features:
            is_first = np.arange(n_features) < n_first
            self.groups = np.array([is_first, ~is_first], dtype=np.float64)
        n_groups = len(self.groups)
        self.n_parameters = n_features + n_groups
        self.precisions = np.repeat([spread**-2.0, (2.0 * spread) ** -2.0], [n_features, n_groups])

    def log_scales(self, theta):
        n_features = len(self.shares)
        raw = theta[:n_features] + theta[n_features:] @ self.groups
        raw -= raw.max()  # no exp of a wild trial step overflows
        return raw - 0.5 * np.log(self.shares @ np.exp(2.0 * raw))

    def pull_back(self, gradient, log_scales):
        """Turn a gradient in the log scales into one in the free parameters."""
        raw = gradient - self.shares * np.exp(2.0 * log_scales) * gradient.sum()
        return np.concatenate([raw, self.groups @ raw])


class _Objective:
    """Minus the penalised log pseudolikelihood of (theta, log beta), with its gradient."""

    def __init__(self, points, is_class, scales):
        self.points, self.is_class, self.scales = points, is_class, scales
        self.squares = points**2

    def __call__(self, parameters):
        theta, beta = parameters[:-1], np.exp(parameters[-1])
        log_scales = self.scales.log_scales(theta)
        squared_distances = _squared_distances(self.points, log_scales)
        value, by_kernel, by_beta = field_gradient(squared_distances, self.is_class, beta)
        # Rows of the gradient sum to zero: of sum_ij g_ij (x_i - x_j)^2 three terms are two.
        by_scale = by_kernel.sum(axis=0) @ self.squares
        by_scale -= 2.0 * np.einsum("if,if->f", self.points, by_kernel @ self.points)
        by_scale *= -np.exp(2.0 * log_scales)
        precisions = self.scales.precisions
        penalty = 0.5 * precisions @ theta**2 + 0.5 * (beta / _PRIOR_SD_BETA) ** 2
        by_theta = self.scales.pull_back(by_scale, log_scales) - precisions * theta
        by_log_beta = beta * by_beta - (beta / _PRIOR_SD_BETA) ** 2
        return penalty - value, -np.append(by_theta, by_log_beta)


def field_gradient(
    squared_distances: NDArray[np.float64], is_class: NDArray[np.float64], beta: float
) -> tuple[float, NDArray[np.float64], float]:
    r"""Evaluate the log pseudolikelihood at length one, and its derivatives.

    With the residual :math:`e_{ig} = 1[y_i = g] - p(y_i = g \mid y_{-i})`,
    :math:`b_{ij} = \beta (e_{i y_j} + e_{j y_i})` and :math:`\log \kappa_{ij} = -d_{ij}^2 / 2`:

    .. math:: \frac{\partial}{\partial \log \kappa_{ij}}
              = w_{ij} \Big(b_{ij} - \sum_l w_{il} b_{il}\Big)

    Returns
    -------
    value : float
    by_kernel : ndarray, shape (n, n)
        The derivatives by the log kernel; rows sum to zero.
    by_beta : float
    """
    weights = _gaussian_rows(squared_distances)
    support = (weights + weights.T) @ is_class
    own = np.einsum("ig,ig->i", support, is_class)
    log_odds = beta * (support - own[:, None])
    top = log_odds.max(axis=1, keepdims=True)
    odds = np.exp(log_odds - top)
    total = odds.sum(axis=1, keepdims=True)
    value = -float(np.sum(top + np.log(total)))
    residual = is_class - odds / total
    by_coupling = beta * (residual @ is_class.T)
    by_weight = by_coupling + by_coupling.T
    mean = np.einsum("ij,ij->i", weights, by_weight)
    return value, weights * (by_weight - mean[:, None]), float(np.sum(residual * support))


def best_length(
    squared_distances: NDArray[np.float64], is_class: NDArray[np.float64]
) -> tuple[float, float]:
    """Find the length of the Gaussian kernel and the beta > 0 that explain the labels best.

    Each length is weighed by the mass of its best beta (Laplace), not by its height.
    """
    others = squared_distances + np.diag(np.full(len(squared_distances), np.inf))
    farthest = np.sqrt(squared_distances.max())
    nearest = np.sqrt(np.quantile(others.min(axis=1), 0.1))
    lengths = np.geomspace(max(0.15 * nearest, 1e-4 * farthest), farthest, _N_LENGTHS)
    best, beta = (-np.inf, lengths[-1], 1.0), 3.0
    for length in lengths:
        weights = _gaussian_rows(squared_distances / length**2)
        support = (weights + weights.T) @ is_class
        gains = support - np.einsum("ig,ig->i", support, is_class)[:, None]
        beta, log_mass = _best_beta(gains, start=beta)
        best = max(best, (log_mass, length, beta))
    return float(best[1]), float(best[2])


def _best_beta(gains: NDArray[np.float64], start: float) -> tuple[float, float]:
    """Maximise over beta > 0 by Newton's method, given support relative to one's own class."""
    beta, precision = start, _PRIOR_SD_BETA**-2
    for _ in range(30):
        log_odds = beta * gains
        top = log_odds.max(axis=1, keepdims=True)
        odds = np.exp(log_odds - top)
        total = odds.sum(axis=1, keepdims=True)
        odds /= total
        mean = np.einsum("ig,ig->i", odds, gains)
        slope = -mean.sum() - precision * beta
        curvature = np.einsum("ig,ig,ig->", odds, gains, gains) - mean @ mean + precision
        log_mass = -np.sum(top + np.log(total)) - 0.5 * precision * beta**2
        log_mass -= 0.5 * np.log(curvature)
        step = np.clip(slope / curvature, -5.0, 5.0)
        previous, beta = beta, float(np.clip(beta + step, 0.05, _MAX_BETA))
        if abs(beta - previous) < 1e-2 * beta:
            break
    return beta, float(log_mass)


def _squared_distances(points, log_scales):
    scaled = points * np.exp(log_scales)
    norms = np.einsum("if,if->i", scaled, scaled)
    return np.maximum(norms[:, None] + norms - 2.0 * scaled @ scaled.T, 0.0)


def _gaussian_rows(squared_distances):
    """Directed weights at length one, in log space."""
    log_kernel = -0.5 * squared_distances
    np.fill_diagonal(log_kernel, -np.inf)
    log_kernel -= log_kernel.max(axis=1, keepdims=True)
    weights = np.exp(log_kernel, out=log_kernel)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
