"""Tables as people have them: categories, missing values, text, in pandas and polars."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import pdist

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    load,
    save,
)
from nearfield.distances import TableEncoder, fill_from_donors
from nearfield.distances.tables import category_mask
from nearfield.estimators._stacking import deal_folds

MODELS = [
    NearfieldClassifier(metrics=["euclidean", "ard"], random_state=0),
    DistanceNeighborsClassifier(inference="pseudolikelihood"),
    ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"),
    KNeighborsClassifierCV(),
]
ALL = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def make_table(n=90, seed=0):
    """Draw a table of every kind of column, and a class that depends on some of them."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.choice(["low", "mid", "high"], n)
    dose = rng.normal(size=n)
    score = (colour == "red") + (size == "high") + 0.5 * dose + 0.3 * rng.normal(size=n)
    table = pd.DataFrame(
        {
            "dose": np.where(rng.random(n) < 0.1, np.nan, dose),
            "colour": pd.Series(np.where(rng.random(n) < 0.1, None, colour), dtype=object),
            "size": pd.Categorical(size, ["low", "mid", "high"], ordered=True),
            "smoker": rng.random(n) < 0.5,
            "ward": pd.Categorical(rng.integers(0, 4, n)),
        }
    )
    return table, (score > np.median(score)).astype(int)


TABLE, Y = make_table()
KINDS = {
    "dose": "number",
    "colour": "category",
    "size": "ordered category",
    "smoker": "boolean",
    "ward": "category",
}


@ALL
def test_every_classifier_takes_a_table_without_preprocessing(model):
    fitted = model.fit(TABLE, Y)
    assert fitted.columns_ == KINDS
    assert list(fitted.feature_names_in_) == list(TABLE.columns)
    assert fitted.score(TABLE, Y) > 0.75
    new = TABLE.head(4).copy()
    new["colour"] = ["violet", None, "red", "red"]  # a new category, a missing one
    new["smoker"] = pd.Series([True, None, False, True], dtype="boolean")  # newly missing
    probabilities = fitted.predict_proba(new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-12)


@ALL
def test_polars_and_pandas_give_the_same_probabilities(model):
    frame = pl.DataFrame(
        {
            "dose": [None if np.isnan(value) else value for value in TABLE["dose"]],
            "colour": TABLE["colour"].tolist(),
            "size": pl.Series(TABLE["size"].tolist(), dtype=pl.Enum(["low", "mid", "high"])),
            "smoker": TABLE["smoker"].tolist(),
            "ward": pl.Series(TABLE["ward"].astype(str).tolist(), dtype=pl.Categorical),
        }
    )
    expected = model.fit(TABLE, Y).predict_proba(TABLE)
    np.testing.assert_allclose(model.fit(frame, Y).predict_proba(frame), expected, atol=1e-12)
    assert model.columns_ == KINDS


@ALL
def test_arrays_with_gaps_are_taken_and_gaps_may_be_new(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    gapped = X.copy()
    gapped[::7, 1] = np.nan
    assert model.fit(gapped, y).score(gapped, y) > 0.8
    model.fit(X, y)
    is_gap, expected = np.isnan(gapped), model.predict_proba(X)
    for i in np.flatnonzero(is_gap.any(axis=1)):
        # Fitted to complete points, a gap has the values of the nearest of them, or, where a model
        # keeps none, the mean of its column, up to how the mean is rounded.
        filled = np.where(is_gap[i], X.mean(axis=0), gapped[i])[None]
        if hasattr(model, "calibration_points_"):
            filled = fill_from_donors(gapped[i : i + 1], is_gap[i : i + 1], X)[0]
        expected[i] = model.predict_proba(filled).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(gapped), expected, atol=1e-12)


def test_columns_differ_by_2_on_average_over_pairs_whatever_they_hold():
    rng = np.random.default_rng(2)
    n = 400
    table = pd.DataFrame(
        {
            "three": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1]),
            "two": rng.choice(["a", "b"], n, p=[0.9, 0.1]),
            "twelve": rng.choice(list("abcdefghijkl"), n),
        }
    )
    for name in table.columns:
        encoder = TableEncoder()
        points = encoder.fit_transform(table[[name]], rng.integers(0, 2, n))
        squared = pdist(points[:, encoder.views_["types"].columns], "sqeuclidean")
        # Over ordered pairs, each row with itself among them.
        assert 2.0 * squared.sum() / n**2 == pytest.approx(2.0)
        differ = squared[squared > 1e-9]
        assert np.ptp(differ) < 1e-9


