"""Samplers and engines over a schedule of seeds, with a stated rate of false alarms.

Other tests fix one seed: what passes with it may fail with others. Here every seed of a schedule
gives a p-value; the smallest of them is compared with its share of the false-alarm rate, and all
of them with the uniform distribution. If everything is right this file fails with a probability of
about `FALSE_ALARMS` a run, at most so if chi-square tests were exact and the two p-values of a
calibration independent. ``NEARFIELD_FIRST_SEED`` starts another schedule.
"""

import os

import numpy as np
import pytest
from oracle import tiny_family, tiny_priors
from sbc import chi_square_p_value, sbc_ranks
from scipy.stats import kstest

from nearfield.field.enumeration import label_distribution
from nearfield.inference import Exchange, PathSampling
from nearfield.sampling import draw_labels, draw_labels_cluster, draw_labels_perfect

FALSE_ALARMS = 1e-3
FIRST_SEED = int(os.environ.get("NEARFIELD_FIRST_SEED", "1"))
SAMPLERS = {
    "gibbs": lambda rng, field: draw_labels(rng, field, 0.8, n_sweeps=200),
    "cluster": lambda rng, field: draw_labels_cluster(rng, field, 0.8, n_sweeps=50),
    "perfect": lambda rng, field: draw_labels_perfect(rng, field, 0.8),
}
ENGINES = {
    "path sampling": PathSampling(n_draws=1),
    "exchange": Exchange(n_draws=300, n_burn=100, n_sweeps=10, n_chains=1),
}
N_TESTS = len(SAMPLERS) + len(ENGINES)
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def assert_uniform(p_values):
    """Fail with probability FALSE_ALARMS / N_TESTS if the p-values are uniform."""
    level = FALSE_ALARMS / N_TESTS / 2
    assert min(p_values) > level / len(p_values)
    assert kstest(p_values, "uniform").pvalue > level


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_follow_the_field_over_seeds(name, random_field, fit_p_value):
    field = random_field(4, 2, sigma=1.0)
    probabilities = label_distribution(field, 0.8)[1]
    p_values = []
    for seed in range(FIRST_SEED, FIRST_SEED + 50):
        rng = np.random.default_rng(seed)
        draws = [SAMPLERS[name](rng, field) for _ in range(1_000)]
        p_values.append(fit_p_value(draws, 2, probabilities))
    assert_uniform(p_values)


@pytest.mark.parametrize("name", ENGINES)
def test_engines_are_calibrated_over_seeds(name):
    family = tiny_family("gaussian", n_points=5, n_classes=2)
    p_values = []
    for seed in range(FIRST_SEED, FIRST_SEED + 10):
        rng = np.random.default_rng(seed)
        ranks = sbc_ranks(rng, ENGINES[name].infer, family, tiny_priors(family), 60)
        p_values += [chi_square_p_value(ranks["beta"]), chi_square_p_value(ranks["scale"])]
    assert_uniform(p_values)
