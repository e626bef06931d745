from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.preprocessing import StandardScaler

from nearfield.datasets import load_olive, stratified_split
from nearfield.distances import distance_matrix
from nearfield.field import LabelField, gaussian_weights
from nearfield.field.enumeration import label_distribution, log_partition, uniform_log_partition
from nearfield.log_partition import LogPartition, log_partition_curve, scan_curve
from nearfield.log_partition.agreements import PairTable
from nearfield.log_partition.bonds import (
    BarEstimates,
    bar_estimates,
    cluster_log_weights,
)
from nearfield.log_partition.chains import Schedule, run_chains, stack_fields
from nearfield.log_partition.estimate import reweight, standard_error
from nearfield.log_partition.mbar import make_mixture
from nearfield.log_partition.pool import draw_pool
from nearfield.log_partition.reweighting import fill_weights
from nearfield.log_partition.states import StateBuilder, place_states
from nearfield.log_partition.stein import fill_stein, regression_weights
from nearfield.sampling.random_numbers import draw_key

LEVEL = 1e-3

BETAS = np.linspace(0.0, 4.0, 21)


def uniform_field(n_points, n_classes):
    return LabelField.from_weights((1.0 - np.eye(n_points)) / (n_points - 1), n_classes)


def check_curves(field, betas, exact, n_seeds, max_error):
    """Hold errors below a bound, and below three standard errors at least 95% of the time."""
    is_within = []
    for seed in range(n_seeds):
        log_z, error = log_partition_curve(np.random.default_rng(seed), field, betas)
        off = np.abs(log_z - exact)
        assert off.max() < max_error
        is_within.append(off <= 3.0 * error + 1e-9)
    assert np.mean(is_within) >= 0.95


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curve_of_an_enumerable_field_is_right_within_its_error(random_field, n_classes):
    field = random_field(9, n_classes)
    check_curves(field, BETAS, log_partition(field, BETAS), n_seeds=6, max_error=0.1)


def test_curve_goes_below_zero_and_carries_the_external_field(random_field):
    field = random_field(8, 3, external_field=[0.5, 0.0, -0.7])
    betas = np.array([1.5, -3.0, 0.0, -0.4, 3.0])  # in any order
    check_curves(field, betas, log_partition(field, betas), n_seeds=6, max_error=0.1)


def test_curve_of_a_sparse_field_is_that_of_the_dense_one(random_field):
    field = random_field(8, 3)
    log_z, error = log_partition_curve(np.random.default_rng(0), field.to_sparse(), [2.0])
    assert abs(log_z[0] - log_partition(field, 2.0)) < 4.0 * error[0]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_curve_crosses_the_transition_of_the_uniform_field(n_classes):
    exact = uniform_log_partition(40, n_classes, BETAS)
    check_curves(uniform_field(40, n_classes), BETAS, exact, n_seeds=8, max_error=0.1)


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_points", [40, 150])
def test_curve_crosses_the_transition_for_fifty_seeds(n_points, n_classes):
    exact = uniform_log_partition(n_points, n_classes, BETAS)
    max_error = 0.15 if (n_points, n_classes) == (150, 5) else 0.1
    check_curves(uniform_field(n_points, n_classes), BETAS, exact, 50, max_error)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curve_of_a_field_in_pieces_is_right_within_its_error(n_classes):
    # Four pairs that are not coupled: many labelings agree as much as labels all the same.
    field = LabelField.from_weights(np.kron(np.eye(4), [[0.0, 1.0], [1.0, 0.0]]), n_classes)
    check_curves(field, BETAS, log_partition(field, BETAS), n_seeds=6, max_error=0.1)


def test_log_z_at_zero_is_exact(random_field):
    field = random_field(30, 4, external_field=[0.1, 0.2, 0.3, 0.4])
    log_z, error = log_partition_curve(np.random.default_rng(0), field, [0.0])
    expected = 30 * np.log(np.exp([0.1, 0.2, 0.3, 0.4]).sum())
    assert log_z[0] == pytest.approx(expected, rel=1e-12)
    assert error[0] < 1e-12


