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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.inference import Posterior
from nearfield.prediction.kernels.heldout import (
    beta_masses,
    harmonic_means,
    heavy_ranges,
    held_out_support,
    kernel_totals,
    log_conditionals,
    take_energies,
)
from nearfield.prediction.kernels.intercepts import fit_intercepts

Floats = NDArray[np.float64]

KERNEL_NAMES = ("gaussian", "exponential")
"""The kernels that are smooth in sigma, which the grids here need."""

_N_SCAN_SCALES, _N_SCALES = 10, 5
_N_SCAN_BETAS, _N_BETAS = 16, 9
_BETA_RANGE = 0.02, 300.0
_LOG_ROOT_TAU = 0.5 * np.log(2.0 * np.pi)
_REACH = 6.5  # the grid ends where the density is exp(-6.5) of the largest
_N_FINE = 8  # points between two of the scan, where its curve is followed


class HeldOutFold(NamedTuple):
    """Points held out of training, and their distances to those that were not.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Which of all n points are held out.
    training_labels : ndarray of int, shape (n_training,)
    training_distances : ndarray, shape (n_training, n_training)
    distances : ndarray, shape (m, n_training)
        Both of double or single precision.
    """

    rows: NDArray[np.intp]
    training_labels: NDArray[np.int64]
    training_distances: NDArray[np.floating]
    distances: NDArray[np.floating]


