"""Simulation-based calibration of all engines on clustered points, with all kernels.

Forty points in three clusters, three classes: neighbours agree, and clusters weigh on each other.
"""

import warnings

import numpy as np
import pytest
from sbc import ecdf_p_value, sbc_ranks
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import (
    AuxiliaryVariable,
    Exchange,
    PathSampling,
    Priors,
    Pseudolikelihood,
)
from nearfield.sampling import draw_labels, draw_labels_cluster

MODELS = ["gaussian", "exponential", "radius", "k"]
N_POINTS, N_CLASSES = 40, 3
LEVEL = 1e-3
SHORT = {"n_draws": 600, "n_burn": 400, "n_sweeps": 50, "n_chains": 1}
ENGINES = {
    "path sampling": PathSampling(),
    "exchange": Exchange(**SHORT),
    "auxiliary variable": AuxiliaryVariable(**SHORT),
}
# Chains of the auxiliary variable method mix slowly: 600 draws fail over 300 replicates.
LONG_ENGINES = ENGINES | {
    "auxiliary variable": AuxiliaryVariable(n_draws=3_000, n_burn=2_000, n_sweeps=50, n_chains=1)
}


def clustered_family(model):
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    points = centres[np.arange(N_POINTS) % 3] + rng.normal(size=(N_POINTS, 2))
    if model == "k":
        return NeighborFamily.from_distances(distance_matrix(points), N_CLASSES)
    return DistanceFamily(distance_matrix(points), model, N_CLASSES)


def clustered_priors(family):
    beta = stats.uniform(0.0, 2.5)
    if family.is_discrete:
        return Priors(beta, stats.randint(1, N_POINTS // 2))
    return Priors(beta, stats.uniform(0.2, 2.8))


def draw_at(rng, family, beta, scale):
    """Draw labels by cluster moves and Gibbs sweeps, many more than 40 points need."""
    field = family.at(scale)
    return draw_labels(rng, field, beta, 200, draw_labels_cluster(rng, field, beta, 200))


def calibration_p_values(engine, model, n_replicates, seed=1):
    family = clustered_family(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranks = sbc_ranks(
            np.random.default_rng(seed),
            engine.infer,
            family,
            clustered_priors(family),
            n_replicates,
            draw=draw_at,
        )
    return [ecdf_p_value(values) for values in ranks.values()]


@pytest.mark.parametrize("name", ENGINES)
def test_engines_are_calibrated_on_clusters(name):
    assert min(calibration_p_values(ENGINES[name], "gaussian", 20)) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", LONG_ENGINES)
def test_engines_are_calibrated_on_clusters_over_many_replicates(name, model):
    assert min(calibration_p_values(LONG_ENGINES[name], model, 300)) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_intervals_of_pseudolikelihood_cover_about_what_they_claim(model):
    family = clustered_family(model)
    priors, n_covered = clustered_priors(family), 0
    for rng in np.random.default_rng(1).spawn(300):
        beta, scale = (p.rvs(random_state=rng) for p in (priors.beta, priors.scale))
        posterior = Pseudolikelihood().infer(
            None, family, draw_at(rng, family, beta, scale), priors
        )
        lower, upper = posterior.quantile([0.05, 0.95])["beta"]
        n_covered += lower < beta < upper
    assert 0.84 < n_covered / 300 < 0.97
