"""What is found in the cells around a point: the compiled equals plain NumPy."""

import numpy as np
import pytest
from numba import njit

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.near import NearField
from nearfield.near.cells import sort_into_cells
from nearfield.prediction._support import new_point_support
from nearfield.sampling._block_list import PLACES, list_sizes, list_squares, list_within
from nearfield.sampling._block_vector import fill_gaps
from nearfield.sampling.cell_scan import (
    N_TARGETS,
    Sight,
    bounds_by_block,
    make_scan,
    scan_around,
)


@njit
def _squares(relative, blocks, span, bounds, limit, places, powers, listed):
    return list_squares(relative, blocks, span, bounds, limit, places, powers, listed)


@njit
def _sizes(relative, blocks, span, bounds, limit, places, powers, listed):
    return list_sizes(relative, blocks, span, bounds, limit, places, powers, listed)


@njit
def _gaps(points, i, centres, c, relative):
    fill_gaps(points, i, centres, c, relative)


@njit
def _scanned(points, closest, sight, n_whole, table, bounds, scan):
    scan_around(points, closest, sight, n_whole, 1.0, table, bounds, scan)


@pytest.mark.parametrize("n_blocks", [1, 2, 3, 4, 7, 13])
@pytest.mark.parametrize("n_features", [1, 3, 10])
@pytest.mark.parametrize("kernel", [_squares, _sizes])
def test_near_points_of_blocks_are_listed(kernel, n_features, n_blocks):
    rng = np.random.default_rng(n_blocks)
    blocks = rng.normal(size=(n_blocks + 2, n_features, 8)).astype(np.float32)
    point = rng.normal(size=n_features).astype(np.float32)
    bounds = rng.exponential(size=8 * len(blocks)).astype(np.float32)
    gaps = point[:, None] - blocks[2:]
    expected = (gaps**2 if kernel is _squares else np.abs(gaps)).sum(axis=1).ravel()
    limit = np.float32(np.median(expected))
    powers = np.empty(8 * n_blocks, dtype=np.float32)
    listed = np.full(8 * n_blocks + 13, -1, dtype=np.int32)
    n_listed = kernel(point, blocks, (2, n_blocks, 100, 5), bounds, limit, PLACES, powers, listed)
    np.testing.assert_allclose(powers, expected, rtol=1e-5)
    is_near = powers <= np.maximum(bounds[16:], limit)
    assert listed[5:n_listed].tolist() == (100 + np.flatnonzero(is_near)).tolist()
    assert (listed[:5] == -1).all()


@pytest.mark.parametrize("size", [0, 5, 8, 100])
def test_values_within_a_limit_are_listed(size):
    rng = np.random.default_rng(size)
    values, units = rng.exponential(size=(2, size)).astype(np.float32)
    listed = np.empty(size + 8, dtype=np.int32)
    least, limit = np.float32(0.3), np.float32(0.2)
    n_listed = list_within(values, units, least, limit, PLACES, listed)
    expected = np.flatnonzero(values <= np.maximum(units, least) + limit)
    assert listed[:n_listed].tolist() == expected.tolist()


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 10, 16])
def test_gaps_keep_the_digits_that_are_left_of_large_numbers(n_features):
    rng = np.random.default_rng(0)
    points = 1e6 + rng.normal(size=(3, n_features))
    centres = 1e6 + rng.normal(size=(4, n_features))
    relative = np.empty(n_features, dtype=np.float32)
    _gaps(points, 2, centres, 1, relative)
    assert (relative == (points[2] - centres[1]).astype(np.float32)).all()


@pytest.mark.parametrize("distance", [0.0, 1e3])
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_all_that_counts_is_found_around(power, is_known, distance):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(800, 4))
    new = rng.normal(size=(N_TARGETS, 4))
    new[::2] += distance
    order, table = sort_into_cells(points, points[:40], points[:0], 0, power=power)
    gaps = np.abs(new[:, None] - points[order])
    powers = (gaps**power).sum(axis=2)
    closest, units = powers.min(axis=1), rng.exponential(size=800).astype(np.float32)
    reach = 1.5 * power
    scan = make_scan(table, 800)
    bounds = bounds_by_block(table, units, reach, 1.0)
    given = closest if is_known else np.full(N_TARGETS, np.inf)
    _scanned(new, given, Sight(9.0, reach, 1.0, 100.0), 800, table, bounds, scan)
    assert (scan.is_far == (100.0 * closest > 1_024.0)).mean() > 0.9
    assert (scan.n_seen == 800).all()
    np.testing.assert_allclose(scan.closest + scan.bases, closest, rtol=1e-6)
    for i in range(N_TARGETS):
        found = scan.found[i, : scan.n_found[i]]
        must = np.flatnonzero(powers[i] < np.maximum(closest[i], units) + 0.999 * reach)
        assert np.isin(must, found).all()
        assert (np.diff(found) > 0).all()
        differences = scan.powers[i, : len(found)] - scan.closest[i]
        # Single precision knows the powers of far points to a thousand times as much.
        np.testing.assert_allclose(differences, powers[i, found] - closest[i], atol=1e-4)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_without_lists_the_points_around_give_the_same_support(kernel):
    rng = np.random.default_rng(2)
    points, labels = rng.normal(size=(300, 3)), rng.integers(3, size=300)
    new = np.concatenate([rng.normal(size=(40, 3)), [[90.0, 0.0, 0.0]], points[:1]])
    near_field = NearField.of(points, labels, 3, kernel, n_neighbors=9, seed=1)
    seen = near_field.look(new)
    none = seen._replace(near_distances=np.empty((42, 0)), near_index=np.empty((42, 0), int))
    family = DistanceFamily(distance_matrix(points), kernel, 3)
    sigmas = np.array([0.1, 0.4, 3.0] if kernel == "gaussian" else [0.3, 3.0, 20.0])
    found = near_field.support(none, sigmas)
    np.testing.assert_allclose(found, near_field.support(seen, sigmas), atol=1e-4)
    for q, sigma in enumerate(sigmas):
        expected = new_point_support(family, labels, distance_matrix(new, points), sigma, "joint")
        np.testing.assert_allclose(found[:, q], expected, atol=4e-3)