def test_a_seed_gives_the_same_curve(random_field):
    field = random_field(20, 3)
    curves = [log_partition_curve(np.random.default_rng(4), field, [1.0, 2.0]) for _ in range(2)]
    np.testing.assert_array_equal(*curves)


@pytest.fixture
def field_of_clusters():
    # Olive oils of a few growing areas: at large beta these do not merge label by label.
    data, target = load_olive(return_X_y=True)
    train, _ = stratified_split(target, 0.25, random_state=0)
    distances = distance_matrix(StandardScaler().fit_transform(data)[train])
    return LabelField.from_weights(gaussian_weights(distances, 0.25), 3)


def test_chains_do_not_freeze_in_clusters(field_of_clusters):
    log_z, error = log_partition_curve(
        np.random.default_rng(0), field_of_clusters, [12.0], target_error=0.1
    )
    # At a beta this large independent bonds, which need no chain, are enough to know z.
    stack, labelings = stack_fields([field_of_clusters]), np.zeros((40_000, 143), dtype=np.int8)
    u = cluster_log_weights(stack, 0, 12.0, labelings, np.uint64(3))
    terms = np.exp(u - u.max())
    exact = 12.0 * 0.5 * field_of_clusters.coupling.sum() + u.max() + np.log(terms.mean())
    exact_error = terms.std() / terms.mean() / np.sqrt(40_000)
    assert exact_error < 0.05
    assert abs(log_z[0] - exact) < 4.0 * np.hypot(error[0], exact_error)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_random_bonds_give_z(random_field, n_classes):
    field = random_field(8, n_classes, external_field=np.linspace(0.5, -0.3, n_classes))
    stack = stack_fields([field])
    for beta in (0.3, 1.0, 3.0):
        u = cluster_log_weights(stack, 0, beta, np.zeros((20_000, 8), dtype=np.int8), np.uint64(5))
        ratios = np.exp(beta * 0.5 * field.coupling.sum() + u - log_partition(field, beta))
        assert abs(ratios.mean() - 1.0) < 4.0 * ratios.std() / np.sqrt(20_000)


def test_a_scan_finds_first_order_transitions_and_only_those():
    for n_points, n_classes, has_gap in ((150, 10, True), (300, 5, True), (150, 2, False)):
        curve = scan_curve(np.random.default_rng(0), uniform_field(n_points, n_classes), 0.0, 4.0)
        assert (curve.gap is not None) == has_gap
        assert curve.is_crossed


def test_states_that_do_not_overlap_are_noticed(rng):
    places = rng.normal(size=(2, 500)) + np.array([[0.0], [60.0]])
    log_potentials = -0.5 * (places.ravel()[:, None] - np.array([0.0, 60.0])) ** 2
    mixture = make_mixture(log_potentials, np.repeat([0, 1], 500), np.zeros(2))
    far = mixture.solve(np.ones((1000, 1)))
    assert far.independent_error > 10.0


