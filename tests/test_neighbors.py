"""Neighbour search finds what brute force finds, forward and reverse, whatever the points."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from nearfield.neighbors import (
    BoxIndex,
    MetricIndex,
    NeighborGraph,
    NeighborLists,
    ShortLists,
    make_index,
    merge_lists,
    search_with_ties,
)

METRICS = {1: "cityblock", 2: "euclidean"}
SHAPES = (
    "clustered",
    "wide",
    "far from zero",
    "heavy tails",
    "tiny",
    "huge",
    "many scales",
    "ties",
    "duplicates",
)


def points_of(shape):
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
    if shape == "ties":
        return rng.integers(5, size=(2_000, 3)).astype(np.float64)
    if shape == "duplicates":
        points = rng.normal(size=(2_000, 3))
        points[rng.random(2_000) < 0.4] = 0.0
        return points
    return np.exp(8.0 * rng.normal(size=(2_000, 1))) * rng.normal(size=(2_000, 3))


def queries_of(points):
    rng = np.random.default_rng(0)
    noise = 0.1 * points.std(axis=0) * rng.normal(size=(40, points.shape[1]))
    return np.concatenate([points[:40], points[-40:] + noise, points.mean(axis=0)[None]])


def brute_force(queries, points, n_neighbors, power=2):
    distances = cdist(queries, points, METRICS[power])
    order = np.lexsort((np.broadcast_to(np.arange(len(points)), distances.shape), distances))
    rows = order[:, :n_neighbors]
    return np.take_along_axis(distances, rows, axis=1), rows


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("n_neighbors", [1, 7, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_boxes_find_the_neighbours_that_brute_force_finds(shape, n_neighbors, power):
    points = points_of(shape)
    queries = queries_of(points)
    found = BoxIndex.from_points(points, power=power).query(queries, n_neighbors)
    expected, expected_rows = brute_force(queries, points, n_neighbors, power)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12, atol=0.0)
    np.testing.assert_array_equal(found.rows, expected_rows)


@pytest.mark.parametrize("n_points", [1, 2, 9, 90])
def test_all_points_can_be_asked_for(n_points):
    points = np.random.default_rng(2).normal(size=(90, 3))
    found = BoxIndex.from_points(points[:n_points]).query(points, n_points)
    expected, expected_rows = brute_force(points, points[:n_points], n_points)
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)
    np.testing.assert_array_equal(found.rows, expected_rows)


def reverse_by_brute_force(queries, points, reaches, power=2):
    is_found = cdist(queries, points, METRICS[power]) <= reaches
    return [np.flatnonzero(row) for row in is_found]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_boxes_find_all_points_that_reach_a_query(shape, power):
    points = points_of(shape)
    queries = queries_of(points)
    index = BoxIndex.from_points(points, power=power)
    reaches = brute_force(points, points, 12, power)[0][:, -1] * (1.0 + 1e-9)
    found = index.reverse(reaches).query(queries)
    expected = reverse_by_brute_force(queries, points, reaches, power)
    for i, rows in enumerate(expected):
        entries = slice(found.starts[i], found.starts[i + 1])
        np.testing.assert_array_equal(np.sort(found.rows[entries]), rows)
        np.testing.assert_allclose(
            found.distances[entries],
            cdist(queries[i : i + 1], points[found.rows[entries]], METRICS[power])[0],
            rtol=1e-12,
        )


@pytest.mark.parametrize("n_points", [1, 9, 513, 20_000])
def test_queries_that_go_down_the_tree_together_find_what_each_finds_alone(n_points):
    rng = np.random.default_rng(5)
    points, queries = rng.normal(size=(n_points, 3)), rng.normal(size=(300, 3))
    reaches = rng.uniform(0.0, 0.3, n_points)
    reverse = BoxIndex.from_points(points).reverse(reaches)
    together, expected = reverse.query(queries), reverse_by_brute_force(queries, points, reaches)
    np.testing.assert_array_equal(np.diff(together.starts), [len(rows) for rows in expected])
    for i in range(0, len(queries), 17):
        alone, entries = reverse.query(queries[i : i + 1]), slice(*together.starts[i : i + 2])
        np.testing.assert_array_equal(alone.rows, together.rows[entries])
        np.testing.assert_array_equal(alone.distances, together.distances[entries])


def test_reaches_a_tenth_too_short_would_be_noticed():
    points = points_of("clustered")
    queries = queries_of(points)
    reaches = brute_force(points, points, 12)[0][:, -1]
    index = BoxIndex.from_points(points)
    found, short = (index.reverse(factor * reaches).query(queries) for factor in (1.0, 0.9))
    assert len(short.rows) < 0.9 * len(found.rows)


@pytest.mark.parametrize("metric", ["chebyshev", "cosine", "euclidean"])
def test_other_indexes_answer_the_same_questions(metric):
    points = points_of("clustered")[:400]
    queries = queries_of(points)
    index = MetricIndex.from_points(points, metric)
    distances = cdist(queries, points, metric)
    found = index.query(queries, 5)
    np.testing.assert_allclose(found.distances, np.sort(distances)[:, :5], rtol=1e-9, atol=1e-12)
    reaches = np.quantile(cdist(points, points, metric), 0.05, axis=1)
    reverse = index.reverse(reaches).query(queries)
    assert len(reverse.rows) == (distances <= reaches).sum()


def test_sparse_points_are_searched():
    points = points_of("ties")[:300]
    found = make_index(sp.csr_matrix(points)).query(sp.csr_matrix(points[:9]), 4)
    expected, _ = brute_force(points[:9], points, 4)
    np.testing.assert_allclose(found.distances, expected, atol=1e-6)


def test_boxes_are_used_where_they_save_distances_and_nowhere_else():
    rng = np.random.default_rng(0)
    flat, noise = rng.normal(size=(4_000, 2)), rng.normal(size=(4_000, 30))
    thin = flat @ rng.normal(size=(2, 30))
    for points in (flat, flat + 1e6, thin):
        assert isinstance(make_index(points), BoxIndex)
    assert isinstance(make_index(noise, metric="manhattan"), BoxIndex)
    assert make_index(noise).index._fit_method == "brute"
    assert make_index(flat, metric="chebyshev").index._fit_method == "kd_tree"
    assert isinstance(make_index(sp.csr_matrix(flat)), MetricIndex)


def test_approximate_search_finds_nearly_all_neighbours():
    pytest.importorskip("faiss")
    points = points_of("clustered")
    index = make_index(points, search="approximate")
    found = index.query(points[:200], 10)
    expected = brute_force(points[:200], points, 10)[1]
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found.rows, expected, strict=True)]
    assert np.mean(shared) > 9.5
    assert (np.diff(found.distances, axis=1) >= 0.0).all()
    reaches = brute_force(points, points, 10)[0][:, -1]
    exact = sum(map(len, reverse_by_brute_force(points[:200], points, reaches)))
    assert 0.95 * exact < len(index.reverse(reaches).query(points[:200]).rows) <= exact


def test_approximate_search_is_refused_for_other_metrics():
    with pytest.raises(ValueError, match=r'Expected Euclidean distances .*Use search="exact"'):
        make_index(points_of("ties"), metric="manhattan", search="approximate")


# The graph


@pytest.mark.parametrize("n_neighbors", [1, 2, 5, 24, 59])
@pytest.mark.parametrize("shape", ["clustered", "ties", "duplicates"])
def test_a_search_builds_the_graph_that_all_distances_give(shape, n_neighbors):
    points = points_of(shape)[:60]
    graph = NeighborGraph.from_index(make_index(points), points, n_neighbors)
    expected = NeighborGraph.from_distances(cdist(points, points), n_neighbors)
    np.testing.assert_allclose(graph.distances, expected.distances, rtol=1e-12)
    np.testing.assert_allclose(
        graph.distances,
        np.take_along_axis(cdist(points, points), graph.rows.astype(np.int64), axis=1),
        rtol=1e-12,
    )
    assert (graph.rows != np.arange(60)[:, None]).all()


def test_lists_hold_all_points_that_tie_with_the_last_neighbour():
    points = np.array([[0.0], [1.0], [-1.0], [1.0], [5.0]])
    graph = NeighborGraph.from_index(make_index(points), points, 1)
    assert set(graph.rows[0, :3]) == {1, 2, 3}
    assert graph.first(1).rows.shape == graph.rows.shape


def test_a_prefix_of_the_graph_is_the_graph_of_fewer_neighbours():
    points = points_of("ties")[:200]
    graph = NeighborGraph.from_index(make_index(points), points, 40).first(3)
    expected = NeighborGraph.from_index(make_index(points), points, 3)
    np.testing.assert_array_equal(graph.distances, expected.distances)
    assert graph.n_neighbors == 3


def test_with_many_points_in_one_place_lists_have_a_limit():
    points = np.zeros((2_500, 2))
    graph = NeighborGraph.from_index(make_index(points), points, 4)
    assert graph.rows.shape == (2_500, 64)


@pytest.mark.parametrize("n_new", [1, 30])
@pytest.mark.parametrize("shape", ["clustered", "ties", "duplicates"])
def test_an_extended_graph_is_the_graph_of_all_points(shape, n_new):
    points = points_of(shape)[:500]
    old = points[:-n_new]
    graph = NeighborGraph.from_index(make_index(old), old, 6)
    index = make_index(points)
    extended = graph.extended(index, points)
    expected = NeighborGraph.from_index(index, points, 6)
    n_columns = min(extended.rows.shape[1], expected.rows.shape[1])
    np.testing.assert_array_equal(
        extended.distances[:, :n_columns], expected.distances[:, :n_columns]
    )
    assert extended.n_neighbors == 6


def test_lists_of_shards_merge_to_the_lists_of_all():
    points = points_of("ties")[:300]
    queries = points[:20]
    parts = np.array_split(np.arange(300), 3)
    lists = []
    for part in parts:
        found = make_index(points[part]).query(queries, 9)
        numbered = NeighborLists(found.distances, part[found.rows])
        lists.append(ShortLists.from_lists(np.arange(20), numbered))
    merged = merge_lists(lists, 20, 9)
    expected, expected_rows = brute_force(queries, points, 9)
    np.testing.assert_array_equal(merged.distances, expected)
    np.testing.assert_array_equal(merged.rows, expected_rows)


def test_a_search_with_ties_goes_on_until_they_end():
    distances = np.array([[1.0, 2.0, 2.0, 2.0, 2.0, 3.0]])
    rows = np.arange(6)[None]
    asked = []

    def search(n_columns):
        asked.append(n_columns)
        return NeighborLists(distances, rows).first(n_columns)

    assert search_with_ties(search, 2, 6).rows.shape == (1, 5)
    assert asked == [3, 6]
