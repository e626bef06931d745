"""What scales of features maximise: the log pseudolikelihood of their field, and a prior."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances.kernels.relevance import fill_gradient, scale_points
from nearfield.distances.kernels.scaled_field import best_beta, field_slopes, weigh_neighbors

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

PRIOR_SD_BETA = 50.0
"""The paper's prior of beta, here for beta > 0."""

MIN_BETA, MAX_BETA = 1e-3, 200.0
NEIGHBORING = np.exp(np.linspace(-0.6, 0.6, 4))
"""Lengths around one that was best before, relative to it."""

_N_LENGTHS = 8


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

    Matrix products are NumPy's: within a kernel they would take longer to compile than the rest.
    """

    def __init__(self, problem: ScaleProblem) -> None:
        self.problem = problem
        self.n_parameters = len(problem.precisions) + 1
        n_points, n_classes = len(problem.points), len(problem.class_starts) - 1
        self._prior = problem.shares, problem.independence, problem.precisions
        self._points = problem.points.astype(np.float32)
        self._scaled = np.empty_like(self._points)
        self._scales = np.empty(self._points.shape[1])
        self._products, self._weights = np.empty((2, n_points, n_points), dtype=np.float32)
        self._sums, self._support = np.empty((2, n_points, n_classes))

    def __call__(self, parameters: Floats, log_length: float) -> tuple[float, Floats]:
        """Evaluate at a length of the kernel: the value, and the gradient."""
        beta, gradient = self.beta(parameters), np.empty(self.n_parameters)
        norms = self._multiply(parameters, log_length)
        self._weigh_neighbors(norms, 1.0)
        value, by_beta, by_square = self._field_slopes(beta)
        products = self._weights @ self._points
        penalty = fill_gradient(
            self._points,
            products,
            by_square,
            self._scales,
            log_length,
            self._prior,
            parameters,
            gradient,
        )
        penalty += (beta / PRIOR_SD_BETA) ** 2
        gradient[-1] = (beta / PRIOR_SD_BETA) ** 2 - beta * by_beta
        return 0.5 * penalty - value, gradient

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

    def best_length(self, parameters: Floats, around: float) -> tuple[float, float]:
        """Find the length of the Gaussian kernel and the beta > 0 that explain the labels best.

        Each length is weighed by the mass of its best beta (Laplace), not by its height. They are
        around a given one, or, if that is zero, everywhere.
        """
        norms = self._multiply(parameters, 0.0)
        if around > 0.0:
            lengths = around * NEIGHBORING
        else:
            lengths = spread_lengths(np.maximum(norms[:, None] + norms - 2.0 * self._products, 0.0))
        best, beta, labels = (-np.inf, 1.0, 1.0), 3.0, self.problem.labels
        prior, ones = PRIOR_SD_BETA**-2, np.ones(len(labels))
        for length in lengths:
            self._weigh_neighbors(norms, length)
            beta, log_mass = best_beta(self._support, labels, ones, prior, MAX_BETA, beta)
            best = max(best, (log_mass, float(length), beta))
        return best[1:]

    def _multiply(self, parameters: Floats, log_length: float) -> Singles:
        """Fill in the inner products of the scaled points; return their diagonal."""
        scale_points(self._points, self._prior, parameters, log_length, self._scales, self._scaled)
        # A copy of the transpose: the product of a matrix with itself takes NumPy longer.
        np.matmul(self._scaled, self._scaled.T.copy(), out=self._products)
        return self._products.diagonal().copy()

    def _weigh_neighbors(self, norms: Singles, length: float) -> None:
        """Fill in the weights, their sums and the support."""
        labels, class_starts = self.problem.labels, self.problem.class_starts
        back = np.zeros(self._sums.shape[::-1], dtype=np.float32)
        weigh_neighbors(
            self._products,
            norms,
            labels,
            class_starts,
            length,
            self._weights,
            self._sums,
            back,
            self._support,
        )

    def _field_slopes(self, beta: float) -> tuple[float, float, Singles]:
        """Replace weights by slopes; return the value, its slope in beta, and sums of slopes."""
        labels, class_starts = self.problem.labels, self.problem.class_starts
        residuals = np.empty(self._sums.shape[::-1], dtype=np.float32)
        by_square = np.zeros(len(labels), dtype=np.float32)
        value, by_beta = field_slopes(
            self._weights,
            self._sums,
            labels,
            class_starts,
            self._support,
            beta,
            residuals,
            by_square,
        )
        return value, by_beta, by_square


def spread_lengths(squared: NDArray[Any]) -> Floats:
    """Give lengths between those of near neighbours and the largest."""
    farthest = float(np.sqrt(squared.max()))
    others = np.where(np.eye(len(squared), dtype=bool), np.inf, squared)
    nearest = float(np.mean(np.sqrt(others.min(axis=1))))
    low, high = np.log([max(0.1 * nearest, 1e-4 * farthest), farthest])
    return np.exp(np.linspace(low, high, _N_LENGTHS))
