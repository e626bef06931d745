"""Path sampling against the exact posterior of uniform fields, across first-order transitions."""

import numpy as np
import pytest
from scipy import stats

from nearfield.field import DistanceFamily
from nearfield.field.enumeration import uniform_log_partition
from nearfield.inference import PathSampling, Priors

PRIORS = Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))
# Numbers of points and classes, and the share of the largest class.
CASES = [(30, 10, 0.8), (60, 10, 0.85), (150, 5, 0.8), (150, 2, 0.6)]
LONG_CASES = [
    (n_points, n_classes, share)
    for n_points in (30, 60, 150, 300)
    for n_classes in (2, 3, 5, 10)
    for share in (1.0 / n_classes, 0.6, 0.85, 0.97)
]


def labels_with(n_points, n_classes, share):
    n_first = round(share * n_points)
    return np.concatenate(
        [np.zeros(n_first, dtype=int), 1 + np.arange(n_points - n_first) % (n_classes - 1)]
    )


def exact_moments(n_classes, labels):
    """Mean and sd of beta, and the log evidence, by a fine grid of the closed form."""
    n_points, counts = len(labels), np.bincount(labels)
    agreement = (counts * (counts - 1)).sum() / (n_points - 1)

    def log_density(betas):
        log_z = uniform_log_partition(n_points, n_classes, betas)
        return betas * agreement - log_z + PRIORS.log_beta(betas)

    coarse = np.sinh(np.linspace(0.0, np.arcsinh(300.0), 400))
    values = log_density(coarse)
    inside = np.flatnonzero(values > values.max() - 30.0)
    ends = coarse[[max(inside[0] - 1, 0), min(inside[-1] + 1, len(coarse) - 1)]]
    betas = np.linspace(*ends, 3_000)
    values = log_density(betas)
    weights = np.exp(values - values.max())
    log_evidence = values.max() + np.log(weights.sum() * (betas[1] - betas[0]))
    weights /= weights.sum()
    mean = weights @ betas
    return mean, np.sqrt(weights @ (betas - mean) ** 2), log_evidence


def errors_of(n_points, n_classes, share, n_seeds):
    """Errors of mean (in sd), sd (relative) and log evidence, and the reported ones, per seed."""
    labels = labels_with(n_points, n_classes, share)
    mean, sd, log_evidence = exact_moments(n_classes, labels)
    family = DistanceFamily(1.0 - np.eye(n_points), "gaussian", n_classes)
    rows = []
    for seed in range(n_seeds):
        posterior = PathSampling().infer(np.random.default_rng(seed), family, labels, PRIORS)
        rows.append(
            [
                (posterior.mean()["beta"] - mean) / sd,
                posterior.sd()["beta"] / sd - 1.0,
                posterior.log_evidence - log_evidence,
                posterior.mean_error[0] / sd,
                posterior.log_evidence_error,
            ]
        )
    return np.array(rows)


def assert_exact(errors):
    means, sds, evidences, _, reported = errors.T
    assert np.abs(means).max() < 0.1
    assert np.abs(sds).max() < 0.05
    assert (np.abs(evidences) < 0.1 + 3.0 * reported).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_posterior_of_the_uniform_field_is_exact(case):
    assert_exact(errors_of(*case, n_seeds=2))


@pytest.mark.long
@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_the_posterior_of_uniform_fields_is_exact_over_seeds(case):
    errors = errors_of(*case, n_seeds=20)
    assert_exact(errors)
    spread, reported = errors[:, 2].std(ddof=1), np.sqrt((errors[:, 4] ** 2).mean())
    assert 1.0 / 1.5 < (reported + 0.01) / (spread + 0.01) < 2.5
