import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from nearfield.datasets import load_olive, stratified_split
from nearfield.distances import distance_matrix
from nearfield.field import LabelField, gaussian_weights
from nearfield.field.enumeration import label_distribution, log_partition, uniform_log_partition
from nearfield.inference import _tour_curve, curve, log_partition_curve
from nearfield.inference._cut import contradicts, fewest_between, find_cut
from nearfield.inference._tour_curve import touring_log_partition
from nearfield.inference._touring import TouringChains
from nearfield.sampling._support import coupling_arrays, stored_support
from nearfield.sampling.canonical import Walk, stack_fields, walk_chains
from nearfield.sampling.drift import fill_drift
from nearfield.sampling.multicanonical import multicanonical_sweeps
from nearfield.sampling.reflection import reflect_drifts
from nearfield.sampling.tied_groups import group_log_weights

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
    # Four pairs that do not see each other: many labelings agree as much as labels all the same.
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
def field_of_groups():
    # Olive oils of a few growing areas: at large beta the areas cannot merge label by label.
    data, target = load_olive(return_X_y=True)
    train, _ = stratified_split(target, 0.25, random_state=0)
    distances = distance_matrix(StandardScaler().fit_transform(data)[train])
    return LabelField.from_weights(gaussian_weights(distances, 0.25), 3)


def test_the_flat_chain_alone_gives_the_curve(monkeypatch):
    monkeypatch.setattr(curve, "touring_log_partition", lambda *_: None)
    exact = uniform_log_partition(20, 3, BETAS)
    check_curves(uniform_field(20, 3), BETAS, exact, n_seeds=3, max_error=0.1)


@pytest.mark.long
def test_a_flat_chain_that_freezes_in_groups_warns(field_of_groups, monkeypatch):
    monkeypatch.setattr(curve, "touring_log_partition", lambda *_: None)
    with pytest.warns(ConvergenceWarning, match=r"did not reach the agreements of beta=12"):
        log_partition_curve(np.random.default_rng(0), field_of_groups, [12.0], target_error=0.5)


def test_touring_chains_do_not_freeze_in_groups(field_of_groups):
    log_z, error = log_partition_curve(
        np.random.default_rng(0), field_of_groups, [12.0], target_error=0.1
    )
    # At a beta this large independent ties, which need no chain, are enough to know z.
    stack, labelings = stack_fields([field_of_groups]), np.zeros((40_000, 143), dtype=np.int8)
    u = group_log_weights(stack, 0, 12.0, labelings, np.uint64(3))
    terms = np.exp(u - u.max())
    exact = 12.0 * 0.5 * field_of_groups.coupling.sum() + u.max() + np.log(terms.mean())
    exact_error = terms.std() / terms.mean() / np.sqrt(40_000)
    assert exact_error < 0.05
    assert abs(log_z[0] - exact) < 4.0 * np.hypot(error[0], exact_error)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_random_ties_give_z(random_field, n_classes):
    field = random_field(8, n_classes, external_field=np.linspace(0.5, -0.3, n_classes))
    stack = stack_fields([field])
    for beta in (0.3, 1.0, 3.0):
        u = group_log_weights(stack, 0, beta, np.zeros((20_000, 8), dtype=np.int8), np.uint64(5))
        ratios = np.exp(beta * 0.5 * field.coupling.sum() + u - log_partition(field, beta))
        assert abs(ratios.mean() - 1.0) < 4.0 * ratios.std() / np.sqrt(20_000)


def test_a_jump_from_disorder_to_order_is_added_up_from_two_branches(monkeypatch):
    cuts = []
    monkeypatch.setattr(
        _tour_curve, "find_cut", lambda tours: cuts.append(find_cut(tours)) or cuts[-1]
    )
    field, exact = uniform_field(60, 6), uniform_log_partition(60, 6, BETAS)
    for seed in range(3):
        found = touring_log_partition(np.random.default_rng(seed), field, BETAS, 0.03, 1_000_000)
        np.testing.assert_array_less(np.abs(found.log_z - exact), 4.0 * found.error + 1e-9)
        assert found.error.max() <= 0.03
    assert len(cuts) == 3


def test_a_share_outside_what_free_chains_saw_contradicts_them():
    field = uniform_field(60, 6)
    chains = TouringChains.start(np.random.default_rng(0), field, 0.0, 4.0)
    tours = chains.tour(np.random.default_rng(1), 12)
    cut = find_cut(tours)
    is_above = tours.agreements >= cut.agreement
    seen = np.bincount(tours.points, is_above) / tours.counts
    assert not contradicts(tours, cut, seen)
    assert contradicts(tours, cut, seen + 0.5)
    assert contradicts(tours, cut, seen - 0.5)


def test_draws_in_two_heaps_are_cut_between_them(rng):
    heaps = np.concatenate([rng.normal(10.0, 2.0, 900), rng.normal(40.0, 3.0, 300)])
    assert 16.0 < fewest_between(heaps) < 31.0


def test_no_cut_is_made_for_chains_that_freeze_below_zero(monkeypatch):
    monkeypatch.setattr(_tour_curve, "find_cut", pytest.fail)
    links = 1.0 * (np.random.default_rng(0).random((11, 11)) < 0.4)
    np.fill_diagonal(links, 0.0)
    field = LabelField.from_weights(links + links.T, 2)
    betas = np.linspace(-4.0, 1.0, 6)
    assert touring_log_partition(np.random.default_rng(0), field, betas, 0.03, 10**6) is None
    check_curves(field, betas, log_partition(field, betas), n_seeds=2, max_error=0.15)


