"""Inference on a grid of (log beta, log sigma), placed where a scan found the posterior.

An approximation for averages over many models: quick, good to a fraction of a posterior standard
deviation, for kernels that are smooth in sigma.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.distances import best_beta
from nearfield.inference import InterceptFit, Posterior, Priors, maximize_intercepts

Floats = NDArray[np.float64]

_BETA_RANGE = 0.02, 300.0
_LARGEST_LOGIT = 700.0  # its exp is finite
_LOG_ROOT_TAU = 0.5 * np.log(2.0 * np.pi)
_N_FINE = 8  # points between two of the scan, where its curve is followed


@dataclass(frozen=True)
class GridSettings:
    """Sizes of the grids.

    Attributes
    ----------
    n_scan_scales, n_scan_betas : int
        Of the scan for where the posterior is.
    n_scales, n_betas : int
        Of the grid that is placed there.
    reach : float
        The grid ends where the density is exp(-reach) of the largest.
    """

    n_scan_scales: int = 10
    n_scan_betas: int = 16
    n_scales: int = 5
    n_betas: int = 9
    reach: float = 6.5


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


def infer_on_grid(
    supports: Callable[[Floats], Floats],
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    scale_range: tuple[float, float],
    multiplicities: Floats | None = None,
    settings: GridSettings | None = None,
    n_draws: int = 1,
) -> HeldOutPosterior:
    """Integrate over (log beta, log sigma) on a grid placed where a scan found mass.

    An approximation: the midpoint rule with 9 x 5 nodes, whose error on a posterior with one mode
    is at most a fifth of its standard deviation. The scan has the most probable intercepts at each
    sigma; the external field is that of the best sigma of the grid.

    Parameters
    ----------
    supports : callable
        Takes rising sigmas and gives the support of each class, shape (n_sigmas, n, G).
    labels : ndarray of int, shape (n,)
    prior : HeldOutPrior
    scale_range : (float, float)
        Where to look for sigma.
    multiplicities : ndarray, shape (n,), optional
        How often each label counts; once by default.
    settings : GridSettings, optional
    n_draws : int
        Of how many draws of folds the labels are, one after the other. They share the grid and the
        external field, for the posterior may have several modes, and are averaged within one.
    """
    settings = settings or GridSettings()
    counts = np.ones(len(labels)) if multiplicities is None else multiplicities
    shares = counts / n_draws
    scan, log_masses = _scan_scales(supports, labels, prior, scale_range, shares, settings)
    ends = _heavy_range(scan, log_masses[None], settings.reach)[0]
    log_sigmas = _midpoints(ends, settings.n_scales)
    support = supports(np.exp(log_sigmas))
    alpha = _external_field(support, log_sigmas, labels, prior, shares)
    grid = _BetaGrid.around(support, labels, alpha, prior.sd_beta, shares, settings)
    log_terms = log_conditionals(support, labels, alpha, grid.betas)
    log_cell = np.log(grid.steps * (log_sigmas[1] - log_sigmas[0]))[:, None]
    log_measure = prior.log_density(log_sigmas[:, None], grid.betas) + log_cell
    parts = zip(np.split(log_terms, n_draws, axis=-1), np.split(counts, n_draws), strict=True)
    return average_posteriors(
        [_summarize(log_sigmas, grid.betas, terms, log_measure, alpha, own) for terms, own in parts]
    )


def approximate_log_evidence(
    supports: Callable[[Floats], Floats],
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    scale_range: tuple[float, float],
    multiplicities: Floats | None = None,
) -> float:
    """Give the log evidence up to a constant, to compare numbers of neighbours by.

    By the scan of `infer_on_grid` alone: Laplace's approximation at each of ten sigmas.
    """
    counts = np.ones(len(labels)) if multiplicities is None else multiplicities
    scan, log_masses = _scan_scales(supports, labels, prior, scale_range, counts, GridSettings())
    return float(np.logaddexp.reduce(log_masses) + np.log(scan[1] - scan[0]))


def _scan_scales(
    supports: Callable[[Floats], Floats],
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    scale_range: tuple[float, float],
    counts: Floats,
    settings: GridSettings,
) -> tuple[Floats, Floats]:
    """Give log sigmas over the whole range, and the log mass at each."""
    low, high = scale_range
    scan = _midpoints(np.log([low, min(high, prior.max_sigma)]), settings.n_scan_scales)
    return scan, _log_masses(supports(np.exp(scan)), scan, labels, prior, counts)


def average_posteriors(found: Sequence[HeldOutPosterior]) -> HeldOutPosterior:
    """Average over draws of folds with one external field: a mixture, and all log densities."""
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
        found[0].external_field,
    )


def _log_masses(
    support: Floats,
    log_sigmas: Floats,
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    counts: Floats,
) -> Floats:
    """Give the log mass around the best beta, and intercepts if any, at each sigma.

    By Laplace's approximation, up to a constant.
    """
    if prior.sd_alpha > 0.0:
        log_masses = _fit_intercepts(support, labels, prior, counts).log_mass
    else:
        log_masses = _scan_betas(support, labels, prior.sd_beta, counts)
    return log_masses + log_sigmas  # sigma is uniform, log sigma is not


def _external_field(
    support: Floats,
    log_sigmas: Floats,
    labels: NDArray[np.int64],
    prior: HeldOutPrior,
    counts: Floats,
) -> Floats:
    """Give the intercepts of the sigma with the largest mass, or zeros."""
    if prior.sd_alpha == 0.0:
        return np.zeros(support.shape[-1])
    found = _fit_intercepts(support, labels, prior, counts)
    return found.alpha[np.argmax(found.log_mass + log_sigmas)]


def _fit_intercepts(
    support: Floats, labels: NDArray[np.int64], prior: HeldOutPrior, counts: Floats
) -> InterceptFit:
    start, prior_beta = (np.zeros(support.shape[-1]), 3.0), (0.0, prior.sd_beta)
    return maximize_intercepts(
        support, labels, prior.sd_alpha, prior_beta, _BETA_RANGE, start, counts
    )


def _scan_betas(
    support: Floats, labels: NDArray[np.int64], sd_beta: float, counts: Floats
) -> Floats:
    """Give the log mass around the best beta > 0 at each scale (Laplace)."""
    log_masses, beta = np.empty(len(support)), 3.0
    for q in range(len(support)):
        beta, log_masses[q] = best_beta(
            support[q], labels, counts, sd_beta**-2, _BETA_RANGE[1], beta
        )
    return log_masses


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
        counts: Floats,
        settings: GridSettings,
    ) -> "_BetaGrid":
        """Place betas where the labels make them probable at each scale."""
        coarse = _midpoints(np.log(_BETA_RANGE), settings.n_scan_betas)
        betas = np.tile(np.exp(coarse), (len(support), 1))
        log_terms = log_conditionals(support, labels, alpha, betas)
        log_density = log_terms @ counts - 0.5 * (betas / sd_beta) ** 2 + coarse
        ends = _heavy_range(coarse, log_density, settings.reach)
        steps = (ends[:, 1] - ends[:, 0]) / settings.n_betas
        places = ends[:, :1] + steps[:, None] * (np.arange(settings.n_betas) + 0.5)
        return cls(np.exp(places), steps)


def _summarize(
    log_sigmas: Floats,
    betas: Floats,
    log_terms: Floats,
    log_measure: Floats,
    alpha: Floats,
    counts: Floats,
) -> HeldOutPosterior:
    """Make the posterior of the nodes, and the density of each label given the others."""
    log_density = log_measure + log_terms @ counts
    top = log_density.max()
    weight = np.exp(log_density - top)
    log_evidence = float(top + np.log(weight.sum()))
    weight /= weight.sum()
    by_node = log_terms.reshape(weight.size, -1)
    log_densities = _means_without_own(by_node, weight.ravel(), counts)
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


def _means_without_own(log_terms: Floats, weights: Floats, counts: Floats) -> Floats:
    r"""Give the log density of each label by the posterior of the others, shape (n,).

    .. math:: \log \mathrm{E}[p_i^{1 - s_i}] - \log \mathrm{E}[p_i^{-s_i}]

    over weighted nodes; the harmonic mean for a label that counts once.
    """

    def log_mean(powers: Floats) -> Floats:
        logs = powers * log_terms
        top = logs.max(axis=0)
        return top + np.log(weights @ np.exp(logs - top))

    return log_mean(1.0 - counts) - log_mean(-counts)


def _midpoints(interval: Sequence[float] | Floats, n: int) -> Floats:
    """Cut an interval into n equal pieces and take their midpoints."""
    low, high = interval
    return low + (high - low) * (np.arange(n) + 0.5) / n


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


def _heavy_range(places: Floats, log_densities: Floats, reach: float) -> Floats:
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
    is_near = fine > fine.max(axis=1, keepdims=True) - reach
    low, high = is_near.argmax(axis=1), last - is_near[:, ::-1].argmax(axis=1)
    ends = np.empty((n_rows, 2))
    # Half a piece wider, for a single near one.
    ends[:, 0], ends[:, 1] = (low - 0.5) / _N_FINE, (high + 0.5) / _N_FINE
    ends[low == 0, 0], ends[high == last, 1] = -0.5, n_places - 0.5
    return places[0] + (places[1] - places[0]) * ends
