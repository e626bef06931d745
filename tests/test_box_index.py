"""The index by boxes finds what brute force finds, whatever the points are like."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from nearfield.near.box_index import BoxIndex

_METRICS = {1: "cityblock", 2: "euclidean"}


def _expected(queries, points, n_neighbors, power):
    distances = cdist(queries, points, _METRICS[power])
    order = np.lexsort((np.broadcast_to(np.arange(len(points)), distances.shape), distances))
    index = order[:, :n_neighbors]
    return np.take_along_axis(distances, index, axis=1), index


def _points(shape):
    rng = np.random.default_rng(3)
    if shape == "clustered":
        return rng.normal(size=(3_000, 5)) + 20.0 * rng.integers(3, size=(3_000, 1))
    if shape == "wide":
        return rng.normal(size=(2_000, 30))
    if shape == "far from zero":
        return rng.normal(size=(2_000, 4)) + 1e7
    if shape == "heavy tails":
        return rng.standard_t(1, size=(3_000, 4))
    if shape == "tiny":
        return 1e-25 * rng.normal(size=(1_500, 4))
    if shape == "huge":
        return 1e25 * rng.normal(size=(1_500, 4))
    return np.exp(8.0 * rng.normal(size=(2_000, 1))) * rng.normal(size=(2_000, 3))


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("n_neighbors", [1, 7, 300])
@pytest.mark.parametrize(
    "shape",
    ["clustered", "wide", "far from zero", "heavy tails", "tiny", "huge", "many scales"],
)
def test_neighbours_are_those_of_brute_force(shape, n_neighbors, power):
    points = _points(shape)
    rng = np.random.default_rng(0)
    noise = 0.1 * points.std(axis=0) * rng.normal(size=(40, points.shape[1]))
    queries = np.concatenate([points[:40], points[-40:] + noise, points.mean(axis=0)[None]])
    distances, index = BoxIndex.of(points, power=power).query(queries, n_neighbors)
    expected, expected_index = _expected(queries, points, n_neighbors, power)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=0.0)
    np.testing.assert_array_equal(index, expected_index)


@pytest.mark.parametrize("power", [1, 2])
def test_of_equally_far_points_the_first_rows_are_found(power):
    rng = np.random.default_rng(1)
    points = rng.integers(4, size=(2_500, 3)).astype(np.float64)  # 64 places for all of them
    distances, index = BoxIndex.of(points, power=power).query(points[:50], 60)
    expected, expected_index = _expected(points[:50], points, 60, power)
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(index, expected_index)


def test_points_in_one_place_are_found():
    points = np.ones((700, 3))
    distances, index = BoxIndex.of(points).query(points[:3], 650)
    np.testing.assert_array_equal(distances, 0.0)
    np.testing.assert_array_equal(index, np.broadcast_to(np.arange(650), (3, 650)))


def test_all_points_can_be_asked_for():
    points = np.random.default_rng(2).normal(size=(90, 3))
    for n_points in (1, 2, 90):
        some = points[:n_points]
        distances, index = BoxIndex.of(some).query(points, n_points)
        expected, expected_index = _expected(points, some, n_points, 2)
        np.testing.assert_allclose(distances, expected, rtol=1e-12)
        np.testing.assert_array_equal(index, expected_index)
