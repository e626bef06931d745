r"""Inference from held-out points: each label under a metric that was learned without it.

A metric that was learned from labels explains the same labels too well, and a pseudolikelihood
of them is too sure of itself. Here every factor of the pseudolikelihood comes from a fold in
which the point was held out,

.. math:: \prod_i p(y_i \mid y_{-\mathrm{fold}(i)}, \beta, \sigma)

the conditional of the field of the other folds' points and this one: exactly what prediction
uses. The same terms, averaged over the posterior, are the densities that stacking needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.distances.kernels.scaled_field import best_beta
from nearfield.field import DistanceFamily
from nearfield.inference import Posterior, Priors
from nearfield.inference.intercepts import maximize_intercepts
from nearfield.prediction._dense import dense_sums
from nearfield.prediction.kernels.heldout import held_out_support
from nearfield.prediction.kernels.intercepts import fit_intercepts

Floats = NDArray[np.float64]

KERNEL_NAMES = ("gaussian", "exponential")
"""The kernels that are smooth in sigma, which the grids here need."""

_N_SCAN_SCALES, _N_SCALES = 10, 5
_N_SCAN_BETAS, _N_BETAS = 16, 9
_BETA_RANGE = 0.02, 300.0
_LARGEST_LOGIT = 700.0  # its exp is finite
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

    def support_of_multiples(self, kernel: str, sigmas: Floats, n_classes: int) -> Floats:
        """Give the support of the held-out points by training points that count as several."""
        family = DistanceFamily.of_checked(
            self.training_distances,
            kernel,
            n_classes,
            multiplicities=self.training_multiplicities,
        )
        sums = dense_sums(family, self.training_labels, sigmas, is_joint=True)
        return np.moveaxis(sums.support(self.distances), 1, 0)


def kernel_rate(kernel: str, sigma: Floats) -> Floats:
    r"""Give the rate r of a kernel, :math:`\log \kappa = -r e`, at a sigma.

    For the Gaussian kernel e = d^2/2 and r = 1/sigma^2, for the exponential one e = d and
    r = sigma.
    """
    return sigma**-2 if kernel == "gaussian" else sigma


class HeldOutPosterior(NamedTuple):
    """What held-out labels tell: the posterior, and how well each was predicted without itself.

    `log_densities`, shape (n,), are of the own labels, with the parameters inferred from the
    others: the harmonic mean over the posterior, which takes a label's own part out. The external
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

    @classmethod
    def from_priors(cls, priors: Priors, sd_alpha: float = 0.0) -> "HeldOutPrior":
        """Take the default priors of a family."""
        return cls(float(priors.beta.kwds["scale"]), float(priors.scale.args[1]), sd_alpha)

    def log_density(self, log_sigmas: Floats, betas: Floats) -> Floats:
        """Give the log density of (log sigma, log beta)."""
        log_beta = np.log(2.0 / self.sd_beta) - _LOG_ROOT_TAU - 0.5 * (betas / self.sd_beta) ** 2
        return log_beta + np.log(betas) + log_sigmas - np.log(self.max_sigma)


class _Part(NamedTuple):
    """A fold as the kernels need it: -log kernels at rate one, as float32, good to 1e-5."""

    among: NDArray[np.float32]
    out: NDArray[np.float32]
    class_starts: NDArray[np.int64]
    rows: NDArray[np.intp]

    @classmethod
    def from_fold(cls, fold: HeldOutFold, kernel: str, n_classes: int) -> "_Part":
        starts = np.searchsorted(fold.training_labels, np.arange(n_classes + 1))
        among, out = (_energies(d, kernel) for d in (fold.training_distances, fold.distances))
        return cls(among, out, starts, fold.rows)

    def fill(self, rates: Floats, support: Floats) -> None:
        """Fill in the support of the held-out points at some rates, in rows of (n_rates, n, G)."""
        n_points = len(self.among)
        held_out_support(
            self.among,
            self.out,
            self.class_starts,
            rates.astype(np.float32),
            self.rows,
            np.empty((2, len(rates), n_points), dtype=np.float32),
            np.empty((2, n_points), dtype=np.float32),
            support,
        )


