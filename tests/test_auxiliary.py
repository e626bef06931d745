import warnings

import numpy as np
import pytest
from oracle import (
    FIELDS,
    exact_posterior,
    standard_errors_off,
    tiny_family,
    tiny_labels,
    tiny_priors,
)
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.field import NeighborFamily
from nearfield.inference import auxiliary
from nearfield.inference.auxiliary import AuxiliarySampler, AuxiliaryVariable
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate

MAX_OFF = 4.0  # Monte Carlo standard errors; the seeds are fixed


@pytest.fixture(autouse=True)
def central_fixed_parameters(monkeypatch):
    # Any fixed parameters are right. Far from them the chain sticks for so long that its own
    # estimate of the Monte Carlo error fails, and the pseudolikelihood of 8 points is far off.
    monkeypatch.setattr(auxiliary, "pseudolikelihood_estimate", lambda *_: (0.6, 2.0))


def run(rng, model, n_points, n_classes):
    family = tiny_family(model, n_points, n_classes)
    labels = tiny_labels(family)
    # A lucky auxiliary draw holds a chain for long: many short chains show what that costs.
    priors = tiny_priors(family, stats.norm(0.5, 0.25))
    n_draws = 2_000 if model == "k" else 800  # k mixes slowly, and its error is harder to know
    engine = AuxiliaryVariable(n_draws, n_burn=200, n_sweeps=20, n_chains=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = engine.infer(rng, family, labels, priors, n_jobs=2)
    return standard_errors_off(posterior, exact_posterior(family, labels, priors))


def _takes_long(model, n_points, n_classes):
    marks = [pytest.mark.long] if (model, n_points) == ("k", 10) else []
    return pytest.param(model, n_points, n_classes, marks=marks)


@pytest.mark.parametrize(
    ("model", "n_points", "n_classes"), [_takes_long(*field) for field in FIELDS]
)
def test_the_auxiliary_variable_draws_from_the_exact_posterior(rng, model, n_points, n_classes):
    off = run(rng, model, n_points, n_classes)
    assert max(off.values()) < MAX_OFF, off


def test_the_oracle_notices_a_weight_without_the_auxiliary_labels(rng, monkeypatch):
    def wrong_weight(self, point, auxiliary):
        return point.log_potential + point.log_prior

    monkeypatch.setattr(AuxiliarySampler, "log_weight", wrong_weight)
    assert max(run(rng, "gaussian", n_points=8, n_classes=2).values()) > MAX_OFF


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_seed_gives_one_answer_for_any_number_of_jobs():
    family = tiny_family("gaussian", n_classes=3)
    engine = AuxiliaryVariable(n_draws=30, n_burn=20, n_sweeps=5, n_chains=3)
    one, two = (
        engine.infer(np.random.default_rng(5), family, tiny_labels(family), n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.beta, two.beta)
    np.testing.assert_array_equal(one.sigma, two.sigma)


def test_the_fixed_parameters_are_those_of_pseudolikelihood(rng, monkeypatch):
    family = tiny_family("gaussian")
    labels, priors = tiny_labels(family), tiny_priors(family)
    seen = []

    def run_chains(rng, sampler, settings, **_):
        seen.append((sampler.fixed_beta, sampler.fixed_field.coupling))
        raise KeyboardInterrupt  # the chains themselves are not needed

    monkeypatch.setattr(auxiliary, "pseudolikelihood_estimate", pseudolikelihood_estimate)
    monkeypatch.setattr(auxiliary, "run_chains", run_chains)
    with pytest.raises(KeyboardInterrupt):
        AuxiliaryVariable().infer(rng, family, labels, priors)
    beta, sigma = pseudolikelihood_estimate(family, labels, priors)
    assert seen[0][0] == beta
    np.testing.assert_array_equal(seen[0][1], family.at(sigma).coupling)


@pytest.mark.parametrize(
    "settings", [{"n_draws": 0}, {"n_burn": -1}, {"n_sweeps": 0}, {"n_chains": 0}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match=f"Expected .*{next(iter(settings))}"):
        AuxiliaryVariable(**settings)


def test_impossible_problems_are_refused_before_any_work(rng):
    family = tiny_family("gaussian")
    with pytest.raises(ValueError, match="n_points >= 3"):
        AuxiliaryVariable().infer(rng, tiny_family("gaussian", n_points=2), [0, 1])
    directed = NeighborFamily.from_distances(family.distances, 2, is_directed=True)
    with pytest.raises(ValueError, match="joint distribution"):
        AuxiliaryVariable().infer(rng, directed, tiny_labels(family))
