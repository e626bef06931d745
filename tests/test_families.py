import pickle

import numpy as np
import pytest

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, LabelField, NeighborFamily
from nearfield.field.weights import KERNELS, knn_weights
from nearfield.inference import Posterior, Pseudolikelihood
from nearfield.prediction import Predictor

ALPHA = (0.5, 0.0, -0.2)


@pytest.fixture
def distances(rng):
    return distance_matrix(rng.normal(size=(15, 2)))


@pytest.fixture
def labels(rng):
    return rng.integers(3, size=15)


def assert_same_field(field, expected):
    np.testing.assert_array_equal(field.to_dense().coupling, expected.coupling)
    np.testing.assert_array_equal(field.external_field, expected.external_field)
    assert field.n_classes == expected.n_classes


@pytest.mark.parametrize("external_field", [None, ALPHA])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_distance_family_gives_the_field_of_its_kernel(distances, labels, kernel, external_field):
    family = DistanceFamily(distances, kernel, 3, external_field)
    expected = LabelField.from_weights(KERNELS[kernel](distances, 0.7), 3, external_field)
    assert_same_field(family.at(0.7), expected)
    np.testing.assert_allclose(family.support(0.7, labels), expected.support(labels), rtol=1e-12)
    assert (family.n_points, family.scale_name) == (15, "sigma")
    assert family.has_joint
    assert not family.is_discrete


@pytest.mark.parametrize("external_field", [None, ALPHA])
@pytest.mark.parametrize("k", [1, 4, 14])
def test_a_neighbor_family_gives_the_field_of_k_neighbours(distances, labels, k, external_field):
    family = NeighborFamily.from_distances(distances, 3, external_field=external_field)
    expected = LabelField.from_weights(knn_weights(distances, k), 3, external_field)
    assert_same_field(family.at(float(k)), expected)
    np.testing.assert_allclose(family.support(float(k), labels), expected.support(labels))
    assert (family.n_points, family.scale_name) == (15, "k")
    assert family.has_joint
    assert family.is_discrete


def test_a_directed_family_has_conditionals_and_no_field(distances, labels):
    family = NeighborFamily.from_distances(distances, 3, is_directed=True)
    assert not family.has_joint
    with pytest.raises(ValueError, match=r"whose conditionals belong to no joint.*Use pseudolike"):
        family.at(3)
    expected = knn_weights(distances, 3) @ np.eye(3)[labels]
    np.testing.assert_allclose(family.support(3.0, labels), expected)


def test_only_the_kernels_without_steps_are_smooth(distances):
    is_smooth = {kernel: DistanceFamily(distances, kernel, 3).is_smooth for kernel in KERNELS}
    assert is_smooth == {"gaussian": True, "exponential": True, "radius": False}
    assert not NeighborFamily.from_distances(distances, 3).is_smooth


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_field_changes_within_the_scale_range_and_hardly_beyond(distances, kernel):
    family = DistanceFamily(distances, kernel, 3)

    def change(one, two):
        """The mean over points of the weight that goes to somebody else."""
        difference = KERNELS[kernel](distances, one) - KERNELS[kernel](distances, two)
        return 0.5 * abs(difference).sum(axis=1).mean()

    low, high = family.scale_range
    assert 0.0 < low < high
    assert change(low, 1e-3 * low) < 0.02
    assert change(high, 1e3 * high) < 0.02
    middle = np.sqrt(low * high)
    # The radius has the same limit at both ends, all points alike, and is another in between.
    assert max(change(low, middle), change(middle, high)) > 0.2


