import numpy as np
import pytest
from benchmark_sets import training_set
from plain import all_distances
from scipy import stats
from scipy.special import logsumexp, softmax

from nearfield.datasets import load_crabs, load_pima, load_wine
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily, knn_weights
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference.conditionals import log_pseudolikelihoods
from nearfield.inference.pseudolikelihood import (
    Pseudolikelihood,
    log_pseudolikelihood,
    pseudolikelihood_estimate,
)

BETA = stats.norm(0.0, 2.0)
SIGMA = stats.gamma(2.0, scale=0.5)
K = stats.randint(1, 7)
BETAS = np.linspace(-11.0, 11.0, 64)  # to where the prior is exp(-15)

MODELS = ("gaussian", "exponential", "radius", "k", "directed k")
EXTERNAL_FIELDS = (None, (0.4, -0.3, 0.0))


def family_of(model, external_field=None, n_points=10):
    distances = distance_matrix(np.random.default_rng(3).normal(size=(n_points, 2)))
    if model.endswith("k"):
        return NeighborFamily.from_distances(
            distances, 3, is_directed=model.startswith("directed"), external_field=external_field
        )
    return DistanceFamily(distances, model, 3, external_field)


def labels_of(family, seed=0):
    """Label three parts of the plane, and a few points at random."""
    rng = np.random.default_rng(seed)
    n_points = family.n_points
    first = all_distances(family)[0]
    labels = np.digitize(first, np.quantile(first, [0.33, 0.67]))
    labels[rng.choice(n_points, n_points // 4, replace=False)] = rng.integers(3, size=n_points // 4)
    return labels


def log_conditionals(family, scale, labels, beta):
    """Sum the log conditionals of one field, written out once more."""
    if family.has_joint:
        conditionals = family.at(scale).conditionals(labels, beta)
    else:
        support = knn_weights(all_distances(family), int(scale)) @ np.eye(3)[labels]
        alpha = np.zeros(3) if family.external_field is None else family.external_field
        conditionals = softmax(alpha + beta * support, axis=1)
    return np.log(conditionals[np.arange(len(labels)), labels]).sum()


def grid_posterior(family, labels, priors, betas, n_scales=45):
    """Sum over a grid: even in beta, and even in log sigma or over all k.

    For smooth integrands that vanish at both ends such a sum converges faster than any power of
    the step. For the radius sigma has a cell for each stretch between distances, where the field
    is constant, of known prior mass: exact.
    """
    if family.is_discrete:
        scales = np.arange(1, family.n_points)
        log_cells = priors.scale.logpmf(scales)
        field_scales = scales
    elif family.kernel == "radius":
        distances = np.unique(family.distances[np.triu_indices(family.n_points, 1)])
        ends = np.concatenate([[0.0], priors.scale.cdf(distances), [1.0]])
        n_parts = 40  # of equal prior mass to a cell, to know the moments of sigma in it
        parts = (np.arange(n_parts) + 0.5) / n_parts
        scales = priors.scale.ppf(ends[:-1, None] + np.diff(ends)[:, None] * parts).ravel()
        log_cells = np.repeat(np.log(np.diff(ends) / n_parts), n_parts)
        field_scales = np.repeat(scales[n_parts // 2 :: n_parts], n_parts)
    else:
        logs = np.linspace(*np.log(priors.scale.ppf([1e-8, 1.0 - 1e-8])), n_scales)
        scales = field_scales = np.exp(logs)
        log_cells = priors.scale.logpdf(scales) + logs + np.log(logs[1] - logs[0])
    different, index = np.unique(field_scales, return_inverse=True)
    log_likelihood = np.array(
        [[log_conditionals(family, scale, labels, beta) for beta in betas] for scale in different]
    )
    log_cells = log_cells[:, None] + priors.beta.logpdf(betas) + np.log(betas[1] - betas[0])
    log_mass = log_likelihood[index] + log_cells
    log_evidence = logsumexp(log_mass)
    return Posterior.from_nodes(
        np.tile(betas, len(scales)),
        np.repeat(scales, len(betas)),
        np.exp(log_mass - log_evidence).ravel(),
        family.scale_name,
        log_evidence=log_evidence,
    )


def assert_agree(posterior, expected, tolerance):
    """Means and sds within so many posterior sds, and so much of the log evidence."""
    sd = expected.sd()
    assert (abs(posterior.mean() - expected.mean()) < tolerance * sd).all()
    assert (abs(posterior.sd() - sd) < tolerance * sd).all()
    assert posterior.log_evidence == pytest.approx(expected.log_evidence, abs=tolerance)


@pytest.mark.parametrize("external_field", EXTERNAL_FIELDS)
@pytest.mark.parametrize("model", MODELS)
def test_the_posterior_is_that_of_a_fine_grid(model, external_field):
    family = family_of(model, external_field)
    labels = labels_of(family)
    priors = Priors(BETA, K if family.is_discrete else SIGMA)
    expected = grid_posterior(family, labels, priors, BETAS)
    posterior = Pseudolikelihood().infer(None, family, labels, priors)
    if family.is_discrete:
        assert_agree(posterior, expected, 1e-6)
    elif family.is_smooth:
        # Scales of less than exp(-10) of the largest density are left out: some 1e-3 of it all.
        assert_agree(posterior, expected, 3e-3)
    else:  # a step function of sigma, cut at its steps
        assert_agree(posterior, expected, 3e-3)


@pytest.mark.parametrize("model", MODELS)
def test_the_log_pseudolikelihood_is_the_sum_of_log_conditionals(model):
    alpha = np.array([0.4, -0.3, 0.0])
    family = family_of(model, alpha)
    labels, betas = labels_of(family), np.array([-3.0, 0.0, 0.7, 25.0])
    evaluate = log_pseudolikelihood(family.support(2, labels), labels, alpha)
    expected = [log_conditionals(family, 2, labels, beta) for beta in betas]
    np.testing.assert_allclose(evaluate(betas), expected, rtol=1e-12)


def test_the_log_pseudolikelihood_stays_finite_for_absurd_betas():
    family = family_of("gaussian")
    labels = labels_of(family)
    evaluate = log_pseudolikelihood(family.support(0.5, labels), labels, np.zeros(3))
    assert np.isfinite(evaluate(np.array([-1e8, 1e8]))).all()


@pytest.mark.parametrize("size", [0.5, 3.0, 60.0, 400.0])
def test_the_sum_of_logs_is_right_for_numbers_of_any_size(rng, size):
    gains, offsets = size * rng.normal(size=(2, 3, 300))
    betas, values = np.array([-1.0, 0.0, 0.3, 1.5]), np.empty(4)
    log_pseudolikelihoods(betas, gains, offsets, values)
    log_odds = np.minimum(offsets + betas[:, None, None] * gains, 700.0)
    expected = -np.log1p(np.exp(log_odds).sum(axis=1)).sum(axis=1)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("load", [load_wine, load_pima])
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_twice_as_many_scales_move_no_mean_by_a_twentieth_of_its_sd(load, kernel):
    family, labels = training_set(load, kernel)
    posterior = Pseudolikelihood().infer(None, family, labels)
    denser = Pseudolikelihood(density=2.0).infer(None, family, labels)
    assert len(np.unique(denser.sigma)) > 1.5 * len(np.unique(posterior.sigma))
    assert (abs(posterior.mean() - denser.mean()) < 0.05 * denser.sd()).all()
    assert posterior.outside_mass < 1e-3


def test_priors_without_bounds_are_integrated_to_their_tails():
    family = family_of("gaussian")
    labels = labels_of(family)
    priors = Priors(stats.logistic(0.0, 1.0), stats.lognorm(0.5))
    expected = grid_posterior(family, labels, priors, np.linspace(-20.0, 20.0, 120), n_scales=30)
    assert_agree(Pseudolikelihood().infer(None, family, labels, priors), expected, 3e-3)


def test_a_prior_of_beta_without_a_mean_is_integrated():
    family = family_of("k")
    labels, priors = labels_of(family), Priors(stats.cauchy(0.0, 1.0), K)
    posterior = Pseudolikelihood().infer(None, family, labels, priors)
    logs, step = np.linspace(-16.0, 16.0, 640, retstep=True)  # of beta = sinh(log) to 4e6
    betas = np.sinh(logs)
    evaluators = [
        log_pseudolikelihood(family.support(k, labels), labels, np.zeros(3)) for k in range(1, 7)
    ]
    log_masses = [
        f(betas) + priors.log_density(betas, 1) + np.log(np.cosh(logs)) for f in evaluators
    ]
    log_evidence = logsumexp(log_masses) + np.log(step)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=1e-3)


def test_hard_edges_of_the_priors_are_hard_edges_of_the_posterior():
    family = family_of("gaussian")
    labels = labels_of(family)
    priors = Priors(stats.uniform(0.5, 1.0), stats.uniform(0.5, 1.0))
    posterior = Pseudolikelihood().infer(None, family, labels, priors)
    for values in (posterior.beta, posterior.sigma):
        assert values.min() >= 0.5
        assert values.max() <= 1.5
    # Midpoints of 40 cells a side: the error of the sum is of the order of 40^-2.
    cells = 0.5 + (np.arange(40) + 0.5) / 40
    values = np.array(
        [[log_conditionals(family, sigma, labels, beta) for beta in cells] for sigma in cells]
    )
    weight = np.exp(values - logsumexp(values))
    assert posterior.log_evidence == pytest.approx(logsumexp(values) - np.log(40**2), abs=1e-3)
    assert posterior.mean()["beta"] == pytest.approx((weight.sum(axis=0) * cells).sum(), abs=1e-3)
    assert posterior.mean()["sigma"] == pytest.approx((weight.sum(axis=1) * cells).sum(), abs=1e-3)


def test_a_prior_of_sigma_below_where_the_field_changes_is_kept():
    family = family_of("gaussian")
    prior = stats.gamma(2.0, scale=1e-4 * family.scale_range[0])
    posterior = Pseudolikelihood().infer(None, family, labels_of(family), Priors(BETA, prior))
    # The field is that of the nearest neighbour throughout, and sigma as it was before.
    assert posterior.mean()["sigma"] == pytest.approx(prior.mean(), rel=5e-3)
    assert posterior.sd()["sigma"] == pytest.approx(prior.std(), rel=5e-3)


def test_a_prior_of_sigma_that_reaches_below_zero_is_used_above():
    family = family_of("gaussian")
    labels = labels_of(family)
    whole, cut = stats.norm(1.0, 1.0), stats.truncnorm(-1.0, np.inf, 1.0, 1.0)
    one, two = (
        Pseudolikelihood().infer(None, family, labels, Priors(BETA, prior))
        for prior in (whole, cut)
    )
    assert (one.sigma > 0.0).all()
    assert (abs(one.mean() - two.mean()) < 3e-3 * two.sd()).all()
    assert one.log_evidence == pytest.approx(two.log_evidence + whole.logsf(0.0), abs=3e-3)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("is_directed", [False, True])
def test_labels_that_alternate_on_a_line_give_a_negative_beta(k, is_directed):
    points = np.arange(30.0)[:, None]
    family = NeighborFamily.from_distances(distance_matrix(points), 2, is_directed=is_directed)
    priors = Priors(stats.norm(0.0, 5.0), stats.randint(k, k + 1))
    posterior = Pseudolikelihood().infer(None, family, np.arange(30) % 2, priors)
    assert posterior.quantile(0.999)["beta"] < 0.0
    assert (posterior.k == k).all()


def test_many_k_are_scanned_by_stretches_and_then_summed_one_by_one():
    family, labels = training_set(load_pima, "k")
    posterior = Pseudolikelihood().infer(None, family, labels, Priors(BETA, stats.randint(1, 67)))
    betas = np.linspace(0.0, 4.0, 26)
    log_masses = np.array(
        [
            logsumexp([log_conditionals(family, k, labels, b) + BETA.logpdf(b) for b in betas])
            for k in range(1, 67)
        ]
    )
    expected = np.exp(log_masses - logsumexp(log_masses))
    table = posterior.table().reindex(np.arange(1, 67), fill_value=0.0)
    np.testing.assert_allclose(table, expected, atol=1e-4)


def test_the_estimate_is_of_attraction_where_stratified_labels_look_repelled():
    family, labels = training_set(load_crabs, "gaussian")
    paper = Priors(stats.norm(0.0, 50.0), stats.uniform(0.0, 100.0))
    assert Pseudolikelihood().infer(None, family, labels, paper).mean()["beta"] < 0.0
    beta, sigma = pseudolikelihood_estimate(family, labels, paper)
    assert beta > 0.0
    assert 0.0 < sigma < 100.0


def test_the_estimate_keeps_the_prior_above_zero():
    family = family_of("k")
    labels, betas = labels_of(family), np.linspace(0.0, 12.0, 2_001)[1:] - 0.003
    beta, k = pseudolikelihood_estimate(family, labels, Priors(BETA, K))
    log_mass = np.array([log_conditionals(family, k, labels, b) for b in betas])
    weight = np.exp(log_mass + BETA.logpdf(betas))
    assert beta == pytest.approx(np.average(betas, weights=weight), rel=1e-4)


def test_the_estimate_is_the_mean_at_the_most_probable_k():
    family = family_of("k")
    labels, priors = labels_of(family), Priors(stats.uniform(0.0, 3.0), K)
    posterior = Pseudolikelihood().infer(None, family, labels, priors)
    beta, k = pseudolikelihood_estimate(family, labels, priors)
    assert k == posterior.table().idxmax()
    is_k = posterior.k == k
    expected = np.average(posterior.beta[is_k], weights=posterior.weight[is_k])
    assert beta == pytest.approx(expected, rel=1e-6)


def test_the_estimate_is_negative_where_the_prior_allows_nothing_else():
    family = family_of("gaussian")
    priors = Priors(stats.uniform(-3.0, 2.0), SIGMA)
    beta, _ = pseudolikelihood_estimate(family, labels_of(family), priors)
    assert -3.0 < beta < -1.0


def test_the_estimate_works_in_the_last_of_the_upper_tail():
    family = family_of("gaussian")
    priors = Priors(stats.norm(-10.0, 1.0), SIGMA)
    beta, _ = pseudolikelihood_estimate(family, labels_of(family), priors)
    assert 0.0 < beta < 0.5  # of that prior above zero the mean is 0.1


def test_impossible_problems_are_refused():
    family = family_of("gaussian")
    labels = labels_of(family)
    with pytest.raises(ValueError, match="n_points >= 3; got n_points=2"):
        Pseudolikelihood().infer(None, family_of("gaussian", n_points=2), [0, 1])
    with pytest.raises(ValueError, match=r"Expected 10 whole-number labels.*got shape \(9,\)"):
        Pseudolikelihood().infer(None, family, labels[:-1])
    with pytest.raises(ValueError, match="Expected labels from 0 to n_classes - 1 = 2"):
        Pseudolikelihood().infer(None, family, labels + 1)
    with pytest.raises(ValueError, match=r"Expected 10 whole-number labels.*float64"):
        pseudolikelihood_estimate(family, labels.astype(float))


@pytest.mark.parametrize("density", [0.0, -1.0])
def test_a_density_that_is_not_positive_is_refused(density):
    family = family_of("gaussian")
    with pytest.raises(ValueError, match="Expected density > 0"):
        Pseudolikelihood(density=density).infer(None, family, labels_of(family))
