"""How far class probabilities in the near field may be off, measured."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nearfield.near.cells import MAX_EXACT
from nearfield.near.field import NearField
from nearfield.sampling.near_terms import Neighborhood

N_CHECKED = 256
"""So many normalisers, those of the last references, are compared with exact ones."""

_QUANTILE = 0.99


def neighborhood_error(
    varied: tuple[NDArray[np.float64], NDArray[np.float64]],
    beta: float,
    external_field: ArrayLike | None = None,
) -> float:
    r"""Measure by how much the class probabilities of some points may be off.

    All that is estimated is changed by as much as it may be off, each in a direction of its own
    at random, and then the other way round. With :math:`p_+` and :math:`p_-` that follow,
    :math:`|p_+ - p_-| / 2` is distributed as the error of :math:`p` is. Its 99% quantile over the
    points, of the class that it is largest for.

    Parameters
    ----------
    varied : tuple of two ndarray, shape (m, G)
        The support of the points, with either sign, by `varied_support`.
    beta : float
        Where the posterior is.
    external_field : ndarray, shape (G,), optional
    """
    alpha = 0.0 if external_field is None else np.asarray(external_field)
    one, other = (softmax(alpha + beta * support, axis=1) for support in varied)
    return float(np.quantile(0.5 * np.abs(one - other).max(axis=1), _QUANTILE))


def varied_support(
    near_field: NearField, neighborhood: Neighborhood, sigma: float, normalizer_error: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the support of points at sigma with all that is estimated off, either way.

    Parameters
    ----------
    near_field : NearField
    neighborhood : Neighborhood
        Of the points.
    sigma : float
    normalizer_error : float
        Of the log normalisers, by `normalizer_error`.
    """
    one, other = (
        near_field.sums_at([sigma], sign=sign, normalizer_error=normalizer_error).support(
            neighborhood
        )
        for sign in (1.0, -1.0)
    )
    return (one.out + one.back)[:, 0], (other.out + other.back)[:, 0]


def normalizer_error(near_field: NearField, sigma: float) -> float:
    """Measure the error of the log normalisers, root mean square, where they are estimates.

    Some of them are summed again, exactly. Zero for metrics whose sums are not by cells.
    """
    if near_field.n_points <= MAX_EXACT or near_field.power is None:
        return 0.0
    rows = near_field.references[-N_CHECKED:]
    exact = near_field.exact_normalizers(rows)
    found = near_field.normalizers.at(np.array([sigma]), rows)
    gaps = found - exact.at(np.array([sigma]))
    return float(np.sqrt(np.mean(gaps**2)))
