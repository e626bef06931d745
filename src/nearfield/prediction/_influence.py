"""How much each training point adds to the score of its class in a prediction."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nearfield.inference import Posterior

_MAX_SCALES = 64  # of a chain's many draws; neighbouring ones are put together


def mean_influence(
    posterior: Posterior, coupling: Callable[[float], NDArray[np.float64]]
) -> NDArray[np.float64]:
    r"""Average the influence of training points over the posterior.

    .. math:: \operatorname{E}[\beta c^*_j \mid y]

    Parameters
    ----------
    posterior : Posterior
    coupling : callable
        Takes a scale and returns the coupling of new to training points, shape (m, n).

    Returns
    -------
    influence : ndarray, shape (m, n)
    """
    return np.sum([beta * coupling(scale) for scale, beta in _grouped(posterior)], axis=0)


def _grouped(posterior: Posterior) -> list[tuple[float, float]]:
    """Put nodes or draws of close scales together: their mean scale, and their sum of w beta."""
    scale, weight = posterior.scale.ravel(), posterior.weight.ravel()
    values, index = np.unique(scale, return_inverse=True)
    mass = np.bincount(index, weights=weight)
    weighted_beta = np.bincount(index, weights=weight * posterior.beta.ravel())
    is_kept = mass > 0.0
    values, mass, weighted_beta = values[is_kept], mass[is_kept], weighted_beta[is_kept]
    if len(values) <= _MAX_SCALES or posterior.scale_name == "k":
        return list(zip(values, weighted_beta, strict=True))
    group = np.minimum((np.cumsum(mass) * _MAX_SCALES).astype(int), _MAX_SCALES - 1)
    parts = [np.flatnonzero(group == number) for number in np.unique(group)]
    return [
        (float(np.average(values[part], weights=mass[part])), float(weighted_beta[part].sum()))
        for part in parts
    ]
