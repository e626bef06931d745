"""Path sampling against exact posteriors of uniform fields, across first-order transitions."""

import numpy as np
import pytest
from uniform_fields import Case, Errors, blocks, log_partition, run, run_uniform, two_clusters

from nearfield.field.enumeration import uniform_log_partition

CASES = [Case(30, 10, 0.8), Case(60, 10, 0.85), Case(60, 5, None), Case(150, 2, 0.6)]
LONG_CASES = [
    Case(n_points, n_classes, share)
    for n_points in (30, 60, 150, 300, 1_000)
    for n_classes in (2, 3, 5, 10)
    for share in (1.0 / n_classes, 0.6, 0.8, 0.85, 0.97, None)
]
LINKED = [(60, 3, 0.8, 0.05), (60, 3, 0.8, 0.3)]
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


def test_log_z_of_fields_without_links_adds():
    family, labels, priors, exact = blocks(2, Case(30, 10, 0.8))
    assert_exact(run(family, labels, exact, 0, priors))


def test_two_tight_clusters_with_few_links_are_exact():
    family, labels, priors, exact = two_clusters(24, 3, 0.8, 0.05)
    assert_exact(run(family, labels, exact, 0, priors))


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
