import subprocess
import sys

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.stats import kstest

from nearfield.field import LabelField
from nearfield.field.enumeration import label_distribution
from nearfield.sampling import draw_labels, draw_labels_cluster, draw_labels_perfect
from nearfield.sampling.gibbs import draw_class, draw_class_at, kernel_of
from nearfield.sampling.perfect import coupled_sweeps
from nearfield.sampling.random_numbers import uniform_at

BETAS = [-3.0, -0.5, 0.0, 0.5, 2.0, 6.0]
N_POINTS = {2: 6, 3: 4, 4: 4, 5: 3}
LEVEL = 1e-4  # of each test of fit; the seeds are fixed


def exact_draws(rng, field, beta, n_draws):
    labelings, probabilities = label_distribution(field, beta)
    return labelings[rng.choice(len(labelings), size=n_draws, p=probabilities)]


def as_form(field, form):
    return field.to_sparse() if form == "sparse" else field


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_gibbs_leaves_the_field_invariant(rng, random_field, fit_p_value, n_classes, beta, form):
    field = random_field(N_POINTS[n_classes], n_classes)
    form_field = as_form(field, form)
    draws = [
        draw_labels(rng, form_field, beta, n_sweeps=3, initial=labels)
        for labels in exact_draws(rng, field, beta, 3_000)
    ]
    assert fit_p_value(draws, n_classes, label_distribution(field, beta)[1]) > LEVEL


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_gibbs_from_a_random_start_reaches_the_field(
    rng, random_field, fit_p_value, n_classes, beta
):
    # A wide kernel, so that 300 sweeps are long even at beta = 6.
    field = random_field(N_POINTS[n_classes], n_classes, sigma=2.0)
    draws = [draw_labels(rng, field, beta, n_sweeps=300) for _ in range(3_000)]
    assert fit_p_value(draws, n_classes, label_distribution(field, beta)[1]) > LEVEL


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1.5])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_gibbs_follows_the_external_field(rng, random_field, fit_p_value, beta, form):
    field = random_field(4, 3, external_field=[0.8, 0.0, -1.0])
    form_field = as_form(field, form)
    draws = [draw_labels(rng, form_field, beta, n_sweeps=50) for _ in range(3_000)]
    assert fit_p_value(draws, 3, label_distribution(field, beta)[1]) > LEVEL


def test_a_broken_conditional_fails_the_test_of_fit(rng, random_field, fit_p_value):
    # w in place of w + w^T, as the paper prints it: the tests above must be able to see that.
    field = random_field(6, 2)
    weights = np.triu(field.coupling) * 0.75 + np.tril(field.coupling) * 0.25
    np.testing.assert_allclose(weights + weights.T, field.coupling)
    broken = LabelField(weights, 2, np.zeros(2))
    draws = [
        draw_labels(rng, broken, 0.5, n_sweeps=3, initial=labels)
        for labels in exact_draws(rng, field, 0.5, 3_000)
    ]
    assert fit_p_value(draws, 2, label_distribution(field, 0.5)[1]) < LEVEL


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("external_field", [None, [0.5, -0.5]])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_perfect_draws_follow_the_field(rng, random_field, fit_p_value, beta, external_field, form):
    field = random_field(6, 2, external_field=external_field)
    draws = [draw_labels_perfect(rng, as_form(field, form), beta) for _ in range(3_000)]
    assert fit_p_value(draws, 2, label_distribution(field, beta)[1]) > LEVEL


