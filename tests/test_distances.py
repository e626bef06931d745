"""The distances layer: every metric, with exact zeros and symmetry, and clear refusals."""

import math
import threading

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import distance
from sklearn.exceptions import DataConversionWarning
from sklearn.neighbors import VALID_METRICS

from nearfield.distances import check_distances, distance_matrix


def haversine(u, v):
    chord = (
        math.sin((u[0] - v[0]) / 2) ** 2
        + math.cos(u[0]) * math.cos(v[0]) * math.sin((u[1] - v[1]) / 2) ** 2
    )
    return 2 * math.asin(math.sqrt(chord))


def nan_euclidean(u, v):
    is_present = ~(np.isnan(u) | np.isnan(v))
    return math.sqrt(len(u) / is_present.sum()) * math.dist(u[is_present], v[is_present])


# The plain function of two vectors behind each name.
BOOLEAN = {
    "dice": distance.dice,
    "jaccard": distance.jaccard,
    "rogerstanimoto": distance.rogerstanimoto,
    "russellrao": distance.russellrao,
    "sokalmichener": distance.rogerstanimoto,
    "sokalsneath": distance.sokalsneath,
    "yule": distance.yule,
}
SCALED = {"seuclidean": distance.seuclidean, "mahalanobis": distance.mahalanobis}
REAL = {
    "braycurtis": distance.braycurtis,
    "canberra": distance.canberra,
    "chebyshev": distance.chebyshev,
    "cityblock": distance.cityblock,
    "correlation": distance.correlation,
    "cosine": distance.cosine,
    "euclidean": distance.euclidean,
    "hamming": distance.hamming,
    "haversine": haversine,
    "infinity": distance.chebyshev,
    "jensenshannon": distance.jensenshannon,
    "l1": distance.cityblock,
    "l2": distance.euclidean,
    "manhattan": distance.cityblock,
    "minkowski": distance.minkowski,
    "nan_euclidean": nan_euclidean,
    "p": distance.minkowski,
    "sqeuclidean": distance.sqeuclidean,
}
METRICS = sorted(REAL | SCALED | BOOLEAN)


def points_for(metric, n_points=9, seed=0):
    """Points that suit the metric, some of their features zero, rows 1 and 4 the same."""
    rng = np.random.default_rng(seed)
    points = np.round(rng.uniform(0.1, 1.4, size=(n_points, 2 if metric == "haversine" else 5)), 2)
    points[:, 0] *= rng.random(n_points) < 0.5
    if metric in BOOLEAN:
        points = (points > 0.7).astype(float)
    points[4] = points[1]
    return points


def scale_of(points, metric):
    if metric == "seuclidean":
        return {"V": np.var(points, axis=0, ddof=1)}
    if metric == "mahalanobis":
        return {"VI": np.linalg.inv(np.cov(points.T))}
    return {}


def expected_distances(points, others, metric, *args):
    measure = (REAL | SCALED | BOOLEAN)[metric]
    if metric in BOOLEAN:
        points, others = points.astype(bool), others.astype(bool)
    return np.array(
        [[0.0 if (u == v).all() else measure(u, v, *args) for v in others] for u in points]
    )


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def message(text):
    """Expect an error that says this, a regular expression."""
    return pytest.raises(ValueError, match=text)


# --- every metric --------------------------------------------------------------------------------


def test_every_name_of_scikit_learn_and_scipy_is_tested_here():
    tools = {"cdist", "directed_hausdorff", "pdist", "squareform"}
    of_scipy = {
        name for name in distance.__all__ if not name.startswith(("is_", "num_obs"))
    } - tools
    of_sklearn = set(VALID_METRICS["brute"]) | set(VALID_METRICS["ball_tree"])
    assert (of_scipy | of_sklearn) - {"precomputed", "pyfunc"} <= set(METRICS)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_name_means_its_function_of_two_vectors(metric):
    points = points_for(metric)
    scale = scale_of(points, metric)
    expected = expected_distances(points, points, metric, *scale.values())
    np.testing.assert_allclose(distance_matrix(points, metric=metric), expected, atol=1e-12)
    assert expected.max() > 0.1


