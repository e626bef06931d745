"""How far class probabilities in the near field may be off, measured."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from nearfield.near._measure import Ruler
from nearfield.near.cells import MAX_EXACT
from nearfield.near.field import NearField
from nearfield.sampling.near_support import Neighborhood

N_CHECKED = 256
"""So many normalisers, those of the last references, are compared with exact ones."""

_QUANTILE = 0.99


def neighborhood_error(
    near_field: NearField,
    neighborhood: Neighborhood,
    beta: float,
    sigma: float,
    normalizer_error: float = 0.0,
) -> float:
    r"""Measure by how much the class probabilities of some points may be off.

    Half of the references give one answer and the other half another. With :math:`p` from all of
    them, half the difference estimates the error of :math:`p`. To this comes the change of
    :math:`p` as all normalisers change by their error. The 99% quantile over the points.

    Parameters
    ----------
    near_field : NearField
    neighborhood : Neighborhood
        Of the points.
    beta, sigma : float
        Where the posterior is.
    normalizer_error : float
        Of the log normalisers, by `normalizer_error`.
    """
    alpha = 0.0 if near_field.external_field is None else np.asarray(near_field.external_field)
    sigmas = np.array([sigma])

    def probabilities(support: NDArray[np.float64]) -> NDArray[np.float64]:
        return softmax(alpha + beta * support, axis=1)

    by_half = []
    for half in (slice(0, None, 2), slice(1, None, 2)):
        halved = near_field.changed(references=near_field.references[half])
        seen = neighborhood._replace(
            far_distances=np.ascontiguousarray(neighborhood.far_distances[:, half])
        )
        by_half.append(probabilities(halved.support(seen, sigmas)[:, 0]))
    # Where the references are all points there is no error to halve.
    share_left_out = 1.0 - len(near_field.references) / near_field.n_points
    from_references = 0.5 * np.sqrt(share_left_out) * np.abs(by_half[0] - by_half[1]).max(axis=1)
    support = near_field.support(neighborhood, sigmas)[:, 0]
    back = support - near_field.support(neighborhood, sigmas, is_joint=False)[:, 0]
    higher, lower = (
        probabilities(support + sign * normalizer_error * back) for sign in (1.0, -1.0)
    )
    from_normalizers = 0.5 * np.abs(higher - lower).max(axis=1)
    return float(np.quantile(np.hypot(from_references, from_normalizers), _QUANTILE))


def normalizer_error(near_field: NearField, sigma: float) -> float:
    """Measure the error of the log normalisers, root mean square, where they are estimates.

    Some of them are summed again, exactly. Zero for metrics whose sums are not by cells.
    """
    ruler = Ruler(near_field.metric, near_field.metric_params)
    if near_field.n_points <= MAX_EXACT or ruler.power(near_field.points) is None:
        return 0.0
    rows = near_field.references[-N_CHECKED:]
    exact = near_field.exact_normalizers(rows)
    found = near_field.normalizers.at(np.array([sigma]), rows)
    gaps = found - exact.at(np.array([sigma]), np.arange(len(rows)))
    return float(np.sqrt(np.mean(gaps**2)))
