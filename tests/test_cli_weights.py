"""Weights of rows in the command, and what it says of values that need mending."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_files import FEATURES, error_of, iris_table, run

from nearfield import DistanceNeighborsClassifier

FAST = ("--model", "dnn1", "--inference", "pseudolikelihood")


@pytest.fixture
def table():
    """Make a table with weights, some of them zero."""
    return iris_table(45).assign(count=np.resize([0.0, 1.0, 2.5, 1.0], 45))


def fitted(folder, frame, *options):
    path = folder / "train.csv"
    frame.to_csv(path, index=False)
    return run("fit", path, "--target", "species", "--out", folder / "iris.model", *options)


def test_weights_are_those_of_python(tmp_path, table):
    result = fitted(tmp_path, table, "--weight", "count", *FAST)
    assert result.exit_code == 0, result.output
    assert "left out 12 rows of weight zero (rows 1, 5, 9, 13, 17 and 7 more)." in result.stderr
    found = run("predict", tmp_path / "iris.model", tmp_path / "train.csv", "--json")
    rows = pd.DataFrame(json.loads(found.stdout))
    model = DistanceNeighborsClassifier(inference="pseudolikelihood", random_state=0)
    model.fit(table[FEATURES], table["species"], sample_weight=table["count"])
    expected = model.predict_proba(table[FEATURES])
    for name, column in zip(model.classes_, expected.T, strict=True):
        np.testing.assert_allclose(rows[f"probability_{name}"], column, atol=1e-4)


def test_evaluation_leaves_out_rows_of_weight_zero(tmp_path, table):
    zero_or_one = table.assign(count=(table["count"] > 0).astype(int))
    zero_or_one.to_csv(tmp_path / "all.csv", index=False)
    left = zero_or_one[zero_or_one["count"] > 0].drop(columns="count")
    left.to_csv(tmp_path / "left.csv", index=False)
    common = "--target", "species", *FAST, "--folds", "2", "--json"
    weighted = run("evaluate", tmp_path / "all.csv", *common, "--weight", "count")
    plain = run("evaluate", tmp_path / "left.csv", *common)
    assert weighted.exit_code == 0, weighted.output
    results = [json.loads(each.stdout)["results"]["dnn1"]["log_loss"] for each in (weighted, plain)]
    assert results[0] == pytest.approx(results[1])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["heavy"] + ["1"] * 44, "Expected numbers in column 'count', the weights"),
        ([-1.0] + [1.0] * 44, "row 1 holds -1"),
        ([np.nan] + [1.0] * 44, "row 1 holds nothing"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path, table, weights, message):
    result = fitted(tmp_path, table.assign(count=weights), "--weight", "count", *FAST)
    assert message in error_of(result)


def test_a_model_without_weights_refuses_them(tmp_path, table):
    result = fitted(tmp_path, table, "--weight", "count", "--model", "knn")
    assert result.exit_code == 2
    assert "takes no weights" in result.stderr.replace("\n", " ")


def test_a_refusal_names_every_column_and_several_values(tmp_path, table):
    wrong = table.astype(dict.fromkeys(FEATURES, object))
    wrong.loc[2, FEATURES[0]], wrong.loc[7, FEATURES[0]] = "<LOD", "> 9"
    wrong.loc[4, FEATURES[2]] = "n.d."
    message = error_of(fitted(tmp_path, wrong, "--ignore", "count"))
    assert "row 3 holds '<LOD', row 8 '> 9'" in message
    assert f"1 other column needs mending too ({FEATURES[2]!r})" in message


def test_advice_is_about_options_that_there_are(tmp_path, table):
    """predict has no --ignore: a model needs all of its columns."""
    assert fitted(tmp_path, table, "--ignore", "count", *FAST).exit_code == 0
    wrong = table.astype({FEATURES[1]: object})
    wrong.loc[0, FEATURES[1]] = "<0.1"
    wrong.to_csv(tmp_path / "new.csv", index=False)
    message = error_of(run("predict", tmp_path / "iris.model", tmp_path / "new.csv"))
    assert "half the limit is customary" in message
    assert "--ignore" not in message


def test_several_misspelt_columns_are_found(tmp_path, table):
    assert fitted(tmp_path, table, "--ignore", "count", *FAST).exit_code == 0
    renamed = {FEATURES[0]: FEATURES[0].upper(), FEATURES[3]: FEATURES[3] + "s"}
    table.rename(columns=renamed).to_csv(tmp_path / "new.csv", index=False)
    message = error_of(run("predict", tmp_path / "iris.model", tmp_path / "new.csv"))
    assert f"did you mean {FEATURES[0].upper()!r}, {FEATURES[3] + 's'!r}?" in message


def test_a_row_without_values_gets_the_class_proportions(tmp_path, table):
    assert fitted(tmp_path, table, "--ignore", "count", *FAST).exit_code == 0
    new = pd.concat([table[:1], table[:1].assign(**dict.fromkeys(FEATURES, np.nan))])
    new.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", tmp_path / "iris.model", tmp_path / "new.csv", "--json")
    assert "1 row without any of the model's features (row 2)" in result.stderr
    last = json.loads(result.stdout)[-1]
    found = [value for name, value in last.items() if name.startswith("probability_")]
    np.testing.assert_allclose(found, [1 / 3] * 3, atol=1e-4)
