"""Agreements of many labelings at many scales: sums over pairs of points, all scales at once."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield.field import LabelField
from nearfield.log_partition.chains import pair_couplings

_NEGLIGIBLE = 1e-12  # of the largest eigenvalue; leaves errors of about 1e-5 in an agreement
_N_AT_ONCE = 1024  # pairs: enough for a fast product, and few enough for the cache


class PairTable(NamedTuple):
    """The couplings of all pairs at several scales, as combinations of a few of them.

    They vary smoothly with the scale in most families, so that a few combinations will do.
    """

    firsts: NDArray[np.int32]  # shape (P,), of the two points of each pair
    seconds: NDArray[np.int32]  # shape (P,)
    entries: NDArray[np.float32]  # shape (P, Q); half the memory, and 1e-5 of an agreement
    basis: NDArray[np.float64]  # shape (Q, R)

    @classmethod
    def from_fields(cls, fields: list[LabelField]) -> Self:
        """Make the table of fields of the same points."""
        firsts, seconds, couplings = pair_couplings(fields)
        values, vectors = np.linalg.eigh(couplings @ couplings.T)
        basis = vectors[:, values > _NEGLIGIBLE * values[-1]].T
        return cls(firsts, seconds, (couplings.T @ basis.T).astype(np.float32), basis)

    def agreements(self, labelings: NDArray[np.int8]) -> NDArray[np.float64]:
        r"""Compute the agreements of labelings, shape (M, n), at all scales, shape (M, R).

        .. math:: S_r(y) = \sum_{i<j} c^{(r)}_{ij} 1[y_i = y_j]
        """
        by_point = np.ascontiguousarray(labelings.T)
        sums = np.zeros((len(self.basis), len(labelings)))
        room = np.empty((_N_AT_ONCE, len(labelings)), dtype=np.float32)
        for start in range(0, len(self.entries), _N_AT_ONCE):
            part = slice(start, start + _N_AT_ONCE)
            entries = self.entries[part]
            is_agreed = room[: len(entries)]
            fill_agreed(by_point, self.firsts[part], self.seconds[part], is_agreed)
            sums += entries.T @ is_agreed
        return sums.T @ self.basis


@compiled
def fill_agreed(
    by_point: NDArray[np.integer],
    firsts: NDArray[np.int32],
    seconds: NDArray[np.int32],
    is_agreed: NDArray[np.float32],
) -> None:
    """Fill in one where the two points of a pair agree, else zero, shape (P, M)."""
    for pair in range(firsts.shape[0]):
        first, second = by_point[firsts[pair]], by_point[seconds[pair]]
        for m in range(first.shape[0]):
            is_agreed[pair, m] = np.float32(first[m] == second[m])
