import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from cli_files import QUICK, error_of, iris_table, run
from report_samples import HOSTILE, make_report
from scipy.spatial.distance import cdist
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score, roc_auc_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import check_estimator

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_iris
from nearfield.report import (
    PLSDiscriminantAnalysis,
    Source,
    cross_validate,
    describe_data,
    feature_axis,
    gather,
    predict_new,
    predictions_table,
    render_page,
    summarize_losses,
)
from nearfield.report.measures import class_rates, confusion_matrix, reliability, roc_curve, wilson
from nearfield.report.payload import choose_shown, make_payload, to_script_json
from nearfield.report.sample_map import leading_plane
from nearfield.report.svg import ticks


class Elements(HTMLParser):
    """The names of the elements of a page, and the text outside of scripts."""

    def __init__(self, page):
        super().__init__()
        self.names, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, text):
        if self.names[-1:] != ["script"]:
            self.texts.append(text)


def quick_model():
    return DistanceNeighborsClassifier(inference="pseudolikelihood", random_state=0)


@pytest.mark.parametrize(("count", "total"), [(0, 5), (3, 10), (199, 200), (7, 7)])
def test_rates_have_wilsons_interval(count, total):
    rate = wilson(count, total)
    expected = binomtest(count, total).proportion_ci(method="wilson")
    assert (rate.lower, rate.upper) == pytest.approx((expected.low, expected.high))


def test_rates_of_classes_are_those_of_scikit_learn(rng):
    labels, predicted = rng.integers(3, size=(2, 80))
    rates = class_rates(confusion_matrix(predicted, labels, 3))
    for g in range(3):
        own, called = labels == g, predicted == g
        assert rates[g].sensitivity.share == pytest.approx(recall_score(own, called))
        assert rates[g].specificity.share == pytest.approx(recall_score(~own, ~called))
        assert rates[g].precision.share == pytest.approx(precision_score(own, called))


def test_the_area_below_the_roc_curve_is_that_of_scikit_learn(rng):
    is_positive = rng.random(60) < 0.4
    scores = np.round(rng.normal(size=60) + is_positive, 1)  # with ties
    assert roc_curve(scores, is_positive)[2] == pytest.approx(roc_auc_score(is_positive, scores))


def test_reliability_counts_every_sample_once(rng):
    probabilities = rng.dirichlet(np.ones(3), 50)
    bins = reliability(probabilities, rng.integers(3, size=50))
    assert sum(each.correct.total for each in bins) == 50
    assert all(0.3 <= each.mean_probability <= 1.0 for each in bins)


def test_standard_errors_are_over_folds_or_over_samples(rng):
    probabilities, labels = rng.dirichlet(np.ones(2), 12), rng.integers(2, size=12)
    folds = np.repeat([0, 1, 2], 4)
    errors = probabilities.argmax(axis=1) != labels
    by_fold = errors.reshape(3, 4).mean(axis=1)
    by_folds = summarize_losses(probabilities, labels, folds)["error_se"]
    assert by_folds == pytest.approx(by_fold.std(ddof=1) / np.sqrt(3))
    by_samples = summarize_losses(probabilities, labels, None)["error_se"]
    assert by_samples == pytest.approx(errors.std(ddof=1) / np.sqrt(12))


def test_warnings_name_what_may_spoil_an_evaluation(rng):
    frame = pd.DataFrame({"x": rng.normal(size=20), "same": 1.0, "count": np.arange(20.0)})
    labels = np.array([0] * 17 + [1] * 3)
    text = " ".join(describe_data(frame, labels, ["common", "rare"]).warnings)
    assert "1 constant column (same)" in text
    assert "(count)" in text
    assert "rare: 3" in text
    assert "equal to an earlier one" not in text
    copies = pd.concat([frame, frame.iloc[:2]])
    found = describe_data(copies, np.append(labels, [0, 1]), ["common", "rare"]).warnings
    assert found[0].startswith("2 rows equal to an earlier one")
    assert found[1].startswith("1 set of equal rows with different classes")


