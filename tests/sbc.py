"""Simulation-based calibration (Talts et al., 2018): a right engine ranks the truth fairly.

Parameters from the priors, labels from the field at them, and the rank of the true value among
posterior draws: uniform, whatever the data, if and only if the posterior is right.
"""

import numpy as np
from scipy.stats import chisquare

from nearfield.field.enumeration import label_distribution


def draw_by_enumeration(rng, family, beta, scale):
    """Draw labels of a tiny field, exactly."""
    labelings, probabilities = label_distribution(family.at(scale), beta)
    return labelings[rng.choice(len(labelings), p=probabilities)]


def sbc_ranks(rng, infer, family, priors, n_replicates, n_levels=20, draw=draw_by_enumeration):
    """Rank true parameters among posterior draws.

    `infer(rng, family, labels, priors)` gives a Posterior, `draw(rng, family, beta, scale)` labels.
    Ties, as of k, are broken at random.

    Returns
    -------
    ranks : dict of ndarray of int, shape (n_replicates,)
        Of beta and of the scale, from 0 to n_levels - 1; uniform if the engine is right.
    """
    ranks = {"beta": [], "scale": []}
    for stream in rng.spawn(n_replicates):
        beta = priors.beta.rvs(random_state=stream)
        scale = priors.scale.rvs(random_state=stream)
        labels = draw(stream, family, beta, scale)
        posterior = infer(stream, family, labels, priors)
        drawn_betas, drawn_scales = posterior.sample(n_levels - 1, stream)
        ranks["beta"].append(_rank(stream, beta, drawn_betas))
        ranks["scale"].append(_rank(stream, scale, drawn_scales))
    return {name: np.array(values) for name, values in ranks.items()}


def chi_square_p_value(ranks, n_levels=20, n_bins=10):
    """Test whether ranks are uniform, in bins of equal size."""
    counts = np.bincount(ranks * n_bins // n_levels, minlength=n_bins)
    return chisquare(counts).pvalue


def ecdf_p_value(ranks, n_levels=20, n_simulations=2_000):
    """Test whether the ECDF of ranks stays within a band that holds for all levels at once.

    The widest distance from uniform, in standard errors of its level, beside that of simulated
    uniform ranks (Sailynoja et al., 2022).
    """
    simulated = np.random.default_rng(0).integers(n_levels, size=(n_simulations, len(ranks)))
    simulated_distances = [_ecdf_distance(row, n_levels) for row in simulated]
    n_wider = np.sum(np.array(simulated_distances) >= _ecdf_distance(ranks, n_levels))
    return (n_wider + 1) / (n_simulations + 1)


def _ecdf_distance(ranks, n_levels):
    levels = np.arange(1, n_levels) / n_levels
    ecdf = np.cumsum(np.bincount(ranks, minlength=n_levels))[:-1] / len(ranks)
    return np.max(np.abs(ecdf - levels) / np.sqrt(levels * (1.0 - levels) / len(ranks)))


def _rank(rng, truth, draws):
    return np.sum(draws < truth) + rng.integers(np.sum(draws == truth) + 1)
