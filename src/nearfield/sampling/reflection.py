r"""Drifts of labels that may not leave one side of a cut in their agreement.

As `nearfield.sampling.drift`, but a label that would take the agreement S across the cut is not
drawn; the old one stays. These drifts are zero on average where labels are drawn from the field
given their side of the cut.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nearfield.sampling.canonical import FieldStack, sum_support


def reflect_drifts(
    stack: FieldStack,
    betas: NDArray[np.float64],
    labelings: NDArray[np.int8],
    agreements: NDArray[np.float64],
    cut: float,
    drifts: NDArray[np.float64],
) -> None:
    """Change the drifts of draws that a single label can take across the cut.

    Parameters
    ----------
    stack : FieldStack
        Of two fields: the one that is drawn from and cut, and the other one.
    betas : ndarray, shape (M,)
    labelings : ndarray, shape (M, n)
    agreements : ndarray, shape (M,)
        In the first field.
    cut : float
    drifts : ndarray, shape (M, 2)
        Those without a cut, changed in place.
    """
    near = np.flatnonzero(np.abs(agreements - cut) <= stack.total_coupling[0].max())
    reflected = np.zeros((len(near), 2))
    fill_reflected(
        stack.coupling,
        stack.total_coupling,
        stack.external_field,
        betas[near],
        labelings[near],
        agreements[near],
        cut,
        reflected,
    )
    drifts[near] = reflected


@njit(cache=True, nogil=True)
def fill_reflected(
    coupling, total_coupling, external_field, betas, labelings, agreements, cut, drifts
):
    """Add up the drifts of all labelings; they start at zero."""
    n_points, n_classes = labelings.shape[1], external_field.shape[0]
    support = np.empty((n_classes, n_points))
    other_support = np.empty_like(support)
    log_weights = np.empty(n_classes)
    for m in range(labelings.shape[0]):
        labels = labelings[m].astype(np.int64)
        sum_support(coupling[0], total_coupling[0], labels, support)
        sum_support(coupling[1], total_coupling[1], labels, other_support)
        is_above = agreements[m] >= cut
        for i in range(n_points):
            own, other_own = support[labels[i], i], other_support[labels[i], i]
            for g in range(n_classes):
                log_weights[g] = external_field[g] + betas[m] * support[g, i]
            weights = np.exp(log_weights - log_weights.max())
            weights /= weights.sum()
            for g in range(n_classes):
                gain = support[g, i] - own
                if (agreements[m] + gain >= cut) == is_above:
                    drifts[m, 0] += weights[g] * gain
                    drifts[m, 1] += weights[g] * (other_support[g, i] - other_own)
