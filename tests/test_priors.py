import numpy as np
import pytest
from scipy import stats

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_iris
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import Pseudolikelihood
from nearfield.inference._priors import Priors, check_priors, default_priors

DISTANCES = distance_matrix(np.random.default_rng(2).normal(size=(11, 2)))
SMOOTH = DistanceFamily(DISTANCES, "gaussian", 2)
NEIGHBORS = NeighborFamily.from_distances(DISTANCES, 2)
BETA = stats.norm(0.0, 50.0)


def test_the_default_priors_are_the_papers_with_beta_above_zero():
    priors = default_priors(SMOOTH)
    betas, sigmas = np.array([0.0, 3.0, 80.0]), np.array([0.1, 50.0, 99.9])
    expected = stats.norm(0.0, 50.0).logpdf(betas) + np.log(2.0)
    np.testing.assert_allclose(priors.log_beta(betas), expected)
    assert np.isneginf(priors.log_beta(-1e-9))
    np.testing.assert_allclose(priors.log_scale(sigmas), -np.log(100.0))
    assert np.isneginf(priors.log_scale([-0.1, 100.1])).all()


@pytest.mark.parametrize(("n_points", "largest_k"), [(3, 1), (10, 5), (11, 5)])
def test_the_default_prior_of_k_is_uniform_to_half_the_points(n_points, largest_k):
    priors = default_priors(NeighborFamily.from_distances(DISTANCES[:n_points, :n_points], 2))
    np.testing.assert_allclose(priors.log_scale(np.arange(1, largest_k + 1)), -np.log(largest_k))
    assert np.isneginf(priors.log_scale([0, largest_k + 1])).all()
    assert priors.beta.support() == (0.0, np.inf)


def test_engines_and_estimators_have_the_same_default_priors():
    X, y = load_iris(return_X_y=True)
    model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    expected = default_priors(model.family_)
    assert model.priors_ == expected
    labels = np.unique(y, return_inverse=True)[1]
    posterior = Pseudolikelihood().infer(None, model.family_, labels)
    np.testing.assert_array_equal(posterior.weight, model.posterior_.weight)


@pytest.mark.parametrize("family", [SMOOTH, NEIGHBORS], ids=["sigma", "k"])
def test_the_default_priors_are_accepted(family):
    check_priors(default_priors(family), family)


def test_the_joint_log_density_is_the_sum_of_the_two():
    priors = Priors(stats.norm(1.0, 2.0), stats.gamma(2.0, scale=0.5))
    expected = np.log(stats.norm.pdf(0.3, 1.0, 2.0) * stats.gamma.pdf(0.8, 2.0, scale=0.5))
    assert priors.log_density(0.3, 0.8) == pytest.approx(expected)
    priors = Priors(stats.norm(1.0, 2.0), stats.binom(10, 0.4))
    expected = np.log(stats.norm.pdf(0.3, 1.0, 2.0) * stats.binom.pmf(3, 10, 0.4))
    assert priors.log_density(0.3, 3) == pytest.approx(expected)


def test_the_joint_log_density_is_minus_infinity_outside_either_support():
    priors = Priors(stats.uniform(0.0, 3.0), stats.uniform(0.5, 1.0))
    values = priors.log_density([1.0, -0.1, 1.0, 4.0], [1.0, 1.0, 0.4, 2.0])
    np.testing.assert_array_equal(np.isneginf(values), [False, True, True, True])


@pytest.mark.parametrize(
    "prior", [1.0, None, stats.norm, (0.0, 50.0)], ids=["number", "none", "unfrozen", "pair"]
)
def test_what_is_no_frozen_distribution_is_refused(prior):
    with pytest.raises(ValueError, match=r"frozen scipy\.stats distribution as the prior of beta"):
        check_priors(Priors(prior, stats.uniform(0.0, 100.0)), SMOOTH)
    with pytest.raises(ValueError, match=r"frozen scipy\.stats distribution as the prior of sigma"):
        check_priors(Priors(BETA, prior), SMOOTH)
    with pytest.raises(ValueError, match=r"frozen scipy\.stats distribution as the prior of k"):
        check_priors(Priors(BETA, prior), NEIGHBORS)


