"""Agreements of many labelings at many scales: sums over pairs of points, all scales at once."""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield.field import LabelField
from nearfield.log_partition.chains import stack_couplings

Floats = NDArray[np.float64]

_NEGLIGIBLE = 1e-12  # of the largest eigenvalue; leaves errors of about 1e-5 in an agreement
_N_AT_ONCE = 1024  # pairs: enough for a fast product, and few enough for the cache
_MANY = 512  # labelings, whose agreements are worth a task of their own
_N_PARTS = 8  # at most


class PairTable(NamedTuple):
    """The couplings of all pairs at several scales, as combinations of a few of them.

    They vary smoothly with the scale in most families, so that a few combinations will do.
    """

    firsts: NDArray[np.uint32]  # shape (P,), of the two points of each pair
    seconds: NDArray[np.uint32]  # shape (P,)
    entries: NDArray[np.float32]  # shape (P, Q); half the memory, and 1e-5 of an agreement
    basis: Floats  # shape (Q, R)

    @classmethod
    def from_fields(cls, fields: list[LabelField]) -> Self:
        """Make the table of fields of the same points."""
        _, pairs, couplings = stack_couplings(fields)
        values, vectors = np.linalg.eigh(couplings @ couplings.T)
        basis = vectors[:, values > _NEGLIGIBLE * values[-1]].T
        entries = (couplings.T @ basis.T).astype(np.float32)
        firsts, seconds = np.ascontiguousarray(pairs.T)
        return cls(firsts, seconds, entries, basis)

    def agreements(self, labelings: NDArray[np.int8]) -> Floats:
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


class AgreementTable:
    """Agreements of a growing pool at a growing set of scales; nothing is computed twice."""

    def __init__(self, field_at: Callable[[float], LabelField], n_jobs: int | None) -> None:
        self.field_at, self.n_jobs = field_at, n_jobs
        self.scales = np.empty(0)
        self.values = np.empty((0, 0))

    def at(self, labelings: NDArray[np.integer], scales: Floats) -> Floats:
        """Return the agreements of all labelings, shape (M, R); those known come first."""
        wanted, column = np.unique(scales, return_inverse=True)
        values = np.empty((len(labelings), len(wanted)))
        known = np.isin(wanted, self.scales)
        n_known = len(self.values)
        values[:n_known, known] = self.values[:, np.searchsorted(self.scales, wanted[known])]
        values[:n_known, ~known] = self._compute(labelings[:n_known], wanted[~known])
        values[n_known:] = self._compute(labelings[n_known:], wanted)
        self.scales, self.values = wanted, values
        return values[:, column]

    def _compute(self, labelings: NDArray[np.integer], scales: Floats) -> Floats:
        if len(labelings) == 0 or len(scales) == 0:
            return np.empty((len(labelings), len(scales)))
        pairs = PairTable.from_fields([self.field_at(scale) for scale in scales])
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            parts = np.array_split(labelings, min(_N_PARTS, 1 + len(labelings) // _MANY))
            return np.concatenate(parallel(delayed(pairs.agreements)(part) for part in parts))


@compiled
def fill_agreed(
    by_point: NDArray[np.integer],
    firsts: NDArray[np.uint32],
    seconds: NDArray[np.uint32],
    is_agreed: NDArray[np.float32],
) -> None:
    """Fill in one where the two points of a pair agree, else zero, shape (P, M)."""
    for pair in range(firsts.shape[0]):
        first, second = by_point[firsts[pair]], by_point[seconds[pair]]
        for m in range(first.shape[0]):
            is_agreed[pair, m] = np.float32(first[m] == second[m])
