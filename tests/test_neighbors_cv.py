"""k nearest neighbours with k by leave-one-out: the errors of a plain loop, much faster."""

import time

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from nearfield import KNeighborsClassifierCV
from nearfield.datasets import load_pima
from nearfield.estimators import _neighbors_cv
from nearfield.estimators._votes import vote_shares
from nearfield.estimators.kernels.votes import bound_of_smallest


def blobs(rng, n_points, n_classes):
    labels = np.arange(n_points) % n_classes
    return rng.normal(size=(n_points, 2)) + 0.8 * labels[:, None], labels


def scikit_learn_error(points, y, k, sites):
    """Leave out each site in turn and count how often the others get it wrong."""
    n_errors = 0
    for i in sites:
        others = np.arange(len(y)) != i
        model = KNeighborsClassifier(k, algorithm="kd_tree").fit(points[others], y[others])
        n_errors += int(model.predict(points[[i]])[0] != y[i])
    return n_errors / len(y)


def plain_vote(distances, labels, k):
    """The k nearest by (distance, index), and the smallest class of those with most votes."""
    nearest = sorted(range(len(labels)), key=lambda j: (distances[j], j))[:k]
    votes = np.bincount(labels[nearest], minlength=labels.max() + 1)
    return votes / k


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_are_those_of_a_loop_over_scikit_learn(rng, n_classes):
    X, y = blobs(rng, 30, n_classes)
    model = KNeighborsClassifierCV().fit(X, y)
    points = StandardScaler().fit_transform(X)
    expected = [scikit_learn_error(points, y, k, range(30)) for k in range(1, 16)]
    np.testing.assert_array_equal(model.cv_errors_, expected)
    assert model.n_neighbors_ == 1 + int(np.argmin(expected))


def test_errors_with_ties_are_those_of_a_plain_loop(rng):
    X = rng.integers(0, 4, size=(24, 2)).astype(float)
    y = rng.integers(0, 3, size=24)
    model = KNeighborsClassifierCV(standardize=False).fit(X, y)
    for k, error in enumerate(model.cv_errors_, start=1):
        n_errors = 0
        for i in range(24):
            distances = np.linalg.norm(X - X[i], axis=1)
            distances[i] = np.inf
            n_errors += int(np.argmax(plain_vote(distances, y, k)) != y[i])
        assert error == n_errors / 24


def test_errors_do_not_depend_on_how_the_points_are_cut_up(rng, monkeypatch):
    X, y = blobs(rng, 50, 3)
    expected = KNeighborsClassifierCV().fit(X, y)
    monkeypatch.setattr(_neighbors_cv, "_VALUES_A_CHUNK", 7 * 50)
    model = KNeighborsClassifierCV(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(model.cv_errors_, expected.cv_errors_)
    np.testing.assert_array_equal(model.predict_proba(X + 0.1), expected.predict_proba(X + 0.1))


def test_smallest_of_the_best_k_is_chosen():
    X = np.array([[0.0], [0.1], [0.2], [0.3], [9.0], [9.1], [9.2], [9.3]])
    model = KNeighborsClassifierCV().fit(X, np.repeat([0, 1], 4))
    np.testing.assert_array_equal(model.cv_errors_, [0.0, 0.0, 0.0, 0.0])
    assert model.n_neighbors_ == 1


def test_every_k_up_to_half_of_the_points_is_tried(rng):
    for n_points in (9, 10):
        X, y = blobs(rng, n_points, 2)
        assert KNeighborsClassifierCV().fit(X, y).cv_errors_.shape == (n_points // 2,)
    assert KNeighborsClassifierCV(max_neighbors=9).fit(X, y).cv_errors_.shape == (9,)


def test_probabilities_are_those_of_scikit_learn(rng):
    X, y = blobs(rng, 60, 3)
    new = rng.normal(size=(200, 2))
    model = KNeighborsClassifierCV(standardize=False).fit(X, y)
    expected = KNeighborsClassifier(model.n_neighbors_).fit(X, y).predict_proba(new)
    np.testing.assert_array_equal(model.predict_proba(new), expected)
    np.testing.assert_array_equal(model.predict(new), model.classes_[expected.argmax(axis=1)])


@pytest.mark.parametrize("k", [1, 3, 7, 12])
def test_points_at_the_same_distance_count_in_their_order(rng, k):
    distances = rng.integers(0, 4, size=(30, 12)).astype(float)
    labels = rng.integers(0, 3, size=12)
    expected = [plain_vote(row, labels, k) for row in distances]
    np.testing.assert_allclose(vote_shares(distances, labels, labels.max() + 1, k), expected)


def test_first_of_classes_with_as_many_votes_wins():
    X = np.array([[0.0], [0.0], [4.0], [4.0]])
    model = KNeighborsClassifierCV(standardize=False).fit(X, ["b", "a", "b", "a"])
    assert model.n_neighbors_ == 1
    model.n_neighbors_ = 2
    assert model.predict([[0.0]]) == ["a"]


def test_precomputed_distances_give_what_features_give(rng):
    X, y = blobs(rng, 40, 3)
    by_features = KNeighborsClassifierCV(standardize=False).fit(X, y)
    distances = by_features.metric_space_.training_distances(X)
    by_distances = KNeighborsClassifierCV("precomputed").fit(distances, y)
    np.testing.assert_array_equal(by_distances.cv_errors_, by_features.cv_errors_)
    np.testing.assert_array_equal(
        by_distances.predict(by_features.metric_space_.distances_to(X + 0.1)),
        by_features.predict(X + 0.1),
    )


def test_real_data_agree_with_scikit_learn_where_nothing_ties():
    X, y = load_pima(return_X_y=True)
    X, y = X[:80], y[:80]
    model = KNeighborsClassifierCV().fit(X, y)
    points = StandardScaler().fit_transform(X)
    for k in (1, 7, 40):
        assert model.cv_errors_[k - 1] == scikit_learn_error(points, y, k, range(80))


def test_all_k_at_once_take_a_hundredth_of_a_loop(rng):
    X, y = blobs(rng, 500, 3)
    started = time.process_time()
    KNeighborsClassifierCV().fit(X, y)
    ours = time.process_time() - started
    started = time.process_time()
    scikit_learn_error(X, y, 15, range(0, 500, 10))
    loop = (time.process_time() - started) * 10 * 250  # of 500 points, for 250 k
    assert loop > 100 * ours


@pytest.mark.parametrize("k", [1, 7, 60, 200])
@pytest.mark.parametrize("kind", ["normal", "same", "lattice", "packed", "zero"])
def test_smallest_values_vote_of_equals_the_first(kind, k):
    rng = np.random.default_rng(9)
    row = {
        "normal": np.abs(rng.normal(size=200)),
        "same": np.full(200, 3.0),
        "lattice": rng.integers(0, 4, size=200).astype(float),
        "packed": np.append(1e-9 * rng.random(199), 1e9),
        "zero": np.zeros(200),
    }[kind]
    for guess in (0.0, 1e-3, 1e6):
        bound = bound_of_smallest(row, k, guess)
        assert (row <= bound).sum() >= k
    votes = k * vote_shares(np.tile(row, (2, 1)), np.arange(200), 200, k)
    expected = np.zeros(200)
    expected[np.argsort(row, kind="stable")[:k]] = 1.0
    np.testing.assert_allclose(votes, np.tile(expected, (2, 1)))