def _energies(distances: NDArray[np.floating], kernel: str) -> NDArray[np.float32]:
    """Give -log kernels at a rate of one: d^2 / 2, or d."""
    energies = distances.astype(np.float32)
    if kernel == "gaussian":
        energies *= energies
        energies *= np.float32(0.5)
    return energies


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
        if self.multiplicities is not None:
            for fold in self.folds:
                support[:, fold.rows] = fold.support_of_multiples(
                    self.kernel, sigmas, self.n_classes
                )
            return support
        for part in self._parts:
            part.fill(kernel_rate(self.kernel, sigmas), support)
        return support

    def infer(self, prior: HeldOutPrior, scale_range: tuple[float, float]) -> HeldOutPosterior:
        """Integrate over beta and sigma: see `infer_on_grid`."""
        return infer_on_grid(
            self.support, self.labels, self.n_classes, prior, scale_range, self.multiplicities
        )


def infer_on_grid(
    supports: Callable[[Floats], Floats],
    labels: NDArray[np.int64],
    n_classes: int,
    prior: HeldOutPrior,
    scale_range: tuple[float, float],
    multiplicities: Floats | None = None,
) -> HeldOutPosterior:
    """Integrate over (log beta, log sigma) on a grid placed where a scan found mass.

    An approximation: the midpoint rule with 9 x 5 nodes, whose error on a posterior with one mode
    is at most a fifth of its standard deviation. The external field is the most probable one at
    the best sigma of the scan.

    Parameters
    ----------
    supports : callable
        Takes rising sigmas and gives the support of each class, shape (n_sigmas, n, G).
    labels : ndarray of int, shape (n,)
    n_classes : int
    prior : HeldOutPrior
    scale_range : (float, float)
        Where to look for sigma.
    multiplicities : ndarray, shape (n,), optional
        How often each label counts; once by default.
    """
    low, high = scale_range
    scan = _midpoints(np.log([low, min(high, prior.max_sigma)]), _N_SCAN_SCALES)
    scanned = supports(np.exp(scan))
    log_masses, betas = _scan_betas(scanned, labels, prior, multiplicities)
    log_masses += scan  # sigma is uniform, log sigma is not
    alpha, best = np.zeros(n_classes), int(np.argmax(log_masses))
    if prior.sd_alpha > 0.0:
        alpha = _fit_alpha(scanned[best], labels, prior, betas[best], multiplicities)
    log_sigmas = _midpoints(_heavy_range(scan, log_masses[None])[0], _N_SCALES)
    support = supports(np.exp(log_sigmas))
    grid = _BetaGrid.around(support, labels, alpha, prior.sd_beta, multiplicities)
    log_terms = log_conditionals(support, labels, alpha, grid.betas)
    log_cell = np.log(grid.steps * (log_sigmas[1] - log_sigmas[0]))[:, None]
    log_prior = prior.log_density(log_sigmas[:, None], grid.betas)
    log_measure = log_prior + log_cell
    return _summarize(log_sigmas, grid.betas, log_terms, log_measure, alpha, multiplicities)


def _scan_betas(
    support: Floats, labels: NDArray[np.int64], prior: HeldOutPrior, multiplicities: Floats | None
) -> tuple[Floats, Floats]:
    """Find the log mass of each scale, and its best beta, both of shape (n_scales,)."""
    if multiplicities is None:
        return _beta_masses(support, labels, prior.sd_beta**-2)
    alpha = np.zeros(support.shape[2])
    coarse, log_density = _coarse_densities(support, labels, alpha, prior.sd_beta, multiplicities)
    return logsumexp(log_density, axis=1), np.exp(coarse)[log_density.argmax(axis=1)]


