"""Names of training samples: kept in model files, and shown where samples are named."""

import json

import numpy as np
import pytest
from cli_files import QUICK, iris_table, run

import nearfield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ids")
    table = iris_table()
    table.insert(0, "plant", [f"p-{row}" for row in range(len(table))])
    table.to_csv(folder / "iris.csv", index=False)
    options = ("--target", "species", "--id", "plant", *QUICK, "--out", folder / "model")
    result = run("fit", folder / "iris.csv", *options)
    assert result.exit_code == 0, result.output
    return folder


def test_explanations_name_training_samples_by_their_id(files):
    explained = run("explain", files / "model", files / "iris.csv", "--row", 3)
    assert "p-" in explained.stdout
    assert "numbered from 1" not in explained.stdout
    record = json.loads(
        run("explain", files / "model", files / "iris.csv", "--row", 3, "--json").stdout
    )
    for sample in [*record["samples"], record["nearest_other"]]:
        assert sample["id"] == f"p-{sample['sample'] - 1}"


def test_a_report_names_training_samples_by_their_id(files, tmp_path):
    result = run("report", files / "model", files / "iris.csv", "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "new" / "report.html").read_text(encoding="utf-8")
    assert "p-7" in page
    assert "training 7" not in page


def test_a_model_of_the_command_is_an_estimator_in_python(files):
    table = iris_table()
    X = table.drop(columns="species")
    model = nearfield.load(files / "model")
    assert model.training_ids_ == [f"p-{row}" for row in range(len(X))]
    assert model.predict_set(X).shape == (len(X), 3)
    assert model.membership(X).shape == (len(X), 3)
    assert model.outlier_score(X).shape == (len(X),)
    assert set(model.decide(X)) <= {*model.classes_, "undecided", "none"}
    assert len(model.explain(X.iloc[:1])) == 1
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_points_added_in_python_have_no_name(files, tmp_path):
    table = iris_table()
    model = nearfield.load(files / "model")
    model.partial_fit(table.drop(columns="species")[:5], table["species"][:5])
    nearfield.save(model, tmp_path / "model")
    assert len(nearfield.load(tmp_path / "model").training_ids_) == len(table)
