r"""Sampling with a weight that is any function of the agreement, not only exp(beta S).

.. math:: p(y) \propto \exp\Big(\sum_i \alpha_{y_i} + W(S(y))\Big)

With W near minus the entropy a chain visits all agreements alike (Berg and Neuhaus, 1992), from
disorder to order and back, however improbable what lies between them is at any one beta.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._random import uniform_at
from nearfield.sampling._support import move_label
from nearfield.sampling.gibbs import draw_class, surely_stays


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
    n_points = labels.shape[0]
    n_sweeps = agreements.shape[0]
    log_weights = np.empty_like(external_field)
    class_support = np.empty_like(external_field)
    for sweep in range(n_sweeps):
        for i in range(n_points):
            current = labels[i]
            left = total_coupling[i]
            for row in range(support.shape[0]):
                class_support[row + 1] = support[row, i]
                left -= support[row, i]
            class_support[0] = left
            rest = agreement - class_support[current]
            for g in range(log_weights.shape[0]):
                position = (rest + class_support[g] - start) * cells_per_unit
                log_weights[g] = external_field[g] + interpolate(
                    table, position, end_slopes[0] / cells_per_unit, end_slopes[1] / cells_per_unit
                )
            uniform = uniform_at(key, sweep * n_points + i)
            if surely_stays(log_weights, current, uniform):
                continue
            new = draw_class(log_weights, current, uniform)
            if new != current:
                agreement = rest + class_support[new]
                move_label(coupling, support, labels, i, new)
        agreements[sweep] = agreement
        is_same[sweep] = np.all(labels == labels[0])
        if learning_rate > 0.0:
            lower_around(table, (agreement - start) * cells_per_unit, learning_rate)
    return agreement


@register_jitable(inline="always")
def interpolate(table, position, low_slope, high_slope):
    """Read a table between its entries, and along the end slopes (a cell) beyond them."""
    last = table.shape[0] - 1
    cell = np.int64(min(max(position, 0.0), last - 1.0))
    inside = min(max(position, 0.0), float(last))
    value = table[cell] + (inside - cell) * (table[cell + 1] - table[cell])
    return value + low_slope * min(position, 0.0) + high_slope * max(position - last, 0.0)


@register_jitable
def lower_around(table, position, amount):
    """Lower a table around a position, by a bump that reaches over a sixteenth of it each way."""
    reach = table.shape[0] // 16
    for cell in range(table.shape[0]):
        height = 1.0 - abs(cell - position) / reach
        if height > 0.0:
            table[cell] -= amount * height