@pytest.mark.parametrize("metric", METRICS)
def test_distances_to_other_points_are_rectangular_by_the_same_function(metric):
    points, others = points_for(metric), points_for(metric, n_points=6, seed=1)
    others[2] = points[3]
    scale = scale_of(points, metric)
    distances = distance_matrix(points, others, metric=metric, metric_params=scale)
    expected = expected_distances(points, others, metric, *scale.values())
    assert distances.shape == (9, 6)
    assert distances[3, 2] == 0.0
    np.testing.assert_allclose(distances, expected, atol=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_identical_rows_and_the_diagonal_are_at_exactly_zero(metric):
    points = points_for(metric)
    distances = distance_matrix(points, metric=metric)
    identical = (points[:, None] == points).all(axis=2)
    assert identical[1, 4]
    assert (distances[identical] == 0.0).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_are_exactly_symmetric(metric, n_jobs):
    distances = distance_matrix(points_for(metric, n_points=20), metric=metric, n_jobs=n_jobs)
    assert np.array_equal(distances, distances.T)


@pytest.mark.parametrize("metric", METRICS)
def test_threads_do_not_change_the_distances(metric):
    points = points_for(metric, n_points=20)
    alone = distance_matrix(points, metric=metric)
    np.testing.assert_allclose(
        distance_matrix(points, metric=metric, n_jobs=2), alone, rtol=0, atol=1e-14 * alone.max()
    )


@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("metric", METRICS)
def test_sparse_points_have_the_distances_of_dense_ones(metric, make):
    points = points_for(metric)
    np.testing.assert_allclose(
        distance_matrix(make(points), metric=metric),
        distance_matrix(points, metric=metric),
        rtol=1e-12,
        atol=1e-14,
    )


@pytest.mark.parametrize("metric", METRICS)
def test_sparse_and_dense_points_can_be_measured_together(metric):
    points, others = points_for(metric), points_for(metric, n_points=6, seed=1)
    others[2] = points[3]
    params = scale_of(points, metric)
    dense = distance_matrix(points, others, metric=metric, metric_params=params)
    for X, Y in [(sp.csr_array(points), others), (points, sp.csc_matrix(others))]:
        mixed = distance_matrix(X, Y, metric=metric, metric_params=params)
        assert mixed[3, 2] == 0.0
        np.testing.assert_allclose(mixed, dense, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", sorted(BOOLEAN))
def test_data_of_zeros_and_ones_are_boolean_without_a_warning(metric):
    points = points_for(metric)
    as_floats = distance_matrix(points, metric=metric)
    for dtype in (bool, int):
        assert np.array_equal(distance_matrix(points.astype(dtype), metric=metric), as_floats)


def test_other_data_are_boolean_with_a_warning():
    with pytest.warns(DataConversionWarning, match="converted to boolean"):
        distance_matrix(np.array([[0.0, 2.0], [3.0, 0.0]]), metric="jaccard")


# --- functions and parameters --------------------------------------------------------------------


def weighted_city_block(u, v, scale=1.0):
    return scale * float(np.abs(u - v).sum())


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_function_measures_vectors_and_takes_parameters(make, n_jobs):
    points = points_for("euclidean")
    doubled = distance_matrix(
        make(points), metric=weighted_city_block, metric_params={"scale": 2.0}, n_jobs=n_jobs
    )
    np.testing.assert_allclose(doubled, 2 * distance_matrix(points, metric="manhattan"), rtol=1e-14)


def test_threads_measure_side_by_side():
    both_are_here = threading.Barrier(2, timeout=20.0)

    def meeting(u, v):
        both_are_here.wait()
        return abs(u[0] - v[0])

    assert distance_matrix([[0.0], [2.0]], metric=meeting, n_jobs=2)[0, 1] == 2.0


def test_a_function_measures_to_other_points():
    points, others = points_for("euclidean"), points_for("euclidean", n_points=6, seed=1)
    np.testing.assert_allclose(
        distance_matrix(points, others, metric=weighted_city_block),
        distance_matrix(points, others, metric="manhattan"),
        rtol=1e-14,
    )


def test_rounding_errors_of_a_function_are_cleared():
    def noisy(u, v):
        return float(1.0 - u @ v / math.sqrt((u @ u) * (v @ v))) - 1e-15 * (u[0] < v[0])

    distances = distance_matrix(points_for("cosine"), metric=noisy)
    assert (distances >= 0.0).all()
    assert not np.diagonal(distances).any()
    assert np.array_equal(distances, distances.T)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_function_that_depends_on_the_order_of_its_arguments_is_refused(n_jobs):
    def uphill(u, v):
        return float(np.maximum(v - u, 0.0).sum())

    points = np.array([[0.0], [3.0], [1.0]])
    with message(
        "Expected symmetric distances; metric 'uphill': got 3 from point 0 to point 1 and 0 back"
    ):
        distance_matrix(points, metric=uphill, n_jobs=n_jobs)
    assert distance_matrix(points, points, metric=uphill)[0, 1] == 3.0


def test_a_function_that_is_a_similarity_is_refused():
    def similarity(u, v):
        return math.exp(-float(np.abs(u - v).sum()))

    with message("Expected distance 0 from a point to itself; metric 'similarity': got 1 from"):
        distance_matrix([[0.0], [1.0]], metric=similarity)


@pytest.mark.parametrize(("value", "shown"), [(-1.0, "-1"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_function_that_gives_no_distance_is_refused(value, shown):
    def broken(u, v):
        return value if u[0] + v[0] == 3.0 else abs(u[0] - v[0])

    with message(
        f"Expected finite distances >= 0; metric 'broken': got {shown} from point 1 to point 2"
    ):
        distance_matrix([[0.0], [1.0], [2.0]], metric=broken)


def test_a_function_that_fails_says_why():
    def failing(u, v):
        raise ValueError("no such spectrum")

    with message("metric 'failing' could not measure these points: no such spectrum"):
        distance_matrix([[0.0], [1.0]], metric=failing)


@pytest.mark.parametrize("p", [1, 1.5, 3, np.inf])
def test_minkowski_takes_its_power(p):
    points = points_for("minkowski")
    differences = np.abs(points[:, None] - points)
    np.testing.assert_allclose(
        distance_matrix(points, metric="minkowski", metric_params={"p": p}),
        np.linalg.norm(differences, ord=p, axis=2),
        rtol=1e-13,
    )


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_euclidean_takes_feature_weights(make):
    points, weights = points_for("euclidean"), np.array([1.0, 2.0, 0.0, 4.0, 0.5])
    np.testing.assert_allclose(
        distance_matrix(make(points), metric="euclidean", metric_params={"w": weights}),
        distance_matrix(points * np.sqrt(weights)),
        rtol=1e-13,
    )


def test_mahalanobis_takes_its_inverse_covariance():
    points = points_for("mahalanobis")
    distances = distance_matrix(points, metric="mahalanobis", metric_params={"VI": 4 * np.eye(5)})
    np.testing.assert_allclose(distances, 2 * distance_matrix(points), rtol=1e-13)


@pytest.mark.parametrize("metric", sorted(SCALED))
def test_distances_of_one_set_take_their_scale_from_it(metric):
    points = points_for(metric)
    stretched = points * np.array([1.0, 1e-9, 10.0, 1e9, 3.0])
    np.testing.assert_allclose(
        distance_matrix(stretched, metric=metric), distance_matrix(points, metric=metric), rtol=1e-9
    )


@pytest.mark.parametrize(("metric", "scale"), [("seuclidean", "V"), ("mahalanobis", "VI")])
def test_distances_to_other_points_need_their_scale(metric, scale):
    points = points_for(metric)
    for others in (points, points[:3]):
        with message(f"Expected '{scale}' in metric_params; got none. Metric '{metric}'"):
            distance_matrix(points, others, metric=metric)


def test_mahalanobis_measures_a_single_feature():
    points = np.array([[0.0], [1.0], [3.0]])
    np.testing.assert_allclose(
        distance_matrix(points, metric="mahalanobis"),
        distance_matrix(points) / np.std(points, ddof=1),
        rtol=1e-14,
    )


@pytest.mark.parametrize("shape", [(5, 5), (4, 9), (1, 2)])
def test_mahalanobis_refuses_points_too_few_for_a_covariance(rng, shape):
    with message(
        f"metric 'mahalanobis' could not measure .* rank {shape[0] - 1} in {shape[1]} features"
    ):
        distance_matrix(rng.normal(size=shape), metric="mahalanobis")


# --- exact zeros, and digits ---------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "manhattan"])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_minus_zero_is_zero(metric, make):
    points = make([[0.0, 1.0, 3.0], [-0.0, 1.0, 3.0], [7.0, 0.0, 1.0]])
    distances = distance_matrix(points, metric=metric)
    assert distances[0, 1] == 0.0
    assert distances[0, 2] > 0.0


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_proportional_rows_are_at_no_negative_distance(metric, rng):
    direction = rng.normal(size=7)
    points = rng.uniform(0.5, 2.0, size=(50, 1)) * direction
    distances = distance_matrix(points, metric=metric)
    assert (distances >= 0.0).all()
    assert distances.max() < 1e-14


def test_zero_rows_are_at_zero_from_each_other():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    for metric in ("cosine", "braycurtis", "canberra"):
        distances = distance_matrix(points, metric=metric)
        assert distances[0, 1] == 0.0
        assert distances[0, 2] >= 1.0


def test_nearly_the_same_histogram_is_near_not_nan(rng):
    histogram = rng.random(6)
    points = histogram * rng.uniform(0.1, 9.0, size=(60, 1)) * (1 + 1e-9 * rng.random((60, 6)))
    assert distance_matrix(points, metric="jensenshannon").max() < 1e-7


def spread(rng):
    """Points 1e6 from the origin whose distances run from 1e-9 to 1."""
    steps = 10.0 ** rng.uniform(-9, 0, size=(40, 1)) * rng.normal(size=(40, 6))
    return 1e6 + steps


@pytest.mark.parametrize("metric", ["euclidean", "l2"])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_near_points_far_from_the_origin_keep_their_digits(make, metric, rng):
    points = spread(rng)
    expected = [[math.dist(u, v) for v in points] for u in points]
    np.testing.assert_allclose(distance_matrix(make(points), metric=metric), expected, rtol=1e-12)
    np.testing.assert_allclose(
        distance_matrix(make(points[:9]), make(points[5:]), metric=metric),
        np.array(expected)[:9, 5:],
        rtol=1e-12,
    )


def test_sparse_points_keep_their_digits_at_every_distance(rng):
    base = rng.normal(size=(1, 30)) * (rng.random((1, 30)) < 0.5)
    points = base + 10.0 ** rng.uniform(-8, 2, size=(80, 1)) * rng.normal(size=(80, 30))
    expected = [[math.dist(u, v) for v in points] for u in points]
    np.testing.assert_allclose(distance_matrix(sp.csr_array(points)), expected, rtol=1e-12)


def test_many_near_sparse_points_are_all_measured_anew(rng):
    points = 1e8 + rng.integers(0, 9, size=(150, 2))  # more pairs than one batch holds
    expected = distance_matrix(points - 1e8)
    assert np.array_equal(distance_matrix(sp.csr_array(points)), expected)


def test_the_error_of_nan_euclidean_is_as_documented(rng):
    points = spread(rng)
    squares = distance_matrix(points, metric="nan_euclidean") ** 2
    squared_norm = (points**2).sum(axis=1).max()
    error = np.abs(squares - distance_matrix(points) ** 2).max()
    assert error < 4e-15 * squared_norm


def test_missing_values_are_left_out_by_nan_euclidean():
    points = np.array([[0.0, 0.0, 1.0], [3.0, np.nan, 1.0], [3.0, np.nan, 1.0]])
    distances = distance_matrix(points, metric="nan_euclidean")
    assert distances[0, 1] == pytest.approx(3.0 * math.sqrt(3 / 2), rel=1e-14)
    assert distances[1, 2] == 0.0


SMALL_TABLES = st.tuples(st.integers(1, 6), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2).map(lambda i: i / 2))
)


@given(SMALL_TABLES, st.sampled_from(["euclidean", "manhattan", "chebyshev", "sqeuclidean"]))
def test_a_distance_is_zero_just_where_rows_agree(points, metric):
    identical = (points[:, None] == points).all(axis=2)
    for X in (points, sp.csr_array(points)):
        assert np.array_equal(distance_matrix(X, metric=metric) == 0.0, identical)


@given(SMALL_TABLES, st.randoms(use_true_random=False))
def test_the_order_of_the_points_never_matters(points, random):
    order = random.sample(range(len(points)), len(points))
    assert np.array_equal(distance_matrix(points[order]), distance_matrix(points)[order][:, order])


# --- forms of input ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "chebyshev", "minkowski"])
@pytest.mark.parametrize(
    "convert",
    [
        lambda points: points.astype(np.float32),
        lambda points: points.astype(int),
        np.asfortranarray,
        frozen,
        lambda points: np.repeat(points, 2, axis=0)[::2],
        lambda points: points.tolist(),
        pd.DataFrame,
    ],
    ids=["float32", "int", "fortran", "read-only", "strided", "list", "frame"],
)
def test_the_form_of_the_input_does_not_change_the_distances(metric, convert, rng):
    points = rng.integers(0, 100, size=(8, 3)).astype(float)
    points[5] = points[2]
    expected = distance_matrix(points, metric=metric)
    distances = distance_matrix(convert(points), metric=metric)
    assert distances.dtype == np.float64
    assert np.array_equal(distances, expected)
    assert np.array_equal(
        distance_matrix(convert(points), points[:3], metric=metric),
        distance_matrix(points, points[:3], metric=metric),
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_rows_of_float32_that_agree_are_at_zero(metric, rng):
    points = rng.random((6, 4)).astype(np.float32)
    points[3] = points[0]
    assert distance_matrix(points, metric=metric)[0, 3] == 0.0
    assert distance_matrix(points, points.astype(np.float64), metric=metric)[0, 3] == 0.0


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_a_sparse_row_is_what_it_sums_to_and_is_left_as_it_was(metric, index_type):
    # Row 0 is unsorted and holds a zero, row 1 holds its last feature in two parts.
    given_data = np.array([5.0, 0.0, 2.0, 2.0, 3.0, 2.0, 7.0])
    given_indices = np.array([2, 1, 0, 0, 2, 2, 1], dtype=index_type)
    points = sp.csr_array((given_data, given_indices, [0, 3, 6, 7]), shape=(3, 3))
    points.indices, points.indptr = given_indices.copy(), points.indptr.astype(index_type)
    dense = np.array([[2.0, 0.0, 5.0], [2.0, 0.0, 5.0], [0.0, 7.0, 0.0]])
    distances = distance_matrix(points, metric=metric)
    assert distances[0, 1] == 0.0
    np.testing.assert_allclose(distances, distance_matrix(dense, metric=metric), rtol=1e-14)
    assert np.array_equal(points.indices, given_indices)
    assert np.array_equal(points.data, given_data)
    assert distance_matrix(points, sp.csr_matrix(dense), metric=metric)[1, 0] == 0.0


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_a_stored_zero_does_not_make_a_sparse_row_another_one(metric, rng):
    dense = rng.normal(size=(30, 4))
    dense[:, 1] = 0.0
    stored = sp.csr_array((dense.ravel(), np.tile(np.arange(4), 30), np.arange(0, 121, 4)))
    assert stored.nnz == 120
    distances = distance_matrix(stored, sp.csr_array(dense), metric=metric)
    assert not np.diagonal(distances).any()


@pytest.mark.parametrize("metric", ["euclidean", "l2", "manhattan", "l1", "cityblock", "cosine"])
def test_wide_sparse_points_are_not_made_dense(metric, monkeypatch):
    points = sp.csr_array(([3.0, 4.0, 5.0], [7, 7, 900], [0, 1, 2, 3]), shape=(3, 1000))
    expected = distance_matrix(points.toarray(), metric=metric)
    for form in (sp.csr_array, sp.csr_matrix):
        monkeypatch.setattr(form, "toarray", narrow_only(form.toarray))
    np.testing.assert_allclose(distance_matrix(points, metric=metric), expected, rtol=1e-14)


def narrow_only(toarray):
    def checked(self, *args, **kwargs):
        assert self.shape[1] < 1000
        return toarray(self, *args, **kwargs)

    return checked


def test_one_point_can_be_measured_to_others():
    assert distance_matrix([[3.0, 4.0]], [[0.0, 0.0], [3.0, 4.0]]).tolist() == [[5.0, 0.0]]


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_features_that_are_not_finite_are_refused_by_name(value, make):
    good, bad = make([[0.0, 1.0], [2.0, 1.0]]), make([[0.0, 1.0], [value, 1.0]])
    word = "NaN" if np.isnan(value) else "infinity"
    with message(f"Input X contains {word}"):
        distance_matrix(bad)
    with message(f"Input Y contains {word}"):
        distance_matrix(good, bad)


def test_infinite_features_are_refused_where_missing_ones_are_not():
    with message("Input X contains infinity"):
        distance_matrix([[np.nan, 1.0], [np.inf, 1.0]], metric="nan_euclidean")


@pytest.mark.parametrize("metric", ["euclidean", "jensenshannon", "jaccard", weighted_city_block])
def test_different_numbers_of_features_are_refused(metric):
    with message("Expected X and Y with the same number of features; got 2 and 3"):
        distance_matrix(np.ones((4, 2)), np.ones((4, 3)), metric=metric)


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with message("metric 'eucldean' could not measure .*must be a str among .*'euclidean'"):
        distance_matrix([[0.0], [1.0]], metric="eucldean")


def test_an_unknown_parameter_of_a_metric_is_refused():
    for metric in ("euclidean", "chebyshev", "mahalanobis"):
        with message(f"(?s)metric '{metric}' could not measure these points: .*argument"):
            distance_matrix(points_for(metric), metric=metric, metric_params={"sharpness": 2})


@pytest.mark.parametrize(
    ("metric", "points"),
    [
        ("correlation", [[1.0, 1.0], [0.0, 1.0]]),
        ("jensenshannon", [[0.0, 0.0], [0.0, 1.0]]),
        ("jensenshannon", [[-1.0, 2.0], [0.5, 1.0]]),
        ("seuclidean", [[1.0, 1.0], [1.0, 2.0]]),
        ("nan_euclidean", [[np.nan, 1.0], [0.0, np.nan]]),
    ],
)
def test_points_without_a_distance_by_the_metric_are_refused(metric, points):
    with message(
        f"Expected finite distances >= 0; metric '{metric}': got (nan|inf) from point 0 to point 1"
    ):
        distance_matrix(points, metric=metric)


def test_distances_too_large_for_a_number_are_refused():
    with message("Expected finite distances >= 0; metric 'euclidean': got inf from point 0 to"):
        distance_matrix([[0.0], [1e200]])


# --- precomputed distances -----------------------------------------------------------------------


@pytest.fixture
def precomputed(rng):
    return distance_matrix(rng.normal(size=(6, 2)))


@pytest.mark.parametrize(
    "check", [check_distances, lambda d: distance_matrix(d, metric="precomputed")]
)
@pytest.mark.parametrize("convert", [np.array, np.asfortranarray, frozen, np.ndarray.tolist])
def test_precomputed_distances_are_given_back_as_a_copy(precomputed, check, convert):
    given_distances = convert(precomputed)
    checked = check(given_distances)
    assert np.array_equal(checked, precomputed)
    checked[0, 1] = -1.0
    assert np.array_equal(given_distances, precomputed)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_errors_of_precomputed_distances_are_cleared(precomputed, dtype, rng):
    rounding = np.finfo(dtype).eps * precomputed.max()
    noisy = (precomputed + rounding * rng.uniform(-9, 9, size=precomputed.shape)).astype(dtype)
    noisy[0, 1] = noisy[1, 0] = -rounding
    before = noisy.copy()
    checked = check_distances(noisy)
    assert checked.dtype == np.float64
    assert np.array_equal(checked, checked.T)
    assert not np.diagonal(checked).any()
    assert checked[0, 1] == 0.0
    assert np.array_equal(noisy, before)


def test_distances_of_zero_or_one_ulp_below_the_largest_number_survive():
    largest = np.finfo(np.float64).max
    assert np.array_equal(
        check_distances([[0, largest], [largest, 0]]), [[0, largest], [largest, 0]]
    )
    assert not check_distances(np.zeros((3, 3))).any()


def changed(distances, i, j, value):
    distances = distances.copy()
    distances[i, j] = value
    return distances


@pytest.mark.parametrize(
    ("i", "j", "value", "text"),
    [
        (1, 2, np.nan, "Expected finite distances >= 0; .* got nan from point 1 to point 2"),
        (3, 3, np.nan, "Expected finite distances >= 0; .* got nan from point 3 to point 3"),
        (2, 0, np.inf, "Expected finite distances >= 0; .* got inf from point 2 to point 0"),
        (4, 5, -2.5, "Expected finite distances >= 0; .* got -2.5 from point 4 to point 5"),
        (3, 3, 0.5, "Expected distance 0 from a point to itself; .* got 0.5 from point 3 to"),
        (0, 1, 9.0, "Expected symmetric distances; .* got 9 from point 0 to point 1 and .* back"),
    ],
)
def test_a_wrong_precomputed_distance_is_named(precomputed, i, j, value, text):
    with message(text.replace(".*", "precomputed distances:", 1)):
        check_distances(changed(precomputed, i, j, value))


def test_similarities_are_not_distances():
    with message("Expected distance 0 from a point to itself; .*Are these similarities?"):
        check_distances([[1.0, 0.2], [0.2, 1.0]])


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_precomputed_distances_that_are_not_square_are_refused(shape):
    with message(rf"Expected a square matrix of distances; got shape \({shape[0]}, {shape[1]}\)"):
        distance_matrix(np.zeros(shape), metric="precomputed")


def test_precomputed_distances_of_one_point_are_refused():
    with message("Found array with 1 sample.* while a minimum of 2 is required"):
        check_distances([[0.0]])


def test_sparse_precomputed_distances_are_refused(precomputed):
    with pytest.raises(TypeError, match="Sparse data was passed for distances"):
        distance_matrix(sp.csr_array(precomputed), metric="precomputed")


def test_precomputed_distances_to_other_points_are_rectangular(precomputed):
    new = precomputed[:2, 1:]  # two new points, five training points
    training = precomputed[1:, 1:]
    for others in (training, training.tolist(), sp.csr_array(training)):
        assert np.array_equal(distance_matrix(new, others, metric="precomputed"), new)
    assert np.array_equal(distance_matrix(new[:1], training, metric="precomputed"), new[:1])


def test_precomputed_distances_to_other_points_are_checked(precomputed):
    with message(r"Expected precomputed distances to 6 points; got shape \(2, 5\)"):
        distance_matrix(precomputed[:2, 1:], precomputed, metric="precomputed")
    with message("Expected finite distances >= 0; precomputed distances: got -1 from point 0"):
        distance_matrix(changed(precomputed, 0, 3, -1.0)[:2], precomputed, metric="precomputed")