def _fit_alpha(
    support: Floats,
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    beta: float,
    multiplicities: Floats | None,
) -> Floats:
    """Find the most probable external field at one scale."""
    alpha = np.zeros(support.shape[1])
    if multiplicities is None:
        fit_intercepts(support, labels, prior.sd_alpha**-2, prior.sd_beta**-2, beta, alpha)
        return alpha
    normal = 0.0, prior.sd_beta
    start = alpha, beta
    return maximize_intercepts(
        support, labels, prior.sd_alpha, normal, _BETA_RANGE, start, multiplicities
    )[0]


def _coarse_densities(
    support: Floats,
    labels: NDArray[np.int64],
    alpha: Floats,
    sd_beta: float,
    multiplicities: Floats | None,
) -> tuple[Floats, Floats]:
    """Give a coarse grid of log beta, and the log density there at each scale."""
    coarse = _midpoints(np.log(_BETA_RANGE), _N_SCAN_BETAS)
    betas = np.tile(np.exp(coarse), (len(support), 1))
    log_terms = log_conditionals(support, labels, alpha, betas)
    return coarse, _total(log_terms, multiplicities) - 0.5 * (betas / sd_beta) ** 2 + coarse


def _total(log_terms: Floats, multiplicities: Floats | None) -> Floats:
    """Sum the log terms of all labels, the last axis."""
    return log_terms.sum(axis=-1) if multiplicities is None else log_terms @ multiplicities


def average_posteriors(found: Sequence[HeldOutPosterior]) -> HeldOutPosterior:
    """Average over several draws of folds: a mixture of posteriors, and all their densities."""
    if len(found) == 1:
        return found[0]
    posteriors = [each.posterior for each in found]
    posterior = Posterior.from_nodes(
        np.concatenate([each.beta for each in posteriors]),
        np.concatenate([each.scale for each in posteriors]),
        np.concatenate([each.weight for each in posteriors]) / len(found),
        "sigma",
        log_evidence=float(np.mean([each.log_evidence for each in posteriors])),
    )
    return HeldOutPosterior(
        posterior,
        np.concatenate([each.log_densities for each in found]),
        np.mean([each.external_field for each in found], axis=0),
    )


class _BetaGrid(NamedTuple):
    """Betas at each scale, equally spaced in the log, shape (n_scales, n_betas); and the steps."""

    betas: Floats
    steps: Floats

    @classmethod
    def around(
        cls,
        support: Floats,
        labels: NDArray[np.int64],
        alpha: Floats,
        sd_beta: float,
        multiplicities: Floats | None,
    ) -> "_BetaGrid":
        """Place betas where the labels make them probable at each scale."""
        coarse, log_density = _coarse_densities(support, labels, alpha, sd_beta, multiplicities)
        ends = _heavy_range(coarse, log_density)
        steps = (ends[:, 1] - ends[:, 0]) / _N_BETAS
        places = ends[:, :1] + steps[:, None] * (np.arange(_N_BETAS) + 0.5)
        return cls(np.exp(places), steps)


def _summarize(
    log_sigmas, betas, log_terms, log_measure, alpha, multiplicities
) -> HeldOutPosterior:
    """Make the posterior of the nodes, and the density of each label given the others."""
    log_density = log_measure + _total(log_terms, multiplicities)
    top = log_density.max()
    weight = np.exp(log_density - top)
    log_evidence = float(top + np.log(weight.sum()))
    weight /= weight.sum()
    by_node = log_terms.reshape(weight.size, -1)
    if multiplicities is None:
        log_densities = _harmonic_means(by_node, weight.ravel())
    else:
        log_densities = _means_without_own(by_node, weight.ravel(), multiplicities)
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