def test_columns_of_one_name_are_described_each_by_itself(rng):
    values = np.column_stack([np.ones(12), np.arange(12) // 2, np.arange(12.0)])[:, [0, 1, 1, 2]]
    frame = pd.DataFrame(np.vstack([values, values[:1]]), columns=list("aabb"))
    duplicates, classes, constant, *_ = describe_data(
        frame, np.append(np.zeros(12, int), 1), ("u", "v")
    ).warnings
    assert duplicates.startswith("1 row equal")
    assert classes.startswith("1 set of equal rows")
    assert constant == "1 constant column (a)."


def test_a_sound_table_has_no_warnings(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    assert describe_data(frame, np.arange(40) % 2, ["u", "v"]).warnings == ()


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ([str(x) for x in range(400, 440)], 400.0),
        ([f"nm{x}" for x in range(400, 440)], 400.0),
        ([f"{x},5" for x in range(400, 440)], 400.5),
        ([str(x) for x in range(440, 400, -1)], 440.0),
    ],
)
def test_names_in_order_are_an_axis(names, first):
    axis = feature_axis(names)
    assert axis is not None
    assert axis[0] == first


@pytest.mark.parametrize("names", [["1", "2", "3"], [*map(str, range(20)), "7"], ["a"] * 30])
def test_other_names_are_no_axis(names):
    assert feature_axis(names) is None


def test_ticks_are_round_and_within_the_range():
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(431.0, 2488.0) == [500.0, 1000.0, 1500.0, 2000.0]


def test_pls_da_is_a_scikit_learn_classifier():
    check_estimator(PLSDiscriminantAnalysis(2), on_skip=None)


def test_cross_validation_predicts_each_sample_from_the_other_folds():
    X, y = load_iris(return_X_y=True)
    frame, folds = pd.DataFrame(X), np.arange(150) % 3
    methods = {"dnn": quick_model(), "other": LogisticRegression(max_iter=500)}
    n_done = []
    found = cross_validate(methods, frame, y, folds, advance=lambda: n_done.append(1))
    assert len(n_done) == 6
    split = PredefinedSplit(folds)
    for name, method in methods.items():
        expected = cross_val_predict(method, frame, y, cv=split, method="predict_proba")
        np.testing.assert_allclose(found[name].probabilities, expected)
    neighbors = found["dnn"].neighbors
    assert (folds[neighbors] != folds[:, None]).all()
    assert found["other"].neighbors is None
    model = quick_model().fit(frame[folds != 0], y[folds != 0])
    influence = model.influence(frame[folds == 0])
    leading = np.flatnonzero(folds != 0)[np.abs(influence).argmax(axis=1)]
    np.testing.assert_array_equal(neighbors[folds == 0, 0], leading)


def test_the_map_of_two_features_keeps_distances(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = quick_model().fit(X, y)
    plane = leading_plane(model, X[:5])
    space = model.metric_space_
    ratio = (
        np.linalg.norm(plane.training[0] - plane.training[1:], axis=1)
        / space.distances_to(X[:1])[0, 1:]
    )
    np.testing.assert_allclose(ratio, ratio[0])
    np.testing.assert_allclose(plane.new, plane.training[:5], atol=1e-10)
    assert plane.explained == pytest.approx(1.0)


def test_new_samples_are_shown_among_the_training_samples(rng):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    is_new = np.arange(150) % 10 == 0
    model = quick_model().fit(frame[~is_new], y[~is_new])
    source = Source("new.csv", frame[is_new], ["u", "v", "w"], np.flatnonzero(is_new))
    report = gather(source, {"dnn": predict_new(model, frame[is_new])}, model)
    assert report.sample_map.n_training == 135
    shown = choose_shown(report)
    payload = make_payload(report, shown)
    assert payload["nSamples"] == 15
    assert payload["ids"][15] == "training 1"
    nearest = payload["neighbors"][0][0][0]
    assert payload["labels"][nearest] == y[0]
    page = render_page(report)
    assert "Confusion matrix" not in page
    assert "training sample" in page


def test_a_model_of_distances_alone_is_reported_on_without_map_and_neighbours():
    X, y = load_iris(return_X_y=True)
    distances = pd.DataFrame(cdist(X, X[::3]))
    model = quick_model().set_params(metric="precomputed").fit(distances[::3], y[::3])
    source = Source("new", distances, model.classes_, range(150))
    report = gather(source, {"dnn": predict_new(model, distances)}, model)
    assert (report.sample_map, report.neighbors) == (None, None)
    assert "neighbors" not in make_payload(report, choose_shown(report))
    assert "there is no map" in render_page(report)


def test_a_pipeline_that_makes_features_sparse_is_reported_on(rng):
    frame = pd.DataFrame(rng.integers(5, size=(40, 2)).astype(str), columns=["a", "b"])
    labels = np.arange(40) % 2
    model = make_pipeline(OneHotEncoder(), quick_model()).fit(frame, labels)
    source = Source("new", frame, model.classes_, range(40), labels)
    report = gather(source, {"dnn": predict_new(model, frame)}, model)
    assert "40 of 40 samples equal a training sample" in report.data.warnings[0]
    assert report.sample_map.positions.shape == (80, 2)
    np.testing.assert_allclose(report.sample_map.positions[40:], report.sample_map.positions[:40])
    assert render_page(report).startswith("<!DOCTYPE html>")


def test_of_many_samples_the_doubtful_ones_and_a_part_are_shown():
    report = make_report(n=2_500)
    shown = choose_shown(report)
    assert 1_500 <= len(shown.samples) <= 2_000
    doubtful = np.argsort(report.probabilities.max(axis=1))[:500]
    assert np.isin(doubtful, shown.samples).all()
    assert np.isin(report.neighbors.rows[doubtful], shown.points).all()
    assert f"{len(shown.samples):,} of 2,500 samples are drawn" in render_page(report)


def test_names_are_escaped_in_the_page_and_in_the_data():
    names = [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(30)]
    page = render_page(make_report(HOSTILE, names=names))
    elements = Elements(page)
    assert elements.names.count("script") == 2
    assert "img" not in elements.names
    text = " ".join(elements.texts)
    assert all(name in text for name in HOSTILE)
    embedded = re.search(r'id="payload">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(embedded)["classes"] == list(HOSTILE)
    assert "<" not in to_script_json({"x": "<&>"})


def test_the_page_loads_nothing():
    page = render_page(make_report(has_spectra=True))
    assert not re.search(r"\b(src|href)=\"(?!#)", page)
    assert "@import" not in page
    assert "url(" not in page
    addresses = set(re.findall(r"https?://[^\"'\s]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace


def test_the_page_has_every_part():
    page = render_page(make_report(("no", "yes"), has_spectra=True))
    for words in (
        "No duplicate rows",
        "Confusion matrix",
        "sensitivity",
        "Reliability diagram",
        "Receiver operating characteristic",
        "Map of the samples",
        "refused",
        "Mean spectrum",
        "gaussian, ard",
        "The random seed was 3",
        "Friel and Pettitt",
    ):
        assert words in page
    assert "Receiver operating" not in render_page(make_report())


def test_predictions_are_a_table():
    report = make_report()
    frame = predictions_table(report, "sample")
    assert list(frame.columns[:4]) == ["sample", "true_class", "fold", "class"]
    np.testing.assert_array_equal(frame.filter(like="probability_"), report.probabilities)
    np.testing.assert_array_equal(frame.filter(like="p_value_"), report.p_values)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr("nearfield.cli.evaluate._peers", lambda *_, **__: {})
    frame = iris_table()
    frame["species"] = "=" + frame["species"]
    frame["sample"] = [f"@{i}" for i in range(len(frame))]
    frame.to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path / "iris.csv"


def test_evaluate_writes_a_report(data, tmp_path):
    folder = tmp_path / "new" / "folder"
    options = ("--target", "species", "--id", "sample", "--folds", 2, "--report", folder, *QUICK)
    result = run("evaluate", data, *options)
    assert result.exit_code == 0, result.output
    assert f"Wrote {folder / 'report.html'}." in result.stdout
    page = (folder / "report.html").read_text()
    assert "=setosa" in page
    predictions = (folder / "predictions.csv").read_text().splitlines()
    assert predictions[0].startswith("sample,true_class,fold,class,probability_=setosa")
    assert predictions[1].startswith("'@0,'=setosa,")
    assert run("evaluate", data, *options).exit_code == 0  # a report is replaced


@pytest.mark.parametrize("name", ["report.html", "predictions.csv"])
def test_a_report_replaces_no_file_of_another_kind(data, tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    result = run("evaluate", data, "--target", "species", "--report", tmp_path, *QUICK)
    assert "there is a file of another kind" in error_of(result)
    assert (tmp_path / name).read_text() == "a,b\n1,2\n"


def test_a_report_needs_a_folder(data):
    result = run("evaluate", data, "--target", "species", "--report", data, *QUICK)
    assert "is a file" in error_of(result)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Make a folder with a model of 30 rows of iris and a table of 15 other rows."""
    folder = tmp_path_factory.mktemp("fitted")
    frame = iris_table()
    frame.iloc[:30].to_csv(folder / "old.csv", index=False)
    frame.iloc[30:].to_csv(folder / "new.csv", index=False)
    run("fit", folder / "old.csv", "--target", "species", "--out", folder / "model", *QUICK)
    return folder


def test_a_model_is_reported_on_with_new_rows(fitted):
    out = fitted / "unlabelled"
    result = run("report", fitted / "model", fitted / "new.csv", "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"Reported on 15 rows of {fitted / 'new.csv'}.\nWrote")
    page = (out / "report.html").read_text()
    assert "Confusion matrix" not in page
    assert "had been fitted to other data and was applied to these samples" in page
    predictions = pd.read_csv(out / "predictions.csv")
    assert predictions.columns[:2].tolist() == ["row", "class"]
    assert {"probability_setosa", "p_value_setosa"} <= set(predictions)


def test_a_report_on_rows_of_known_class_compares_them(fitted):
    out, data = fitted / "labelled", fitted / "new.csv"
    result = run("report", fitted / "model", data, "--target", "species", "--out", out)
    assert result.exit_code == 0, result.output
    assert "Confusion matrix" in (out / "report.html").read_text()


def test_a_report_warns_of_rows_that_the_model_was_trained_on(fitted):
    result = run("report", fitted / "model", fitted / "old.csv", "--out", fitted / "again")
    assert "Warning: 30 of 30 samples equal a training sample" in result.stdout


@pytest.mark.parametrize(("species", "message"), [("ginkgo", "'ginkgo'"), ("", "row 1 has none")])
def test_classes_that_the_model_does_not_know_are_refused(fitted, tmp_path, species, message):
    frame = pd.read_csv(fitted / "new.csv")
    frame.loc[0, "species"] = species
    frame.to_csv(tmp_path / "new.csv", index=False)
    options = ("--target", "species", "--out", tmp_path / "out")
    result = run("report", fitted / "model", tmp_path / "new.csv", *options)
    assert message in error_of(result)
    assert not (tmp_path / "out").exists()


def test_predict_says_which_rows_lie_outside_the_training_data(fitted, tmp_path):
    frame = pd.read_csv(fitted / "new.csv").drop(columns="species")
    frame.iloc[:3] *= 30.0
    frame.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "predictions.csv"
    result = run("predict", fitted / "model", tmp_path / "new.csv", "--out", out)
    assert " of 15 rows lie outside the training data (p <= 0.05; by chance 0.8" in result.stdout
    p_values = pd.read_csv(out)["p_value"]
    assert p_values[:3].tolist() == pytest.approx([1 / 31] * 3, abs=1e-4)  # as rounded
    assert p_values[3:].median() > 0.2
