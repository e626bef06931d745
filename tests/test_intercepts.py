import numpy as np
import pytest
from plain import minus_log_posterior
from scipy import stats
from scipy.optimize import approx_fprime

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import Priors
from nearfield.inference.intercepts import fit_external_field
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate


def families(n_points=60, n_classes=3):
    distances = distance_matrix(np.random.default_rng(5).normal(size=(n_points, 2)))
    return [
        DistanceFamily(distances, "gaussian", n_classes),
        DistanceFamily(distances, "radius", n_classes),
        NeighborFamily.from_distances(distances, n_classes),
        NeighborFamily.from_distances(distances, n_classes, is_directed=True),
    ]


def test_the_gradient_is_that_of_finite_differences(rng):
    parameters, support = rng.normal(size=5), rng.gamma(2.0, size=(30, 4))
    arguments = support, rng.integers(4, size=30), 0.7, (1.0, 3.0)
    gradient = minus_log_posterior(parameters, *arguments)[1]
    numeric = approx_fprime(parameters, lambda p: minus_log_posterior(p, *arguments)[0], 1e-6)
    # Forward differences with steps of 1e-6 err by half of that times the curvature, below 500.
    np.testing.assert_allclose(gradient, numeric, atol=5e-4)


@pytest.mark.parametrize("family", families(), ids=["gaussian", "radius", "k", "directed k"])
def test_a_few_turns_are_enough(rng, family):
    labels = rng.choice(3, size=60, p=[0.7, 0.2, 0.1])
    alpha = fit_external_field(family, labels)
    assert alpha.sum() == pytest.approx(0.0, abs=1e-12)
    # An intercept is known to some 1 / sqrt(n p) = 0.4 at best.
    np.testing.assert_allclose(alpha, fit_external_field(family, labels, n_rounds=6), atol=0.05)


def test_intercepts_and_beta_are_the_best_at_their_scale(rng):
    family = families()[0]
    labels = rng.choice(3, size=60, p=[0.7, 0.2, 0.1])
    alpha = fit_external_field(family, labels)
    _, scale = pseudolikelihood_estimate(family, labels, None, alpha)
    support = family.support(scale, labels)
    gradients = [
        minus_log_posterior(np.append(alpha, beta), support, labels, 1.0, (0.0, 50.0))[1][:-1]
        for beta in np.linspace(0.0, 6.0, 61)
    ]
    # Some beta makes every class as frequent as it is: nothing is left to gain by any intercept.
    assert np.abs(gradients).max(axis=1).min() < 0.3


def test_larger_classes_have_larger_intercepts(rng):
    family = families()[0]
    labels = rng.permutation(np.repeat([0, 1, 2], [36, 16, 8]))
    alpha = fit_external_field(family, labels)
    assert alpha[0] > alpha[1] > alpha[2]
    relabelled = fit_external_field(family, 2 - labels)
    np.testing.assert_allclose(relabelled, alpha[::-1], atol=1e-3)


def test_classes_of_one_size_that_mean_nothing_have_no_intercepts(rng):
    family = families(n_classes=2)[0]
    alpha = fit_external_field(family, rng.permutation(np.repeat([0, 1], 30)))
    assert np.abs(alpha).max() < 0.1


def test_intercepts_without_neighbours_are_log_frequencies():
    labels = np.repeat([0, 1], [80, 20])
    expected = 0.5 * np.log(80 / 20) * np.array([1.0, -1.0])
    parameters = np.append(expected, 0.0)
    _, gradient = minus_log_posterior(parameters, np.zeros((100, 2)), labels, 1e6, (0.0, 1.0))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


def test_a_prior_of_beta_without_mass_above_zero_is_kept(rng):
    family, labels = families()[0], rng.choice(3, size=60, p=[0.7, 0.2, 0.1])
    priors = Priors(stats.uniform(-3.0, 2.0), stats.uniform(0.1, 2.0))
    alpha = fit_external_field(family, labels, priors)
    assert alpha[0] > alpha[1:].max()


def test_a_tighter_prior_draws_the_intercepts_to_zero(rng):
    family = families()[0]
    labels = rng.permutation(np.repeat([0, 1, 2], [36, 16, 8]))
    loose, tight = (fit_external_field(family, labels, prior_sd=sd) for sd in (1.0, 0.1))
    assert np.abs(tight).max() < 0.5 * np.abs(loose).max()


def test_a_class_that_is_not_there_has_finite_intercepts(rng):
    family = families()[0]
    alpha = fit_external_field(family, rng.integers(2, size=60))
    assert np.isfinite(alpha).all()
    assert alpha[2] < alpha[:2].min()


def test_impossible_arguments_are_refused():
    family = families()[0]
    labels = np.arange(60) % 3
    with pytest.raises(ValueError, match=r"Expected prior_sd > 0; got prior_sd=0\.0"):
        fit_external_field(family, labels, prior_sd=0.0)
    with pytest.raises(ValueError, match="n_rounds >= 1"):
        fit_external_field(family, labels, n_rounds=0)
    with pytest.raises(ValueError, match="Expected 60 whole-number labels"):
        fit_external_field(family, labels[1:])