def test_the_scale_range_of_k_is_all_there_are(distances):
    assert NeighborFamily.from_distances(distances, 3).scale_range == (1.0, 14.0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_duplicate_does_not_make_the_scale_range_start_at_zero(distances, kernel):
    doubled = np.block([[distances, distances], [distances, distances]])
    low, high = DistanceFamily(doubled, kernel, 3).scale_range
    assert (low, high) == pytest.approx(DistanceFamily(distances, kernel, 3).scale_range, rel=0.5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_identical_points_weigh_each_other_alike_at_any_scale(kernel):
    family = DistanceFamily(np.zeros((5, 5)), kernel, 2)
    low, high = family.scale_range
    assert 0.0 < low < high < np.inf
    for scale in (low, high):
        np.testing.assert_allclose(family.at(scale).coupling, 0.5 * (1.0 - np.eye(5)))


def test_an_unknown_kernel_is_refused(distances):
    expected = r"among \['exponential', 'gaussian', 'radius'\]; got kernel='cosine'"
    with pytest.raises(ValueError, match=expected):
        DistanceFamily(distances, "cosine", 3)


def test_few_neighbours_make_a_sparse_field(distances):
    family = NeighborFamily.from_distances(distances, 3)
    assert family.at(3).is_sparse
    assert not family.at(7).is_sparse


@pytest.mark.parametrize(
    "make", [lambda d, g: DistanceFamily(d, "radius", g), NeighborFamily.from_distances]
)
def test_what_makes_no_family_is_refused_at_once(distances, make):
    with pytest.raises(ValueError, match="whole number n_classes >= 2"):
        make(distances, 1)
    with pytest.raises(ValueError, match="Expected a square matrix of distances"):
        make(distances[:3], 2)
    assert make(distances.tolist(), 2).n_points == len(distances)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 23])
@pytest.mark.parametrize("is_directed", [False, True])
def test_points_that_tie_share_a_place_among_the_neighbours(rng, k, is_directed):
    points = rng.integers(3, size=(24, 2)).astype(float)  # of nine places
    distances = distance_matrix(points) * (1.0 + 1e-14 * rng.normal(size=(24, 24)))
    distances = np.maximum(distances, distances.T)
    family = NeighborFamily.from_distances(distances, 3, is_directed=is_directed)
    labels = rng.integers(3, size=24)
    weights = knn_weights(distances, k)
    coupling = weights if is_directed else weights + weights.T
    np.testing.assert_allclose(family.support(k, labels), coupling @ np.eye(3)[labels], atol=1e-12)


@pytest.mark.parametrize("k", [0, -1, 15, 40])
def test_a_k_that_the_points_cannot_give_is_refused(distances, k):
    with pytest.raises(
        ValueError, match=f"Expected 1 <= k <= n_neighbors; got k={k}, n_neighbors=14"
    ):
        NeighborFamily.from_distances(distances, 3).at(k)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sigma", [0.0, -1.0])
def test_a_sigma_that_is_not_above_zero_is_refused(distances, labels, kernel, sigma):
    family = DistanceFamily(distances, kernel, 3)
    for ask in (family.at, lambda sigma: family.support(sigma, labels)):
        with pytest.raises(ValueError, match=f"Expected sigma > 0; got sigma={sigma}"):
            ask(sigma)


def test_a_k_that_is_not_whole_is_refused(distances):
    with pytest.raises(ValueError, match=r"Expected a whole number k; got k=2\.7"):
        NeighborFamily.from_distances(distances, 3).at(2.7)


@pytest.mark.parametrize(
    "make",
    [lambda d: DistanceFamily(d, "gaussian", 3), lambda d: NeighborFamily.from_distances(d, 3)],
)
def test_copies_carry_the_arguments_and_no_more(distances, labels, make):
    family = make(distances)
    expected = family.support(2, labels)  # keeps what saves time
    state = family.__getstate__()
    assert set(state) < set(vars(family))
    again = pickle.loads(pickle.dumps(family))
    assert set(vars(again)) == set(state)
    np.testing.assert_array_equal(again.support(2, labels), expected)


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("kind", ["apart", "lattice", "same"])
def test_support_at_every_k_in_a_row_is_that_of_each_alone(kind, is_directed, rng):
    points = {
        "apart": rng.normal(size=(20, 2)),
        "lattice": rng.integers(0, 3, size=(20, 2)),
        "same": np.ones((20, 2)),
    }[kind]
    distances = distance_matrix(points.astype(float))
    labels = rng.integers(3, size=20)
    family = NeighborFamily.from_distances(distances, 3, is_directed=is_directed)
    ks = [1, 2, 3, 7, 8, 19]
    in_a_row = list(family.supports(ks, labels))
    for k, support in zip(ks, in_a_row, strict=True):
        weights = knn_weights(distances, k)
        expected = weights @ np.eye(3)[labels]
        if not is_directed:
            expected += weights.T @ np.eye(3)[labels]
        np.testing.assert_allclose(support, expected, atol=1e-12)
        np.testing.assert_allclose(family.support(k, labels), expected, atol=1e-12)