def test_no_cut_is_made_where_not_all_draws_come_to_order(random_field):
    chains = TouringChains.start(np.random.default_rng(0), random_field(20, 3), 0.0, 0.5)
    assert find_cut(chains.tour(np.random.default_rng(1), 12)) is None


@pytest.mark.parametrize("external_field", [None, [0.4, 0.0, -0.3]])
@pytest.mark.parametrize("beta", [-1.0, 0.8, 2.5])
def test_drifts_on_one_side_of_a_cut_are_zero_on_average_there(random_field, beta, external_field):
    fields = [random_field(6, 3, sigma=s, external_field=external_field) for s in (1.0, 2.0)]
    labelings, probabilities = label_distribution(fields[0], beta)
    agreements = np.array([fields[0].agreement(labels) for labels in labelings])
    cut = np.quantile(agreements, 0.8) + 1e-9
    drifts = np.full((len(labelings), 2), np.nan)
    for bound in (-np.inf, cut):
        for labels, drift in zip(labelings, drifts, strict=True):
            supports = [np.ascontiguousarray(field.support(labels).T) for field in fields]
            fill_drift(fields[0].external_field, beta, labels, *supports, np.empty((5, 6)), drift)
        reflect_drifts(
            stack_fields(fields),
            np.full(len(labelings), beta),
            labelings.astype(np.int8),
            agreements,
            bound,
            drifts,
        )
        means = [
            probabilities[side] @ drifts[side] for side in (agreements < cut, agreements >= cut)
        ]
        is_zero = np.abs(means).max() < 1e-12
        assert is_zero == (bound == cut)  # without a cut only both sides together have none


@pytest.mark.parametrize("beta", [0.0, 0.8, 2.5])
@pytest.mark.parametrize("is_above", [False, True])
def test_chains_within_bounds_draw_from_the_field_there(random_field, fit_p_value, beta, is_above):
    field = random_field(5, 3)
    labelings, probabilities = label_distribution(field, beta)
    agreements = np.array([field.agreement(labels) for labels in labelings])
    cut = np.quantile(agreements, 0.7) + 1e-9
    inside = (agreements >= cut) == is_above
    n_draws = 2_000
    walk = Walk(np.full(n_draws, beta), np.zeros(n_draws, dtype=int), np.full(n_draws, 8))
    start = labelings[np.flatnonzero(inside)[:1]].astype(np.int8)
    bounds = (cut, np.inf) if is_above else (-np.inf, cut)
    drawn, *_ = walk_chains(stack_fields([field]), walk, start, np.array([7], np.uint64), bounds)
    expected = np.where(inside, probabilities, 0.0)
    assert fit_p_value(drawn[0], 3, expected / expected.sum()) > 1e-4


@pytest.mark.parametrize("beta", [-4.0, 1.0])
def test_a_field_without_coupling_is_independent_labels(beta):
    field = LabelField.from_weights(np.zeros((4, 4)), 3)
    log_z, _ = log_partition_curve(np.random.default_rng(0), field, [beta])
    assert log_z[0] == pytest.approx(4 * np.log(3.0))


@pytest.mark.parametrize("betas", [[], [np.nan], [[1.0]]])
def test_betas_that_make_no_curve_are_refused(random_field, betas):
    with pytest.raises(ValueError, match="Expected finite betas of shape"):
        log_partition_curve(np.random.default_rng(0), random_field(5, 2), betas)


def linear_weight(beta):
    return np.array([0.0, beta]), 0.0, 1.0, np.array([beta, beta])


@pytest.mark.parametrize("beta", [-0.5, 0.7])
def test_a_linear_weight_gives_the_field_itself(random_field, fit_p_value, beta):
    field = random_field(4, 3)
    draws = []
    for seed in range(2_000):
        labels = np.random.default_rng(seed).integers(3, size=4)
        run_multicanonical(multicanonical_sweeps, field, linear_weight(beta), labels, seed, 30)
        draws.append(labels)
    assert fit_p_value(draws, 3, label_distribution(field, beta)[1]) > 1e-4


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_compiled_multicanonical_equals_the_interpreted_one(random_field, form):
    field = random_field(12, 3, external_field=[0.2, 0.0, -0.1])
    field = field.to_sparse() if form == "sparse" else field
    results = []
    for run in (multicanonical_sweeps, multicanonical_sweeps.py_func):
        labels = np.arange(12) % 3
        table = np.linspace(0.0, 3.0, 40) ** 2
        weight = table, 3.0, 4.0, np.array([0.0, 3.0])
        with np.errstate(over="ignore"):
            agreements = run_multicanonical(run, field, weight, labels, 7, 60, learning_rate=0.1)
        results.append((labels, agreements, table))
    for compiled, interpreted in zip(*results, strict=True):
        np.testing.assert_array_equal(compiled, interpreted)


def run_multicanonical(run, field, weight, labels, seed, n_sweeps, learning_rate=0.0):
    agreements = np.empty(n_sweeps)
    run(
        coupling_arrays(field),
        field.total_coupling,
        field.external_field,
        *weight,
        learning_rate,
        labels,
        stored_support(field, labels),
        field.agreement(labels),
        np.uint64(seed),
        agreements,
        np.empty(n_sweeps, dtype=np.bool_),
    )
    assert agreements[-1] == pytest.approx(field.agreement(labels), abs=1e-9)
    return agreements
