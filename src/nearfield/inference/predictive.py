"""Predictive checks of a model: prior and posterior predictive draws, leave-one-out densities."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp

from nearfield._checks import Rng, check_generator, check_whole
from nearfield.field import FieldFamily, check_external_field
from nearfield.inference._arviz import pareto_smoothed
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors, check_priors, default_priors
from nearfield.inference._target import check_target
from nearfield.sampling import draw_after_clusters

Floats = NDArray[np.float64]

_MAX_DRAWS = 1_000  # of chains that leave-one-out densities use, evenly spaced


class PriorPredictive(NamedTuple):
    """Parameters drawn from the priors, and labels from the field at each."""

    beta: Floats  # shape (n_draws,)
    scale: Floats  # shape (n_draws,)
    labels: NDArray[np.int64]  # shape (n_draws, n)
    agreement: Floats  # shape (n_draws,)


class PredictiveCheck(NamedTuple):
    """Agreements of observed and of replicated labels at the same draws of the parameters."""

    observed: Floats  # shape (n_draws,)
    replicated: Floats  # shape (n_draws,)

    @property
    def p_value(self) -> float:
        """The posterior probability that replicated labels agree at least as much."""
        return float(np.mean(self.replicated >= self.observed))


class LeaveOneOut(NamedTuple):
    """Log densities of each label given all the others, with the parameters integrated out."""

    log_densities: Floats  # shape (n,)
    pareto_k: Floats | None  # shape (n,), for chains: above 0.7 do not trust it

    @property
    def elpd(self) -> float:
        """The expected log predictive density: the sum over the points."""
        return float(self.log_densities.sum())

    @property
    def standard_error(self) -> float:
        """Of the sum, as if the points were independent."""
        return float(np.sqrt(len(self.log_densities)) * self.log_densities.std(ddof=1))


def prior_predictive(
    rng: Rng,
    family: FieldFamily,
    priors: Priors | None = None,
    *,
    n_draws: int = 100,
    n_sweeps: int = 200,
) -> PriorPredictive:
    """Draw parameters from the priors and labels from their fields.

    Parameters
    ----------
    rng : Generator, seed or None, as `numpy.random.default_rng` takes it
    family : FieldFamily
    priors : Priors, optional
        The default ones if not given.
    n_draws : int
    n_sweeps : int
        Gibbs sweeps to a draw of labels, which is as exact as they are many.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import prior_predictive
    >>> rng = np.random.default_rng(0)
    >>> family = DistanceFamily(distance_matrix(rng.normal(size=(20, 2))), "gaussian", 2)
    >>> drawn = prior_predictive(rng, family, n_draws=50)
    >>> drawn.labels.shape
    (50, 20)
    >>> bool(np.median(drawn.agreement) > 19.0)  # of 20: the default prior of beta is wide
    True
    """
    rng = check_generator(rng)
    n_draws = check_whole(n_draws, "n_draws", minimum=1)
    priors = default_priors(family) if priors is None else priors
    check_priors(priors, family)
    betas = np.asarray(priors.beta.rvs(n_draws, random_state=rng), dtype=np.float64)
    scales = np.array([_draw_scale(rng, family, priors) for _ in range(n_draws)])
    labels = np.empty((n_draws, family.n_points), dtype=np.int64)
    agreements = np.empty(n_draws)
    for i, (beta, scale) in enumerate(zip(betas, scales, strict=True)):
        field = family.at(scale)
        labels[i] = draw_after_clusters(rng, field, float(beta), n_sweeps)
        agreements[i] = field.agreement(labels[i])
    return PriorPredictive(betas, scales, labels, agreements)


def _draw_scale(rng: np.random.Generator, family: FieldFamily, priors: Priors) -> float:
    """Draw a scale that the family has: the prior may reach below zero, or to more than n - 1."""
    while True:
        scale = float(priors.scale.rvs(random_state=rng))
        if scale > 0.0 and (not family.is_discrete or scale <= family.scale_range[1]):
            return scale


def posterior_predictive_check(
    rng: Rng,
    family: FieldFamily,
    labels: ArrayLike,
    posterior: Posterior,
    *,
    n_draws: int = 200,
    n_sweeps: int = 200,
) -> PredictiveCheck:
    """Compare the agreement of the labels with that of labels drawn from the posterior.

    The agreement depends on the scale too, so that both are taken at the same draw (Gelman, Meng
    and Stern, 1996). A p-value near 0 or 1 tells of labels that the model does not explain.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import PathSampling, posterior_predictive_check
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(30, 2))
    >>> labels = (points[:, 0] > 0.0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> posterior = PathSampling().infer(rng, family, labels)
    >>> check = posterior_predictive_check(rng, family, labels, posterior)
    >>> 0.05 < check.p_value < 0.95
    True
    """
    rng = check_generator(rng)
    checked = check_target(family, labels, None).labels
    betas, scales = posterior.sample(check_whole(n_draws, "n_draws", minimum=1), rng)
    observed, replicated = np.empty((2, len(betas)))
    for i, (beta, scale) in enumerate(zip(betas, scales, strict=True)):
        field = family.at(scale)
        observed[i] = field.agreement(checked)
        replicated[i] = field.agreement(draw_after_clusters(rng, field, float(beta), n_sweeps))
    return PredictiveCheck(observed, replicated)


def leave_one_out(family: FieldFamily, labels: ArrayLike, posterior: Posterior) -> LeaveOneOut:
    r"""Compute the log density of each label given all other labels.

    .. math:: p(y_i \mid y_{-i}) = \Big( \mathrm{E}_{\theta \mid y}
              \frac{1}{p(y_i \mid y_{-i}, \theta)} \Big)^{-1}

    because the posterior without a label is the posterior over its full conditional, which the
    field knows exactly. Nodes of a quadrature give the expectation as it stands; draws of chains
    by importance sampling, Pareto smoothed (Vehtari et al., 2024), from at most 1,000 of them.

    Parameters
    ----------
    family : FieldFamily
    labels : array-like of int, shape (n,)
    posterior : Posterior
        Given all labels.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import Pseudolikelihood, leave_one_out
    >>> points = np.random.default_rng(0).normal(size=(30, 2))
    >>> labels = (points[:, 0] > 0.0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> posterior = Pseudolikelihood().infer(None, family, labels)
    >>> loo = leave_one_out(family, labels, posterior)
    >>> bool(loo.elpd > 30 * np.log(0.5))  # of labels at random
    True
    """
    checked = check_target(family, labels, None, needs_joint=False).labels
    betas, scales = posterior.beta.ravel(), posterior.scale.ravel()
    if not posterior.is_draws:
        log_conditionals = _log_conditionals(family, checked, betas, scales)
        with np.errstate(divide="ignore"):  # a node without a weight
            log_weight = np.log(posterior.weight)
        return LeaveOneOut(-logsumexp(log_weight - log_conditionals, axis=1), None)
    chosen = np.linspace(0, len(betas) - 1, min(len(betas), _MAX_DRAWS)).round().astype(int)
    log_conditionals = _log_conditionals(family, checked, betas[chosen], scales[chosen])
    log_weights, pareto_k = pareto_smoothed(-log_conditionals)
    return LeaveOneOut(logsumexp(log_weights + log_conditionals, axis=1), pareto_k)


def _log_conditionals(
    family: FieldFamily, labels: NDArray[np.int64], betas: Floats, scales: Floats
) -> Floats:
    """Evaluate the log conditional of each label at each pair of parameters, shape (n, n_pairs)."""
    alpha = check_external_field(family.external_field, family.n_classes)
    values, sites = np.empty((len(labels), len(betas))), np.arange(len(labels))
    different, group = np.unique(scales, return_inverse=True)
    for index, scale in enumerate(different):
        support = family.support(scale, labels)
        for pair in np.flatnonzero(group == index):
            values[:, pair] = log_softmax(alpha + betas[pair] * support, axis=1)[sites, labels]
    return values
