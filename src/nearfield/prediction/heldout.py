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
from scipy.special import expit, logsumexp

from nearfield.inference import Posterior, Priors

KERNEL_NAMES = ("gaussian", "exponential")
"""The kernels that are smooth in sigma, which the grids here need."""

_N_SCAN_SCALES, _N_SCALES = 12, 10
_N_SCAN_BETAS, _N_BETAS = 28, 16
_BETA_RANGE = 0.02, 300.0
_NEGLIGIBLE = 8.0  # a node whose density is exp(-8) of the largest has no weight


@dataclass(frozen=True, eq=False)
class HeldOutFold:
    """Points held out of training, and their distances to those that were not.

    Parameters
    ----------
    rows : ndarray of int, shape (m,)
        Which of all n points are held out.
    training_labels : ndarray of int, shape (n_training,)
    training_distances : ndarray, shape (n_training, n_training)
    distances : ndarray, shape (m, n_training)
    """

    rows: NDArray[np.intp]
    training_labels: NDArray[np.int64]
    training_distances: NDArray[np.float64]
    distances: NDArray[np.float64]

    def energies(self, kernel: str, n_classes: int) -> "_Energies":
        """Prepare for the support at many scales."""
        return _Energies(self, kernel, n_classes)


class _Energies:
    r"""What log kernels are at a rate of one, relative to the nearest neighbour.

    :math:`\log \kappa = -r e`: for the Gaussian kernel e = d^2/2 and r = 1/sigma^2, for the
    exponential one e = d and r = sigma.
    """

    def __init__(self, fold: HeldOutFold, kernel: str, n_classes: int) -> None:
        among, to = (
            0.5 * d**2 if kernel == "gaussian" else d.copy()
            for d in (fold.training_distances, fold.distances)
        )
        np.fill_diagonal(among, np.inf)
        nearest = among.min(axis=1)
        self.rows = fold.rows
        self.among = nearest[:, None] - among
        self.back = nearest - to
        self.out = to.min(axis=1, keepdims=True) - to
        self.is_class = (fold.training_labels[:, None] == np.arange(n_classes)).astype(np.float64)

    def support(self, rate: float) -> NDArray[np.float64]:
        """Sum the coupling of the held-out points to each class, shape (m, G)."""
        log_total = np.log(np.exp(rate * self.among).sum(axis=1))
        weights = np.exp(rate * self.out)
        weights /= weights.sum(axis=1, keepdims=True)
        weights += expit(rate * self.back - log_total)
        return weights @ self.is_class


def kernel_rate(kernel: str, sigma: float) -> float:
    r"""Give the rate r of a kernel, :math:`\log \kappa = -r e`, at a sigma."""
    return sigma**-2 if kernel == "gaussian" else sigma


class HeldOutPosterior(NamedTuple):
    """What held-out labels tell: the posterior, and how well each was predicted without itself.

    `log_densities`, shape (n,), are of the own labels, with the parameters inferred from the
    others: the harmonic mean over the posterior, which takes a label's own say out.
    """

    posterior: Posterior
    log_densities: NDArray[np.float64]


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
    def _energies(self) -> list[_Energies]:
        return [fold.energies(self.kernel, self.n_classes) for fold in self.folds]

    def support(self, sigma: float) -> NDArray[np.float64]:
        """Give the support of each class for each point when it is held out, shape (n, G)."""
        rate = kernel_rate(self.kernel, sigma)
        support = np.empty((len(self.labels), self.n_classes))
        for energies in self._energies:
            support[energies.rows] = energies.support(rate)
        return support

    def infer(self, priors: Priors, scale_range: tuple[float, float]) -> HeldOutPosterior:
        """Integrate over (log beta, log sigma) on a grid placed where a coarser one found mass.

        An approximation: the midpoint rule with 16 x 10 nodes, whose error on a posterior with
        one mode is less than a tenth of its standard deviation.
        """
        scan = self._evaluate(_midpoints(scale_range, _N_SCAN_SCALES), _scan_betas(), priors)
        sigmas, betas = scan.refined()
        fine = self._evaluate(sigmas, betas, priors)
        return fine.summarize()

    def _evaluate(self, sigmas, betas, priors) -> "_Grid":
        log_terms = np.array([self._log_terms(sigma, betas) for sigma in sigmas])
        log_prior = priors.log_beta(betas) + np.log(betas)
        log_prior = log_prior + (priors.log_scale(sigmas) + np.log(sigmas))[:, None]
        return _Grid(sigmas, betas, log_terms, log_prior + log_terms.sum(axis=2))

    def _log_terms(self, sigma, betas):
        """Log conditionals of the labels, shape (n_betas, n)."""
        support = self.support(sigma)
        gains = support - np.take_along_axis(support, self.labels[:, None], axis=1)
        log_odds = betas[:, None, None] * gains
        return -np.log(np.exp(np.minimum(log_odds, 700.0)).sum(axis=2))


class _Grid(NamedTuple):
    """Log conditionals, shape (n_sigmas, n_betas, n), and the log density in log scales."""

    sigmas: NDArray[np.float64]
    betas: NDArray[np.float64]
    log_terms: NDArray[np.float64]
    log_density: NDArray[np.float64]

    def refined(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Place a finer grid around the nodes that have weight."""
        is_heavy = self.log_density > self.log_density.max() - _NEGLIGIBLE
        sigma_range = _span(self.sigmas, is_heavy.any(axis=1))
        beta_range = _span(self.betas, is_heavy.any(axis=0))
        return _midpoints(sigma_range, _N_SCALES), _midpoints(beta_range, _N_BETAS)

    def summarize(self) -> HeldOutPosterior:
        log_evidence = logsumexp(self.log_density)
        log_weight = self.log_density - log_evidence
        log_densities = -logsumexp(log_weight[:, :, None] - self.log_terms, axis=(0, 1))
        is_kept = log_weight > log_weight.max() - _NEGLIGIBLE
        weight = np.exp(log_weight[is_kept])
        sigmas, betas = np.meshgrid(self.sigmas, self.betas, indexing="ij")
        cell = np.log(self.sigmas[1] / self.sigmas[0]) * np.log(self.betas[1] / self.betas[0])
        posterior = Posterior.from_nodes(
            betas[is_kept],
            sigmas[is_kept],
            weight / weight.sum(),
            "sigma",
            log_evidence=float(log_evidence + np.log(cell)),
        )
        return HeldOutPosterior(posterior, log_densities)


def _scan_betas():
    return _midpoints(_BETA_RANGE, _N_SCAN_BETAS)


def _midpoints(interval, n):
    """Cut an interval into n pieces, equal in the log, and take their midpoints."""
    low, high = np.log(interval)
    return np.exp(low + (high - low) * (np.arange(n) + 0.5) / n)


def _span(values, is_heavy):
    """Give the ends of where values, equally spaced in the log, are heavy: one step wider."""
    heavy, step = values[is_heavy], values[1] / values[0]
    return heavy[0] / step, heavy[-1] * step
