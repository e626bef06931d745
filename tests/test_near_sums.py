"""The sums that the near field is made of: cells, normalisers, support."""

import numpy as np
import pytest
from scipy.special import logsumexp

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.near import NearField
from nearfield.near import cells as cells_module
from nearfield.near._hashing import row_uniforms, sample_rows
from nearfield.near._rows import without_themselves
from nearfield.near.cells import n_cells, sort_into_cells
from nearfield.near.fit import seen_conditionals
from nearfield.near.normalizers import Normalizers, add_cell_sums, sum_normalizers
from nearfield.near.scales import TabulatedScales
from nearfield.prediction._support import new_point_support

SIGMAS = {"gaussian": (0.05, 0.4, 3.0), "exponential": (0.3, 3.0, 20.0)}


def problem(n_points=300, n_features=3, seed=0):
    points = np.random.default_rng(seed).normal(size=(n_points, n_features))
    return points, (points[:, 0] > 0).astype(np.int64) + (points[:, 1] > 1)


def log_totals(distances, kernel, sigma):
    others = distances + np.where(np.eye(len(distances), dtype=bool), np.inf, 0.0)
    logs = -(others**2) / (2 * sigma**2) if kernel == "gaussian" else -others * sigma
    return logsumexp(logs, axis=1)


def in_absolute_terms(normalizers, kernel, sigma):
    """Undo that totals are relative to the nearest neighbour."""
    relative = normalizers.at(np.array([sigma]), np.arange(len(normalizers.nearest)))[0]
    rate = 0.5 / sigma**2 if kernel == "gaussian" else sigma
    return relative - rate * normalizers.nearest ** (2 if kernel == "gaussian" else 1)


def normalizers_of(points, kernel, *, metric="euclidean", scales=None, seed=1):
    power = 2 if metric == "euclidean" else 1
    rows = sample_rows(len(points), 200, seed, 1)
    centres = points[rows[: n_cells(len(points))]]
    order, table = sort_into_cells(points, centres, points[rows], seed, power=power)
    scales = scales or TabulatedScales.covering(kernel, 0.02, 50.0)
    return sum_normalizers(points, order, table, scales, seed)


def test_row_uniforms_are_uniform_and_belong_to_the_row():
    numbers = row_uniforms(np.arange(20_000), 7, 1)
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    counts = np.histogram(numbers, 20, (0.0, 1.0))[0]
    assert ((counts - 1_000) ** 2 / 1_000).sum() < 43.8  # 99.9% of chi squared with 19
    np.testing.assert_array_equal(row_uniforms([5, 17], 7, 1), numbers[[5, 17]])
    for other in (row_uniforms(np.arange(20_000), 8, 1), row_uniforms(np.arange(20_000), 7, 2)):
        assert abs(np.corrcoef(numbers, other)[0, 1]) < 4.0 / np.sqrt(20_000)


