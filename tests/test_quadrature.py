"""Evidence, quantiles and samples of quadratures against exact posteriors."""

import numpy as np
import pytest
from benchmark_sets import training_set
from oracle import log_partitions, tiny_family, tiny_labels, tiny_priors
from scipy import stats
from scipy.special import logsumexp, ndtr

from nearfield.datasets import load_crabs, load_iris, load_wine
from nearfield.field import DistanceFamily
from nearfield.field.enumeration import uniform_log_partition
from nearfield.inference import PathSampling, Priors, Pseudolikelihood
from nearfield.inference.pseudolikelihood import log_pseudolikelihood

MODELS = ["gaussian", "exponential", "radius", "k"]
LEVELS = np.array([0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975])
NARROW = [
    stats.norm(0.8, 0.02),
    stats.uniform(0.9, 0.03),
    stats.norm(1.2, 0.1),
    stats.lognorm(0.05, scale=0.6),
]


def log_likelihoods(family, labels, engine):
    """The log likelihood that an engine works with, as a function of betas, at each scale."""
    if isinstance(engine, Pseudolikelihood):
        alpha = np.zeros(family.n_classes)
        return lambda s: log_pseudolikelihood(family.support(s, labels), labels, alpha)

    def at(scale):
        field = family.at(scale)
        return lambda betas: betas * field.agreement(labels) - log_partitions(field, betas)

    return at


def exact_marginals(family, labels, priors, engine, n_betas=300):
    """The log evidence, and values with their masses of beta and of the scale, on fine grids."""
    edges = np.linspace(*priors.beta.ppf([1e-6, 1.0 - 1e-6]), n_betas + 1)
    betas = 0.5 * (edges[1:] + edges[:-1])
    log_betas = priors.log_beta(betas) + np.log(edges[1] - edges[0])
    if family.is_discrete:
        scales = np.arange(1.0, family.n_points)
        log_scales = priors.log_scale(scales)
    else:
        ends = priors.scale.ppf(ndtr(np.linspace(-5.0, 5.0, 301)))
        steps = family.scale_steps
        ends = np.union1d(ends, steps[(steps > ends[0]) & (steps < ends[-1])])
        scales = 0.5 * (ends[1:] + ends[:-1])
        log_scales = np.log(np.maximum(np.diff(priors.scale.cdf(ends)), 1e-300))
    at = log_likelihoods(family, labels, engine)
    # Between two steps of the radius the field is the same.
    _, first, row = np.unique(
        scales if family.is_smooth else np.searchsorted(family.scale_steps, scales),
        return_index=True,
        return_inverse=True,
    )
    log_mass = np.array([at(scale)(betas) for scale in scales[first]])[row]
    log_mass += log_scales[:, None] + log_betas
    log_evidence = logsumexp(log_mass)
    mass = np.exp(log_mass - log_evidence)
    return log_evidence, (betas, mass.sum(axis=0)), (scales, mass.sum(axis=1))


def marginal_quantiles(values, mass):
    return np.interp(LEVELS, np.cumsum(mass) - 0.5 * mass, values)


@pytest.mark.parametrize("prior", NARROW, ids=lambda prior: f"{prior.dist.name}{prior.args}")
@pytest.mark.parametrize("engine", [Pseudolikelihood(), PathSampling()], ids=["pl", "path"])
def test_the_evidence_of_a_radius_is_exact_under_a_narrow_prior(rng, engine, prior):
    family = tiny_family("radius", 8, 3)
    labels, priors = tiny_labels(family), Priors(stats.norm(0.5, 1.0), prior)
    posterior = engine.infer(rng, family, labels, priors)
    log_evidence, _, (sigmas, mass) = exact_marginals(family, labels, priors, engine)
    error = posterior.log_evidence_error or 0.0
    assert abs(posterior.log_evidence - log_evidence) < 0.005 + 4.0 * error
    mean = mass @ sigmas
    sd = np.sqrt(mass @ (sigmas - mean) ** 2)
    assert abs(posterior.mean()["sigma"] - mean) < 0.02 * sd
    assert abs(posterior.sd()["sigma"] - sd) < 0.02 * sd


@pytest.mark.parametrize("is_cut", [False, True], ids=["any beta", "beta above 0"])
@pytest.mark.parametrize("model", MODELS)
def test_quantiles_and_samples_are_those_of_the_exact_posterior(rng, model, is_cut):
    family = tiny_family(model, 8, 3)
    priors = tiny_priors(family, stats.halfnorm(scale=3.0) if is_cut else None)
    labels = tiny_labels(family)
    posterior = Pseudolikelihood().infer(None, family, labels, priors)
    exact = exact_marginals(family, labels, priors, Pseudolikelihood())[1:]
    sampled = posterior.sample(20_000, rng)
    for name, (values, mass), draws in zip(posterior.mean().index, exact, sampled, strict=True):
        if name == "k":
            assert set(draws) <= set(range(1, 8))
            continue
        mean = mass @ values
        sd = np.sqrt(mass @ (values - mean) ** 2)
        expected = marginal_quantiles(values, mass)
        # Cells are up to a third of a sd wide, with a density that is linear on each.
        assert np.abs(posterior.quantile(LEVELS)[name] - expected).max() < 0.04 * sd
        cdf = np.searchsorted(np.sort(draws), expected) / len(draws)
        assert np.abs(cdf - LEVELS).max() < 0.015 + 4.0 * 0.5 / np.sqrt(len(draws))
        assert len(np.unique(draws)) > 0.99 * len(draws)
    assert sampled[0].min() >= priors.beta.support()[0]


@pytest.mark.parametrize(("n_points", "n_classes"), [(60, 2), (60, 3)])
def test_quantiles_are_exact_where_all_scales_have_one_field(rng, n_points, n_classes):
    family = DistanceFamily(1.0 - np.eye(n_points), "gaussian", n_classes)
    labels = np.minimum(np.arange(n_points) * n_classes // 45, n_classes - 1)
    priors = Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))
    posterior = PathSampling().infer(rng, family, labels, priors)
    betas = np.linspace(0.0, 6.0, 1_201)
    agreement = family.at(1.0).agreement(labels)
    log_density = betas * agreement - uniform_log_partition(n_points, n_classes, betas)
    mass = np.exp(log_density + priors.log_beta(betas) - log_density.max())
    mass /= mass.sum()
    sd = np.sqrt(mass @ (betas - mass @ betas) ** 2)
    off = (posterior.quantile(LEVELS)["beta"] - marginal_quantiles(betas, mass)).abs().max()
    assert off < 0.05 * sd + 4.0 * posterior.mean_error[0]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_crabs])
@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "radius"])
def test_the_error_of_a_mean_covers_what_a_finer_rule_changes(load, kernel):
    family, labels = training_set(load, kernel)
    posterior = Pseudolikelihood().infer(None, family, labels)
    finer = Pseudolikelihood(density=16.0).infer(None, family, labels)
    off = (posterior.mean() - finer.mean()).abs()
    error = posterior.summary()["mcse_mean"]
    assert (off <= 3.0 * error + 1e-4 * finer.sd()).all()
    assert (error < 0.5 * finer.sd()).all()


def test_a_rule_of_every_k_has_no_error():
    posterior = Pseudolikelihood().infer(None, tiny_family("k", 12), np.arange(12) % 2)
    np.testing.assert_array_equal(posterior.mean_error, 0.0)
