"""One method on one split of one data set: what it predicts, and how good that is."""

import copy
import warnings
from typing import Any

import numpy as np
from scipy import stats

from nearfield.reproduction.metrics import point_losses, predictive_entropy
from nearfield.reproduction.paper import KERNELS, MAX_SIGMA, SPECTRA
from nearfield.reproduction.problems import DataHome, Problem, split, stream
from nearfield.reproduction.units import Result

PREDICTIVES = ("joint", "printed")
_LEAST_MASS = 0.01  # below it, what a posterior says of beta >= 0 is not to be trusted


def run_nearest(name: str, index: int, seed: int, data_home: DataHome = None) -> Result:
    """Measure k-nn with k by leave-one-out, and on spectra its errors for every k."""
    from nearfield.estimators import KNeighborsClassifierCV

    problem = split(name, index, seed, data_home)
    model = KNeighborsClassifierCV().fit(problem.train_features, problem.train_labels)
    probabilities = model.predict_proba(problem.test_features)
    curves = {}
    if name in SPECTRA:  # figures 1 and 2
        curves = {
            "leave_one_out_errors": model.cv_errors_.tolist(),
            "test_errors": errors_of_every_k(model, problem),
        }
    return {
        "priors": {"": {"losses": {"votes": point_losses(probabilities, problem.test_labels)}}},
        "k": int(model.n_neighbors_),
        "n_train": len(problem.train_labels),
        "n_test": len(problem.test_labels),
        **curves,
    }


def run_distance(
    name: str,
    method: str,
    index: int,
    seed: int,
    inference: str,
    prior: str,
    data_home: DataHome = None,
) -> Result:
    """Measure a d-nn model with both predictives, which share one posterior.

    With ``prior="both"`` the two priors share one fit as well: the posterior under the cut prior is
    that under the paper's, given that beta >= 0.
    """
    problem = split(name, index, seed, data_home)
    random_state = stream(seed, name, method, index)
    first = "paper" if prior == "both" else prior
    model = distance_model(name, method, inference, first, random_state)
    complaints = fit_quietly(model, problem)
    posteriors = {first: model.posterior_}
    if prior == "both":
        posteriors["cut"] = given_attraction(model.posterior_)
        if posteriors["cut"] is None:  # too little of it is there to go by
            again = distance_model(name, method, inference, "cut", random_state)
            complaints += fit_quietly(again, problem)
            posteriors["cut"] = again.posterior_
    return {
        "priors": {
            prior: measure(model, posterior, problem) for prior, posterior in posteriors.items()
        },
        "complaints": complaints,
        "n_train": len(problem.train_labels),
        "n_test": len(problem.test_labels),
    }


def given_attraction(posterior: Any) -> Any:
    """Return the posterior given that beta >= 0, or None where that has next to no mass."""
    from nearfield.inference import Posterior

    keep = posterior.beta >= 0.0
    mass = float(posterior.weight[keep].sum())
    if mass < _LEAST_MASS:
        return None
    return Posterior.from_nodes(
        posterior.beta[keep], posterior.scale[keep], posterior.weight[keep] / mass, "sigma"
    )


def measure(model: Any, posterior: Any, problem: Problem) -> Result:
    """Predict the test points from a posterior, both ways; nothing is fitted again."""
    from nearfield.prediction import Predictor

    distances = model.metric_space_.distances_to(problem.test_features)
    probabilities = {
        predictive: Predictor(posterior, model.family_, model.labels_, predictive).probabilities(
            distances
        )
        for predictive in PREDICTIVES
    }
    return {
        "losses": {
            predictive: point_losses(p, problem.test_labels)
            for predictive, p in probabilities.items()
        },
        "errors_by_entropy": errors_by_entropy(probabilities["joint"], problem.test_labels),
        "posterior": describe_posterior(posterior, model.posterior_.acceptance_rate),
    }


def distance_model(name: str, method: str, inference: str, prior: str, random_state: int) -> Any:
    """Make a d-nn classifier as the paper has it for a data set."""
    from nearfield.estimators import DistanceNeighborsClassifier

    return DistanceNeighborsClassifier(
        KERNELS[method],
        inference=engine(name, inference),
        prior_beta=beta_prior(prior),
        prior_sigma=sigma_prior(name),
        random_state=random_state,
    )


def engine(name: str, inference: str) -> Any:
    """Choose the engine; exchange as in the paper, one chain, longer for the olive oils."""
    from nearfield.inference import Exchange

    if inference != "exchange":
        return inference
    if name == "olive-oil":
        return Exchange(n_draws=30_000, n_burn=20_000, n_sweeps=1_000, n_chains=1)
    return Exchange(n_draws=10_000, n_burn=10_000, n_sweeps=1_000, n_chains=1)


def beta_prior(prior: str) -> Any:
    """Return N(0, 50^2), or the same given that beta >= 0."""
    return stats.norm(0.0, 50.0) if prior == "paper" else stats.halfnorm(scale=50.0)


def sigma_prior(name: str) -> Any:
    """Return the paper's uniform prior of sigma for a data set."""
    return stats.uniform(0.0, MAX_SIGMA.get(name, 100.0))


def fit_quietly(model: Any, problem: Problem) -> list[str]:
    """Fit, and return what it warned of in place of a warning: the report tells."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(problem.train_features, problem.train_labels)
    return [str(warning.message) for warning in caught]


def describe_posterior(posterior: Any, acceptance_rate: float | None) -> Result:
    """Summarise a posterior in a few numbers."""
    mean, sd = posterior.mean(), posterior.sd()
    return {
        "beta_mean": float(mean["beta"]),
        "beta_sd": float(sd["beta"]),
        "sigma_mean": float(mean["sigma"]),
        "sigma_sd": float(sd["sigma"]),
        "mass_below_zero": float(posterior.weight[posterior.beta < 0.0].sum()),
        "acceptance_rate": acceptance_rate,
    }


def errors_by_entropy(probabilities: Any, labels: Any, n_groups: int = 3) -> list[float]:
    """Sort points by their predictive entropy; return the error of each group, the surest first."""
    order = np.argsort(predictive_entropy(probabilities), kind="stable")
    is_wrong = probabilities.argmax(axis=1) != labels
    return [float(is_wrong[part].mean()) for part in np.array_split(order, n_groups)]


def errors_of_every_k(model: Any, problem: Problem) -> list[float]:
    """Return the test error of k-nn for every k that leave-one-out tried."""
    errors = []
    for k in range(1, len(model.cv_errors_) + 1):
        other = copy.copy(model)
        other.n_neighbors_ = k
        errors.append(1.0 - float(other.score(problem.test_features, problem.test_labels)))
    return errors
