"""What scales of features maximise: the log pseudolikelihood of their field, and a prior."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances._scaled_field import (
    MAX_BETA,
    NEIGHBORING,
    PRIOR_SD_BETA,
    best_beta,
    field_gradient,
    gaussian_rows,
    spread_lengths,
    squared_distances,
)

Floats = NDArray[np.float64]

MIN_BETA = 1e-3


class ScaleProblem(NamedTuple):
    """What scales are learned from.

    Attributes
    ----------
    points : ndarray, shape (n, n_features)
        Sorted by class, centred.
    labels : ndarray of int, shape (n,)
    class_starts : ndarray of int, shape (G + 1,)
    shares : ndarray, shape (n_features,)
        Of the features in the mean squared distance.
    independence : ndarray, shape (n_features,)
        1 for a feature with a log scale of its own, 0 for one with the common log scale, between
        them for an average of both.
    precisions : ndarray, shape (n_features + 1,)
        Of the normal prior of the log scale of each feature, and of the common one.
    """

    points: Floats
    labels: NDArray[np.int64]
    class_starts: NDArray[np.int64]
    shares: Floats
    independence: Floats
    precisions: Floats

    @classmethod
    def from_points(
        cls,
        points: Floats,
        labels: NDArray[np.int64],
        spread: float,
        independence: Floats | None = None,
    ) -> "ScaleProblem":
        """Sort points by class; labels from zero on, none left out."""
        order = np.argsort(labels, kind="stable")
        points, labels = points[order], labels[order]
        n_features = points.shape[1]
        variances = np.einsum("if,if->f", points, points)
        return cls(
            points,
            labels,
            np.searchsorted(labels, np.arange(labels[-1] + 2)),
            variances / variances.sum(),
            np.ones(n_features) if independence is None else independence,
            np.repeat([spread**-2.0, (3.0 * spread) ** -2.0], [n_features, 1]),
        )


class ScaleObjective:
    r"""Minus the penalised log pseudolikelihood of (theta, log beta), with its gradient.

    theta are free log scales, one a feature and a common one. The log scales that come of them
    are shifted so that the mean squared distance stays as it was.

    `nearfield.distances.kernels.relevance` has the same, compiled.
    """

    def __init__(self, problem: ScaleProblem) -> None:
        self.problem = problem
        self.n_parameters = len(problem.precisions) + 1

    def __call__(self, parameters: Floats, log_length: float) -> tuple[float, Floats]:
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

    def penalty(self, parameters: Floats) -> float:
        """Give minus the log prior of the parameters, up to a constant."""
        of_scales = self.problem.precisions @ parameters[:-1] ** 2
        return float(0.5 * of_scales + 0.5 * (self.beta(parameters) / PRIOR_SD_BETA) ** 2)

    def beta(self, parameters: Floats) -> float:
        """Give beta, whose logarithm is the last parameter."""
        return float(min(max(np.exp(parameters[-1]), MIN_BETA), MAX_BETA))

    def log_scales(self, parameters: Floats) -> Floats:
        """Turn free parameters into log scales."""
        own, n_features = self.problem.independence, len(self.problem.shares)
        raw = own * parameters[:n_features] + (1.0 - own) * parameters[n_features]
        raw -= raw.max()  # no exp of a wild trial step overflows
        return raw - 0.5 * np.log(self.problem.shares @ np.exp(2.0 * raw))

    def field(self, log_scales: Floats, beta: float) -> tuple[float, Floats, float]:
        """Give the log pseudolikelihood at length one, and its slopes in log scales and beta."""
        points = self.problem.points
        squared = squared_distances(points, log_scales)
        value, by_kernel, by_beta = field_gradient(squared, self._is_class(), beta)
        # Rows of the gradient sum to zero: of sum_ij g_ij (x_i - x_j)^2 three terms are two.
        by_scale = by_kernel.sum(axis=0) @ points**2
        by_scale -= 2.0 * np.einsum("if,if->f", points, by_kernel @ points)
        return value, -np.exp(2.0 * log_scales) * by_scale, by_beta

    def best_length(self, parameters: Floats, around: float) -> tuple[float, float]:
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

    def quasi_newton(self, gradient: Floats, moves: Floats, changes: Floats, n_kept: int) -> Floats:
        """Multiply minus the gradient by the inverse curvature that past steps have shown.

        Parameters
        ----------
        gradient : ndarray, shape (n_parameters,)
        moves, changes : ndarray, shape (n_memory, n_parameters)
            Of the parameters and of the gradient in the last steps; step t is in row t modulo
            n_memory.
        n_kept : int
            How many steps there were.
        """
        if n_kept == 0:  # nothing is known yet: a step of at most one in each parameter
            return -gradient / max(np.abs(gradient).max(), 1.0)
        n_memory, direction = len(moves), -gradient
        rows = [t % n_memory for t in range(max(n_kept - n_memory, 0), n_kept)]
        steps = [(moves[row], changes[row], moves[row] @ changes[row]) for row in rows]
        shares = []
        for move, change, curvature in reversed(steps):
            shares.append(move @ direction / curvature)
            direction -= shares[-1] * change
        _, change, curvature = steps[-1]
        direction *= curvature / (change @ change)
        for (move, change, curvature), share in zip(steps, reversed(shares), strict=True):
            direction += (share - change @ direction / curvature) * move
        return direction

    def _is_class(self) -> Floats:
        n_classes = len(self.problem.class_starts) - 1
        return (self.problem.labels[:, None] == np.arange(n_classes)).astype(np.float64)


ObjectiveMaker = Callable[[ScaleProblem], ScaleObjective]
"""What makes the objective of a problem: `ScaleObjective`, or a compiled one."""
