"""Membership, prediction sets and decisions: error rates as stated, and strangers refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.metrics import pairwise_distances

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_crabs, load_iris, load_wine, stratified_split
from nearfield.prediction.conformal import membership_p_values, set_p_values
from nearfield.prediction.membership import NearestInClass, WithinClassDistance


def _quick(metric="euclidean", **settings):
    return DistanceNeighborsClassifier(inference="pseudolikelihood", metric=metric, **settings)


CLASSIFIERS = (
    _quick(),
    _quick("within"),
    ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"),
    ProbabilisticKNeighborsClassifier("directed", metric="within"),
    NearfieldClassifier(metrics=("euclidean", "within"), random_state=0),
)


def _clusters(rng, counts, n_features):
    """Gaussian classes with a common covariance that is far from spherical."""
    labels = np.repeat(np.arange(len(counts)), counts)
    mixing = rng.normal(size=(n_features, n_features)) * 0.7 ** np.arange(n_features)
    centers = rng.normal(size=(len(counts), n_features))
    return centers[labels] + rng.normal(size=(len(labels), n_features)) @ mixing, labels


def _within_binomial_error(n_events, n_trials, probability, smallest=0.0):
    """Whether a count is likely if its probability is between two values."""
    return (
        binom.cdf(n_events, n_trials, smallest) > 1e-3
        and binom.sf(n_events - 1, n_trials, probability) > 1e-3
    )


@pytest.mark.parametrize("n_features", [3, 60])
def test_scores_are_those_of_refitting_with_the_new_point_and_without_each_other(n_features):
    rng = np.random.default_rng(0)
    X, labels = _clusters(rng, (7, 5, 9), n_features)
    points = rng.normal(size=(2, n_features))
    scores = WithinClassDistance.from_points(X, labels, 3)
    standardized, new = (X - scores.mean) / scores.scale, (points - scores.mean) / scores.scale

    def score(point, rows, row_labels, g):
        means = np.array([rows[row_labels == c].mean(axis=0) for c in range(3)])
        residuals = rows - means[row_labels]
        inverse = np.linalg.inv(residuals.T @ residuals + scores.ridge * np.eye(n_features))
        count, away = (row_labels == g).sum(), point - means[g]
        return np.log(count / (count + 1.0) * away @ inverse @ away)

    for g, (training, of_new) in enumerate(scores.conform(points)):
        for m, point in enumerate(new):
            rows, row_labels = np.vstack([standardized, point]), np.append(labels, g)
            expected = [
                score(rows[i], np.delete(rows, i, 0), np.delete(row_labels, i), row_labels[i])
                for i in range(len(rows))
            ]
            np.testing.assert_allclose([*training[:, m], of_new[m]], expected, rtol=1e-6)


@pytest.mark.parametrize("n_features", [4, 80])
def test_members_are_rejected_as_often_as_stated(n_features):
    rng = np.random.default_rng(1)
    counts, n_new, rejected = (24, 39, 59), 20, np.zeros(3)
    for _ in range(60):
        X, labels = _clusters(rng, np.add(counts, n_new), n_features)
        is_new = np.concatenate([np.arange(n + n_new) >= n for n in counts])
        scores = WithinClassDistance.from_points(X[~is_new], labels[~is_new], 3)
        for g in range(3):  # one point a data set and class: all of them are independent
            point = X[is_new & (labels == g)][:1]
            rejected[g] += membership_p_values(scores, point, class_conditional=True)[0, g] <= 0.2
    # A p-value is a multiple of 1/(n+1), so that a class of n may be rejected less often.
    for g, n in enumerate(counts):
        smallest = np.floor(0.2 * (n + 1)) / (n + 1)
        assert _within_binomial_error(rejected[g], 60, 0.2, smallest)


@pytest.mark.parametrize("class_conditional", [True, False])
def test_sets_of_two_exchangeable_scores_cover_as_often_as_stated(class_conditional):
    rng = np.random.default_rng(2)
    n_sets, n_missed = 1500, np.zeros(2)
    labels = np.repeat([0, 1], [19, 39])
    for _ in range(n_sets):
        # The last point is new: p-values of membership by hand, and a probability beside it.
        for g in range(2):
            unusual, improbable = rng.normal(size=(2, 59)) + np.append(labels, g)
            group = np.append(labels, g) == g if class_conditional else np.full(59, True)
            membership = (unusual[group] >= unusual[-1]).mean()
            own = unusual[:-1]
            among = [labels == c if class_conditional else np.full(58, True) for c in labels]
            held_out = [(own[same] >= own[i]).mean() for i, same in enumerate(among)]
            p_values = set_p_values(
                np.full((1, 2), membership),
                np.array(held_out),
                np.full((1, 2), -improbable[-1]),
                np.tile(-improbable[:-1, None], 2),
                labels,
                class_conditional=class_conditional,
            )
            n_missed[g] += p_values[0, g] <= 0.2
    if class_conditional:
        for g in range(2):
            assert _within_binomial_error(n_missed[g], n_sets, 0.2, 0.17)
    else:  # of both classes by their shares
        share = n_missed @ [19, 39] / (58 * n_sets)
        assert 0.17 < share < 0.2 + 3.3 * np.sqrt(0.16 / (2 * n_sets))


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda each: type(each).__name__)
def test_every_classifier_covers_the_test_points_of_a_data_set(classifier):
    X, y = load_crabs(return_X_y=True)
    train, test = stratified_split(y, 0.5, random_state=0)
    model = classifier.fit(X[train], y[train])
    sets = model.predict_set(X[test], 0.9)
    covered = sets[np.arange(len(test)), y[test]].sum()
    assert binom.sf(len(test) - covered - 1, len(test), 0.1) > 1e-3
    assert model.held_out_proba_.shape == (len(train), 4)
    np.testing.assert_allclose(model.held_out_proba_.sum(axis=1), 1.0)


def test_a_class_that_was_left_out_is_refused():
    X, y = load_wine(return_X_y=True)
    train, test = stratified_split(y, 0.6, random_state=0)
    refused, false = [], []
    for out in range(3):
        known = train[y[train] != out]
        model = _quick().fit(X[known], y[known])
        refused.append((model.decide(X[y == out]) == "none").mean())
        false.append(model.decide(X[test[y[test] != out]]) == "none")
    assert np.mean(refused) > 0.6
    false = np.concatenate(false)
    assert binom.sf(false.sum() - 1, false.size, 0.05) > 1e-3


def test_noise_far_away_is_none_of_the_classes_and_has_an_empty_set():
    X, y = load_iris(return_X_y=True)
    model = _quick().fit(X, y)
    far = X.mean(axis=0) + 20.0 * np.random.default_rng(0).normal(size=(5, 4))
    assert (model.decide(far) == "none").all()
    assert not model.predict_set(far).any()
    assert (model.membership(far, class_conditional=False) < 0.05).all()


def test_decisions_are_classes_or_words():
    X, y = load_crabs(return_X_y=True)
    names = np.array(["blue f", "blue m", "orange f", "orange m"])[y]
    train, test = stratified_split(y, 0.5, random_state=0)
    decisions = _quick().fit(X[train], names[train]).decide(X[test])
    assert set(decisions) <= {*names, "undecided", "none"}
    decided = np.isin(decisions, names)
    assert (decisions == names[test])[decided].mean() > 0.9


def test_a_class_may_not_be_named_as_a_decision():
    X, y = load_iris(return_X_y=True)
    model = _quick().fit(X, np.array(["none", "b", "c"])[y])
    with pytest.raises(ValueError, match="Expected classes other than 'none'"):
        model.decide(X)
    assert model.predict_set(X).shape == (150, 3)


def test_the_only_point_of_a_class_keeps_it_in_every_set():
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:100, 149]
    model = _quick().fit(X[kept], y[kept])
    assert model.predict_set(X)[:, 2].all()
    p_values = model.membership(X)
    assert (p_values >= 0.0).all()
    assert (p_values <= 1.0).all()


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, "high"])
def test_a_coverage_outside_of_zero_and_one_is_refused(coverage):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="coverage"):
        _quick().fit(X, y).predict_set(X, coverage)


def test_sparse_features_are_decided_as_dense_ones():
    X, y = load_iris(return_X_y=True)
    dense = _quick().fit(X, y).membership(X)
    sparse = _quick().fit(sp.csr_matrix(X), y).membership(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse, dense)


def test_distances_alone_refuse_what_is_far_and_cover_members():
    X, y = load_iris(return_X_y=True)
    train, test = stratified_split(y, 0.6, random_state=0)
    model = _quick("precomputed").fit(pairwise_distances(X[train]), y[train])
    far = pairwise_distances(X[test] + 30.0, X[train])
    sets = model.predict_set(pairwise_distances(X[test], X[train]), 0.8)
    assert not model.predict_set(far).any()
    covered = sets[np.arange(len(test)), y[test]].sum()
    assert binom.sf(len(test) - covered - 1, len(test), 0.2) > 1e-3


def test_points_with_gaps_are_scored_by_distances():
    X, y = load_iris(return_X_y=True)
    X[::7, 0], X[3::11, 2] = np.nan, np.nan
    model = _quick("nan_euclidean").fit(X, y)
    assert isinstance(model._membership_scores(), NearestInClass)
    assert (model.membership(X).max(axis=1) > 0.05).mean() > 0.9


def test_many_points_are_calibrated_by_some_of_them():
    rng = np.random.default_rng(3)
    X, labels = _clusters(rng, (1500, 2000), 3)
    order = rng.permutation(3500)
    train, test = order[:3000], order[3000:]
    model = _quick().fit(X[train], labels[train])
    assert len(model.calibration_rows_) <= 2000
    sets = model.predict_set(X[test], 0.9)
    n_missed = 500 - sets[np.arange(500), labels[test]].sum()
    # The calibration points are a draw too: the share that is missed has a variance of its own.
    assert abs(n_missed / 500 - 0.1) < 3.3 * np.sqrt(0.09 * (1 / 500 + 1 / 700))


def test_a_saved_model_decides_the_same(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = _quick("within").fit(X, y)
    nearfield.save(model, tmp_path / "fresh.nearfield")
    expected = model.predict_set(X, 0.9)
    nearfield.save(model, tmp_path / "used.nearfield")
    for name in ("fresh", "used"):
        again = nearfield.load(tmp_path / f"{name}.nearfield")
        np.testing.assert_array_equal(again.predict_set(X, 0.9), expected)


def test_p_values_do_not_depend_on_the_other_rows():
    X, y = load_iris(return_X_y=True)
    model = _quick().fit(X[::2], y[::2])
    for class_conditional in (True, False):
        together = model.membership(X, class_conditional=class_conditional)
        alone = model.membership(X[7:8], class_conditional=class_conditional)
        np.testing.assert_array_equal(together[7:8], alone)
