"""The field on the k-nearest-neighbour graph: dense and sparse forms agree, plain loops confirm."""

import numpy as np
import pytest
from plain import new_point_support
from scipy.spatial.distance import cdist

from nearfield.field import (
    DistanceFamily,
    NeighborFamily,
    kernel_weights,
    knn_weights,
)
from nearfield.inference import Posterior
from nearfield.neighbors import NeighborGraph, make_index
from nearfield.prediction import NeighborPredictor

KERNELS = ("gaussian", "exponential", "radius")
SHAPES = ("continuous", "lattice", "duplicates", "one place")
SIGMAS = (1e-9, 0.3, 1.0, 5.0, 1e6)
N_POINTS, N_CLASSES = 26, 3


def points_of(shape, n_points=N_POINTS):
    rng = np.random.default_rng(0)
    if shape == "lattice":
        return rng.integers(0, 4, size=(n_points, 2)).astype(float)
    if shape == "duplicates":
        return np.repeat(rng.normal(size=(n_points // 3 + 1, 2)), 3, axis=0)[:n_points]
    if shape == "one place":
        return np.zeros((n_points, 2))
    return rng.normal(size=(n_points, 2))


def labels_of(n_points=N_POINTS):
    return np.random.default_rng(1).integers(N_CLASSES, size=n_points)


@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 7, 13, 24, 25])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_graph_has_the_field_of_dense_weights(shape, kernel, n_neighbors):
    distances, labels = cdist(points_of(shape), points_of(shape)), labels_of()
    family = NeighborFamily.from_distances(distances, N_CLASSES, kernel, n_neighbors=n_neighbors)
    for sigma in SIGMAS:
        weights = kernel_weights(distances, kernel, sigma, n_neighbors)
        coupling = family.at(sigma).to_dense().coupling
        np.testing.assert_allclose(coupling, weights + weights.T, atol=1e-12)
        expected = (weights + weights.T) @ np.eye(N_CLASSES)[labels]
        np.testing.assert_allclose(family.support(sigma, labels), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_uniform_kernel_is_k_nearest_neighbours(shape):
    distances, labels = cdist(points_of(shape), points_of(shape)), labels_of()
    family = NeighborFamily.from_distances(distances, N_CLASSES)
    directed = NeighborFamily.from_distances(distances, N_CLASSES, is_directed=True)
    ks = np.arange(1, N_POINTS)
    both = family.supports(ks, labels), directed.supports(ks, labels)
    for k, support, out_support in zip(ks, *both, strict=True):
        weights = knn_weights(distances, int(k))
        indicators = np.eye(N_CLASSES)[labels]
        np.testing.assert_allclose(support, (weights + weights.T) @ indicators, atol=1e-12)
        np.testing.assert_allclose(out_support, weights @ indicators, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_points_as_neighbours_are_the_model_of_the_paper(kernel):
    distances = cdist(points_of("continuous"), points_of("continuous"))
    family = NeighborFamily.from_distances(distances, N_CLASSES, kernel)
    dense = DistanceFamily(distances, kernel, N_CLASSES)
    for sigma in SIGMAS:
        np.testing.assert_allclose(
            family.at(sigma).to_dense().coupling, dense.at(sigma).coupling, atol=1e-12
        )


@pytest.mark.parametrize("kernel", [*KERNELS, "uniform"])
def test_conditionals_of_some_points_are_those_of_all(kernel):
    points, labels = points_of("lattice", 60), labels_of(60)
    graph = NeighborGraph.from_index(make_index(points), points, 9)
    family = NeighborFamily(graph, N_CLASSES, kernel)
    sites = np.array([41, 3, 17])
    some = family.conditionals(labels, sites)
    for scale in (1.0, 2.0, 9.0):
        expected = family.support(scale, labels)[sites]
        np.testing.assert_allclose(some.support(scale, labels[sites]), expected, atol=1e-13)
    fewer = NeighborFamily(graph.first(4), N_CLASSES, kernel)
    expected = fewer.support(2.0, labels)[sites]
    np.testing.assert_allclose(some.first(4).support(2.0, labels[sites]), expected, atol=1e-13)
    with pytest.raises(ValueError, match="got the conditionals of some points"):
        some.at(1.0)


@pytest.mark.parametrize("n_neighbors", [1, 2, 3, 7, 13, 24, 25])
@pytest.mark.parametrize("kernel", [*KERNELS, "uniform"])
@pytest.mark.parametrize("shape", SHAPES)
def test_prediction_is_that_of_the_field_of_one_more_point(shape, kernel, n_neighbors):
    points, labels = points_of(shape), labels_of()
    rng = np.random.default_rng(2)
    lattice = rng.integers(0, 4, size=(4, 2)).astype(float)
    new = np.concatenate([rng.normal(size=(4, 2)), points[:3], lattice, [[40.0, -3.0]]])
    index = make_index(points)
    family = NeighborFamily(NeighborGraph.from_index(index, points, n_neighbors), N_CLASSES, kernel)
    is_complete = n_neighbors == N_POINTS - 1 and kernel != "uniform"
    for sigma in (0.3, 1.5):
        scale = float(n_neighbors) if kernel == "uniform" else sigma
        posterior = Posterior.from_nodes([1.0], [scale], [1.0], family.scale_name)
        predictor = NeighborPredictor(posterior, family, labels, index)
        found = predictor.sums_at(np.array([scale])).support(predictor.neighborhood(new))[:, 0]
        expected = new_point_support(
            cdist(points, points),
            labels,
            cdist(new, points),
            kernel,
            sigma,
            None if is_complete else n_neighbors,
            N_CLASSES,
        )
        np.testing.assert_allclose(found, expected, atol=1e-10, rtol=0.0)


def test_bad_families_are_refused():
    distances = cdist(points_of("continuous"), points_of("continuous"))
    with pytest.raises(ValueError, match="Expected a kernel among"):
        NeighborFamily.from_distances(distances, 2, "cauchy")
    with pytest.raises(ValueError, match="joint distribution"):
        NeighborFamily.from_distances(distances, 2, is_directed=True).at(3)