def test_draws_of_a_state_with_two_modes_are_left_out():
    n_points, n_classes, betas = 100, 10, np.array([2.0, 2.5, 3.0])
    field, rng = uniform_field(n_points, n_classes), np.random.default_rng(2)
    placed = place_states(scan_curve(rng, field, 0.0, 4.0), 0.0, 4.0, spacing=1.2)
    restrained = np.flatnonzero(placed.stiffness)
    weak = restrained[len(restrained) // 2]
    placed.stiffness[weak] *= 0.02
    builder = StateBuilder()
    builder.schedule([0, *builder.add(0, placed.part(slice(1, None)))])
    states = builder.finish()
    counts = np.full(len(states.betas), 16)
    pool = draw_pool(rng, lambda _: field, np.ones(1), states, counts, np.inf, None)
    agreements = np.broadcast_to(pool.agreements[:, None], (len(pool.states), len(pool.betas)))
    reweighting = reweight(pool, agreements, n_points * np.log(n_classes))
    used = np.unique(pool.states[reweighting.draws])
    assert set(range(len(pool.betas))) - set(used) == {weak}
    estimates = reweighting.at(betas, pool.agreements)
    off = np.abs(estimates.log_z[0] - uniform_log_partition(n_points, n_classes, betas))
    assert (off < 4.0 * standard_error(estimates.log_z)).all()  # with its draws 0.6 to 1.5


@pytest.mark.parametrize("beta", [-4.0, 1.0])
def test_a_field_without_coupling_is_independent_labels(beta):
    field = LabelField.from_weights(np.zeros((4, 4)), 3)
    log_z, _ = log_partition_curve(np.random.default_rng(0), field, [beta])
    assert log_z[0] == pytest.approx(4 * np.log(3.0))


@pytest.mark.parametrize("betas", [[], [np.nan], [[1.0]]])
def test_betas_that_make_no_curve_are_refused(random_field, betas):
    with pytest.raises(ValueError, match="Expected finite betas of shape"):
        log_partition_curve(np.random.default_rng(0), random_field(5, 2), betas)


@pytest.mark.parametrize("external_field", [None, [0.4, 0.0, -0.3]])
@pytest.mark.parametrize("beta", [-2.0, 0.0, 0.7, 3.0, 60.0])
def test_chains_draw_from_the_field(rng, random_field, fit_p_value, beta, external_field):
    field = random_field(5, 3, external_field=external_field)
    stack = stack_fields([field, random_field(5, 3, sigma=2.0, external_field=external_field)])
    # On the way to each draw the chain visits another state: no draw is close to the last.
    n_draws = 3_000
    betas, rows = np.tile([0.0, beta], n_draws), np.tile([1, 0], n_draws)
    schedule = schedule_of(betas, rows, np.tile([1, 20 if beta > 50.0 else 6], n_draws))
    labels = np.zeros((1, 5), dtype=np.int8)
    keys = rng.integers(0, 2**64, dtype=np.uint64, size=1)
    drawn, agreements, _ = run_chains(stack, schedule, labels, keys)
    probabilities = label_distribution(field, beta)[1]
    assert fit_p_value(drawn[0, 1::2], 3, probabilities) > LEVEL
    expected = [field.agreement(y.astype(int)) for y in drawn[0, 1:200:2]]
    np.testing.assert_allclose(agreements[0, 1:200:2], expected, atol=1e-12)


def test_a_pair_table_gives_the_agreements_of_all_fields(rng, random_field):
    fields = [random_field(30, 4, sigma=sigma) for sigma in np.geomspace(0.2, 3.0, 30)]
    table = PairTable.from_fields(fields)
    shares = np.array([0.25, 0.9])[:, None]  # of one class: few and many pairs agree
    labelings = np.where(rng.random((2, 30)) < shares, 0, rng.integers(4, size=(2, 30)))
    expected = [[field.agreement(labels) for field in fields] for labels in labelings]
    np.testing.assert_allclose(table.agreements(labelings.astype(np.int8)), expected, atol=1e-4)
    assert len(table.basis) < len(fields)


def test_draws_are_weighed_by_the_ratio_of_two_densities(rng):
    agreements, log_density = rng.normal(10.0, 3.0, 50), rng.normal(0.0, 200.0, 50)
    betas = np.array([-2.0, 0.0, 5.0])
    weights, log_largest, n_effective = np.empty((3, 50)), np.empty(3), np.empty(3)
    fill_weights(betas, agreements, log_density, weights, log_largest, n_effective)
    log_weights = betas[:, None] * agreements - log_density
    np.testing.assert_allclose(log_largest, log_weights.max(axis=1), rtol=1e-14)
    # No weight is less than 1e-308 of the largest.
    expected = np.exp(log_weights - log_largest[:, None])
    np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=1e-300)
    worth = expected.sum(axis=1) ** 2 / (expected**2).sum(axis=1)
    np.testing.assert_allclose(n_effective, worth, rtol=1e-12)


