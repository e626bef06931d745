"""The objective of the search for scales of features, compiled, and the best length."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield.distances._scale_objective import ScaleObjective, ScaleProblem
from nearfield.distances._scaled_field import MAX_BETA, NEIGHBORING, PRIOR_SD_BETA, spread_lengths
from nearfield.distances.kernels.scaled_field import (
    best_beta,
    field_slopes,
    weigh_neighbors,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


class CompiledObjective(ScaleObjective):
    """Minus the penalised log pseudolikelihood of scales, compiled.

    Matrix products are NumPy's: within a kernel they would take longer to compile than the rest.
    """

    def __init__(self, problem: ScaleProblem) -> None:
        super().__init__(problem)
        n_points, n_classes = len(problem.points), len(problem.class_starts) - 1
        self._prior = problem.shares, problem.independence, problem.precisions
        self._points = problem.points.astype(np.float32)
        self._scaled = np.empty_like(self._points)
        self._scales = np.empty(self._points.shape[1])
        self._products, self._weights = np.empty((2, n_points, n_points), dtype=np.float32)
        self._sums, self._support = np.empty((2, n_points, n_classes))

    def __call__(
        self, parameters: NDArray[np.float64], log_length: float
    ) -> tuple[float, NDArray[np.float64]]:
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

    def best_length(self, parameters: NDArray[np.float64], around: float) -> tuple[float, float]:
        """Find the length of the Gaussian kernel and the beta > 0 that explain the labels best."""
        norms = self._multiply(parameters, 0.0)
        if around > 0.0:
            lengths = around * NEIGHBORING
        else:
            lengths = spread_lengths(np.maximum(norms[:, None] + norms - 2.0 * self._products, 0.0))
        best, beta, labels = (-np.inf, 1.0, 1.0), 3.0, self.problem.labels
        for length in lengths:
            self._weigh_neighbors(norms, length)
            beta, log_mass = best_beta(self._support, labels, PRIOR_SD_BETA**-2, MAX_BETA, beta)
            best = max(best, (log_mass, float(length), beta))
        return best[1:]

    def _multiply(self, parameters: NDArray[np.float64], log_length: float) -> NDArray[np.float32]:
        """Fill in the inner products of the scaled points; return their diagonal."""
        scale_points(self._points, self._prior, parameters, log_length, self._scales, self._scaled)
        # A copy of the transpose: the product of a matrix with itself takes NumPy longer.
        np.matmul(self._scaled, self._scaled.T.copy(), out=self._products)
        return self._products.diagonal().copy()

    def _weigh_neighbors(self, norms: NDArray[np.float32], length: float) -> None:
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

    def _field_slopes(self, beta: float) -> tuple[float, float, NDArray[np.float32]]:
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


@compiled
def scale_points(
    points: Singles,
    prior: tuple[Floats, Floats, Floats],
    parameters: Floats,
    log_length: float,
    scales: Floats,
    scaled: Singles,
) -> None:
    """Turn free parameters into scales that leave the mean squared distance as it was.

    Parameters
    ----------
    points, scaled : ndarray of float32, shape (n, n_features)
        The second is filled in with the points times the scales over the length of the kernel.
    prior : tuple of ndarray
        Shares, independence and precisions, as of `ScaleProblem`.
    parameters : ndarray, shape (n_features + 2,)
    log_length : float
    scales : ndarray, shape (n_features,)
        To be filled in.
    """
    shares, independence, _ = prior
    n_points, n_features = points.shape
    top = -np.inf
    for f in range(n_features):
        own = independence[f]
        scales[f] = own * parameters[f] + (1.0 - own) * parameters[n_features]
        top = scales[f] if scales[f] > top else top
    mean = 0.0
    for f in range(n_features):
        scales[f] = np.exp(scales[f] - top)
        mean += shares[f] * scales[f] * scales[f]
    for f in range(n_features):
        scales[f] /= np.sqrt(mean)
    per_length = np.exp(-log_length)
    for i in range(n_points):
        for f in range(n_features):
            scaled[i, f] = points[i, f] * np.float32(scales[f] * per_length)


@compiled(fastmath={"contract"})
def fill_gradient(
    points: Singles,
    products: Singles,
    by_square: Singles,
    scales: Floats,
    log_length: float,
    prior: tuple[Floats, Floats, Floats],
    parameters: Floats,
    gradient: Floats,
) -> float:
    r"""Fill in the gradient in all parameters but beta; return the penalty of their squares.

    Rows of the slopes g sum to zero: of :math:`\sum_{ij} g_{ij} (x_i - x_j)^2` three terms are two.

    Parameters
    ----------
    points : ndarray of float32, shape (n, n_features)
    products, by_square : ndarray of float32, shape (n, n_features) and (n,)
        Slopes times points, and their sums by column.
    scales, log_length, prior, parameters
        As of `scale_points`.
    gradient : ndarray, shape (n_features + 2,)
    """
    shares, independence, precisions = prior
    n_points, n_features = points.shape
    for f in range(n_features + 1):
        gradient[f] = 0.0
    for i in range(n_points):
        for f in range(n_features):
            point = points[i, f]
            gradient[f] += point * (by_square[i] * point - np.float32(2.0) * products[i, f])
    per_length, total = np.exp(-log_length), 0.0
    for f in range(n_features):
        factor = scales[f] * per_length
        gradient[f] *= -factor * factor
        total += gradient[f]
    common = 0.0
    for f in range(n_features):
        by_raw = gradient[f] - shares[f] * scales[f] * scales[f] * total
        gradient[f] = -independence[f] * by_raw
        common -= (1.0 - independence[f]) * by_raw
    gradient[n_features] = common
    penalty = 0.0
    for p in range(n_features + 1):
        gradient[p] += precisions[p] * parameters[p]
        penalty += precisions[p] * parameters[p] * parameters[p]
    return penalty
