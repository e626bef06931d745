r"""Inference from held-out points: each label under a metric that was learned without it.

A metric that was learned from labels explains the same labels too well, and a pseudolikelihood
of them is too sure of itself. Here every factor of the pseudolikelihood comes from a fold in
which the point was held out,

.. math:: \prod_i p(y_i \mid y_{-\mathrm{fold}(i)}, \beta, \sigma)

the conditional of the field of the other folds' points and this one: exactly what prediction
uses. The same terms, averaged over the posterior, are the densities that stacking needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from nearfield.field import NeighborKernel
from nearfield.prediction.grid import (
    GridSettings,
    HeldOutPosterior,
    HeldOutPrior,
    infer_on_grid,
)
from nearfield.prediction.kernels.heldout import held_out_support

Floats = NDArray[np.float64]

SmoothKernelName = Literal["gaussian", "exponential"]
KERNEL_NAMES: tuple[SmoothKernelName, ...] = get_args(SmoothKernelName)
"""The kernels that are smooth in sigma, which the grids here need."""


class HeldOutFold(NamedTuple):
    """Points held out of training, and their distances to those that were not.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Which of all n points are held out.
    training_labels : ndarray of int, shape (n_training,)
        Sorted, so that the sum over a class is one loop.
    training_distances : ndarray, shape (n_training, n_training)
    distances : ndarray, shape (m, n_training)
        Both of double or single precision.
    training_multiplicities : ndarray, shape (n_training,), optional
        As how many points each training point counts; one by default.
    """

    rows: NDArray[np.intp]
    training_labels: NDArray[np.int64]
    training_distances: NDArray[np.floating]
    distances: NDArray[np.floating]
    training_multiplicities: Floats | None = None


class _Part(NamedTuple):
    """A fold as the kernels need it: -log kernels at rate one, as float32, good to 1e-5."""

    among: NDArray[np.float32]
    out: NDArray[np.float32]
    counts: NDArray[np.float32] | None
    class_starts: NDArray[np.int64]
    rows: NDArray[np.intp]

    @classmethod
    def from_fold(cls, fold: HeldOutFold, kernel: str, n_classes: int) -> "_Part":
        starts = np.searchsorted(fold.training_labels, np.arange(n_classes + 1))
        among, out = (_energies(d, kernel) for d in (fold.training_distances, fold.distances))
        given = fold.training_multiplicities
        counts = None if given is None else given.astype(np.float32)
        return cls(among, out, counts, starts, fold.rows)

    def fill(self, rates: Floats, support: Floats) -> None:
        """Fill in the support of the held-out points at some rates, in rows of (n_rates, n, G)."""
        n_points = len(self.among)
        held_out_support(
            self.among,
            self.out,
            self.counts,
            self.class_starts,
            rates.astype(np.float32),
            self.rows,
            np.empty((2, len(rates), n_points), dtype=np.float32),
            np.empty((2, n_points), dtype=np.float32),
            support,
        )


def _energies(distances: NDArray[np.floating], kernel: str) -> NDArray[np.float32]:
    """Give -log kernels at a rate of one: d^2, or d, which is not copied if it is float32."""
    if kernel == "gaussian":
        return np.multiply(distances, distances, dtype=np.float32)
    return distances.astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class HeldOutField:
    """All folds together: the conditionals of every label, each from where it was held out.

    Parameters
    ----------
    folds : sequence of HeldOutFold
        Between them every point is held out once.
    labels : ndarray of int, shape (n,)
    kernel : {"gaussian", "exponential"}
    n_classes : int
    multiplicities : ndarray, shape (n,), optional
        How often each label counts; once by default.
    """

    folds: Sequence[HeldOutFold]
    labels: NDArray[np.int64]
    kernel: str
    n_classes: int
    multiplicities: Floats | None = None

    @cached_property
    def _parts(self) -> list[_Part]:
        return [_Part.from_fold(fold, self.kernel, self.n_classes) for fold in self.folds]

    def support(self, sigmas: Floats) -> Floats:
        """Give the support of each class for each point when it is held out.

        Returns
        -------
        support : ndarray, shape (n_sigmas, n, G)
            Good to 1e-5.
        """
        support = np.empty((len(sigmas), len(self.labels), self.n_classes))
        rates = NeighborKernel(self.kernel, len(self.labels) - 1).rates(sigmas)
        for part in self._parts:
            part.fill(rates, support)
        return support

    def infer(
        self,
        prior: HeldOutPrior,
        scale_range: tuple[float, float],
        settings: GridSettings | None = None,
        n_draws: int = 1,
    ) -> HeldOutPosterior:
        """Integrate over beta and sigma: see `infer_on_grid`."""
        return infer_on_grid(
            self.support,
            self.labels,
            prior,
            scale_range,
            self.multiplicities,
            settings,
            n_draws,
        )