def test_pooled_draws_give_the_exact_log_z(rng, random_field):
    field = random_field(6, 2)
    betas = np.array([0.0, 0.5, 1.0, 1.5])
    labelings, _ = label_distribution(field, 0.0)
    agreements = np.array([field.agreement(labels) for labels in labelings])
    n_draws = 4_000
    drawn = np.concatenate(
        [rng.choice(agreements, size=n_draws, p=label_distribution(field, b)[1]) for b in betas]
    )
    exact = np.asarray(log_partition(field, betas))
    guess = exact + np.array([0.0, 8.0, -20.0, 30.0])  # far off, to be found
    mixture = make_mixture(drawn[:, None] * betas, np.repeat(np.arange(4), n_draws), guess)
    solution = mixture.solve(np.ones((len(drawn), 1)))
    np.testing.assert_allclose(guess + solution.shifts[:, 0], exact, atol=0.1)


def test_log_z_far_from_the_rough_answer_is_found(rng):
    # Along 40 states, from draws without one of the tails of each, it is off by nats.
    n_states, n_draws = 40, 600
    states = np.repeat(np.arange(n_states), n_draws)
    places = rng.normal(size=len(states)) + 2.0 * states
    log_potentials = -0.5 * (places[:, None] - 2.0 * np.arange(n_states)) ** 2
    mixture = make_mixture(log_potentials, states, np.zeros(n_states))
    far = replace(mixture, some=np.flatnonzero(places > 2.0 * states - 1.3))
    near, found = (m.solve(np.ones((len(states), 1))) for m in (mixture, far))
    assert near.is_found
    assert found.is_found
    np.testing.assert_allclose(found.shifts, near.shifts, atol=1e-3)


