"""Rare levels, near-constant columns, classes of two points, and rows without any value."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import log_loss

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_iris, stratified_split
from nearfield.distances import fill_from_donors

METRICS = ("euclidean", "manhattan", "within", "ard", "discriminant", "quadratic")
FAST = "pseudolikelihood"

single_models = st.one_of(
    st.builds(
        DistanceNeighborsClassifier,
        st.sampled_from(["gaussian", "radius", "exponential"]),
        inference=st.just(FAST),
        metric=st.sampled_from(METRICS),
        fit_intercept=st.booleans(),
        n_neighbors=st.sampled_from([None, 3]),
    ),
    st.builds(
        ProbabilisticKNeighborsClassifier,
        st.sampled_from(["symmetric", "directed"]),
        inference=st.just(FAST),
        metric=st.sampled_from(METRICS),
    ),
    st.builds(KNeighborsClassifierCV, metric=st.sampled_from(METRICS)),
)


@st.composite
def awkward_tables(draw):
    """Numbers, a level that few rows have, columns of all but one value, a class of two points.

    Returns the training table with its labels, and further rows, some with values and levels that
    no training row has.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_points = draw(st.integers(9, 24))
    X = rng.normal(size=(n_points, 2)) * 10.0 ** rng.integers(-4, 5, size=2)
    level, constant = np.zeros(n_points), np.full(n_points, draw(st.sampled_from([0.1, 1e9, 0.0])))
    level[: draw(st.integers(0, 2))] = 1.0
    constant[-1:] += draw(st.sampled_from([0.0, 1e-12, 0.1, 1e6]))
    y = np.where(np.arange(n_points) < 2, 2, rng.permutation(np.arange(n_points) % 2))
    table = np.column_stack([X, level, constant, np.full(n_points, 7.0)])
    order = rng.permutation(n_points)
    new = np.vstack([table[:2], table[-1:], table[:1] + 1.0, table[:1] - 1e3])
    return table[order], y[order], new


def assert_probabilities(model, new):
    probabilities = model.predict_proba(new)
    assert np.isfinite(probabilities).all()
    assert (probabilities >= 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-9)


@given(single_models, awkward_tables())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_single_models_take_awkward_tables_without_a_warning(model, problem):
    X, y, new = problem
    with warnings.catch_warnings(action="error"):
        assert_probabilities(model.fit(X, y), new)


@given(awkward_tables(), st.sampled_from([None, "balanced"]))
@settings(max_examples=3, deadline=None, derandomize=True)
def test_the_average_takes_awkward_tables_without_a_warning(problem, class_weight):
    X, y, new = problem
    model = NearfieldClassifier(n_folds=3, class_weight=class_weight, random_state=0)
    with warnings.catch_warnings(action="error"):
        assert_probabilities(model.fit(X, y), new)


EVERY_MODEL = {
    **{
        metric: DistanceNeighborsClassifier(metric=metric, inference=FAST, fit_intercept=True)
        for metric in METRICS
    },
    "radius": DistanceNeighborsClassifier("radius", inference=FAST),
    "pk-nn": ProbabilisticKNeighborsClassifier(inference=FAST),
    "directed": ProbabilisticKNeighborsClassifier("directed"),
    "k-nn": KNeighborsClassifierCV(),
    "average": NearfieldClassifier(n_folds=3, random_state=0),
}