def test_a_missing_value_is_as_far_as_another_row_is_on_average():
    rng = np.random.default_rng(3)
    n = 500
    letters = rng.choice(["a", "b", "c"], n).astype(object)
    letters[:50] = None
    numbers = rng.normal(3.0, 5.0, n)
    numbers[50:90] = np.nan
    for values in (letters, numbers):
        encoder = TableEncoder()
        points = encoder.fit_transform(pd.DataFrame({"x": values}), rng.integers(0, 2, n))
        view = encoder.views_["types"]
        spread = np.where(view.is_scaled, 1.0, points[~pd.isna(values)].std(axis=0)[view.columns])
        points = points[:, view.columns] / spread
        gap, present = points[pd.isna(values)][0], points[~pd.isna(values)]
        assert np.mean(np.sum((present - gap) ** 2, axis=1)) == pytest.approx(2.0)


def test_class_proportions_of_a_training_row_come_from_other_rows():
    rng = np.random.default_rng(4)
    n = 300
    table = pd.DataFrame({"site": pd.Categorical(rng.integers(0, 100, n))})
    y = rng.integers(0, 2, n)
    inside = TableEncoder().fit(table, y).transform(table)[:, 0]
    outside = TableEncoder().fit_transform(table, y)[:, 0]
    assert np.corrcoef(inside, y)[0, 1] > 0.3  # a row's own label speaks
    assert np.corrcoef(outside, y)[0, 1] < 3.0 / np.sqrt(n)  # labels are noise


def test_many_levels_do_not_drown_a_feature_that_decides():
    rng = np.random.default_rng(5)
    n = 300
    table = pd.DataFrame({"x": rng.normal(size=n), "site": rng.integers(0, 50, n).astype(str)})
    y = (table["x"] > 0).to_numpy().astype(int)
    model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(table[:200], y[:200])
    assert model.score(table[200:], y[200:]) > 0.9


def test_categorical_features_are_named_as_in_scikit_learn():
    codes = TABLE.assign(ward=TABLE["ward"].astype(int))
    by_type = KNeighborsClassifierCV().fit(codes, Y)
    assert by_type.columns_["ward"] == "number"
    for chosen in (["colour", "ward"], [1, 4], [False, True, False, False, True]):
        model = KNeighborsClassifierCV(categorical_features=chosen).fit(codes, Y)
        assert model.columns_["ward"] == "category"
    as_declared = KNeighborsClassifierCV().fit(TABLE, Y)
    np.testing.assert_array_equal(as_declared.predict_proba(TABLE), model.predict_proba(codes))


def test_category_mask_refuses_what_names_no_column():
    for chosen in (["weight"], [7], [True], 3.5):
        with pytest.raises(ValueError, match="Expected categorical_features"):
            category_mask(chosen, ["a", "b"])
    assert not category_mask(None, ["a", "b"]).any()


def test_whole_numbers_of_few_values_are_read_both_ways():
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"code": rng.integers(0, 4, 200), "x": rng.normal(size=200)})
    y = np.isin(table["code"], [0, 2]).astype(int)  # no order in that
    model = NearfieldClassifier(random_state=0)
    model.fit(table.assign(gap=[None, *np.ones(199)]), y)
    assert {"types", "codes"} <= set(model.encoder_.views_)
    assert model.fit(table, y).score(table, y) == 1.0


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pd.date_range("2024-01-01", periods=90), r"column 'odd'; got dates.*days since"),
        (pd.to_timedelta(np.arange(90), unit="D"), "column 'odd'; got dates or times"),
        ([f"name {i}" for i in range(90)], "few different values in column 'odd'; got 90 in 90"),
        ([1j] * 90, "Complex data not supported"),
        ([np.inf, None, *np.ones(88)], "infinity.*column 'odd'"),
    ],
)
def test_columns_that_are_no_features_are_refused_by_name(column, text):
    with pytest.raises(ValueError, match=text):
        KNeighborsClassifierCV().fit(TABLE.assign(odd=column), Y)


