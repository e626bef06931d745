r"""Sampling with a weight that is any function of the agreement, not only exp(beta S).

.. math:: p(y) \propto \exp\Big(\sum_i \alpha_{y_i} + W(S(y))\Big)

With W near minus the entropy a chain visits all agreements alike (Berg and Neuhaus, 1992), from
disorder to order and back, however improbable what lies between them is at any one beta.
"""

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._random import uniform_at
from nearfield.sampling._support import move_label
from nearfield.sampling.gibbs import draw_class_at, two_largest, upper_logit


@njit(cache=True, nogil=True)
def multicanonical_sweeps(
    coupling,
    total_coupling,
    external_field,
    table,
    start,
    cells_per_unit,
    end_slopes,
    learning_rate,
    labels,
    support,
    agreement,
    key,
    agreements,
    is_same,
):
    """Sweep once for each entry of `agreements`, changing `labels` and `support` in place.

    Parameters
    ----------
    table : shape (K,)
        W at K equally spaced agreements from `start` on, linear between them.
    end_slopes : shape (2,)
        The slopes of W below the first and above the last of these agreements.
    learning_rate : float
        If above zero, W is lowered by so much around every agreement visited (Wang and Landau,
        2001), in place: the chain then learns to visit all alike. Zero to draw from a fixed W.
    agreement : float
        S of the labels at the start.
    agreements : shape (T,)
        Filled with S after each sweep.
    is_same : shape (T,)
        Filled with whether all labels are the same then.

    Returns
    -------
    agreement : float
        S of the labels at the end.
    """
    n_points, n_classes = labels.shape[0], external_field.shape[0]
    n_sweeps = agreements.shape[0]
    log_weights, cumulative = np.empty((n_classes, 1)), np.empty(n_classes)
    class_support = np.empty(n_classes)
    log_n_others = math.log(max(n_classes - 1.0, 1.0))
    padded = np.empty(table.shape[0] + 2)
    pad(table, end_slopes, cells_per_unit, padded)
    first = start - 1.0 / cells_per_unit
    for sweep in range(n_sweeps):
        for i in range(n_points):
            current = labels[i]
            left = total_coupling[i]
            for row in range(n_classes - 1):
                class_support[row + 1] = support[row, i]
                left -= support[row, i]
            class_support[0] = left
            rest = agreement - class_support[current]
            for g in range(n_classes):
                position = (rest + class_support[g] - first) * cells_per_unit
                log_weights[g, 0] = external_field[g] + interpolate(padded, position)
            largest, second = two_largest(log_weights, 0)
            uniform = uniform_at(key, sweep * n_points + i)
            current_log_weight = log_weights[current, 0]
            best_other = second if current_log_weight == largest else largest
            if current_log_weight - best_other > upper_logit(uniform) + log_n_others:
                continue
            new = draw_class_at(log_weights, 0, cumulative, largest, current, uniform)
            if new != current:
                agreement = rest + class_support[new]
                move_label(coupling, support, labels, i, new)
        agreements[sweep] = agreement
        is_same[sweep] = np.all(labels == labels[0])
        if learning_rate > 0.0:
            lower_around(table, (agreement - start) * cells_per_unit, learning_rate)
            pad(table, end_slopes, cells_per_unit, padded)
    return agreement


@register_jitable
def pad(table, end_slopes, cells_per_unit, padded):
    """Add a cell with the end slope at each end, so that all beyond is the same straight line."""
    padded[1:-1] = table
    padded[0] = table[0] - end_slopes[0] / cells_per_unit
    padded[-1] = table[-1] + end_slopes[1] / cells_per_unit


@register_jitable(inline="always")
def interpolate(table, position):
    """Read a table between its entries, and along its first and last cell beyond them."""
    cell = np.uint64(min(max(np.int64(position), 0), table.shape[0] - 2))
    value = table[cell]
    return value + (position - np.float64(np.int64(cell))) * (table[cell + np.uint64(1)] - value)


@register_jitable
def lower_around(table, position, amount):
    """Lower a table around a position, by a bump that reaches over a sixteenth of it each way."""
    reach = table.shape[0] // 16
    for cell in range(table.shape[0]):
        height = 1.0 - abs(cell - position) / reach
        if height > 0.0:
            table[cell] -= amount * height