def _means_without_own(log_terms: Floats, weights: Floats, multiplicities: Floats) -> Floats:
    r"""Give the log density of each label by the posterior of the others, shape (n,).

    .. math:: \log \mathrm{E}[p_i^{1 - s_i}] - \log \mathrm{E}[p_i^{-s_i}]

    over weighted nodes; the harmonic mean for a label that counts once.
    """
    parts = [power * log_terms for power in (1.0 - multiplicities, -multiplicities)]
    above, below = (logsumexp(part, axis=0, b=weights[:, None]) for part in parts)
    return above - below


def _midpoints(interval, n):
    """Cut an interval into n equal pieces and take their midpoints."""
    low, high = interval
    return low + (high - low) * (np.arange(n) + 0.5) / n


def _beta_masses(support, labels, precision):
    """Give the log mass around the best beta > 0 at each scale (Laplace), and these betas."""
    log_masses, betas, beta = np.empty(len(support)), np.empty(len(support)), 3.0
    for q in range(len(support)):
        beta, log_masses[q] = best_beta(support[q], labels, precision, _BETA_RANGE[1], beta)
        betas[q] = beta
    return log_masses, betas


def log_conditionals(
    support: Floats, labels: NDArray[np.int64], alpha: Floats, betas: Floats
) -> Floats:
    """Give the log conditionals of the labels, shape (n_scales, n_betas, n).

    Parameters
    ----------
    support : ndarray, shape (n_scales, n, G)
    labels : ndarray of int, shape (n,)
    alpha : ndarray, shape (G,)
        The external field.
    betas : ndarray, shape (n_scales, n_betas)
    """
    points = np.arange(len(labels))
    gains = support - support[:, points, labels][:, :, None]
    shifts = alpha - alpha[labels][:, None]
    total = np.zeros((*betas.shape, len(labels)))
    for g in range(len(alpha)):
        logits = betas[:, :, None] * gains[:, None, :, g]
        logits += shifts[:, g]
        np.minimum(logits, _LARGEST_LOGIT, out=logits)
        total += np.exp(logits, out=logits)
    return -np.log(total, out=total)


def _harmonic_means(log_terms, weights):
    """Give the log harmonic mean of each term, (n_nodes, n), over weighted nodes."""
    lowest = log_terms.min(axis=0)
    return lowest - np.log(weights @ np.exp(lowest - log_terms))


def _heavy_range(places, log_densities):
    """Give the ends of where log densities, at equally spaced places, are near their maximum.

    Takes and returns one a row. Between places the density is followed by cubic interpolation.
    The ends are half a step beyond the first or the last place where that one is near, for it
    stands for so much.
    """
    n_rows, n_places = log_densities.shape
    rises = log_densities[:, 1:] - log_densities[:, :-1]
    slopes = np.empty_like(log_densities)
    slopes[:, 0], slopes[:, -1] = rises[:, 0], rises[:, -1]
    slopes[:, 1:-1] = 0.5 * (rises[:, 1:] + rises[:, :-1])
    bends = 3.0 * rises - 2.0 * slopes[:, :-1] - slopes[:, 1:]
    twists = slopes[:, :-1] + slopes[:, 1:] - 2.0 * rises
    t = np.arange(_N_FINE) / _N_FINE
    cubics = slopes[:, :-1, None] + t * (bends[:, :, None] + t * twists[:, :, None])
    last = (n_places - 1) * _N_FINE
    fine = np.empty((n_rows, last + 1))
    fine[:, :-1] = (log_densities[:, :-1, None] + t * cubics).reshape(n_rows, last)
    fine[:, -1] = log_densities[:, -1]
    is_near = fine > fine.max(axis=1, keepdims=True) - _REACH
    low, high = is_near.argmax(axis=1), last - is_near[:, ::-1].argmax(axis=1)
    ends = np.empty((n_rows, 2))
    # Half a piece wider, for a single near one.
    ends[:, 0], ends[:, 1] = (low - 0.5) / _N_FINE, (high + 0.5) / _N_FINE
    ends[low == 0, 0], ends[high == last, 1] = -0.5, n_places - 0.5
    return places[0] + (places[1] - places[0]) * ends