def test_a_sample_of_rows_is_the_beginning_of_a_larger_one():
    rows = sample_rows(1_000, 50, 3, 1)
    assert len(np.unique(rows)) == 50
    np.testing.assert_array_equal(sample_rows(1_000, 80, 3, 1)[:50], rows)
    assert sorted(sample_rows(10, 99, 3, 1)) == list(range(10))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_normalizers_of_few_points_are_exact(kernel, metric):
    points, _ = problem()
    distances = distance_matrix(points, metric=metric)
    normalizers = normalizers_of(points, kernel, metric=metric)
    nearest = (distances + 1e9 * np.eye(len(points))).min(axis=1)
    np.testing.assert_allclose(normalizers.nearest, nearest, rtol=1e-5)
    for sigma in SIGMAS[kernel]:
        expected = log_totals(distances, kernel, sigma)
        found = in_absolute_terms(normalizers, kernel, sigma)
        # What is left is the interpolation between tabulated scales.
        np.testing.assert_allclose(found, expected, atol=5e-3, rtol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_radius_normalizers_count_the_points_within(metric):
    points, _ = problem()
    distances = distance_matrix(points, metric=metric)
    scales = TabulatedScales.covering("radius", 0.1, 8.0)
    normalizers = normalizers_of(points, "radius", metric=metric, scales=scales)
    for place in (60, 120, 180):
        counts = (distances < scales.values[place]).sum(axis=1) - 1
        expected = np.log(np.maximum(counts, 1))
        np.testing.assert_allclose(normalizers.log_totals[:, place], expected, atol=1e-6)


@pytest.fixture
def few_whole(monkeypatch):
    """Make sums of few points estimates, as those of many are."""
    monkeypatch.setattr(cells_module, "MAX_EXACT", 100)
    monkeypatch.setattr(cells_module, "N_WHOLE", 64)
    monkeypatch.setattr(cells_module, "N_SEEN", 64)
    monkeypatch.setattr(cells_module, "_POINTS_A_CELL", 16)


@pytest.mark.usefixtures("few_whole")
def test_sums_over_samples_of_far_cells_are_unbiased():
    points, _ = problem(600)
    sigma, n_seeds = 1.5, 60  # wide: far points count
    expected = log_totals(distance_matrix(points), "gaussian", sigma)
    scales = TabulatedScales.covering("gaussian", 0.1, 20.0)
    ratios = np.array(
        [
            np.exp(
                in_absolute_terms(
                    normalizers_of(points, "gaussian", scales=scales, seed=seed), "gaussian", sigma
                )
                - expected
            ).mean()
            for seed in range(n_seeds)
        ]
    )
    standard_error = ratios.std(ddof=1) / np.sqrt(n_seeds)
    assert 1e-4 < standard_error < 0.01
    assert abs(ratios.mean() - 1.0) < 4.0 * standard_error + 1e-4


@pytest.mark.usefixtures("few_whole")
@pytest.mark.parametrize("has_outlier", [False, True])
def test_near_points_count_whole_whatever_the_sample(has_outlier):
    points, _ = problem(600)
    if has_outlier:
        points[sample_rows(600, 1, 1, 1)] = 1e3  # the centre of a cell: all others look alike to it
    found = in_absolute_terms(normalizers_of(points, "gaussian"), "gaussian", 0.1)
    expected = log_totals(distance_matrix(points), "gaussian", 0.1)
    assert np.quantile(np.abs(found - expected), 0.9) < 5e-3


@pytest.mark.usefixtures("few_whole")
def test_sums_over_shards_add_up():
    points, _ = problem(400)
    seed, rows = 5, np.arange(400)
    references = sample_rows(400, 100, seed, 1)
    centres = points[references[: n_cells(400)]]
    scales = TabulatedScales.covering("gaussian", 0.1, 20.0)
    order, table = sort_into_cells(points, centres, points[references], seed)
    whole = sum_normalizers(points, order, table, scales, seed)
    shards = []
    for number, part in enumerate((rows[:150], rows[150:150], rows[150:])):
        far = points[references] if number == 0 else points[:0]
        shards.append((part, *sort_into_cells(points[part], centres, far, seed, rows=part)))
    sizes = sum(table.sizes for _, _, table in shards)
    minima, sums = np.full(400, np.inf, dtype=np.float32), np.zeros((400, scales.n_scales))
    for is_given, totals in ((False, np.zeros((400, 0))), (True, sums)):
        for part, order, table in shards:
            places = np.full(400, -1)
            places[part[order]] = np.arange(len(part))
            table = table._replace(sizes=sizes)
            add_cell_sums(
                points, rows, places, table, scales, seed, minima, totals, is_given=is_given
            )
    merged = Normalizers.of(sums, minima, scales)
    np.testing.assert_array_equal(merged.nearest, whole.nearest)
    np.testing.assert_allclose(merged.log_totals, whole.log_totals, atol=2e-5)


@pytest.mark.usefixtures("few_whole")
def test_many_points_in_one_place_count_by_a_sample_of_them():
    points = np.concatenate([np.zeros((300, 2)), np.random.default_rng(0).normal(size=(300, 2))])
    found = in_absolute_terms(normalizers_of(points, "gaussian"), "gaussian", 0.5)
    expected = log_totals(distance_matrix(points), "gaussian", 0.5)
    gaps = found[:300] - expected[:300]
    standard_error = np.sqrt((1.0 - 64 / 300) / 64)  # of the log of a sum over 64 of 300
    assert 0.1 * standard_error < np.sqrt(np.mean(gaps**2)) < 1.5 * standard_error
    assert np.abs(gaps).max() < 5.0 * standard_error
    assert np.isfinite(found).all()


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
@pytest.mark.parametrize("n_neighbors", [7, 299])
def test_support_of_sites_equals_that_of_the_dense_family(kernel, n_neighbors):
    points, labels = problem()
    family = DistanceFamily(distance_matrix(points), kernel, 3)
    near_field = NearField.of(points, labels, 3, kernel, n_neighbors=n_neighbors, seed=1)
    seen, conditionals = seen_conditionals(near_field, 300)
    sites = seen.sites
    np.testing.assert_array_equal(conditionals.labels, labels[sites])
    for sigma in SIGMAS[kernel]:
        expected = family.support(sigma, labels)[sites]
        found = conditionals.support(sigma, conditionals.labels)
        np.testing.assert_allclose(found, expected, atol=4e-3)


@pytest.mark.parametrize("predictive", ["joint", "printed"])
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_support_of_new_points_equals_the_plain_one(kernel, predictive):
    points, labels = problem()
    new = np.concatenate([problem(20, seed=1)[0], [[9.0, 0.0, 0.0]], points[:1]])
    family = DistanceFamily(distance_matrix(points), kernel, 3)
    near_field = NearField.of(points, labels, 3, kernel, n_neighbors=9, seed=1)
    sigmas = np.array(SIGMAS[kernel])
    found = near_field.support(near_field.look(new), sigmas, predictive == "joint")
    for q, sigma in enumerate(sigmas):
        to_new = distance_matrix(new, points)
        expected = new_point_support(family, labels, to_new, sigma, predictive)
        np.testing.assert_allclose(found[:, q], expected, atol=4e-3)


def test_radius_support_equals_the_dense_one_at_a_tabulated_radius():
    points, labels = problem()
    family = DistanceFamily(distance_matrix(points), "radius", 3)
    near_field = NearField.of(points, labels, 3, "radius", n_neighbors=9, seed=1)
    seen, conditionals = seen_conditionals(near_field, 300)
    sites = seen.sites
    new = problem(20, seed=1)[0]
    for sigma in near_field.normalizers.scales.values[[15, 90, 150]] * (1.0 - 1e-9):
        expected = family.support(sigma, labels)[sites]
        np.testing.assert_allclose(conditionals.support(sigma, labels), expected, atol=1e-5)
        to_new = distance_matrix(new, points)
        expected = new_point_support(family, labels, to_new, sigma, "joint")
        found = near_field.support(near_field.look(new), np.array([sigma]))[:, 0]
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.usefixtures("few_whole")
def test_references_stand_for_far_points_without_bias():
    points, labels = problem(400)
    family = DistanceFamily(distance_matrix(points), "gaussian", 3)
    expected = family.support(1.5, labels)
    gaps = []
    for seed in range(30):
        near_field = NearField.of(
            points, labels, 3, "gaussian", n_neighbors=20, seed=seed, n_references=100
        )
        seen, conditionals = seen_conditionals(near_field, 100)
        gap = conditionals.support(1.5, labels) - expected[seen.sites]
        gaps.append(gap.mean(axis=0))
    standard_error = np.std(gaps, axis=0, ddof=1) / np.sqrt(len(gaps))
    assert (np.abs(np.mean(gaps, axis=0)) < 4.0 * standard_error + 1e-3).all()
    assert (standard_error > 1e-5).all()


def test_points_that_tie_with_the_last_neighbour_are_not_lost():
    points = np.repeat(np.arange(4.0)[:, None], 100, axis=0)
    labels = np.repeat([0, 1, 0, 1], 100)
    family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    near_field = NearField.of(points, labels, 2, "gaussian", n_neighbors=10, seed=0)
    seen, conditionals = seen_conditionals(near_field, 400)
    expected = family.support(0.8, labels)[seen.sites]
    np.testing.assert_allclose(conditionals.support(0.8, labels), expected, atol=4e-3)


def test_a_point_is_taken_off_its_own_list():
    distances = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    index = np.array([[4, 2, 7], [1, 2, 3]])
    found = without_themselves(distances, index, np.array([2, 9]))
    np.testing.assert_array_equal(found[1], [[4, 7], [1, 2]])
    np.testing.assert_array_equal(found[0], [[0.0, 1.0], [0.0, 0.0]])


def test_scales_outside_the_table_take_its_last_value():
    scales = TabulatedScales.covering("gaussian", 0.5, 2.0)
    table = np.arange(float(scales.n_scales))
    for value, expected in ((1e-9, 0.0), (1e9, table[-1])):
        first, coefficients = scales.interpolation(np.array([value]))
        columns = first[:, None] + np.arange(coefficients.shape[1])
        assert (coefficients * table[columns]).sum() == pytest.approx(expected)
