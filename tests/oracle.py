"""The exact posterior of tiny fields, from enumerated constants on a fine grid."""

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats
from scipy.special import logsumexp

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.field.enumeration import _all_statistics, label_distribution, log_partition
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors

QUANTILES = (0.05, 0.5, 0.95)
FIELDS = [
    ("gaussian", 10, 2),
    ("gaussian", 9, 3),
    ("exponential", 8, 2),
    ("exponential", 8, 3),
    ("radius", 9, 2),
    ("radius", 8, 3),
    ("k", 10, 2),
    ("k", 10, 3),
]
"""Models, with numbers of points and classes: fields whose posterior is known exactly."""


def tiny_family(model, n_points=8, n_classes=2, seed=3):
    points = np.random.default_rng(seed).normal(size=(n_points, 2))
    distances = distance_matrix(points)
    if model == "k":
        return NeighborFamily.from_distances(distances, n_classes)
    return DistanceFamily(distances, model, n_classes)


def tiny_priors(family, beta=None):
    beta = stats.norm(0.5, 1.0) if beta is None else beta
    if family.is_discrete:
        return Priors(beta, stats.randint(1, family.n_points))
    if family.kernel == "exponential":
        return Priors(beta, stats.gamma(2.0, scale=0.5))
    return Priors(beta, stats.uniform(0.1, 2.4))


def tiny_labels(family, beta=1.2, scale=1.0, seed=0):
    labelings, probabilities = label_distribution(family.at(scale), beta)
    return labelings[np.random.default_rng(seed).choice(len(labelings), p=probabilities)]


def exact_posterior(family, labels, priors, n_betas=80, n_scales=120):
    """Sum over cells of equal prior probability in the scale, and a grid of beta."""
    # On each cell's middle the field is exact; the grids are so fine that no engine can tell.
    cells = (np.arange(n_betas) + 0.5) / n_betas
    lower, upper = priors.beta.ppf([1e-5, 1.0 - 1e-5])
    betas = lower + (upper - lower) * cells
    if family.is_discrete:
        scales = np.arange(1, family.n_points)
        log_scales = priors.log_scale(scales)
    else:
        scales = priors.scale.ppf((np.arange(n_scales) + 0.5) / n_scales)
        log_scales = np.full(n_scales, -np.log(n_scales))
    log_density = np.empty((len(scales), n_betas))
    for row, scale in enumerate(scales):
        field = family.at(scale)
        log_density[row] = betas * field.agreement(labels) - log_partitions(field, betas)
        log_density[row] += field.log_potential(labels, 0.0)
    log_density += log_scales[:, None] + priors.log_beta(betas) + np.log((upper - lower) / n_betas)
    log_evidence = float(logsumexp(log_density))
    weight = np.exp(log_density - log_evidence)
    return Posterior.from_nodes(
        np.tile(betas, len(scales)),
        np.repeat(scales, n_betas),
        weight.ravel(),
        family.scale_name,
        log_evidence=log_evidence,
    )


def log_partitions(field, betas):
    """Log z at many betas at once: as `log_partition`, which the first of them checks."""
    agreements, external = _all_statistics(field)
    n_alike = field.n_classes if not field.external_field.any() else 1
    n_listed = len(agreements) // n_alike  # those with the first label 0 stand for the others
    log_q = external[:n_listed] + betas[:, None] * agreements[:n_listed]
    largest = log_q.max(axis=1)
    log_z = largest + np.log(n_alike * np.exp(log_q - largest[:, None]).sum(axis=1))
    np.testing.assert_allclose(log_z[0], log_partition(field, betas[0]), rtol=1e-12)
    return log_z


def standard_errors_off(posterior, exact):
    """How far the draws are from the exact answer, in Monte Carlo standard errors.

    Mean, sd and quantiles of beta and sigma; for k, whose quantiles jump, its probabilities.
    """
    off = {}
    for name in ("beta", posterior.scale_name):
        draws = getattr(posterior, name)
        errors = {
            "mean": (posterior.mean()[name] - exact.mean()[name], array_stats.mcse(draws)),
            "sd": (posterior.sd()[name] - exact.sd()[name], _mcse_of_sd(draws)),
        }
        if name == "k":
            for k, probability in exact.table().items():
                is_k = (draws == k).astype(float)
                errors[f"p({k})"] = is_k.mean() - probability, array_stats.mcse(is_k)
        else:
            for q in QUANTILES:
                error = array_stats.mcse(draws, method="quantile", prob=q)
                errors[f"q{q}"] = np.quantile(draws, q) - exact.quantile(q)[name], error
        off |= {f"{name} {what}": abs(d) / np.squeeze(e) for what, (d, e) in errors.items()}
    return off


def _mcse_of_sd(draws):
    """The delta method."""
    return array_stats.mcse((draws - draws.mean()) ** 2) / (2.0 * draws.std())
