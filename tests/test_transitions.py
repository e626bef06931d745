"""Path sampling against exact posteriors of uniform fields, across first-order transitions."""

import numpy as np
import pytest
from uniform_fields import (
    Case,
    Errors,
    blocks,
    log_partition,
    noise,
    run,
    run_uniform,
    two_clusters,
)

from nearfield.field import DistanceFamily
from nearfield.field.enumeration import uniform_log_partition
from nearfield.log_partition import scan_curve

CASES = [Case(30, 10, 0.8), Case(60, 10, 0.85), Case(60, 5, None), Case(150, 2, 0.6)]
BARRIER = Case(150, 10, 0.8)  # seed 2: restrained states once ended on top of the barrier
LONG_CASES = [
    Case(n_points, n_classes, share)
    for n_points in (30, 60, 150, 300, 1_000)
    for n_classes in (2, 3, 5, 10)
    for share in (1.0 / n_classes, 0.6, 0.8, 0.85, 0.97, None)
]
LINKED = [(60, 3, 0.8, 0.05), (60, 3, 0.8, 0.3)]
NOISE = [Case(100, 10, 0.88), Case(150, 5, 0.8), Case(60, 10, 0.6)]
BLOCKS = [(2, Case(60, 10, 0.85)), (4, Case(30, 5, 0.8))]


def assert_exact(errors: Errors):
    assert abs(errors.mean) < 0.1
    assert abs(errors.sd) < 0.05
    assert abs(errors.log_evidence) < 0.1 + 3.0 * errors.log_evidence_error
    assert errors.n_warnings == 0


def test_the_oracle_is_the_convolution_of_the_package():
    betas = np.array([-1.0, 0.5, 2.4, 9.0])
    ours = log_partition(30, 5, betas)
    np.testing.assert_allclose(ours, uniform_log_partition(30, 5, betas), rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_posterior_of_the_uniform_field_is_exact(case):
    assert_exact(run_uniform(case, seed=0))


def test_restrained_states_lead_past_the_barrier():
    assert_exact(run_uniform(BARRIER, seed=2))


def test_log_z_of_fields_without_links_adds():
    family, labels, priors, exact = blocks(2, Case(30, 10, 0.8))
    assert_exact(run(family, labels, exact, 0, priors))


def test_two_tight_clusters_with_few_links_are_exact():
    family, labels, priors, exact = two_clusters(24, 3, 0.8, 0.05)
    assert_exact(run(family, labels, exact, 0, priors))


def test_features_of_noise_agree_with_a_curve():
    family, labels, priors, exact = noise(Case(40, 10, 0.85), n_curves=2)
    assert_exact(run(family, labels, exact, 0, priors))


def test_scans_recognise_a_transition_that_chains_jump_across_one_by_one():
    # A rough curve may be off by a few nats; one that misses the transition is off by 20 to 90.
    field = DistanceFamily(1.0 - np.eye(150), "gaussian", 10).at(1.0)
    beta = np.array([3.5])
    exact = log_partition(150, 10, beta)
    curves = [scan_curve(np.random.default_rng(seed), field, 0.0, 4.0) for seed in range(12)]
    errors = [float(curve.log_partition(beta)[0] - exact[0]) for curve in curves]
    assert all(curve.is_crossed for curve in curves)
    assert np.median(np.abs(errors)) < 6.0
    assert np.sum(np.abs(errors) > 15.0) <= 1


def assert_exact_over_seeds(all_errors):
    """Check every seed, and that the reported errors are those of the spread over seeds.

    0.01 is added to both, so that errors that do not matter cannot fail.
    """
    for errors in all_errors:
        assert_exact(errors)
    off = np.array([[e.mean, e.log_evidence] for e in all_errors])
    reported = np.array([[e.mean_error, e.log_evidence_error] for e in all_errors])
    ratios = (np.sqrt((reported**2).mean(axis=0)) + 0.01) / (off.std(axis=0, ddof=1) + 0.01)
    assert (ratios > 1.0 / 1.5).all()
    assert (ratios < 1.5).all()


@pytest.mark.long
@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_the_posterior_of_uniform_fields_is_exact_over_seeds(case):
    assert_exact_over_seeds([run_uniform(case, seed) for seed in range(20)])


@pytest.mark.long
@pytest.mark.parametrize("settings", LINKED, ids=str)
def test_clusters_with_links_are_exact_over_seeds(settings):
    family, labels, priors, exact = two_clusters(*settings)
    assert_exact_over_seeds([run(family, labels, exact, seed, priors) for seed in range(20)])


@pytest.mark.long
@pytest.mark.parametrize("settings", BLOCKS, ids=str)
def test_fields_without_links_are_exact_over_seeds(settings):
    family, labels, priors, exact = blocks(*settings)
    assert_exact_over_seeds([run(family, labels, exact, seed, priors) for seed in range(20)])


@pytest.mark.long
@pytest.mark.parametrize("case", NOISE, ids=str)
def test_features_of_noise_agree_with_long_curves_over_seeds(case):
    family, labels, priors, exact = noise(case)
    assert_exact_over_seeds([run(family, labels, exact, seed, priors) for seed in range(20)])
