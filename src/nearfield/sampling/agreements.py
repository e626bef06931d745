"""Agreements of many labelings at many scales: sums over pairs of points, all scales at once."""

from typing import NamedTuple, Self

import numpy as np
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
        by_point = np.ascontiguousarray(labelings.T)
        sums = np.zeros((len(self.basis), len(labelings)))
        for i in range(1, len(by_point)):
            agree = (by_point[:i] == by_point[i]).astype(np.float32)
            sums += self.entries[i, :i].T @ agree
        return sums.T @ self.basis
