"""One method on one split of one data set: fit, predict, measure."""

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nearfield.estimators import DistanceNeighborsClassifier, KNeighborsClassifierCV
from nearfield.inference import Exchange, Posterior
from nearfield.prediction import Predictor
from nearfield.reproduction.metrics import point_losses, predictive_entropy
from nearfield.reproduction.paper import KERNELS, MAX_SIGMA, SPECTRA
from nearfield.reproduction.problems import DataHome, Problem, split, stream
from nearfield.runs import Result

PREDICTIVES = ("joint", "printed")
_LEAST_MASS = 0.01  # of beta >= 0: with less, the truncated prior gets a fit of its own


def run_nearest(name: str, index: int, seed: int, data_home: DataHome = None) -> Result:
    """Measure k-nn with k by leave-one-out; on spectra, its errors for every k as well."""
    problem = split(name, index, seed, data_home)
    model = KNeighborsClassifierCV().fit(problem.train_features, problem.train_labels)
    probabilities = model.predict_proba(problem.test_features)
    curves = {}
    if name in SPECTRA:  # figures 1 and 2
        curves = {
            "leave_one_out_errors": model.cv_errors_.tolist(),
            "test_errors": _errors_of_every_k(model, problem),
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
    chain: tuple[int, int, int] | None = None,
) -> Result:
    """Measure a d-nn model under one or both priors of beta, with both predictives.

    The posterior under the truncated prior is the one under the paper's, given that beta >= 0, so
    that with ``prior="both"`` one fit serves both.
    """
    problem = split(name, index, seed, data_home)
    random_state = stream(seed, name, method, index)
    first = "paper" if prior == "both" else prior
    model = make_model(name, method, inference, first, random_state, chain)
    messages = fit_quietly(model, problem)
    posteriors = {first: model.posterior_}
    if prior == "both":
        posteriors["cut"] = _given_attraction(model.posterior_)
        if posteriors["cut"] is None:
            again = make_model(name, method, inference, "cut", random_state, chain)
            messages += fit_quietly(again, problem)
            posteriors["cut"] = again.posterior_
    return {
        "priors": {
            prior: _measure(model, posterior, problem) for prior, posterior in posteriors.items()
        },
        "complaints": messages,
        "n_train": len(problem.train_labels),
        "n_test": len(problem.test_labels),
    }


def make_model(
    name: str, method: str, inference: str, prior: str, random_state: int, chain: Any = None
) -> Any:
    """Make k-nn, or a d-nn classifier with the paper's settings for a data set."""
    if method == "k-nn":
        return KNeighborsClassifierCV()
    return DistanceNeighborsClassifier(
        KERNELS[method],
        inference=engine(name, inference, chain),
        prior_beta=beta_prior(prior),
        prior_sigma=sigma_prior(name),
        random_state=random_state,
    )


def engine(name: str, inference: str, chain: tuple[int, int, int] | None = None) -> Any:
    """Return the engine; exchange with one chain of the paper's length unless one is given."""
    if inference != "exchange":
        return inference
    paper = (20_000, 30_000, 1_000) if name == "olive-oil" else (10_000, 10_000, 1_000)
    n_burn, n_draws, n_sweeps = chain or paper
    return Exchange(n_draws=n_draws, n_burn=n_burn, n_sweeps=n_sweeps, n_chains=1)


def beta_prior(prior: str) -> Any:
    """Return N(0, 50^2), or the same given that beta >= 0."""
    return stats.norm(0.0, 50.0) if prior == "paper" else stats.halfnorm(scale=50.0)


def sigma_prior(name: str) -> Any:
    """Return the paper's uniform prior of sigma for a data set."""
    return stats.uniform(0.0, MAX_SIGMA.get(name, 100.0))


def fit_quietly(model: Any, problem: Problem) -> list[str]:
    """Fit, and return the warnings as text for the report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(problem.train_features, problem.train_labels)
    return [str(warning.message) for warning in caught]


def _given_attraction(posterior: Any) -> Any:
    """Return the posterior given that beta >= 0, or None where that has next to no mass."""
    keep = posterior.beta >= 0.0
    mass = float(posterior.weight[keep].sum())
    if mass < _LEAST_MASS:
        return None
    return Posterior.from_nodes(
        posterior.beta[keep], posterior.scale[keep], posterior.weight[keep] / mass, "sigma"
    )


def _measure(model: Any, posterior: Any, problem: Problem) -> Result:
    """Measure both predictives on the test points, and summarise the posterior."""
    distances = model.metric_space_.distances_to(problem.test_features)
    probabilities = {
        predictive: predict(model, posterior, distances, predictive) for predictive in PREDICTIVES
    }
    mean, sd = posterior.mean(), posterior.sd()
    return {
        "losses": {
            predictive: point_losses(p, problem.test_labels)
            for predictive, p in probabilities.items()
        },
        "errors_by_entropy": _errors_by_entropy(probabilities["joint"], problem.test_labels),
        "posterior": {
            "beta_mean": float(mean["beta"]),
            "beta_sd": float(sd["beta"]),
            "sigma_mean": float(mean["sigma"]),
            "sigma_sd": float(sd["sigma"]),
            "mass_below_zero": float(posterior.weight[posterior.beta < 0.0].sum()),
            "acceptance_rate": model.posterior_.acceptance_rate,
        },
    }


def predict(
    model: Any, posterior: Posterior, distances: NDArray[np.float64], predictive: str
) -> NDArray[np.float64]:
    """Predict by a fitted model's field, but with another posterior or predictive."""
    predictor = Predictor(posterior, model.family_, model.labels_, predictive)
    return predictor.probabilities(distances)


def _errors_by_entropy(probabilities: Any, labels: Any) -> list[float]:
    """Return the error of each third of the points, from the lowest predictive entropy on."""
    order = np.argsort(predictive_entropy(probabilities), kind="stable")
    is_wrong = probabilities.argmax(axis=1) != labels
    return [float(is_wrong[third].mean()) for third in np.array_split(order, 3)]


def _errors_of_every_k(model: Any, problem: Problem) -> list[float]:
    """Return the test error of k-nn for every k that leave-one-out tried."""
    errors = []
    for k in range(1, len(model.cv_errors_) + 1):
        other = copy.copy(model)
        other.n_neighbors_ = k
        errors.append(1.0 - float(other.score(problem.test_features, problem.test_labels)))
    return errors
