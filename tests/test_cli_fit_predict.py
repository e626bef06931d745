import io
import json
import resource

import numpy as np
import pandas as pd
import pytest
from cli_files import FEATURES, QUICK, error_of, iris_table, run

import nearfield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, new rows, and a model of the table."""
    path = tmp_path_factory.mktemp("data")
    iris_table().to_csv(path / "iris.csv", index=False)
    iris_table(60).iloc[45:].to_csv(path / "new.csv", index=False)
    arguments = ("--target", "species", "--out", path / "iris.model", *QUICK)
    result = run("fit", path / "iris.csv", *arguments)
    assert result.exit_code == 0, result.output
    assert "Fitted dnn1 to 45 rows, 4 features and 3 classes (setosa: 15, " in result.stdout
    assert "sigma" in result.stdout
    return path


def test_predictions_hold_class_probabilities_interval_and_outlier_score(folder):
    out = folder / "predictions.csv"
    result = run("predict", folder / "iris.model", folder / "new.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Predicted 15 rows" in result.stdout
    predictions = pd.read_csv(out)
    probabilities = [f"probability_{g}" for g in ("setosa", "versicolor", "virginica")]
    scores = ["lower", "upper", "outlier_score", "p_value"]
    assert list(predictions) == ["row", "class", *probabilities, *scores]
    assert predictions["row"].tolist() == list(range(1, 16))
    np.testing.assert_allclose(predictions[probabilities].sum(axis=1), 1.0, atol=2e-4)
    top = predictions[probabilities].max(axis=1)
    assert (predictions["lower"] <= top).all()
    assert (top <= predictions["upper"]).all()
    assert (predictions["class"] == iris_table(60)["species"].iloc[45:].to_numpy()).mean() > 0.8


def test_predictions_are_those_of_the_model_in_python(folder):
    model = nearfield.load(folder / "iris.model")
    new = pd.read_csv(folder / "new.csv")
    result = run("predict", folder / "iris.model", folder / "new.csv", "--json")
    records = json.loads(result.stdout)
    assert [record["class"] for record in records] == model.predict(new[FEATURES]).tolist()
    ours = [record["probability_setosa"] for record in records]
    np.testing.assert_array_equal(ours, model.predict_proba(new[FEATURES])[:, 0])


@pytest.mark.parametrize("name", ["p.tsv", "p.parquet", "p.csv.gz", "p.xlsx", "p.ods"])
def test_predictions_are_written_as_the_name_says(folder, name):
    out = folder / name
    arguments = ("--out", out, "--json", "--keep", "sepal_length")
    result = run("predict", folder / "iris.model", folder / "new.csv", *arguments)
    assert json.loads(result.stdout)["n_rows"] == 15
    read = {
        "p.tsv": lambda p: pd.read_csv(p, sep="\t"),
        "p.parquet": pd.read_parquet,
        "p.xlsx": pd.read_excel,
        "p.ods": pd.read_excel,
    }
    predictions = read.get(name, pd.read_csv)(out)
    assert list(predictions.columns[:3]) == ["row", "sepal_length", "class"]
    assert len(predictions) == 15


def test_streams_replace_files(folder):
    fit = run(
        *("fit", "-", "--target", "species", "--out", "-", *QUICK),
        stdin=(folder / "iris.csv").read_bytes(),
    )
    assert fit.exit_code == 0, fit.output
    assert "Fitted dnn1" in fit.stderr
    predict = run("predict", "-", folder / "new.csv", stdin=fit.stdout_bytes)
    from_file = run("predict", folder / "iris.model", folder / "new.csv")
    assert predict.stdout == from_file.stdout
    assert predict.stdout.startswith("row,class,probability_setosa")


def test_a_wider_level_gives_a_wider_interval(folder):
    width = {}
    for level in ("0.5", "0.99"):
        result = run(
            "predict", folder / "iris.model", folder / "new.csv", "--json", "--level", level
        )
        width[level] = np.mean([r["upper"] - r["lower"] for r in json.loads(result.stdout)])
    assert width["0.5"] < width["0.99"]


def test_one_seed_gives_one_model_file(folder):
    for name in ("a", "b"):
        run("fit", folder / "iris.csv", "-t", "species", "-o", folder / name, *QUICK, "--seed", 3)
    first, second = (nearfield.load(folder / name) for name in ("a", "b"))
    X = pd.read_csv(folder / "new.csv")[FEATURES]
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "engine"),
    [
        ("exponential", "pseudolikelihood"),
        ("dnn2", "pseudolikelihood"),
        ("pknn", "pseudolikelihood"),
    ],
)
def test_models_by_name(folder, model, engine):
    out = folder / f"{model}.model"
    arguments = ("--model", model, "--inference", engine, "--metric", "manhattan", "--json")
    fit = run("fit", folder / "iris.csv", "--target", "species", "--out", out, *arguments)
    account = json.loads(fit.stdout)
    assert account["settings"]["metric"] == "manhattan"
    assert account["inference"] == engine
    assert account["posterior"]["beta"]["mean"] > 0.0
    assert account["classes"] == ["setosa", "versicolor", "virginica"]
    assert run("predict", out, folder / "new.csv").exit_code == 0


def test_the_default_model_tells_what_it_mixes(folder):
    arguments = ("--target", "species", "--out", folder / "default.model", "--metric", "within")
    fit = run("fit", folder / "iris.csv", *arguments)
    assert fit.exit_code == 0, fit.output
    assert "Fitted nearfield" in fit.stdout
    assert "gaussian, within" in fit.stdout
    predict = run("predict", folder / "default.model", folder / "new.csv", "--json")
    assert {"lower", "upper", "outlier_score"} <= set(json.loads(predict.stdout)[0])


def test_path_sampling_reports_the_evidence(folder):
    arguments = ("--target", "species", "--out", folder / "path.model", "--model", "dnn1")
    few = folder / "few.csv"
    iris_table(15).to_csv(few, index=False)
    fit = run("fit", few, *arguments, "--inference", "path")
    assert fit.exit_code == 0, fit.output
    assert "Log evidence: -" in fit.stdout


def test_knn_has_no_interval_to_predict(folder):
    out = folder / "knn.model"
    fit = run("fit", folder / "iris.csv", "-t", "species", "-o", out, "--model", "knn")
    assert "Leave-one-out chose k = " in fit.stdout
    predictions = json.loads(run("predict", out, folder / "new.csv", "--json").stdout)
    assert set(predictions[0]) == {
        *("row", "class", "probability_setosa", "probability_versicolor", "probability_virginica")
    }


def test_text_and_missing_values_go_straight_to_the_model(folder):
    frame = iris_table()
    frame["site"] = np.where(frame["species"] == "setosa", "north", "south")
    frame["batch"] = np.arange(len(frame)) % 4
    frame.loc[3, "petal_width"] = np.nan
    data, out = folder / "sites.csv", folder / "sites.model"
    frame.to_csv(data, index=False)
    arguments = ("fit", data, "--target", "species", "--out", out, *QUICK)
    fit = run(*arguments, "--categorical", "batch", "--json")
    columns = json.loads(fit.stdout)["columns"]
    assert [columns[name] for name in ("site", "batch")] == ["category", "category"]
    people = run(*arguments)
    assert "Taken for categories: site.\n1 value missing.\n" in people.stdout
    assert run("predict", out, data).exit_code == 0
    frame.loc[:1, "site"] = ["east", None]
    frame.to_csv(data, index=False)
    result = run("predict", out, data)
    assert "Note: column 'site' holds values that the model was not fitted to in 1 row (east)" in (
        result.stderr
    )
    assert len(pd.read_csv(io.StringIO(result.stdout))) == len(frame)


def test_a_classifier_saved_from_python_predicts(folder):
    table = iris_table()
    model = nearfield.DistanceNeighborsClassifier(inference="pseudolikelihood")
    nearfield.save(model.fit(table[FEATURES], table["species"]), folder / "python.model")
    result = run("predict", folder / "python.model", folder / "new.csv")
    assert result.stdout == run("predict", folder / "iris.model", folder / "new.csv").stdout
    nearfield.save(model.fit(table[FEATURES].to_numpy(), table["species"]), folder / "array.model")
    message = error_of(run("predict", folder / "array.model", folder / "new.csv"))
    assert "names of its columns" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("1,2,3\n4,5,6\n", "first row holds numbers"),
        ("a,b,kind\n1,2,x\n3,4,y\n", "a column 'species'"),
        ("a,species\n1,x\n2,x\n4,x\n3,x\n", "class"),
        ("a,species\n1,x\ninf,y\n3,x\n4,y\n", "infinite in row 2, column 'a'"),
        ("a,species\n1,0.5\n2,1.7\n4,2.2\n3,3.1\n", "continuous"),
    ],
)
def test_bad_tables_are_refused_and_no_model_is_written(tmp_path, content, message):
    data = tmp_path / "data.csv"
    data.write_text(content)
    result = run("fit", data, "--target", "species", "--out", tmp_path / "model", *QUICK)
    assert message in error_of(result)
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x03\x04 half a zip"])
def test_a_file_that_is_no_model_is_refused(folder, tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    assert "nearfield.save" in error_of(run("predict", tmp_path / "model", folder / "new.csv"))


def test_new_rows_must_have_the_columns_of_the_model(folder, tmp_path):
    pd.read_csv(folder / "new.csv").drop(columns="petal_width").to_csv(tmp_path / "less.csv")
    frame = pd.read_csv(folder / "new.csv").drop(columns="petal_width")
    frame.to_csv(tmp_path / "less.csv", index=False)
    message = error_of(run("predict", folder / "iris.model", tmp_path / "less.csv"))
    assert message == "Expected a column 'petal_width'; did you mean 'sepal_width'?"
    arguments = ("predict", folder / "iris.model", folder / "new.csv", "--keep", "id")
    assert "a column 'id'" in error_of(run(*arguments))


@pytest.fixture
def nearly_full_disk():
    """Let no file grow past a kilobyte: writing on fails as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_nothing_half_written(folder, tmp_path, nearly_full_disk):
    out = tmp_path / "p.csv"
    out.write_text("the old predictions")
    arguments = ("predict", folder / "iris.model", folder / "iris.csv", "--out", out, "--force")
    nearly_full_disk()
    assert error_of(run(*arguments)) == f"{out}: File too large."
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [
        ("p.csv", "the old predictions")
    ]


def test_a_full_disk_leaves_no_half_model(folder, tmp_path, monkeypatch):
    import os

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    out = tmp_path / "m"
    arguments = ("--target", "species", "--out", out, "--model", "knn")
    result = run("fit", folder / "iris.csv", *arguments)
    assert "No space left on device" in error_of(result)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(folder, tmp_path):
    out = tmp_path / "no" / "p.csv"
    result = run("predict", folder / "iris.model", folder / "new.csv", "--out", out)
    assert str(out.parent) in error_of(result)


def test_a_place_that_takes_nothing_is_named(folder, tmp_path):
    result = run("predict", folder / "iris.model", folder / "new.csv", "--out", tmp_path)
    assert error_of(result) == f"{tmp_path}: Is a directory."


def test_a_device_is_written_to_and_not_replaced(folder):
    result = run("predict", folder / "iris.model", folder / "new.csv", "--out", "/dev/null")
    assert result.exit_code == 0
    import pathlib

    assert pathlib.Path("/dev/null").is_char_device()