def test_log_z_of_some_of_the_draws_is_solved_as_if_there_were_no_others(rng):
    # Two states that hardly overlap: few draws tell log z, and it moves a lot without some.
    n_draws, distance = 4_000, 5.0
    places = np.concatenate([rng.normal(size=n_draws), rng.normal(distance, size=n_draws)])
    log_potentials = np.stack([-0.5 * places**2, -0.5 * (places - distance) ** 2], axis=1)
    groups = np.tile(np.arange(8), 2 * n_draws // 8)
    weights = np.concatenate([np.ones((len(groups), 1)), groups[:, None] != np.arange(8)], axis=1)
    states, guess = np.repeat([0, 1], n_draws), np.zeros(2)
    together = make_mixture(log_potentials, states, guess).solve(weights)
    assert together.shifts[1].std() > 0.005
    for group in range(8):
        keep = groups != group
        alone = make_mixture(log_potentials[keep], states[keep], guess)
        alone = alone.solve(np.ones((keep.sum(), 1)))
        np.testing.assert_allclose(together.shifts[1, 1 + group], alone.shifts[1, 0], atol=1e-3)
        np.testing.assert_allclose(
            together.log_densities[keep, 1 + group], alone.log_densities[:, 0], atol=1e-3
        )


def test_a_bar_estimate_counts_by_its_variance(rng):
    # Two states of the same z, which hardly overlap, and an estimate about as good as the draws.
    n_draws, distance, n_replicates = 200, 3.0, 400
    states, guess, columns = np.repeat([0, 1], n_draws), np.zeros(2), np.ones((2 * n_draws, 1))
    by_draws, by_bar, by_both = np.empty((3, n_replicates))
    variance = 4.0  # of the estimate, if it were one draw
    for replicate in range(n_replicates):
        places = rng.normal(size=2 * n_draws) + np.repeat([0.0, distance], n_draws)
        log_potentials = np.stack([-0.5 * places**2, -0.5 * (places - distance) ** 2], axis=1)
        mixture = make_mixture(log_potentials, states, guess)
        by_bar[replicate] = rng.normal(scale=np.sqrt(variance / n_draws))
        bar = BarEstimates(np.array([[0.0, by_bar[replicate]]]), np.array([np.inf, variance]))
        by_draws[replicate] = mixture.solve(columns).shifts[1, 0]
        solution = mixture.solve(columns, bar)
        by_both[replicate] = solution.shifts[1, 0]
        again = logsumexp(log_potentials - solution.log_densities, axis=0)
        np.testing.assert_allclose(again, solution.shifts[:, 0], atol=1e-3)
    best = 1.0 / (1.0 / by_draws.var() + 1.0 / by_bar.var())
    assert best < 0.7 * min(by_draws.var(), by_bar.var())
    assert by_both.var() == pytest.approx(best, rel=0.1)
    assert abs(by_both.mean()) < 4.0 * by_both.std() / np.sqrt(n_replicates)


def test_bar_estimates_that_contradict_the_draws_are_left_alone(rng):
    places = rng.normal(size=8_000) + np.repeat([0.0, 0.5], 4_000)
    log_potentials = np.stack([-0.5 * places**2, -0.5 * (places - 0.5) ** 2], axis=1)
    mixture = make_mixture(log_potentials, np.repeat([0, 1], 4_000), np.zeros(2))
    bar = BarEstimates(np.array([[0.0, 5.0]]), np.array([np.inf, 0.5]))
    columns = np.ones((8_000, 1))
    np.testing.assert_array_equal(mixture.solve(columns, bar).shifts, mixture.solve(columns).shifts)


@pytest.mark.parametrize("distance", [200.0, 2_000.0])
def test_bonds_without_overlap_give_no_estimate(distance):
    numbers = np.arange(64)
    states, groups = np.zeros(64, dtype=int), numbers % 8
    found = bar_estimates(states, groups, numbers + distance, 1.0 * numbers, np.zeros(1), 8)
    assert not found.is_known.any()


@pytest.mark.parametrize("external_field", [None, [0.4, 0.0, -0.3]])
def test_bonds_give_log_z_within_their_error(rng, random_field, external_field):
    field, n_draws = random_field(6, 3, external_field=external_field), 16_000
    stack, betas = stack_fields([field]), np.array([0.5, 2.0, 6.0])
    given, free = np.empty((2, 3, n_draws))
    for point, beta in enumerate(betas):
        labelings, probabilities = label_distribution(field, beta)
        drawn = labelings[rng.choice(len(labelings), n_draws, p=probabilities)].astype(np.int8)
        given[point] = cluster_log_weights(stack, 0, beta, drawn, draw_key(rng))
        free[point] = cluster_log_weights(stack, 0, beta, np.zeros_like(drawn), draw_key(rng))
    states, groups = np.repeat(np.arange(3), n_draws), np.tile(np.arange(8), 3 * n_draws // 8)
    log_highest = betas * 0.5 * field.coupling.sum()
    bar = bar_estimates(states, groups, given.ravel(), free.ravel(), log_highest, 8)
    exact = np.asarray(log_partition(field, betas))
    errors = np.sqrt(bar.variance / n_draws)
    np.testing.assert_array_less(np.abs(bar.log_z[0] - exact), 4.0 * errors)
    np.testing.assert_allclose(np.sqrt(7.0) * bar.log_z[1:].std(axis=0) / errors, 1.0, atol=0.8)
    assert errors.max() < 0.05


@pytest.mark.parametrize("stiffness", [0.0, 0.7])
@pytest.mark.parametrize("external_field", [None, [0.4, 0.0, -0.3]])
@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.8, 30.0])
def test_control_variates_are_zero_in_expectation(random_field, beta, external_field, stiffness):
    field, other = (random_field(5, 3, sigma=s, external_field=external_field) for s in (0.5, 2.0))
    labelings, probabilities = restrained_distribution(field, beta, stiffness, 3.0)
    steins = control_variates((field, other), labelings, beta, stiffness, 3.0)
    np.testing.assert_allclose(probabilities @ steins, 0.0, atol=1e-11)
    assert np.abs(steins).max() > 0.01


