"""Agreements of many labelings at many scales: sums over pairs of points, all scales at once."""

from typing import NamedTuple, Self

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.field import LabelField

_NEGLIGIBLE = 1e-12  # of the largest eigenvalue; leaves errors of about 1e-5 in an agreement


class PairTable(NamedTuple):
    """The couplings of all pairs at several scales, as combinations of a few of them.

    They vary smoothly with the scale in most families, so that a few combinations will do.
    """

    entries: NDArray[np.float32]  # shape (n, n, Q); half the memory, and 1e-6 of an agreement
    basis: NDArray[np.float64]  # shape (Q, R)

    @classmethod
    def of(cls, fields: list[LabelField]) -> Self:
        """Make the table of fields of the same points."""
        couplings = np.stack([field.to_dense().coupling for field in fields])
        n_points = couplings.shape[1]
        flat = couplings.reshape(len(couplings), -1)
        values, vectors = np.linalg.eigh(flat @ flat.T)
        basis = vectors[:, values > _NEGLIGIBLE * values[-1]].T
        entries = (flat.T @ basis.T).reshape(n_points, n_points, len(basis))
        return cls(entries.astype(np.float32), basis)

    def agreements(self, labelings: NDArray[np.int8]) -> NDArray[np.float64]:
        r"""Compute the agreements of labelings, shape (M, n), at all scales, shape (M, R).

        .. math:: S_r(y) = \sum_{i<j} c^{(r)}_{ij} 1[y_i = y_j]
        """
        sums = np.empty((len(labelings), len(self.basis)))
        sum_pairs(labelings, self.entries, sums)
        return sums @ self.basis


@njit(cache=True, nogil=True)
def sum_pairs(labelings, table, sums):
    """Fill in, shape (M, Q), the sum of the entries of `table` over all pairs that agree.

    Where more pairs agree than differ, those that differ are taken from the sum of all.
    """
    n_points, n_columns = labelings.shape[1], table.shape[2]
    members = np.empty(n_points, dtype=np.int64)
    firsts = np.empty(129, dtype=np.int64)
    total = np.empty(n_columns)
    whole = np.zeros(n_columns)
    for i in range(n_points):
        for j in range(i):
            add_entry(whole, table, i, j)
    for m in range(labelings.shape[0]):
        n_groups = sort_by_class(labelings[m], members, firsts)
        n_agree = 0
        for group in range(n_groups):
            size = firsts[group + 1] - firsts[group]
            n_agree += size * (size - 1) // 2
        total[:] = 0.0
        differ = 4 * n_agree > n_points * (n_points - 1)
        for group in range(n_groups):
            first, last = firsts[group], firsts[group + 1]
            for a in range(first, last):
                for b in range(last, n_points) if differ else range(first, a):
                    add_entry(total, table, members[a], members[b])
        for q in range(n_columns):
            sums[m, q] = whole[q] - total[q] if differ else total[q]


@register_jitable(inline="always")
def add_entry(total, table, i, j):
    """Add the entries of a pair, of which only one half of the table is read."""
    first, second = max(i, j), min(i, j)
    for q in range(total.shape[0]):
        total[q] += table[first, second, q]


@register_jitable
def sort_by_class(labels, members, firsts):
    """List the points class by class, and where each class begins."""
    n_classes = labels.max() + 1
    n_listed = 0
    for g in range(n_classes):
        firsts[g] = n_listed
        for i in range(labels.shape[0]):
            if labels[i] == g:
                members[n_listed] = i
                n_listed += 1
    firsts[n_classes] = n_listed
    return n_classes