def log_gaussian(distances, sigma):
    return 7.0 - 0.5 * (distances / sigma) ** 2


@pytest.mark.parametrize("sigma", [1e-3, 0.5, 50.0])
def test_a_kernel_of_ones_own_is_normalized_in_log_space(sigma):
    distances = distance_matrix(np.random.default_rng(0).normal(size=(12, 2)))
    own, named = (DistanceFamily(distances, k, 3) for k in (log_gaussian, "gaussian"))
    labels = np.arange(12) % 3
    np.testing.assert_allclose(own.at(sigma).coupling, named.at(sigma).coupling, atol=1e-9)
    np.testing.assert_allclose(own.support(sigma, labels), named.support(sigma, labels), atol=1e-9)
    again = pickle.loads(pickle.dumps(own))
    np.testing.assert_array_equal(again.at(sigma).coupling, own.at(sigma).coupling)


def test_a_kernel_of_ones_own_gives_the_posterior_of_its_fields():
    distances = distance_matrix(np.random.default_rng(0).normal(size=(12, 2)))
    own, named = (
        Pseudolikelihood().infer(None, DistanceFamily(distances, k, 2), np.arange(12) % 2)
        for k in (log_gaussian, "gaussian")
    )
    np.testing.assert_allclose(own.mean(), named.mean(), rtol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda d, s: d[0], "of shape"),
        (lambda d, s: np.full_like(d, -np.inf), "above -infinity"),
        (lambda d, s: np.where(d > 0.0, np.nan, 0.0), "below infinity"),
    ],
    ids=["shape", "no neighbour", "nan"],
)
def test_kernels_that_make_no_weights_are_refused(kernel, message):
    family = DistanceFamily(distance_matrix([[0.0], [1.0], [3.0]]), kernel, 2)
    with pytest.raises(ValueError, match=message):
        family.at(1.0)


@pytest.mark.parametrize("predictive", ["joint", "printed"])
def test_prediction_by_a_kernel_of_ones_own_is_that_of_the_kernel_by_name(predictive):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(15, 2)), np.arange(15) % 3
    posterior = Posterior.from_nodes([1.0, 2.0, 4.0], [0.3, 0.3, 1.0], [0.5, 0.2, 0.3], "sigma")
    own, named = (
        Predictor(posterior, DistanceFamily(distance_matrix(points), k, 3), labels, predictive)
        for k in (log_gaussian, "gaussian")
    )
    new = distance_matrix(rng.normal(size=(7, 2)), points)
    np.testing.assert_allclose(own.probabilities(new), named.probabilities(new), atol=1e-12)
    np.testing.assert_allclose(own.influence(new), named.influence(new), atol=1e-12)
    assert own.outlier_score(10.0 * new).min() > own.outlier_score(new).max()


def test_a_kernel_without_a_neighbour_of_a_new_point_is_refused():
    def triangle(distances, sigma):
        return np.log(np.maximum(1.0 - distances / sigma, 0.0))

    points = np.array([[0.0], [1.0], [2.0]])
    family = DistanceFamily(distance_matrix(points), triangle, 2)
    posterior = Posterior.from_nodes([1.0], [1.5], [1.0], "sigma")
    predictor = Predictor(posterior, family, np.array([0, 1, 0]))
    assert predictor.probabilities(distance_matrix([[0.5]], points)).sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="for some neighbour of every point"):
        predictor.probabilities(distance_matrix([[9.0]], points))


def test_a_kernel_in_place_of_its_log_is_told(distances):
    with pytest.warns(UserWarning, match="values between 0 and 1, as a kernel itself has them"):
        DistanceFamily(distances, lambda d, sigma: np.exp(-d / sigma), 3)
    DistanceFamily(distances, lambda d, sigma: -d / sigma, 3)  # warnings are errors
