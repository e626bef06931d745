import sys
import warnings

import joblib
import numpy as np
import pytest
from benchmark_sets import BENCHMARK_SETS, training_set
from oracle import (
    FIELDS,
    exact_posterior,
    standard_errors_off,
    tiny_family,
    tiny_labels,
    tiny_priors,
)
from sbc import chi_square_p_value, ecdf_p_value, sbc_ranks
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield._progress import progress
from nearfield.field import NeighborFamily
from nearfield.inference import AuxiliaryVariable, Pseudolikelihood, exchange
from nearfield.inference._chain import RunLength, advance, start_chain
from nearfield.inference._priors import Priors, default_priors
from nearfield.inference._target import Target, check_target, log_potential
from nearfield.inference._walk import Walk, dispersed_start, learn, propose
from nearfield.inference.exchange import Exchange, ExchangeSampler

MAX_OFF = 4.0  # Monte Carlo standard errors; the seeds are fixed
LEVEL = 1e-3
SHORT = Exchange(n_draws=30, n_burn=20, n_sweeps=5, n_chains=3)
ignore_convergence = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def run(rng, family, priors, **settings):
    labels = tiny_labels(family)
    settings = {"n_draws": 3_000, "n_burn": 500, "n_sweeps": 30, "n_chains": 2} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = Exchange(**settings).infer(rng, family, labels, priors, n_jobs=2)
    return standard_errors_off(posterior, exact_posterior(family, labels, priors))


@pytest.mark.parametrize(("model", "n_points", "n_classes"), FIELDS)
def test_exchange_draws_from_the_exact_posterior(rng, model, n_points, n_classes):
    family = tiny_family(model, n_points, n_classes)
    n_draws = 8_000 if model == "k" else 3_000  # k mixes slowly, and its error is harder to know
    off = run(rng, family, tiny_priors(family), n_draws=n_draws)
    assert max(off.values()) < MAX_OFF, off


@pytest.mark.parametrize("model", ["gaussian", "k"])
def test_runs_from_the_data_draw_from_the_exact_posterior(rng, model):
    family = tiny_family(model, n_classes=3)
    off = run(rng, family, tiny_priors(family), start="data", n_sweeps=100)
    assert max(off.values()) < MAX_OFF, off


@pytest.mark.parametrize("model", ["radius", "k"])
def test_perfect_draws_give_the_exact_posterior(rng, model):
    family = tiny_family(model)
    off = run(rng, family, tiny_priors(family, stats.uniform(0.0, 1.5)), auxiliary="perfect")
    assert max(off.values()) < MAX_OFF, off


def test_the_oracle_notices_a_ratio_without_the_auxiliary_labels(rng, monkeypatch):
    monkeypatch.setattr(exchange, "log_ratio", ratio_without_auxiliary)
    family = tiny_family("gaussian")
    assert max(run(rng, family, tiny_priors(family), n_draws=1_000).values()) > MAX_OFF


def test_the_oracle_notices_a_missing_jacobian(rng, monkeypatch):
    monkeypatch.setattr(Target, "log_jacobian", lambda self, beta, scale: 0.0)
    family = tiny_family("gaussian")
    assert max(run(rng, family, tiny_priors(family)).values()) > MAX_OFF


def ratio_without_auxiliary(point, proposal, auxiliary):
    observed = proposal.log_potential - point.log_potential
    return observed + proposal.log_prior - point.log_prior


def calibration_p_values(rng, n_classes, n_replicates, n_draws=500):
    family = tiny_family("gaussian", n_points=5, n_classes=n_classes)
    # Chains too short to forget their start would fail it over many replicates.
    engine = Exchange(n_draws, n_burn=200, n_sweeps=10, n_chains=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranks = sbc_ranks(rng, engine.infer, family, tiny_priors(family), n_replicates)
    tests = (chi_square_p_value, ecdf_p_value)
    return [test(values) for values in ranks.values() for test in tests]


def test_exchange_is_calibrated(rng):
    assert min(calibration_p_values(rng, n_classes=2, n_replicates=50)) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3])
def test_exchange_is_calibrated_over_many_replicates(rng, n_classes):
    assert min(calibration_p_values(rng, n_classes, 320, n_draws=1_500)) > LEVEL


