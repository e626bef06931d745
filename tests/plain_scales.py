"""The search for scales in plain NumPy and double precision: what the compiled one must equal."""

import numpy as np

from nearfield.distances._scale_objective import (
    MAX_BETA,
    MIN_BETA,
    NEIGHBORING,
    PRIOR_SD_BETA,
    spread_lengths,
)

LEAST_BEST_BETA = 0.05


class PlainObjective:
    r"""Minus the penalised log pseudolikelihood of (theta, log beta), with its gradient.

    theta are free log scales, one a feature and a common one. The log scales that come of them
    are shifted so that the mean squared distance stays as it was.

    """

    def __init__(self, problem):
        self.problem = problem
        self.n_parameters = len(problem.precisions) + 1

    def __call__(self, parameters, log_length):
        """Evaluate at a length of the kernel: the value, and the gradient."""
        problem, theta = self.problem, parameters[:-1]
        beta, log_scales = self.beta(parameters), self.log_scales(parameters)
        value, by_scale, by_beta = self.field(log_scales - log_length, beta)
        raw = by_scale - problem.shares * np.exp(2.0 * log_scales) * by_scale.sum()
        own = problem.independence
        by_theta = np.append(own * raw, (1.0 - own) @ raw)
        by_log_beta = beta * by_beta - (beta / PRIOR_SD_BETA) ** 2
        gradient = np.append(problem.precisions * theta - by_theta, -by_log_beta)
        return self.penalty(parameters) - value, gradient

    def penalty(self, parameters):
        """Give minus the log prior of the parameters, up to a constant."""
        of_scales = self.problem.precisions @ parameters[:-1] ** 2
        return float(0.5 * of_scales + 0.5 * (self.beta(parameters) / PRIOR_SD_BETA) ** 2)

    def beta(self, parameters):
        """Give beta, whose logarithm is the last parameter."""
        return float(min(max(np.exp(parameters[-1]), MIN_BETA), MAX_BETA))

    def log_scales(self, parameters):
        """Turn free parameters into log scales."""
        own, n_features = self.problem.independence, len(self.problem.shares)
        raw = own * parameters[:n_features] + (1.0 - own) * parameters[n_features]
        raw -= raw.max()  # no exp of a wild trial step overflows
        return raw - 0.5 * np.log(self.problem.shares @ np.exp(2.0 * raw))

    def field(self, log_scales, beta):
        """Give the log pseudolikelihood at length one, and its slopes in log scales and beta."""
        points = self.problem.points
        squared = squared_distances(points, log_scales)
        value, by_kernel, by_beta = field_gradient(squared, self._is_class(), beta)
        # Rows of the gradient sum to zero: of sum_ij g_ij (x_i - x_j)^2 three terms are two.
        by_scale = by_kernel.sum(axis=0) @ points**2
        by_scale -= 2.0 * np.einsum("if,if->f", points, by_kernel @ points)
        return value, -np.exp(2.0 * log_scales) * by_scale, by_beta

    def best_length(self, parameters, around):
        """Find the length of the Gaussian kernel and the beta > 0 that explain the labels best.

        Each length is weighed by the mass of its best beta (Laplace), not by its height. They are
        around a given one, or, if that is zero, everywhere.
        """
        is_class = self._is_class()
        squared = squared_distances(self.problem.points, self.log_scales(parameters))
        best, beta = (-np.inf, 1.0, 1.0), 3.0
        for length in around * NEIGHBORING if around > 0.0 else spread_lengths(squared):
            weights = gaussian_rows(squared / length**2)
            support = (weights + weights.T) @ is_class
            gains = support - np.einsum("ig,ig->i", support, is_class)[:, None]
            beta, log_mass = best_beta(gains, start=beta)
            best = max(best, (log_mass, length, beta))
        return float(best[1]), float(best[2])

    def _is_class(self):
        n_classes = len(self.problem.class_starts) - 1
        return (self.problem.labels[:, None] == np.arange(n_classes)).astype(np.float64)


def squared_distances(points, log_scales):
    """Give the squared distances between points whose features are scaled."""
    scaled = points * np.exp(log_scales)
    norms = np.einsum("if,if->i", scaled, scaled)
    return np.maximum(norms[:, None] + norms - 2.0 * scaled @ scaled.T, 0.0)


def field_gradient(squared, is_class, beta):
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
    weights = gaussian_rows(squared)
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


def best_beta(gains, start):
    """Maximise over beta > 0 by Newton's method, given support relative to one's own class."""
    beta, precision = start, PRIOR_SD_BETA**-2
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
        previous, beta = beta, float(np.clip(beta + step, LEAST_BEST_BETA, MAX_BETA))
        if abs(beta - previous) < 1e-2 * beta:
            break
    return beta, float(log_mass)


def gaussian_rows(squared):
    """Directed weights at length one, in log space."""
    log_kernel = -0.5 * squared
    np.fill_diagonal(log_kernel, -np.inf)
    log_kernel -= log_kernel.max(axis=1, keepdims=True)
    weights = np.exp(log_kernel, out=log_kernel)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