def test_perfect_draws_are_perfect_in_the_frozen_field_too(rng, random_field, fit_p_value):
    field = random_field(5, 2, sigma=1.5)
    draws = [draw_labels_perfect(rng, field, 4.0) for _ in range(500)]
    assert fit_p_value(draws, 2, label_distribution(field, 4.0)[1]) > LEVEL


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_compiled_gibbs_equals_the_interpreted_one_draw_for_draw(
    rng, random_field, n_classes, beta, form
):
    alpha = np.linspace(-0.5, 0.5, n_classes)
    field = as_form(random_field(12, n_classes, external_field=alpha), form)
    start = rng.integers(n_classes, size=12)
    key = np.uint64(0xFEDCBA9876543210)
    sweeps, compiled = kernel_of(field, beta, start.copy())
    _, interpreted = kernel_of(field, beta, start.copy())
    sweeps(*compiled, key, 40)
    with np.errstate(over="ignore"):  # the random bits wrap around, as they should
        sweeps.py_func(*interpreted, key, 40)
    np.testing.assert_array_equal(compiled[1], interpreted[1])
    np.testing.assert_array_equal(compiled[2], interpreted[2])


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_compiled_coupling_from_the_past_equals_the_interpreted_one(random_field, form):
    field = as_form(random_field(12, 2, external_field=[0.1, 0.0]), form)
    results = []
    for run in (coupled_sweeps, coupled_sweeps.py_func):
        _, (coupling, *lower) = kernel_of(field, 1.0, np.zeros(12, dtype=np.int64))
        _, (_, *upper) = kernel_of(field, 1.0, np.ones(12, dtype=np.int64))
        with np.errstate(over="ignore"):
            n_different = run(coupling, *lower, *upper, np.uint64(99), 40)
        results.append((n_different, lower[1].tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_log_weights_kept_by_the_kernel_stay_those_of_the_labels(
    rng, random_field, n_classes, form
):
    alpha = np.linspace(-0.5, 0.5, n_classes)
    field = as_form(random_field(60, n_classes, external_field=alpha), form)
    sweeps, arguments = kernel_of(field, 0.3, rng.integers(n_classes, size=60))
    sweeps(*arguments, np.uint64(3), 2_000)
    _, kept, labels = arguments
    np.testing.assert_allclose(kept, kernel_of(field, 0.3, labels)[1][1], atol=1e-11)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_bounds_decide_as_the_exact_weights_do(rng, n_classes):
    # Uniform numbers close to every border between two classes, where bounds leave it open.
    for _ in range(50):
        log_weights = rng.normal(0.0, rng.choice([0.1, 3.0, 30.0]), size=(n_classes, 1))
        weights = np.exp(log_weights[:, 0] - log_weights.max())
        current = int(rng.integers(n_classes))
        borders = np.cumsum(np.roll(weights, -current))[:-1] / weights.sum()
        nearby = borders + rng.choice([0.0, 1e-12, 1e-6, 1e-4]) * rng.choice([-1, 1])
        for uniform in np.append(nearby, rng.random(3)).clip(1e-16, 1.0 - 1e-16):
            fast = draw_class_at(
                log_weights, 0, np.empty(n_classes), log_weights.max(), current, uniform
            )
            assert fast == draw_class(log_weights[:, 0].copy(), current, uniform)


@pytest.mark.parametrize("beta", [-1e6, 1e6])
def test_extreme_beta_freezes_without_overflow(rng, random_field, beta):
    field = random_field(20, 3, sigma=5.0)
    labels = draw_labels(rng, field, beta, n_sweeps=50)
    support = field.support(labels)
    best = support.max(axis=1) if beta > 0 else support.min(axis=1)
    np.testing.assert_allclose(support[np.arange(20), labels], best, atol=1e-9)


def test_uniform_numbers_are_uniform_and_keys_independent():
    with np.errstate(over="ignore"):
        streams = np.array(
            [[uniform_at(np.uint64(key), i) for i in range(20_000)] for key in (0, 1, 2**63)]
        )
    assert streams.min() > 0.0
    assert streams.max() < 1.0
    for stream in streams:
        assert kstest(stream, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(stream[1:], stream[:-1])[0, 1]) < 4 / np.sqrt(20_000)
    assert np.abs(np.corrcoef(streams) - np.eye(3)).max() < 4 / np.sqrt(20_000)


def test_a_seed_gives_the_same_labels_on_every_run(random_field):
    script = (
        "import numpy as np; from nearfield.field import LabelField; "
        "from nearfield.sampling import draw_labels; "
        "field = LabelField.from_weights((1 - np.eye(20)) / 19, 3); "
        "print(draw_labels(np.random.default_rng(5), field, 1.2, 30).tolist())"
    )
    field = LabelField.from_weights((1 - np.eye(20)) / 19, 3)
    here = draw_labels(np.random.default_rng(5), field, 1.2, 30).tolist()
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(here)


def test_a_seed_gives_the_same_labels_for_any_number_of_jobs(random_field):
    field = random_field(30, 3)

    def draw_all(n_jobs):
        streams = np.random.default_rng(3).spawn(8)
        jobs = (delayed(draw_labels)(rng, field, 1.0, 50) for rng in streams)
        return np.array(Parallel(n_jobs=n_jobs, prefer="threads")(jobs))

    np.testing.assert_array_equal(draw_all(1), draw_all(2))


def test_start_is_left_as_it_is_and_no_sweep_returns_it(rng, random_field):
    start = np.array([0, 1, 2, 0, 1], dtype=np.int32)
    start.flags.writeable = False
    labels = draw_labels(rng, random_field(5, 3), 0.0, n_sweeps=0, initial=start)
    np.testing.assert_array_equal(labels, start)
    assert draw_labels(rng, random_field(5, 3), 0.0, initial=start).shape == (5,)


def test_chains_meet_later_the_stronger_the_coupling(random_field):
    field = random_field(20, 2)

    def mean_time(beta):
        rng = np.random.default_rng(8)
        return np.mean(
            [draw_labels_perfect(rng, field, beta, return_time=True)[1] for _ in range(50)]
        )

    assert draw_labels_perfect(np.random.default_rng(0), field, 0.0, return_time=True)[1] == 1
    assert mean_time(0.3) < mean_time(0.8) < mean_time(1.2)


def test_chains_that_do_not_meet_in_time_are_an_error(rng, random_field):
    with pytest.raises(RuntimeError, match=r"within max_sweeps=100 sweeps; they still differ at"):
        draw_labels_perfect(rng, random_field(40, 2, sigma=3.0), 5.0, max_sweeps=100)


@pytest.mark.parametrize(("n_classes", "beta"), [(3, 1.0), (2, -0.1)])
def test_perfect_sampling_says_where_it_is_impossible(rng, random_field, n_classes, beta):
    with pytest.raises(ValueError, match=f"got n_classes={n_classes}, beta={beta:g}. Use draw_lab"):
        draw_labels_perfect(rng, random_field(5, n_classes), beta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": np.nan}, "finite real number beta; got beta=nan"),
        ({"beta": "strong"}, "finite real number beta"),
        ({"beta": 1.0, "n_sweeps": -1}, "n_sweeps >= 0; got n_sweeps=-1"),
        ({"beta": 1.0, "n_sweeps": 1.5}, "whole number n_sweeps"),
        ({"beta": 1.0, "initial": [0, 1]}, "Expected 5 whole-number labels"),
        ({"beta": 1.0, "initial": [0, 1, 2, 3, 4]}, "got labels from 0 to 4"),
    ],
)
def test_arguments_that_make_no_draw_are_refused(rng, random_field, arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_labels(rng, random_field(5, 3), **arguments)


@pytest.mark.parametrize("draw", [draw_labels, draw_labels_perfect, draw_labels_cluster])
def test_a_seed_stands_for_its_generator(random_field, draw):
    field = random_field(5, 2)
    np.testing.assert_array_equal(draw(7, field, 1.0), draw(np.random.default_rng(7), field, 1.0))