def test_calibration_notices_a_ratio_without_the_auxiliary_labels(rng, monkeypatch):
    monkeypatch.setattr(exchange, "log_ratio", ratio_without_auxiliary)
    assert min(calibration_p_values(rng, n_classes=2, n_replicates=40)) < LEVEL


@ignore_convergence
@pytest.mark.parametrize("backend", [None, "threading", "loky"])
def test_one_seed_gives_one_answer_for_any_number_of_jobs(backend):
    family = tiny_family("exponential", n_classes=3)
    labels = tiny_labels(family)
    alone = SHORT.infer(np.random.default_rng(5), family, labels, n_jobs=1)
    if backend is None:
        together = SHORT.infer(np.random.default_rng(5), family, labels, n_jobs=2)
    else:
        with joblib.parallel_config(backend=backend, n_jobs=2):
            together = SHORT.infer(np.random.default_rng(5), family, labels)
    np.testing.assert_array_equal(alone.beta, together.beta)
    np.testing.assert_array_equal(alone.sigma, together.sigma)
    assert len(np.unique(alone.beta[:, 0])) == 3


def make_sampler(model="gaussian", n_classes=2):
    family = tiny_family(model, n_classes=n_classes)
    target = check_target(family, tiny_labels(family), tiny_priors(family))
    return ExchangeSampler(target, Exchange(n_sweeps=5)._auxiliary_draw(target))


def test_the_walk_is_frozen_after_burn_in(rng):
    sampler, length = make_sampler(), RunLength(n_burn=50, n_draws=50)
    chain = start_chain(rng, sampler, length)
    walks = []
    while chain.n_done < length.total:
        chain = advance(chain, sampler, length, seconds=0.0)
        walks.append(chain.walk)
    assert all(walk is not walks[0] for walk in walks[1:50])
    assert walks[48].log_size != walks[49].log_size
    for walk in walks[50:]:
        assert walk.log_size == walks[49].log_size
        np.testing.assert_array_equal(walk.covariance, walks[49].covariance)


def test_where_a_chain_pauses_makes_no_difference(rng):
    sampler, length = make_sampler("k", 3), RunLength(n_burn=20, n_draws=20)
    start = start_chain(rng, sampler, length)
    at_once, paused = advance(start, sampler, length, seconds=np.inf), start
    while paused.n_done < length.total:
        paused = advance(paused, sampler, length, seconds=0.0)
    np.testing.assert_array_equal(at_once.draws, paused.draws)
    assert start.n_done == 0
    assert np.isnan(start.draws).all()