def test_text_where_numbers_were_is_refused_by_name():
    model = KNeighborsClassifierCV().fit(TABLE, Y)
    with pytest.raises(ValueError, match="numbers in column 'dose', as in training; row 1 holds"):
        model.predict(TABLE.head(2).assign(dose=["1.5", "high"]))
    model.fit(TABLE[["smoker"]].assign(x=np.arange(90.0)), Y)
    with pytest.raises(ValueError, match="numbers in column 'x', as in training"):
        model.predict(pd.DataFrame({"smoker": [True], "x": ["high"]}))


@ALL
def test_a_saved_model_reads_tables_as_before(model, tmp_path):
    model.fit(TABLE, Y)
    save(model, tmp_path / "model.nearfield")
    again = load(tmp_path / "model.nearfield")
    assert again.columns_ == KINDS
    np.testing.assert_array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))


def test_partial_fit_adds_rows_of_a_table():
    model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(TABLE[:70], Y[:70])
    model.partial_fit(TABLE[70:], Y[70:])
    assert len(model.labels_) == 90


def test_large_tables_are_read_like_small_ones():
    table, y = make_table(2_400)
    model = NearfieldClassifier(metrics=["euclidean", "ard"], random_state=0)
    assert model.fit(table[:2_200], y[:2_200]).score(table[2_200:], y[2_200:]) > 0.8


def test_groups_are_held_out_together():
    groups = np.repeat(np.arange(20), 3)
    labels = groups % 2
    for fold in deal_folds(np.random.default_rng(0), labels, 5, groups):
        assert not set(groups[fold.training]) & set(groups[fold.held_out])
        assert set(labels[fold.held_out]) == {0, 1}


def test_replicates_do_not_speak_for_each_other():
    rng = np.random.default_rng(7)
    samples, y = rng.normal(size=(40, 4)), rng.integers(0, 2, 40)  # the classes are noise
    X, labels = np.repeat(samples, 3, axis=0) + 0.01 * rng.normal(size=(120, 4)), np.repeat(y, 3)
    model = NearfieldClassifier(metrics=["euclidean"], random_state=0)
    assert model.fit(X, labels).log_scores_.max() > -0.2
    assert model.fit(X, labels, groups=np.repeat(np.arange(40), 3)).log_scores_.max() < -0.6


def test_a_class_that_is_one_group_is_told():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(30, 2)), np.repeat(["a", "b", "c"], 10)
    groups = np.where(labels == "c", 99, np.arange(30) // 2)
    with pytest.warns(UserWarning, match=r"one group of each of \['c'\]"):
        NearfieldClassifier(metrics=["euclidean"]).fit(X, labels, groups=groups)


@pytest.mark.parametrize("groups", [[1, 2], np.zeros(90)])
def test_groups_that_cannot_be_held_out_are_refused(groups):
    with pytest.raises(ValueError, match=r"Expected (one group for|at least two groups)"):
        MODELS[0].fit(TABLE, Y, groups=groups)
    with pytest.raises(ValueError, match='averaging="stacking"'):
        NearfieldClassifier(averaging="evidence").fit(TABLE, Y, groups=np.arange(90))


def test_columns_are_counted_in_words():
    frame = pd.DataFrame({"a": np.arange(30) / 7.0, "b": list("uvw") * 10, "c": list("uv") * 15})
    frame["d"] = pd.Categorical(["low", "high"] * 15, ["low", "high"], ordered=True)
    description = TableEncoder().fit(frame, np.arange(30) % 2).views_["types"].description
    assert description == "1 number, 1 ordered category, 2 categories"


def test_values_whose_sum_overflows_have_a_mean():
    table = pd.DataFrame({"a": [1e308, 1e308, 1e308, -1e308], "b": ["x", "y", "x", None]})
    encoder = TableEncoder().fit(table, [0, 1, 0, 1])
    assert encoder.codes_[0].fill == pytest.approx(0.5e308)
    X = np.array([[1e308], [1e308], [1e308], [0.0]])
    with pytest.raises(ValueError, match="finite distances"):
        KNeighborsClassifierCV(standardize=False).fit(X, [0, 1, 0, 1])
