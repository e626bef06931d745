"""The weights layer: the formulas to the last digits, their limits, and clear refusals."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfield.distances import distance_matrix
from nearfield.field.weights import (
    KERNELS,
    RADIUS_EPSILON,
    exponential_weights,
    gaussian_weights,
    knn_weights,
    radius_weights,
)

SIGMAS = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12]

PLAIN_KERNELS = {
    "gaussian": lambda d, sigma: math.exp(-(d**2) / (2 * sigma**2)),
    "radius": lambda d, sigma: RADIUS_EPSILON + (1 - RADIUS_EPSILON) * (d < sigma),
    "exponential": lambda d, sigma: math.exp(-d * sigma),
}


def plain_weights(kernel, distances, sigma):
    n = len(distances)
    kappa = [
        [0.0 if i == j else kernel(distances[i][j], sigma) for j in range(n)] for i in range(n)
    ]
    return [[value / math.fsum(row) for value in row] for row in kappa]


def exact_weights(name, distances, sigma):
    """The same in fifty digits, for exponents of any size."""
    with localcontext(prec=50, Emin=-(10**17), Emax=10**17):
        sigma, n = Decimal(sigma), len(distances)

        def kappa(d):
            return (-d * d / (2 * sigma * sigma) if name == "gaussian" else -d * sigma).exp()

        rows = [
            [Decimal(0) if i == j else kappa(Decimal(float(distances[i][j]))) for j in range(n)]
            for i in range(n)
        ]
        return np.array([[float(value / sum(row)) for value in row] for row in rows])


def distances_of(points):
    return distance_matrix(np.asarray(points, dtype=float).reshape(len(points), -1))


def scattered(n_points=12, seed=3):
    return distance_matrix(np.random.default_rng(seed).normal(size=(n_points, 2)))


def with_outlier(far):
    return distances_of([0.0, 1.0, 1.5, 3.0, far])


HARD = {
    "identical": np.zeros((4, 4)),
    "some identical": distances_of([0, 0, 1, 1, 5]),
    "two points": distances_of([0, 1]),
    "two identical points": np.zeros((2, 2)),
    "an outlier": with_outlier(1e6),
    "a far outlier": with_outlier(1e150),
    "the farthest outlier": np.array([[0, 1, 1.7e308], [1, 0, 1.7e308], [1.7e308, 1.7e308, 0]]),
    "tiny": 1e-150 * scattered(),
    "float32": scattered().astype(np.float32),
}


def nearest_share(distances):
    """All weight to the nearest neighbour; several at the same distance share it equally."""
    others = np.array(distances, dtype=float)
    np.fill_diagonal(others, np.inf)
    is_nearest = others == others.min(axis=1, keepdims=True)
    return is_nearest / is_nearest.sum(axis=1, keepdims=True)


def uniform(n_points):
    return (1.0 - np.eye(n_points)) / (n_points - 1)


def assert_is_weights(weights, n_points):
    assert weights.shape == (n_points, n_points)
    assert weights.dtype == np.float64
    assert np.isfinite(weights).all()
    assert (weights >= 0.0).all()
    assert not np.diagonal(weights).any()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)


# --- the formulas --------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.3, 1, 2.5])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_weights_are_the_printed_formula(name, sigma):
    distances = scattered()
    np.testing.assert_allclose(
        KERNELS[name](distances, sigma),
        plain_weights(PLAIN_KERNELS[name], distances.tolist(), sigma),
        rtol=1e-12,
        atol=0,
    )


@pytest.mark.parametrize(
    ("name", "sigma", "expected"),
    [
        ("gaussian", 2.0, [0.0, math.exp(-1 / 8), math.exp(-9 / 8)]),
        ("radius", 3.0, [0.0, 1.0, 1e-10]),  # at the radius is outside
        ("exponential", 2.0, [0.0, math.exp(-2), math.exp(-6)]),
    ],
)
def test_three_points_on_a_line_weigh_what_a_hand_computes(name, sigma, expected):
    weights = KERNELS[name](distances_of([0, 1, 3]), sigma)
    np.testing.assert_allclose(weights[0], np.array(expected) / sum(expected), rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gaussian", gaussian_weights),
        ("radius", radius_weights),
        ("exponential", exponential_weights),
    ],
)
def test_a_kernel_is_found_by_its_name(name, function):
    assert KERNELS[name] is function
    assert len(KERNELS) == 3


@pytest.mark.parametrize("name", ["gaussian", "exponential"])
@pytest.mark.parametrize("sigma", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("case", ["an outlier", "some identical", "float32"])
def test_weights_keep_their_digits_where_the_exponents_are_huge(name, sigma, case):
    # At d = 1e6 and sigma = 1e-2 the exponents are 5e15, and differ by 1e10.
    weights = KERNELS[name](HARD[case], sigma)
    expected = exact_weights(name, HARD[case], sigma)
    np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=1e-300)


def test_an_outlier_tells_its_neighbours_apart_at_any_distance():
    # The squares, 1e16, are known to 2; their difference, 3, has to be known to 1e-12.
    near, far = 1e8, np.nextafter(1e8, np.inf)
    distances = np.array([[0, near, far], [near, 0, 1], [far, 1, 0]])
    expected = math.exp(-0.5 * (far - near) * (far + near))
    weights = gaussian_weights(distances, 1.0)
    assert weights[0, 2] / weights[0, 1] == pytest.approx(expected, rel=1e-12)


# --- rows that sum to one, whatever comes --------------------------------------------------------


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("case", sorted(HARD))
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_rows_sum_to_one_at_every_scale(name, case, sigma):
    before = HARD[case].copy()
    assert_is_weights(KERNELS[name](HARD[case], sigma), len(HARD[case]))
    assert np.array_equal(HARD[case], before)


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("sigma", SIGMAS)
def test_the_only_other_point_takes_all(name, sigma):
    for case in ("two points", "two identical points"):
        assert KERNELS[name](HARD[case], sigma).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("sigma", SIGMAS)
def test_identical_points_weigh_alike(name, sigma):
    np.testing.assert_allclose(KERNELS[name](np.zeros((5, 5)), sigma), uniform(5), rtol=1e-15)


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=7),
    st.floats(-12, 12).map(lambda power: 10.0**power),
    st.sampled_from(sorted(KERNELS)),
)
def test_nearer_points_never_weigh_less(points, sigma, name):
    distances = np.abs(np.subtract.outer(points, points))
    weights = KERNELS[name](distances, sigma)
    assert_is_weights(weights, len(points))
    for i, (row, weight) in enumerate(zip(distances, weights, strict=True)):
        others = np.delete(np.arange(len(points)), i)
        ranked = others[np.argsort(row[others])]
        assert (np.diff(weight[ranked]) <= 0.0).all()


@pytest.mark.parametrize("convert", [np.asfortranarray, np.ndarray.tolist])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_form_of_the_distances_does_not_matter(name, convert):
    distances = np.round(scattered() * 8)
    expected = KERNELS[name](distances, 4.0)
    np.testing.assert_allclose(KERNELS[name](convert(distances), 4.0), expected, rtol=1e-14)
    for dtype in (np.float32, np.int64):
        assert np.array_equal(KERNELS[name](distances.astype(dtype), 4.0), expected)


@pytest.mark.parametrize("weigh", [*KERNELS.values(), knn_weights])
def test_read_only_distances_are_weighed_and_left_alone(weigh):
    distances = scattered()
    distances.flags.writeable = False
    assert_is_weights(weigh(distances, 2), 12)


@pytest.mark.parametrize("weigh", [*KERNELS.values(), knn_weights])
def test_the_diagonal_of_the_distances_plays_no_part(weigh):
    distances = scattered()
    assert np.array_equal(weigh(distances + 7.0 * np.eye(12), 2), weigh(distances, 2))


# --- the limits ----------------------------------------------------------------------------------

TIED = distances_of([0, 1, 2, 2, 7, 7.5, 9.5, 9.5, 9.5])


@pytest.mark.parametrize("distances", [TIED, scattered()], ids=["ties", "no ties"])
@pytest.mark.parametrize(
    ("name", "to_nearest", "to_uniform"),
    [("gaussian", 1e-12, 1e12), ("exponential", 1e12, 1e-12)],
)
def test_weights_run_from_the_nearest_neighbours_to_all_alike(
    name, to_nearest, to_uniform, distances
):
    nearest, flat = (KERNELS[name](distances, sigma) for sigma in (to_nearest, to_uniform))
    np.testing.assert_allclose(nearest, nearest_share(distances), rtol=1e-15)
    np.testing.assert_allclose(flat, uniform(len(distances)), rtol=1e-10)


@pytest.mark.parametrize("case", ["an outlier", "a far outlier", "the farthest outlier"])
def test_an_outlier_listens_to_its_nearest_neighbour_in_the_limit(case):
    # Seen from the far outliers, all others are at the same rounded distance: a tie.
    for weights in (gaussian_weights(HARD[case], 1e-12), exponential_weights(HARD[case], 1e12)):
        np.testing.assert_allclose(weights, nearest_share(HARD[case]), rtol=1e-15)


def test_a_radius_that_holds_all_or_none_weighs_all_alike():
    distances = scattered()
    for sigma in (1e-12, 1e12):
        np.testing.assert_allclose(radius_weights(distances, sigma), uniform(12), rtol=1e-14)


def test_a_tiny_radius_still_holds_identical_points():
    weights = radius_weights(distances_of([0, 0, 0, 5]), 1e-12)
    inside, outside = 1 / (2 + RADIUS_EPSILON), RADIUS_EPSILON / (2 + RADIUS_EPSILON)
    np.testing.assert_allclose(weights[0], [0, inside, inside, outside], rtol=1e-14)
    np.testing.assert_allclose(weights[3], [1 / 3, 1 / 3, 1 / 3, 0], rtol=1e-14)


def test_a_point_outside_the_radius_weighs_epsilon_times_one_inside():
    weights = radius_weights(distances_of([0, 1, 2, 4]), 1.5)
    assert weights[0, 2] / weights[0, 1] == pytest.approx(1e-10, rel=1e-14)
    assert weights[0, 2] == weights[0, 3]


# --- symmetries ----------------------------------------------------------------------------------


@given(
    st.floats(-6, 6).map(lambda power: 10.0**power),
    st.floats(-1, 1).map(lambda power: 10.0**power),
    st.integers(0, 100),
)
def test_units_do_not_matter(unit, sigma, seed):
    distances = scattered(8, seed)
    for name, other_sigma in [("gaussian", unit * sigma), ("exponential", sigma / unit)]:
        weights = KERNELS[name](distances, sigma)
        rescaled = KERNELS[name](unit * distances, other_sigma)
        # Rounding of the unit moves an exponent of e by a few e * 2^-53: at most 1e4 here.
        np.testing.assert_allclose(rescaled, weights, rtol=1e-11, atol=1e-300)
    exact = 2.0 ** round(math.log2(unit))  # a radius cuts: only a power of two scales it exactly
    assert np.array_equal(
        radius_weights(exact * distances, exact * sigma), radius_weights(distances, sigma)
    )


@given(st.permutations(range(9)), st.sampled_from(sorted(KERNELS)))
def test_the_order_of_the_points_does_not_matter(order, name):
    weights = KERNELS[name](TIED, 0.7)
    permuted = KERNELS[name](TIED[np.ix_(order, order)], 0.7)
    np.testing.assert_allclose(permuted, weights[np.ix_(order, order)], rtol=1e-14)


# --- k nearest neighbours ------------------------------------------------------------------------


def plain_knn_weights(distances, k):
    weights = np.zeros_like(distances)
    for i, row in enumerate(distances.tolist()):
        ranked = sorted((d, j) for j, d in enumerate(row) if j != i)
        for _, j in ranked[:k]:
            weights[i, j] = 1 / k
    return weights


@pytest.mark.parametrize("k", range(1, 12))
def test_without_ties_the_k_nearest_weigh_alike(k):
    distances = scattered()
    np.testing.assert_allclose(
        knn_weights(distances, k), plain_knn_weights(distances, k), rtol=1e-15, atol=0
    )


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [0, 1, 0, 0, 0, 0]),
        (2, [0, 1 / 2, 1 / 6, 1 / 6, 1 / 6, 0]),
        (3, [0, 1 / 3, 2 / 9, 2 / 9, 2 / 9, 0]),
        (4, [0, 1 / 4, 1 / 4, 1 / 4, 1 / 4, 0]),
        (5, [0, 1 / 5, 1 / 5, 1 / 5, 1 / 5, 1 / 5]),
    ],
)
def test_ties_at_the_kth_distance_share_the_rest(k, expected):
    distances = distances_of([0, 1, 2, -2, 2, 5])
    np.testing.assert_allclose(knn_weights(distances, k)[0], expected, rtol=1e-15)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=7), st.data())
def test_shared_weights_are_the_mean_over_the_ways_to_break_the_tie(points, data):
    n, distances = len(points), distances_of(points)
    k = data.draw(st.integers(1, n - 1))
    weights = knn_weights(distances, k)
    # To rotate the tied points is enough: each comes in each place among them once.
    for i in range(n):
        ranked = sorted(set(range(n)) - {i}, key=lambda j, i=i: distances[i, j])
        kth = distances[i, ranked[k - 1]]
        closer = [j for j in ranked if distances[i, j] < kth]
        tied = [j for j in ranked if distances[i, j] == kth]
        mean = np.zeros(n)
        for turn in range(len(tied)):
            for j in (closer + tied[turn:] + tied[:turn])[:k]:
                mean[j] += 1 / (k * len(tied))
        np.testing.assert_allclose(weights[i], mean, rtol=1e-13)


@given(st.permutations(range(9)), st.integers(1, 8))
def test_the_order_of_the_points_does_not_break_ties(order, k):
    weights = knn_weights(TIED, k)
    permuted = knn_weights(TIED[np.ix_(order, order)], k)
    assert np.array_equal(permuted, weights[np.ix_(order, order)])


@pytest.mark.parametrize("case", sorted(HARD))
def test_rows_of_k_nearest_weights_sum_to_one(case):
    n = len(HARD[case])
    for k in range(1, n):
        assert_is_weights(knn_weights(HARD[case], k), n)


@pytest.mark.parametrize("case", sorted(HARD))
def test_all_others_as_neighbours_weigh_alike(case):
    n = len(HARD[case])
    np.testing.assert_allclose(knn_weights(HARD[case], n - 1), uniform(n), rtol=1e-15)


@pytest.mark.parametrize("distances", [TIED, scattered()], ids=["ties", "no ties"])
def test_one_nearest_neighbour_is_the_limit_of_the_gaussian(distances):
    np.testing.assert_allclose(
        knn_weights(distances, 1), gaussian_weights(distances, 1e-12), rtol=1e-15
    )


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0, 0.0, -1.0])
@pytest.mark.parametrize("weigh", KERNELS.values())
def test_a_sigma_that_is_not_above_zero_is_refused(weigh, sigma):
    with pytest.raises(ValueError, match=f"Expected sigma > 0; got sigma={sigma}"):
        weigh(scattered(), sigma)


@pytest.mark.parametrize("sigma", [np.nan, np.inf, "1", None, 1j, True, np.array([1.0, 2.0])])
@pytest.mark.parametrize("weigh", KERNELS.values())
def test_a_sigma_that_is_not_a_finite_number_is_refused(weigh, sigma):
    with pytest.raises(ValueError, match="Expected a finite real number sigma; got sigma="):
        weigh(scattered(), sigma)


@pytest.mark.parametrize("sigma", [2, np.float32(2.0), np.int64(2), np.float64(2.0)])
@pytest.mark.parametrize("weigh", KERNELS.values())
def test_any_real_number_is_a_sigma(weigh, sigma):
    assert np.array_equal(weigh(scattered(), sigma), weigh(scattered(), 2.0))


@pytest.mark.parametrize("k", [0, -1, 1.0, 2.5, np.nan, "3", None, True])
def test_a_k_that_is_not_a_whole_number_above_zero_is_refused(k):
    with pytest.raises(ValueError, match="Expected a whole number k >= 1; got k="):
        knn_weights(scattered(), k)


@pytest.mark.parametrize("k", [12, 13, np.int64(100)])
def test_a_k_that_the_points_cannot_give_is_refused(k):
    with pytest.raises(ValueError, match=f"Expected k < n_points; got k={k}, n_points=12"):
        knn_weights(scattered(), k)


@pytest.mark.parametrize(
    "distances",
    [np.zeros((3, 4)), np.zeros(4), np.zeros((2, 2, 2)), np.zeros((1, 1)), np.zeros((0, 0)), 1.0],
    ids=lambda distances: str(np.shape(distances)),
)
@pytest.mark.parametrize("weigh", [*KERNELS.values(), knn_weights])
def test_distances_of_another_shape_are_refused(weigh, distances):
    with pytest.raises(ValueError, match=r"Expected distances of shape \(n, n\) with n >= 2; got"):
        weigh(distances, 1)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(np.nan, "from nan to nan"), (np.inf, "from 0 to inf"), (-3.0, "from -3 to")],
)
@pytest.mark.parametrize("weigh", [*KERNELS.values(), knn_weights])
def test_what_cannot_be_a_distance_is_refused(weigh, value, shown):
    distances = scattered()
    distances[2, 5] = value
    with pytest.raises(ValueError, match=f"Expected finite distances >= 0; got them {shown}"):
        weigh(distances, 1)
