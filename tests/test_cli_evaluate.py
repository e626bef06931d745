import json

import numpy as np
import pandas as pd
import pytest
from cli_files import QUICK, error_of, iris_table, run
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from nearfield import KNeighborsClassifierCV


@pytest.fixture
def alone(monkeypatch):
    """Leave out the methods to compare with, which take most of the time."""
    monkeypatch.setattr("nearfield.cli.evaluate._peers", lambda *_, **__: {})


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "iris.csv"
    iris_table().to_csv(path, index=False)
    return path


def evaluate(path, *options):
    return run("evaluate", path, "--target", "species", *options)


def test_a_model_is_shown_beside_knn_and_logistic_regression(data):
    result = evaluate(data, "--folds", 3, *QUICK)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"3-fold cross-validation on {data}: 45 rows, 3 classes.")
    for words in ("dnn1", "k-nn", "logistic regression", "log loss"):
        assert words in result.stdout
    assert "dnn1 predicted " in result.stdout


def test_losses_are_those_of_cross_validation(data, alone):
    result = evaluate(data, "--folds", 5, "--seed", 7, "--model", "knn", "--json")
    account = json.loads(result.stdout)
    assert list(account["results"]) == ["knn"]
    frame = iris_table()
    X, y = frame.drop(columns="species"), frame["species"]
    folds = StratifiedKFold(5, shuffle=True, random_state=7)
    predicted = cross_val_predict(KNeighborsClassifierCV(), X, y, cv=folds, method="predict_proba")
    classes, codes = np.unique(y, return_inverse=True)
    ours = account["results"]["knn"]
    assert account["classes"] == classes.tolist()
    assert ours["error"] == pytest.approx(np.mean(predicted.argmax(axis=1) != codes))
    brier = ((predicted - np.eye(3)[codes]) ** 2).sum(axis=1).mean()
    assert ours["brier"] == pytest.approx(brier)
    assert 0.0 <= ours["ece"] <= 1.0
    assert ours["error_se"] >= 0.0
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (codes, predicted.argmax(axis=1)), 1)
    assert ours["confusion"] == confusion.tolist()


def test_folds_run_in_parallel_with_the_same_result(data, alone):
    options = ("--folds", 2, "--model", "knn", "--json")
    one, two = (json.loads(evaluate(data, *options, "--jobs", n).stdout) for n in (1, 2))
    assert two["results"]["knn"]["log_loss"] == one["results"]["knn"]["log_loss"]


def test_a_small_class_lowers_the_number_of_folds(data, alone):
    frame = iris_table()
    few = frame[(frame["species"] != "setosa") | (np.cumsum(frame["species"] == "setosa") <= 3)]
    few.to_csv(data, index=False)
    result = evaluate(data, "--model", "knn", "--json")
    assert "Note: 3 folds" in result.stderr
    assert json.loads(result.stdout)["n_folds"] == 3


@pytest.mark.parametrize(
    ("species", "message"),
    [
        (["a"] * 6, "two classes"),
        (["a"] * 5 + ["b"], "'b' has 1 row"),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], "continuous"),
    ],
)
def test_classes_that_cannot_be_validated_are_refused(data, species, message):
    pd.DataFrame({"x": [3, 1, 4, 1, 5, 9], "species": species}).to_csv(data, index=False)
    assert message in error_of(evaluate(data, "--model", "knn"))


def test_a_class_of_two_rows_is_validated_without_tuning(data):
    frame = iris_table(30)
    few = frame[(frame["species"] != "setosa") | (np.cumsum(frame["species"] == "setosa") <= 2)]
    few.to_csv(data, index=False)
    result = evaluate(data, *QUICK)
    assert result.exit_code == 0, result.output
    assert "the smallest class leaves 1 row to train on" in result.stderr
    assert "Warning" not in result.stderr


def test_replicates_of_a_small_class_leave_enough_rows_to_tune_by(data):
    """Folds of groups hold out several rows of a class at once."""
    frame = iris_table(30).assign(sample=np.arange(30) % 3 + 3 * (np.arange(30) // 12))
    frame[(frame["species"] != "setosa") | (frame["sample"] < 6)].to_csv(data, index=False)
    result = evaluate(data, "--groups", "sample", "--metric", "euclidean")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        "Note: 2 folds, the number of groups of the smallest class."
    ]


def test_text_of_many_values_is_a_category_in_every_fold(data, alone):
    iris_table(40).assign(lot=[f"A{i % 20}" for i in range(40)]).to_csv(data, index=False)
    assert evaluate(data, "--folds", 2, *QUICK).exit_code == 0


def test_equal_rows_are_pointed_out(data, alone):
    pd.concat([iris_table(), iris_table().head(1)]).to_csv(data, index=False)
    result = evaluate(data, "--folds", 2, *QUICK)
    assert "equal to an earlier one in every feature" in result.stdout