def restrained_distribution(field, beta, stiffness, centre):
    """List all labelings of a tiny field with their probabilities in a restrained state."""
    labelings, probabilities = label_distribution(field, beta)
    agreements = np.array([field.agreement(labels) for labels in labelings])
    weights = probabilities * np.exp(-0.5 * stiffness * (agreements - centre) ** 2)
    return labelings, weights / weights.sum()


def control_variates(fields, labelings, beta, stiffness=0.0, centre=0.0):
    steins = np.empty((len(labelings), 2))
    for labels, stein in zip(labelings, steins, strict=True):
        supports = [np.ascontiguousarray(f.support(labels).T) for f in fields]
        tilt = beta - stiffness * (fields[0].agreement(labels) - centre)
        scratch = np.empty((6, fields[0].n_points))
        fill_stein(fields[0].external_field, tilt, stiffness, labels, *supports, scratch, stein)
    return steins


def test_regression_on_control_variates_lowers_the_variance(rng, random_field):
    field, beta, n_draws = random_field(6, 2), 0.7, 64
    labelings, probabilities = label_distribution(field, beta)
    agreements = np.array([field.agreement(labels) for labels in labelings])
    steins = control_variates((field, field), labelings, beta)
    n_states = 200  # each a sample of its own
    drawn = rng.choice(len(labelings), size=n_states * n_draws, p=probabilities)
    states, groups = np.repeat(np.arange(n_states), n_draws), np.tile(np.arange(8), len(drawn) // 8)
    weights = regression_weights(states, groups, steins[drawn], n_states)
    np.testing.assert_allclose(np.bincount(states, weights[:, 0]), n_draws)
    np.testing.assert_allclose(np.bincount(states, weights[:, 3]), n_draws * 7.0 / 8.0)
    assert (weights[groups == 2, 3] == 0.0).all()
    off = agreements[drawn] - probabilities @ agreements
    plain, regressed = (np.bincount(states, off * w) / n_draws for w in (1.0, weights[:, 0]))
    assert regressed.std() < 0.6 * plain.std()
    assert abs(regressed.mean()) < 4.0 * regressed.std() / np.sqrt(n_states)


@pytest.mark.parametrize("beta", [-0.5, 0.0, 0.8, 2.5])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_restrained_chains_draw_from_the_restrained_field(random_field, fit_p_value, beta, form):
    field, n_draws, stiffness, centre = random_field(5, 3), 3_000, 1.5, 2.5
    probabilities = restrained_distribution(field, beta, stiffness, centre)[1]
    field = field.to_sparse() if form == "sparse" else field
    rows = np.zeros(n_draws, dtype=int)
    schedule = schedule_of(np.full(n_draws, beta), rows, np.full(n_draws, 8), stiffness, centre)
    keys = np.array([7], np.uint64)
    draws = run_chains(stack_fields([field]), schedule, np.zeros((1, 5), np.int8), keys)
    assert fit_p_value(draws.labels[0], 3, probabilities) > LEVEL


def schedule_of(betas, rows, n_sweeps, stiffness=0.0, centre=0.0):
    n_stops = len(betas)
    return Schedule(betas, rows, np.full(n_stops, stiffness), np.full(n_stops, centre), n_sweeps)


def test_an_interpolant_is_exact_for_cubics_and_straight_beyond():
    betas = np.array([-1.0, 0.0, 0.5, 2.0])
    curve = LogPartition(betas, betas**3 + betas, 3.0 * betas**2 + 1.0)
    inside = np.linspace(-1.0, 2.0, 31)
    np.testing.assert_allclose(curve(inside), inside**3 + inside, atol=1e-12)
    np.testing.assert_allclose(curve(np.array([-2.0, 3.0])), [-6.0, 23.0])
    longer = curve.continued(LogPartition(np.array([-3.0, 3.0]), np.zeros(2), np.zeros(2)))
    np.testing.assert_allclose(longer.betas, [-3.0, *betas, 3.0])
    assert longer(np.array([3.0]))[0] == curve(np.array([2.0]))[0]