@pytest.fixture(params=EVERY_MODEL)
def model(request):
    return clone(EVERY_MODEL[request.param])


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_column_constant_but_for_one_value_may_be_held_out(model, kind):
    """In the folds of the average, and in a split of one's own."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(30, 2)), np.zeros(30)])
    X[11, 2] = 1.0
    y, is_kept = np.arange(30) % 3, np.arange(30) != 11
    table = pd.DataFrame(X, columns=list("abc")) if kind == "frame" else X
    with warnings.catch_warnings(action="error"):
        assert_probabilities(clone(model).fit(table, y), table)
        assert_probabilities(model.fit(table[is_kept], y[is_kept]), table)


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_row_without_any_value_gets_the_class_proportions(model, kind, has_gaps):
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b", "c"], [20, 10, 10])
    X = rng.normal(size=(40, 3)) + 4.0 * np.eye(3)[np.repeat([0, 1, 2], [20, 10, 10])]
    if has_gaps:
        X[::7, 1] = np.nan
    new = np.vstack([X[:1], np.full((1, 3), np.nan)])
    tables = [
        pd.DataFrame(part, columns=list("pqr")) if kind == "frame" else part for part in (X, new)
    ]
    model.fit(tables[0], y)
    probabilities = model.predict_proba(tables[1])
    np.testing.assert_allclose(probabilities[1], [0.5, 0.25, 0.25])
    np.testing.assert_allclose(probabilities[0], model.predict_proba(tables[0][:1])[0])
    if hasattr(model, "predict_proba_interval"):
        lower, upper = model.predict_proba_interval(tables[1])
        np.testing.assert_allclose([lower[1], upper[1]], [[0.5, 0.25, 0.25]] * 2)
        model.set_params(class_prior=[0.1, 0.1, 0.8])
        np.testing.assert_allclose(model.predict_proba(tables[1])[1], [0.1, 0.1, 0.8])


def test_a_row_without_categories_or_numbers_gets_the_class_proportions():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=30), "kind": np.resize(["u", "v", "w"], 30)})
    y = np.resize([0, 0, 1], 30)
    empty = pd.DataFrame({"x": [np.nan, 0.5], "kind": [None, "u"]})
    model = DistanceNeighborsClassifier(inference=FAST).fit(frame, y)
    np.testing.assert_allclose(model.predict_proba(empty)[0], [2 / 3, 1 / 3])


def test_gaps_are_filled_with_the_values_of_the_nearest_training_points():
    donors = np.column_stack([np.arange(12.0), 100.0 * np.arange(12.0), np.ones(12)])
    is_gap = np.array([[False, True, False], [True, False, True]])
    points = np.array([[0.1, np.nan, 5.0], [np.nan, 1_100.0, np.nan]])
    filled = fill_from_donors(points, is_gap, donors)
    np.testing.assert_array_equal(filled[0, :, 1], 100.0 * np.arange(10))
    np.testing.assert_array_equal(filled[0, :, [0, 2]], [[0.1] * 10, [5.0] * 10])
    np.testing.assert_array_equal(filled[1, :, 0], np.arange(11, 1, -1))


@pytest.mark.parametrize("kind", ["gaussian", "average"])
def test_rows_with_gaps_are_predicted_better_than_by_class_proportions(kind):
    """With column means in the gaps the log loss on iris is above that of the proportions."""
    models = {
        "gaussian": DistanceNeighborsClassifier(inference=FAST),
        "average": NearfieldClassifier(["gaussian"], ["euclidean"], n_folds=3, random_state=0),
    }
    X, y = load_iris(return_X_y=True)
    train, test = stratified_split(y, 0.5, random_state=0)
    new = np.where(np.random.default_rng(0).random(X[test].shape) < 0.5, np.nan, X[test])
    model = models[kind].fit(X[train], y[train])
    probabilities = model.predict_proba(new)
    assert log_loss(y[test], probabilities) < 0.5 * np.log(3.0)
    lower, upper = model.predict_proba_interval(new)
    assert ((lower <= probabilities + 1e-6) & (probabilities <= upper + 1e-6)).all()
    filled = fill_from_donors(new[:1], np.isnan(new[:1]), X[train])[0]
    if np.isnan(new[0]).any() and not np.isnan(new[0]).all():
        expected = model.predict_proba(filled).mean(axis=0)
        np.testing.assert_allclose(probabilities[0], expected, atol=1e-9)
    assert model.explain(new[:1])[0].probabilities == pytest.approx(probabilities[0])


def test_gaps_in_a_table_with_categories_are_filled_where_training_had_none():
    """The class follows from the category; `x` has gaps in training, `kind` and `z` have none."""
    rng = np.random.default_rng(3)
    kinds = np.resize(["u", "v", "w"], 60)
    x = np.unique(kinds, return_inverse=True)[1] + 0.1 * rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "kind": kinds, "z": rng.normal(size=60)})
    frame.loc[::9, "x"] = np.nan
    model = DistanceNeighborsClassifier(inference=FAST).fit(frame, kinds)
    new = pd.DataFrame({"x": [0.0, 1.0, 2.0], "kind": [None] * 3, "z": [np.nan] * 3})
    assert model.predict(new).tolist() == ["u", "v", "w"]
    assert (model.predict_proba(new).max(axis=1) > 0.8).all()
    known = pd.DataFrame({"x": [np.nan], "kind": ["v"], "z": [0.0]})
    np.testing.assert_array_equal(
        model.predict_proba(known), model._proba_of(model.encoder_.transform(known))
    )


def test_sparse_features_too_many_to_be_dense_are_refused():
    X = sp.eye(2_001, 200_000, format="csr")
    with pytest.raises(ValueError, match="which keeps them sparse"):
        NearfieldClassifier().fit(X, np.resize([0, 1], 2_001))