class TrainingEnergies:
    r"""Training points as the kernels need them: sorted by class, and -log kernels at rate one.

    As float32: what follows from them is good to 1e-5.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    distances : ndarray, shape (n, n)
    kernel : {"gaussian", "exponential"}
    n_classes : int
    """

    def __init__(
        self,
        labels: NDArray[np.int64],
        distances: NDArray[np.floating],
        kernel: str,
        n_classes: int,
    ) -> None:
        self.kernel = kernel
        self.order = np.argsort(labels, kind="stable")
        self.class_starts = np.searchsorted(labels[self.order], np.arange(n_classes + 1))
        self.among = self._energies(distances, self.order)

    def of(self, distances: NDArray[np.floating]) -> NDArray[np.float32]:
        """Give the energies of distances to the training points, shape (m, n)."""
        return self._energies(distances, np.arange(len(distances)))

    def at(self, sigmas: Floats) -> "EnergySums":
        """Sum over the training points at given scales."""
        rates = kernel_rate(self.kernel, sigmas)
        n_points = len(self.order)
        nearest = np.empty(n_points, dtype=np.float32)
        totals = np.empty((len(rates), n_points), dtype=np.float32)
        kernel_totals(self.among, rates, nearest, totals)
        return EnergySums(self, rates, nearest, totals)

    def _energies(
        self, distances: NDArray[np.floating], rows: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        return take_energies(distances, rows, self.order, self.kernel == "gaussian")


class EnergySums(NamedTuple):
    """What the support of other points needs to know of the training points at given scales."""

    energies: TrainingEnergies
    rates: Floats
    nearest: NDArray[np.float32]
    totals: NDArray[np.float32]

    def fill(self, out: NDArray[np.float32], rows: NDArray[np.intp], support: Floats) -> None:
        """Fill in the support of points, given their energies, in rows of (n_scales, all, G)."""
        starts = self.energies.class_starts
        held_out_support(out, self.nearest, self.totals, starts, self.rates, rows, support)

    def support(self, distances: Floats) -> Floats:
        """Give the support of each class for new points, shape (m, n_scales, G)."""
        rows = np.arange(len(distances))
        support = np.empty((len(self.rates), len(rows), len(self.energies.class_starts) - 1))
        self.fill(self.energies.of(distances), rows, support)
        return np.ascontiguousarray(support.transpose(1, 0, 2))


def kernel_rate(kernel: str, sigma: Floats) -> Floats:
    r"""Give the rate r of a kernel, :math:`\log \kappa = -r e`, at a sigma.

    For the Gaussian kernel e = d^2/2 and r = 1/sigma^2, for the exponential one e = d and
    r = sigma.
    """
    return sigma**-2 if kernel == "gaussian" else sigma


class HeldOutPosterior(NamedTuple):
    """What held-out labels tell: the posterior, and how well each was predicted without itself.

    `log_densities`, shape (n,), are of the own labels, with the parameters inferred from the
    others: the harmonic mean over the posterior, which takes a label's own say out. The external
    field, shape (G,), was fitted or is zero.
    """

    posterior: Posterior
    log_densities: Floats
    external_field: Floats


class HeldOutPrior(NamedTuple):
    """The priors: half normal of beta, uniform of sigma from zero on, normal of each intercept.

    With `sd_alpha` zero there is no external field.
    """

    sd_beta: float
    max_sigma: float
    sd_alpha: float = 0.0

    def log_density(self, log_sigmas: Floats, betas: Floats) -> Floats:
        """Give the log density of (log sigma, log beta)."""
        log_beta = np.log(2.0 / self.sd_beta) - _LOG_ROOT_TAU - 0.5 * (betas / self.sd_beta) ** 2
        return log_beta + np.log(betas) + log_sigmas - np.log(self.max_sigma)


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
    """

    folds: Sequence[HeldOutFold]
    labels: NDArray[np.int64]
    kernel: str
    n_classes: int

    @cached_property
    def _parts(self) -> list[tuple[TrainingEnergies, NDArray[np.float32], NDArray[np.intp]]]:
        """Of each fold: the training points, the energies of the others, and which they are."""
        parts = []
        for rows, labels, among, out in self.folds:
            energies = TrainingEnergies(labels, among, self.kernel, self.n_classes)
            parts.append((energies, energies.of(out), rows))
        return parts

    def support(self, sigmas: Floats) -> Floats:
        """Give the support of each class for each point when it is held out.

        Returns
        -------
        support : ndarray, shape (n_sigmas, n, G)
            Good to 1e-5.
        """
        support = np.empty((len(sigmas), len(self.labels), self.n_classes))
        for energies, out, rows in self._parts:
            energies.at(sigmas).fill(out, rows, support)
        return support

    def infer(self, prior: HeldOutPrior, scale_range: tuple[float, float]) -> HeldOutPosterior:
        """Integrate over (log beta, log sigma) on a grid placed where a scan found mass.

        An approximation: the midpoint rule with 9 x 5 nodes, whose error on a posterior with
        one mode is at most a fifth of its standard deviation. The external field is the most
        probable one at the best sigma of the scan.

        Parameters
        ----------
        prior : HeldOutPrior
        scale_range : (float, float)
            Where to look for sigma.
        """
        scan = _midpoints(np.log(scale_range), _N_SCAN_SCALES)
        log_masses, betas = np.empty(_N_SCAN_SCALES), np.empty(_N_SCAN_SCALES)
        scanned, precision = self.support(np.exp(scan)), prior.sd_beta**-2
        beta_masses(scanned, self.labels, precision, _BETA_RANGE[1], log_masses, betas)
        log_masses += scan  # sigma is uniform, log sigma is not
        alpha, best = np.zeros(self.n_classes), int(np.argmax(log_masses))
        if prior.sd_alpha > 0.0:
            fit_intercepts(
                scanned[best], self.labels, prior.sd_alpha**-2, precision, betas[best], alpha
            )
        log_sigmas = _midpoints(_heavy_range(scan, log_masses[None])[0], _N_SCALES)
        support = self.support(np.exp(log_sigmas))
        grid = _BetaGrid.around(support, self.labels, alpha, prior.sd_beta)
        log_terms = np.empty((*grid.betas.shape, len(self.labels)))
        log_conditionals(support, self.labels, alpha, grid.betas, log_terms)
        log_cell = np.log(grid.steps * (log_sigmas[1] - log_sigmas[0]))[:, None]
        log_prior = prior.log_density(log_sigmas[:, None], grid.betas)
        return _summarize(log_sigmas, grid.betas, log_terms, log_prior + log_cell, alpha)


class _BetaGrid(NamedTuple):
    """Betas at each scale, equally spaced in the log, shape (n_scales, n_betas); and the steps."""

    betas: Floats
    steps: Floats

    @classmethod
    def around(
        cls, support: Floats, labels: NDArray[np.int64], alpha: Floats, sd_beta: float
    ) -> "_BetaGrid":
        """Place betas where the labels make them probable at each scale."""
        coarse = _midpoints(np.log(_BETA_RANGE), _N_SCAN_BETAS)
        betas = np.tile(np.exp(coarse), (len(support), 1))
        log_terms = np.empty((*betas.shape, support.shape[1]))
        log_conditionals(support, labels, alpha, betas, log_terms)
        log_density = log_terms.sum(axis=2) - 0.5 * (betas / sd_beta) ** 2 + coarse
        ends = _heavy_range(coarse, log_density)
        steps = (ends[:, 1] - ends[:, 0]) / _N_BETAS
        places = ends[:, :1] + steps[:, None] * (np.arange(_N_BETAS) + 0.5)
        return cls(np.exp(places), steps)


def _summarize(log_sigmas, betas, log_terms, log_measure, alpha) -> HeldOutPosterior:
    """Make the posterior of the nodes, and the density of each label given the others."""
    log_density = log_measure + log_terms.sum(axis=2)
    top = log_density.max()
    weight = np.exp(log_density - top)
    log_evidence = float(top + np.log(weight.sum()))
    weight /= weight.sum()
    log_densities = np.empty(log_terms.shape[2])
    harmonic_means(log_terms.reshape(weight.size, -1), weight.ravel(), log_densities)
    is_kept = weight > 1e-5
    sigmas = np.broadcast_to(np.exp(log_sigmas)[:, None], weight.shape)
    posterior = Posterior.from_nodes(
        betas[is_kept],
        sigmas[is_kept],
        weight[is_kept] / weight[is_kept].sum(),
        "sigma",
        log_evidence=log_evidence,
    )
    return HeldOutPosterior(posterior, log_densities, alpha)


def _midpoints(interval, n):
    """Cut an interval into n equal pieces and take their midpoints."""
    low, high = interval
    return low + (high - low) * (np.arange(n) + 0.5) / n


def _heavy_range(places, log_densities):
    """Give the ends of where log densities, at equally spaced places, are near their maximum.

    Takes and returns one a row.
    """
    ends = np.empty((len(log_densities), 2))
    heavy_ranges(log_densities, _REACH, _N_FINE, ends)
    return places[0] + (places[1] - places[0]) * ends
