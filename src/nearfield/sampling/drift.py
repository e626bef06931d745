r"""How fast one step of Gibbs sampling would change an agreement: known to be zero on average.

.. math:: L_f(y) = \sum_i \big( E[f(y') \mid y_{-i}] - f(y) \big), \qquad E[L_f] = 0

with y' the labels once label i is drawn anew; the expectations are those of the field that is
drawn from, and f is anything. Where the L of some draws is not zero on average, their f is off
too, and about by how much can be told.
"""

import numpy as np
from numba import njit

from nearfield.sampling._vector import exp_of


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def fill_drift(external_field, beta, labels, support, other_support, room, drift):
    """Fill in the drifts of two agreements, shape (2,).

    Parameters
    ----------
    support, other_support : shape (G, n)
        Of the field that is drawn from, whose agreement is the first, and of another one.
    room : shape (4, n)
        Overwritten.
    """
    n_classes, n_points = support.shape
    largest, total, first, second = room
    largest[:] = -np.inf
    room[1:] = 0.0
    for g in range(n_classes):
        for i in range(n_points):
            largest[i] = max(largest[i], external_field[g] + beta * support[g, i])
    for g in range(n_classes):
        for i in range(n_points):
            weight = exp_of(external_field[g] + beta * support[g, i] - largest[i])
            total[i] += weight
            first[i] += weight * support[g, i]
            second[i] += weight * other_support[g, i]
    drift[:] = 0.0
    for i in range(n_points):
        drift[0] += first[i] / total[i] - support[labels[i], i]
        drift[1] += second[i] / total[i] - other_support[labels[i], i]
