r"""How fast one step of Gibbs sampling would change an agreement: known to be zero on average.

.. math:: L_f(y) = \sum_i \big( E[f(y') \mid y_{-i}] - f(y) \big), \qquad E[L_f] = 0

with y' the labels once label i is drawn anew; the expectations are those of the field that is
drawn from, and f is anything. Where the L of some draws is not zero on average, their f is off
too, and about by how much can be told.
"""

import numpy as np
from numba import njit

from nearfield._vector import exp_of


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def fill_drift(external_field, beta, labels, support, other_support, room, drift):
    """Fill in the drifts of two agreements, shape (2,).

    Parameters
    ----------
    support, other_support : shape (G, n)
        Of the field that is drawn from, whose agreement is the first, and of another one.
    room : shape (5, n)
        Overwritten.
    """
    n_classes, n_points = support.shape
    largest, weights, total, first, second = room[0], room[1], room[2], room[3], room[4]
    largest[:] = -np.inf
    room[2:] = 0.0
    # One thing a loop, and no max(): all of these go through the vector registers.
    for g in range(n_classes):
        alpha = external_field[g]
        for i in range(n_points):
            log_weight = alpha + beta * support[g, i]
            largest[i] = log_weight if log_weight > largest[i] else largest[i]
    for g in range(n_classes):
        alpha = external_field[g]
        for i in range(n_points):
            weights[i] = alpha + beta * support[g, i] - largest[i]
        for i in range(n_points):
            weights[i] = exp_of(weights[i])
        for i in range(n_points):
            total[i] += weights[i]
            first[i] += weights[i] * support[g, i]
            second[i] += weights[i] * other_support[g, i]
    drift_of_first, drift_of_second = 0.0, 0.0
    for i in range(n_points):
        drift_of_first += first[i] / total[i] - support[labels[i], i]
        drift_of_second += second[i] / total[i] - other_support[labels[i], i]
    drift[0], drift[1] = drift_of_first, drift_of_second
