"""Prior and posterior predictive draws and leave-one-out densities against enumeration."""

import warnings

import numpy as np
import pytest
from oracle import exact_posterior, tiny_family, tiny_labels, tiny_priors
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from nearfield.field.enumeration import label_distribution, mean_agreement
from nearfield.inference import (
    Exchange,
    Posterior,
    Priors,
    leave_one_out,
    posterior_predictive_check,
    prior_predictive,
)

MODELS = ["gaussian", "exponential", "radius", "k"]
GRID = {"n_betas": 40, "n_scales": 30}


@pytest.mark.parametrize("model", MODELS)
def test_prior_predictive_agreements_have_the_exact_mean(rng, model):
    family = tiny_family(model, 6, 3)
    priors = tiny_priors(family)
    drawn = prior_predictive(rng, family, priors, n_draws=800, n_sweeps=30)
    exact = [mean_agreement(family.at(s), b) for b, s in zip(drawn.beta, drawn.scale, strict=True)]
    error = (drawn.agreement - exact).std() / np.sqrt(800)
    assert abs((drawn.agreement - exact).mean()) < 4.0 * error
    assert stats.kstest(drawn.beta, priors.beta.cdf).pvalue > 1e-3


def test_prior_predictive_scales_are_those_of_the_family(rng):
    family = tiny_family("k", 7)
    drawn = prior_predictive(rng, family, Priors(stats.norm(), stats.poisson(5.0)), n_draws=100)
    assert set(drawn.scale) <= set(range(1, 7))


@pytest.mark.parametrize("model", ["gaussian", "k"])
def test_the_predictive_p_value_is_the_exact_one(rng, model):
    family = tiny_family(model, 7, 2)
    labels = tiny_labels(family, scale=2.0)
    posterior = Posterior.from_draws([[0.8]], [[2.0]], family.scale_name)
    check = posterior_predictive_check(rng, family, labels, posterior, n_draws=3_000, n_sweeps=30)
    field = family.at(2.0)
    labelings, probabilities = label_distribution(field, 0.8)
    agreements = np.array([field.agreement(y) for y in labelings])
    exact = probabilities[agreements >= field.agreement(labels) - 1e-9].sum()
    assert check.observed[0] == pytest.approx(field.agreement(labels))
    is_larger = check.replicated >= check.observed - 1e-9
    assert abs(is_larger.mean() - exact) < 4.0 * np.sqrt(exact * (1.0 - exact) / 3_000)


def exact_log_densities(family, labels, priors):
    """Evidence of all labels over that of the labelings that differ in one label alone."""
    densities = []
    for i in range(len(labels)):
        evidences = []
        for g in range(family.n_classes):
            changed = labels.copy()
            changed[i] = g
            evidences.append(exact_posterior(family, changed, priors, **GRID).log_evidence)
        densities.append(evidences[labels[i]] - logsumexp(evidences))
    return np.array(densities)


@pytest.mark.parametrize("model", MODELS)
def test_leave_one_out_densities_of_nodes_are_exact(model):
    family = tiny_family(model, 6, 3)
    labels, priors = tiny_labels(family), tiny_priors(family)
    expected = exact_log_densities(family, labels, priors)
    loo = leave_one_out(family, labels, exact_posterior(family, labels, priors, **GRID))
    np.testing.assert_allclose(loo.log_densities, expected, atol=1e-9)
    assert loo.elpd == pytest.approx(expected.sum())
    assert loo.pareto_k is None


def test_leave_one_out_densities_of_chains_are_exact_up_to_their_error(rng):
    family = tiny_family("gaussian", 6, 3)
    labels, priors = tiny_labels(family), tiny_priors(family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = Exchange(4_000, 500, 20, n_chains=2).infer(rng, family, labels, priors)
    loo = leave_one_out(family, labels, posterior)
    # Densities vary over the posterior by some 0.4; 1,000 correlated draws leave a tenth of it.
    np.testing.assert_allclose(
        loo.log_densities, exact_log_densities(family, labels, priors), atol=0.06
    )
    assert (loo.pareto_k < 0.7).all()
