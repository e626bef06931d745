import numpy as np
import pytest
from scipy.stats import chisquare

from nearfield.field import LabelField
from nearfield.field.enumeration import label_distribution
from nearfield.sampling import draw_labels, draw_labels_cluster
from nearfield.sampling.support import coupling_arrays
from nearfield.sampling.swendsen_wang import cluster_sweeps, find_bonds, index_line

LEVEL = 1e-4  # of each test of fit; the seeds are fixed


@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("external", [False, True])
def test_cluster_moves_leave_the_field_invariant(
    rng, random_field, fit_p_value, beta, n_classes, external
):
    field = random_field(
        5, n_classes, external_field=np.arange(n_classes) / 3 if external else None
    )
    labelings, probabilities = label_distribution(field, beta)
    starts = labelings[rng.choice(len(labelings), size=3_000, p=probabilities)]
    draws = [draw_labels_cluster(rng, field, beta, n_sweeps=2, initial=y) for y in starts]
    assert fit_p_value(draws, n_classes, probabilities) > LEVEL


@pytest.mark.parametrize("beta", [1.0, 8.0])
def test_cluster_moves_reach_the_field_soon(rng, random_field, fit_p_value, beta):
    field = random_field(6, 2)
    draws = [draw_labels_cluster(rng, field, beta, n_sweeps=30) for _ in range(3_000)]
    assert fit_p_value(draws, 2, label_distribution(field, beta)[1]) > LEVEL


def test_cluster_moves_merge_groups_where_gibbs_sampling_freezes(rng):
    # Two tight groups that hardly notice each other, yet agree almost surely at this beta.
    same_group = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
    coupling = same_group + 0.02 * (1.0 - same_group - np.eye(20))
    field = LabelField(coupling, 2, np.zeros(2))
    is_merged = {
        draw: np.mean([len(set(draw(rng, field, 5.0, 50))) == 1 for _ in range(100)])
        for draw in (draw_labels, draw_labels_cluster)
    }
    assert is_merged[draw_labels] < 0.8
    assert is_merged[draw_labels_cluster] > 0.95


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_points_that_are_surely_tied_agree_from_the_start(rng, form):
    pairs = LabelField(np.kron(np.eye(15), [[0.0, 1.0], [1.0, 0.0]]), 5, np.zeros(5))
    field = pairs.to_sparse() if form == "sparse" else pairs
    draws = np.array([draw_labels_cluster(rng, field, 100.0, n_sweeps=0) for _ in range(40)])
    np.testing.assert_array_equal(draws[:, ::2], draws[:, 1::2])
    counts = np.bincount(draws[:, ::2].ravel(), minlength=5)  # the pairs know nothing of each other
    assert chisquare(counts).pvalue > LEVEL


def test_without_coupling_the_start_is_random(rng, random_field):
    draws = [draw_labels_cluster(rng, random_field(40, 4), 0.0, n_sweeps=0) for _ in range(30)]
    assert chisquare(np.bincount(np.ravel(draws), minlength=4)).pvalue > LEVEL


def test_dense_and_sparse_coupling_draw_the_same(rng, random_field):
    field = random_field(12, 3)
    start = rng.integers(3, size=12)
    seeds = np.random.default_rng(4), np.random.default_rng(4)
    forms = field, field.to_sparse()
    draws = [
        draw_labels_cluster(seed, form, 1.3, n_sweeps=5, initial=start)
        for seed, form in zip(seeds, forms, strict=True)
    ]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("is_start", [False, True])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_compiled_cluster_moves_equal_the_plain_python(rng, random_field, form, is_start):
    field = random_field(10, 3, external_field=[0.1, 0.0, -0.1])
    field = field.to_sparse() if form == "sparse" else field
    compiled = rng.integers(3, size=10)
    plain = compiled.copy()
    for labels, sweep in ((compiled, cluster_sweeps), (plain, cluster_sweeps.py_func)):
        with np.errstate(over="ignore"):  # the random numbers are meant to wrap around
            sweep(
                coupling_arrays(field),
                field.external_field,
                1.1,
                labels,
                np.uint64(7),
                20,
                is_start,
            )
    np.testing.assert_array_equal(compiled, plain)


def test_cluster_moves_refuse_a_negative_beta(rng, random_field):
    with pytest.raises(ValueError, match="beta >= 0"):
        draw_labels_cluster(rng, random_field(5, 2), -0.1)


@pytest.mark.parametrize(("discount", "share"), [(0.0, 1.0), (np.log(3.0), 1.0 / 3.0)])
def test_a_bond_is_as_probable_as_its_strength_says(discount, share):
    couplings = np.array([0.0, 1e-3, 0.05, 0.3, 1.0, 5.0, 400.0])
    coupling = np.zeros((8, 8))
    coupling[1:, 0] = couplings
    bonds = find_bonds(coupling, 2.0, 8, discount, share)
    strengths = np.maximum(2.0 * couplings - discount, 2.0 * share * couplings)
    is_strong, is_weak = 2.0 * couplings > 0.1, (couplings > 0.0) & (2.0 * couplings <= 0.1)
    np.testing.assert_array_equal(bonds.strong[:, 0], 1 + np.flatnonzero(is_strong))
    expected = -np.expm1(-strengths[is_strong])
    np.testing.assert_allclose(bonds.probabilities, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(bonds.weak[:, 0], 1 + np.flatnonzero(is_weak))
    found = np.diff(bonds.line, prepend=0.0) * bonds.rate
    np.testing.assert_allclose(found, strengths[is_weak], rtol=1e-12, atol=1e-15)


def test_the_index_of_a_line_finds_the_pair_at_every_place(rng):
    line = np.cumsum(np.sort(rng.gamma(0.2, size=300)))
    begins = index_line(line)
    starts = np.linspace(0.0, line[-1], len(begins))
    # The last place is the end of the line, up to rounding.
    expected = np.searchsorted(line, starts, side="right")
    np.testing.assert_array_equal(begins[:-1], expected[:-1])
    places = rng.random(1_000) * line[-1]
    stretches = (places * (len(begins) - 1) / line[-1]).astype(int)
    pairs = np.searchsorted(line, places, side="right")
    assert (pairs >= begins[stretches]).all()
    assert (pairs <= begins[stretches + 1]).all()
    assert len(index_line(np.empty(0))) > 1
