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
    table_start,
    cells_per_unit,
    labels,
    support,
    agreement,
    key,
    agreements,
    snapshots,
):
    """Sweep once for each entry of `agreements`, changing `labels` and `support` in place.

    Parameters
    ----------
    table : shape (K,)
        W at K equally spaced agreements from `table_start` on; linear between and beyond them.
    agreement : float
        S of the labels at the start.
    agreements : shape (T,)
        Filled with S after each sweep.
    snapshots : shape (T', n), T' dividing T
        Filled with the labels after every T / T' sweeps.

    Returns
    -------
    agreement : float
        S of the labels at the end.
    """
    n_points = labels.shape[0]
    n_sweeps = agreements.shape[0]
    n_thin = n_sweeps // snapshots.shape[0] if snapshots.shape[0] > 0 else n_sweeps + 1
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
                log_weights[g] = external_field[g] + interpolate(
                    table, (rest + class_support[g] - table_start) * cells_per_unit
                )
            uniform = uniform_at(key, sweep * n_points + i)
            if surely_stays(log_weights, current, uniform):
                continue
            new = draw_class(log_weights, current, uniform)
            if new != current:
                agreement = rest + class_support[new]
                move_label(coupling, support, labels, i, new)
        agreements[sweep] = agreement
        if (sweep + 1) % n_thin == 0:
            for i in range(n_points):
                snapshots[sweep // n_thin, i] = labels[i]
    return agreement


@register_jitable(inline="always")
def interpolate(table, position):
    """Read a table between its entries, and along its end cells beyond them."""
    cell = np.int64(min(max(position, 0.0), table.shape[0] - 2.0))
    return table[cell] + (position - cell) * (table[cell + 1] - table[cell])


@njit(cache=True, nogil=True, fastmath={"reassoc"})  # a sum in any order, for vector units
def snapshot_agreements(coupling, snapshots):
    """Return S(y) of every snapshot, shape (T',), under a dense coupling."""
    n_snapshots, n_points = snapshots.shape
    agreements = np.zeros(n_snapshots)
    for t in range(n_snapshots):
        agreement = 0.0
        for i in range(1, n_points):
            label = snapshots[t, i]
            for j in range(i):
                agreement += coupling[i, j] if snapshots[t, j] == label else 0.0
        agreements[t] = agreement
    return agreements