def test_the_walk_learns_a_good_acceptance_rate(rng):
    family = tiny_family("gaussian", n_points=30)
    labels = rng.integers(2, size=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = Exchange(1_500, 1_500, 20, n_chains=2).infer(rng, family, labels)
    assert (posterior.acceptance_rates > 0.15).all()
    assert (posterior.acceptance_rates < 0.40).all()


@pytest.mark.long
@pytest.mark.parametrize("model", ["gaussian", "exponential", "radius", "k"])
@pytest.mark.parametrize("load", BENCHMARK_SETS)
def test_the_walk_learns_a_good_acceptance_rate_on_the_papers_data(load, model):
    family, labels = training_set(load, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        engine = Exchange(n_draws=2_000, n_burn=2_000, n_sweeps=100, n_chains=2)
        posterior = engine.infer(np.random.default_rng(7), family, labels)
    assert (posterior.acceptance_rates > 0.15).all()
    assert (posterior.acceptance_rates < 0.40).all()


@pytest.mark.parametrize("model", ["gaussian", "k"])
def test_steps_are_as_likely_back_and_some_are_large(rng, model):
    target = make_sampler(model).target
    point = dispersed_start(rng, target)
    covariance = np.array([[0.04, 0.01], [0.01, 0.09]])
    walk = Walk(np.array(point.position), covariance, 0.0, 100)
    steps = np.array([propose(rng, walk, target, point) for _ in range(6_000)]) - point.position
    beta_step, scale_step = steps.T
    for signs in (np.sign(beta_step), np.sign(scale_step)):
        assert abs(signs.sum()) < 4.0 * np.sqrt(6_000)
    is_large = np.abs(beta_step) > 4.0 * 0.2
    # Half of the large steps go five times as far in beta: 42% of these are beyond four sds.
    assert is_large.mean() == pytest.approx(0.06 * 0.42, abs=4.0 * np.sqrt(0.03 / 6_000))
    assert scale_step[is_large].std() > 3.0 * scale_step[~is_large].std() / 2.0


def test_one_visit_far_away_does_not_teach_the_walk_to_leap(rng):
    target = make_sampler().target
    point = dispersed_start(rng, target)
    walk = Walk(np.array(point.position), np.diag([0.04, 0.01]), 0.0, 1_000)
    far = point._replace(position=(point.position[0] + 60.0, point.position[1] + 8.0))
    after = learn(walk, far, 0.25)
    gain = 3.0 / 1_030.0
    assert (np.diag(after.covariance) < (1.0 + 9.0 * gain) * np.diag(walk.covariance)).all()
    assert after.log_size == walk.log_size


def test_chains_find_a_second_mode_far_from_the_first(rng):
    family = tiny_family("gaussian")
    # Next to no coupling: the posterior of sigma is its prior, two stretches far apart.
    sigma = stats.rv_histogram(([5.0, 0.0, 1.25], [0.1, 0.2, 0.8, 1.2]), density=True).freeze()
    priors = Priors(stats.norm(0.0, 0.02), sigma)
    engine = Exchange(n_draws=5_000, n_burn=500, n_sweeps=2, n_chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = engine.infer(rng, family, tiny_labels(family), priors)
    is_far = posterior.sigma > 0.5
    n_crossings = np.sum(is_far[:, 1:] != is_far[:, :-1])
    assert n_crossings > 20  # a walk of small steps never crosses
    # Stays on either side are about geometric: as good as half as many independent draws.
    assert abs(is_far.mean() - 0.5) < MAX_OFF * 0.5 / np.sqrt(0.5 * n_crossings)


def test_chains_start_apart(rng):
    target = make_sampler().target
    starts = np.array([dispersed_start(rng, target).position for _ in range(20)])
    assert (starts.std(axis=0) > 0.1).all()


def test_the_chain_asks_for_the_same_potential_as_the_field(rng, random_field):
    field = random_field(6, 3, external_field=[0.3, 0.0, -0.2])
    labels = rng.integers(3, size=6)
    is_class = (labels[:, None] == np.arange(3)).astype(float)
    for form in (field, field.to_sparse()):
        assert log_potential(form, 1.7, is_class) == pytest.approx(field.log_potential(labels, 1.7))


@pytest.mark.parametrize(
    "prior", [stats.norm(1.0, 2.0), stats.uniform(0.5, 2.0), stats.gamma(2.0, scale=3.0)]
)
def test_the_prior_of_a_point_is_that_of_scipy_with_the_jacobian(prior):
    family = tiny_family("gaussian")
    target = check_target(family, tiny_labels(family), Priors(prior, prior))
    for beta, sigma in [(0.7, 1.1), (2.0, 2.4), (-1.0, 0.6)]:
        # By differences: of beta over its coordinate on the walk, and of sigma over its own.
        ends = np.array([target.position_of(beta + d, sigma + d) for d in (-1e-6, 1e-6)])
        jacobian = 2e-6 / np.diff(ends, axis=0)[0]
        expected = prior.logpdf(beta) + prior.logpdf(sigma) + np.log(jacobian).sum()
        assert target.log_prior(beta, sigma) == pytest.approx(expected, abs=1e-8)
    for position in [(0.9, -np.inf), (0.9, 800.0), (800.0, 0.0), (-800.0, 0.0)]:
        assert target.at(position) is None


@pytest.mark.parametrize("model", ["gaussian", "k"])
def test_a_position_gives_back_its_parameters(model):
    target = make_sampler(model).target
    point = target.at(tuple(target.position_of(1.7, 2.0).tolist()))
    assert (point.beta, point.scale) == pytest.approx((1.7, 2.0), rel=1e-14)


@pytest.mark.parametrize("k", [0, 8, -1, 4])
def test_k_out_of_range_has_no_prior(k):
    family = tiny_family("k")
    target = check_target(family, tiny_labels(family), default_priors(family))
    assert (target.log_prior(0.0, k) == -np.inf) == (k != 4)


def test_a_prior_with_mass_below_zero_can_stand_for_sigma(rng):
    family = tiny_family("gaussian")
    target = check_target(family, tiny_labels(family), Priors(stats.norm(), stats.norm(-1.0, 1.0)))
    assert dispersed_start(rng, target).scale > 0.0


@pytest.mark.parametrize(
    "settings",
    [
        {"n_draws": 0},
        {"n_draws": 1.5},
        {"n_burn": -1},
        {"n_sweeps": 0},
        {"n_chains": 0},
        {"auxiliary": "magic"},
        {"start": "here"},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ValueError, match=f"Expected .*{next(iter(settings))}"):
        Exchange(**settings)


def test_impossible_problems_are_refused_before_any_work(rng):
    family = tiny_family("gaussian")
    labels = tiny_labels(family)
    with pytest.raises(ValueError, match="n_points >= 3"):
        SHORT.infer(rng, tiny_family("gaussian", n_points=2), [0, 1])
    with pytest.raises(ValueError, match="labels from 0 to"):
        SHORT.infer(rng, family, labels + 2)
    with pytest.raises(ValueError, match="prior of sigma with mass"):
        SHORT.infer(rng, family, labels, Priors(stats.norm(), stats.uniform(-2.0, 1.0)))
    with pytest.raises(ValueError, match="joint distribution"):
        SHORT.infer(
            rng, NeighborFamily.from_distances(family.distances, 2, is_directed=True), labels
        )


@pytest.mark.parametrize("engine", [SHORT, AuxiliaryVariable(), Pseudolikelihood()])
def test_what_is_no_family_is_refused(rng, engine):
    family = tiny_family("gaussian")
    with pytest.raises(TypeError, match=r"family of fields; got an array of shape \(8, 8\)"):
        engine.infer(rng, family.distances, tiny_labels(family))
    with pytest.raises(TypeError, match="family of fields; got NoneType None"):
        engine.infer(rng, None, tiny_labels(family))


@pytest.mark.filterwarnings("ignore:Expected R-hat")
def test_a_seed_may_stand_for_its_generator():
    family = tiny_family("gaussian")
    first, second = (
        SHORT.infer(rng, family, tiny_labels(family)) for rng in (5, np.random.default_rng(5))
    )
    np.testing.assert_array_equal(first.beta, second.beta)
    with pytest.raises((TypeError, ValueError), match="default_rng takes"):
        SHORT.infer("five", family, tiny_labels(family))


def test_perfect_draws_are_refused_where_there_are_none(rng):
    perfect = Exchange(auxiliary="perfect")
    family = tiny_family("gaussian")
    with pytest.raises(ValueError, match="without mass below 0"):
        perfect.infer(rng, family, tiny_labels(family), tiny_priors(family))
    family = tiny_family("gaussian", n_classes=3)
    with pytest.raises(ValueError, match="two classes"):
        perfect.infer(rng, family, tiny_labels(family), tiny_priors(family, stats.halfnorm()))


def test_a_perfect_draw_that_does_not_end_says_what_to_do(rng, monkeypatch):
    def give_up(*_):
        raise RuntimeError("the chains never met")

    monkeypatch.setattr(exchange, "draw_labels_perfect", give_up)
    family = tiny_family("gaussian")
    engine = Exchange(auxiliary="perfect", n_draws=10, n_burn=0)
    priors = tiny_priors(family, stats.halfnorm())
    with pytest.raises(RuntimeError, match='Use auxiliary="gibbs"'):
        engine.infer(rng, family, tiny_labels(family), priors)


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_shows_only_where_a_person_watches(monkeypatch, capsys, verbose, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    with progress(10, "working hard", verbose) as advance_bar:
        advance_bar(4)
        advance_bar()
    shown = capsys.readouterr()
    assert ("working hard" in shown.err) == (verbose > 0 and is_terminal)
    assert shown.out == ""
