"""The coupling of new points to all training points, written out in NumPy: an oracle."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nearfield.field import RADIUS_EPSILON, DistanceFamily

_LARGEST = np.finfo(np.float64).max


def new_point_support(
    family: DistanceFamily,
    labels: NDArray[np.int64],
    distances: NDArray[np.float64],
    scale: float,
    predictive: str,
) -> NDArray[np.float64]:
    r"""Sum the coupling of each new point to the training points of each class.

    .. math:: h^*_g = \sum_j c^*_j 1[y_j = g], \qquad
              c^*_j = w^*_j + \frac{\kappa(d^*_j)}{\sum_{l \ne j} \kappa(d_{jl}) + \kappa(d^*_j)}

    with :math:`w^*_j = \kappa(d^*_j) / \sum_l \kappa(d^*_l)`; the printed predictive of Friel and
    Pettitt (2011) has :math:`w^*_j` alone.

    Parameters
    ----------
    family : DistanceFamily
        Of the n training points.
    labels : ndarray of int, shape (n,)
    distances : ndarray, shape (m, n)
        Of the new points to the training points.
    scale : float
    predictive : {"joint", "printed"}

    Returns
    -------
    support : ndarray, shape (m, G)
    """
    coupling = new_point_coupling(family, distances, scale, predictive)
    is_class = (labels[:, None] == np.arange(family.n_classes)).astype(np.float64)
    return coupling @ is_class


def new_point_coupling(
    family: DistanceFamily, distances: NDArray[np.float64], scale: float, predictive: str
) -> NDArray[np.float64]:
    """Give the coupling of each new point to each training point, shape (m, n)."""
    weights = weights_out(family, distances, scale)
    return weights + weights_back(family, distances, scale) if predictive == "joint" else weights


def weights_out(family: Any, distances: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Out-weights of the new points, shape (m, n): rows sum to one."""
    kernel = _kernel_ratio(family, distances, distances.min(axis=1, keepdims=True), scale)
    return kernel / kernel.sum(axis=1, keepdims=True)


def weights_back(family: Any, distances: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """In-weights of the new points, shape (m, n)."""
    others: Any = family.distances + np.where(np.eye(family.n_points, dtype=bool), np.inf, 0.0)
    nearest = others.min(axis=1)
    others_ratio = _kernel_ratio(family, others, nearest[:, None], scale)
    np.fill_diagonal(others_ratio, 0.0)
    log_total = np.log(others_ratio.sum(axis=1))
    return expit(_log_kernel_ratio(family, distances, nearest, scale) - log_total)


def _kernel_ratio(family, distances, reference, scale):
    return np.exp(_log_kernel_ratio(family, distances, reference, scale))


def _log_kernel_ratio(
    family: DistanceFamily,
    distances: NDArray[np.float64],
    reference: NDArray[np.float64],
    sigma: float,
) -> NDArray[np.float64]:
    r""":math:`\log \kappa(d) - \log \kappa(r)`, which a tiny or huge sigma leaves meaningful."""
    if family.kernel == "radius":
        log_epsilon = np.log(RADIUS_EPSILON)
        return log_epsilon * ((distances >= sigma).astype(float) - (reference >= sigma))
    with np.errstate(over="ignore"):
        if family.kernel == "exponential":
            return -(distances - reference) * sigma
        difference = (distances - reference) / sigma
        total = np.minimum((distances + reference) / sigma, _LARGEST)  # 0 * inf is nan
        return -0.5 * difference * total