def test_discrete_and_continuous_priors_are_not_mixed_up():
    with pytest.raises(ValueError, match="a continuous prior of sigma; got norm and randint"):
        check_priors(Priors(BETA, stats.randint(1, 5)), SMOOTH)
    with pytest.raises(ValueError, match="a discrete prior of k; got norm and uniform"):
        check_priors(Priors(BETA, stats.uniform(1.0, 5.0)), NEIGHBORS)
    with pytest.raises(ValueError, match=r"a continuous prior of beta .* got poisson and uniform"):
        check_priors(Priors(stats.poisson(3.0), stats.uniform(0.0, 5.0)), SMOOTH)


def test_a_prior_of_the_scale_needs_mass_where_there_are_models():
    with pytest.raises(ValueError, match=r"sigma with mass between 0 and inf; got uniform.*none"):
        check_priors(Priors(BETA, stats.uniform(-3.0, 2.0)), SMOOTH)
    with pytest.raises(ValueError, match=r"k with mass between 1 and 10; got randint\(11, 20\)"):
        check_priors(Priors(BETA, stats.randint(11, 20)), NEIGHBORS)
    with pytest.raises(ValueError, match="k with mass between 1 and 10"):
        check_priors(Priors(BETA, stats.randint(-3, 1)), NEIGHBORS)


@pytest.mark.parametrize("k", [1, 10])
def test_a_prior_of_k_may_have_its_mass_at_either_end(k):
    check_priors(Priors(BETA, stats.randint(k, k + 1)), NEIGHBORS)


def test_a_prior_of_sigma_may_reach_below_zero():
    check_priors(Priors(BETA, stats.norm(1.0, 1.0)), SMOOTH)


@pytest.mark.parametrize("prior", [stats.norm(0.0, -1.0), stats.gamma(-2.0)], ids=["norm", "gamma"])
def test_what_is_no_distribution_is_refused(prior):
    with pytest.raises(ValueError, match="prior of beta with a density at its quantiles; got"):
        check_priors(Priors(prior, stats.uniform(0.0, 5.0)), SMOOTH)


@pytest.mark.parametrize("name", ["beta", "sigma"])
def test_several_distributions_in_one_are_refused(name):
    priors = {"beta": BETA, "sigma": stats.uniform(0.0, 5.0)} | {name: stats.norm([0.0, 1.0], 1.0)}
    with pytest.raises(ValueError, match=f"one distribution as the prior of {name}; got norm"):
        check_priors(Priors(*priors.values()), SMOOTH)


def test_what_are_no_priors_is_refused():
    with pytest.raises(TypeError, match=r"Give nearfield\.inference\.Priors\(beta, scale\)"):
        check_priors((BETA, stats.uniform(0.0, 5.0)), SMOOTH)


@pytest.mark.parametrize(
    "prior", [stats.norm(1.0, 2.0), stats.uniform(-1.0, 3.0), stats.cauchy(0.5, 2.0)]
)
def test_densities_that_are_written_out_are_those_of_scipy(prior):
    betas = np.array([-3.0, -1.0, 0.0, 1.7, 2.0, 9.0])
    priors = Priors(prior, stats.uniform(0.0, 1.0))
    np.testing.assert_allclose(priors.log_beta(betas), prior.logpdf(betas))
    assert float(priors.log_beta(0.3)) == pytest.approx(prior.logpdf(0.3))
    assert prior.cdf(priors.beta_range[0]) <= 1.1e-13


@pytest.mark.parametrize(
    ("name", "example"), [("prior_beta", r"norm\(0, 50\)"), ("prior_sigma", r"uniform\(0, 100\)")]
)
def test_an_example_of_a_prior_suits_its_parameter(name, example):
    X, y = load_iris(return_X_y=True)
    model = DistanceNeighborsClassifier(inference="pseudolikelihood", **{name: stats.gamma})
    with pytest.raises(ValueError, match=rf"Give one such as scipy.stats.{example}"):
        model.fit(X, y)
