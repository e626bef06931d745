r"""How much the groups that random ties make weigh, whatever the labels.

With every pair tied with probability :math:`1 - \exp(-\beta c_{ij})` at random, b the ties and
C(b) the groups that they make (Fortuin and Kasteleyn, 1972),

.. math:: z(\beta) = e^{\beta S_{\max}} E_b\big[e^{u(b)}\big], \qquad
          u(b) = \sum_{C \in C(b)} \log \sum_g e^{\alpha_g |C|}

so that z is known relative to ties that are independent. Given labels of the field, the ties of
pairs that agree have the density of those independent ones times exp(u), up to z.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nearfield.sampling.canonical import FieldStack
from nearfield.sampling.cluster import (
    STRONG,
    fill_probabilities,
    find_root,
    first_above,
    tie_strong,
    tie_weak,
)


def tied_and_free(
    stack: FieldStack,
    row: int,
    beta: float,
    labelings: NDArray[np.int8],
    keys: tuple[np.uint64, np.uint64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return u of ties given each labeling, and of as many that do not hang on labels."""
    everything = labelings, np.zeros_like(labelings)
    tied, free = (
        group_log_weights(stack, row, beta, labels, key)
        for labels, key in zip(everything, keys, strict=True)
    )
    return tied, free


def group_log_weights(
    stack: FieldStack, row: int, beta: float, labelings: NDArray[np.int8], key: np.uint64
) -> NDArray[np.float64]:
    """Tie points that agree at random and return u, for each labeling; beta > 0.

    Parameters
    ----------
    stack : FieldStack
    row : int
        Of the stack: the field that ties.
    labelings : ndarray, shape (M, n)
        All labels the same for ties that do not hang on labels.
    """
    external_field = stack.external_field
    sizes = np.arange(1.0, labelings.shape[1] + 1.0)[:, None]
    largest = external_field.max()
    log_sums = np.log(np.exp(sizes * (external_field - largest)).sum(axis=1))
    log_weights = np.empty(len(labelings))
    fill_group_log_weights(
        stack.pair_couplings[row],
        stack.added_couplings[row],
        stack.begins[row],
        stack.pairs[row],
        log_sums + sizes[:, 0] * largest,
        beta,
        labelings,
        key,
        log_weights,
    )
    return log_weights


@njit(cache=True, nogil=True)
def fill_group_log_weights(
    pair_couplings, added_couplings, begins, pairs, by_size, beta, labelings, key, log_weights
):
    """Fill in u for each labeling; `by_size` is the log weight of a group of 1..n points."""
    n_labelings, n_points = labelings.shape
    n_pairs = pair_couplings.shape[0]
    n_weak = first_above(pair_couplings, 0, n_pairs, STRONG / beta)
    probabilities = np.empty(n_pairs - n_weak)
    fill_probabilities(pair_couplings[n_weak:], beta, 0.0, 1.0, probabilities)
    tied = np.empty((n_pairs - n_weak, 2), dtype=np.uint32)
    weak = added_couplings[:n_weak], pairs[:n_weak], begins, added_couplings[-1]
    parents = np.empty(n_points, dtype=np.uint32)
    sizes = np.empty(n_points, dtype=np.int64)
    position = np.uint64(0)
    for m in range(n_labelings):
        labels = labelings[m]
        for i in range(n_points):
            parents[i] = i
            sizes[i] = 0
        position = tie_strong(pairs[n_weak:], probabilities, labels, parents, tied, key, position)
        position = tie_weak(weak, beta, labels, parents, key, position)
        for i in range(n_points):
            sizes[find_root(parents, i)] += 1
        total = 0.0
        for i in range(n_points):
            if sizes[i] > 0:
                total += by_size[sizes[i] - 1]
        log_weights[m] = total
