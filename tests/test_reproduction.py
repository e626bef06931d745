import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner

from nearfield import reproduction
from nearfield.cli import app
from nearfield.cli import reproduce as command
from nearfield.inference import Exchange
from nearfield.reproduction import claims, errors, experiment, readings, tables
from nearfield.reproduction.claims import findings
from nearfield.reproduction.metrics import point_losses, predictive_entropy
from nearfield.reproduction.paper import BENCHMARKS, ERRORS, KERNELS, METHODS, TABLE1
from nearfield.reproduction.problems import split, stream
from nearfield.reproduction.report import Table
from nearfield.reproduction.run import PARTS, reproduce
from nearfield.reproduction.settings import QUICK, Chain, Settings
from nearfield.reproduction.texts import TEXTS


@pytest.fixture
def settings(tmp_path):
    """A quick run of one data set."""
    return replace(
        QUICK,
        out=tmp_path / "results",
        n_splits=2,
        n_jobs=1,
        data_sets=("iris",),
        long_data_sets=("iris",),
    )


@pytest.fixture
def olive_oil(tmp_path):
    """Make a folder with spectra that are not spectra, but of the right shape and classes."""
    rng = np.random.default_rng(0)
    classes = np.repeat(["Crete", "Peloponnese", "Other"], [18, 28, 19])
    shifts = pd.factorize(classes)[0][:, None] * 0.5
    names = [f"nm{wavelength}" for wavelength in range(400, 2500, 2)]
    frame = pd.DataFrame(np.round(rng.normal(size=(65, 1050)) + shifts, 3), columns=names)
    folder = tmp_path / "spectra"
    folder.mkdir()
    frame.assign(**{"class": classes}).to_csv(folder / "greek_olive_oil.csv", index=False)
    return folder


# Metrics


def test_losses_are_those_of_their_formulas():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=50)
    labels = rng.integers(3, size=50)
    losses = point_losses(probabilities, labels)
    assert losses["error"] == np.mean(probabilities.argmax(axis=1) != labels)
    assert losses["log_loss"] == pytest.approx(log_loss(labels, probabilities))
    assert losses["brier"] == pytest.approx(
        np.mean(((probabilities - np.eye(3)[labels]) ** 2).sum(axis=1))
    )
    assert 0.0 <= losses["ece"] <= 1.0


def test_a_vote_of_zero_has_a_finite_log_loss_and_no_entropy():
    losses = point_losses([[1.0, 0.0]], [1])
    assert losses["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps))
    np.testing.assert_allclose(predictive_entropy([[1.0, 0.0], [0.5, 0.5]]), [0.0, np.log(2.0)])


@pytest.mark.parametrize(
    ("probabilities", "labels"),
    [([0.5, 0.5], [0]), ([[0.5, 0.5]], [0, 1]), ([[0.5, 0.5]], [2]), ([[0.5, 0.5]], ["a"])],
)
def test_losses_refuse_what_does_not_fit_together(probabilities, labels):
    with pytest.raises(ValueError, match="Expected"):
        point_losses(probabilities, labels)


# Experiments


def test_the_split_of_the_meat_has_the_counts_of_the_papers_table(monkeypatch):
    from sklearn.utils import Bunch

    names = np.array(["Beef", "Chicken", "Lamb", "Pork", "Turkey"])
    counts = dict(zip(names, (32, 55, 34, 55, 55), strict=True))
    from nearfield.datasets import MEAT_TRAINING_COUNTS

    names = np.array(list(MEAT_TRAINING_COUNTS))
    target = np.repeat(np.arange(5), [counts[name.capitalize()] for name in names])
    meat = Bunch(data=np.zeros((231, 2)), target=target, target_names=names)
    monkeypatch.setattr("nearfield.datasets.load_meat", lambda data_home: meat)
    problem = split("meat", 0, 1)
    found = np.bincount(problem.train_labels)
    assert dict(zip(names, found, strict=True)) == dict(MEAT_TRAINING_COUNTS)
    assert (len(problem.train_labels), len(problem.test_labels)) == (70, 161)


def test_splits_and_seeds_differ_and_stay():
    first, second = split("iris", 0, 1), split("iris", 1, 1)
    assert not np.array_equal(first.train_features, second.train_features)
    np.testing.assert_array_equal(first.train_features, split("iris", 0, 1).train_features)
    assert len(first.train_labels) == 38
    assert stream(1, "iris", 0) == stream(1, "iris", 0) != stream(1, "iris", 1)


def test_exchange_has_the_papers_settings_and_longer_chains_for_the_olive_oils():
    assert experiment.engine("iris", "exchange") == Exchange(10_000, 10_000, 1_000, n_chains=1)
    oils = experiment.engine("olive-oil", "exchange")
    assert (oils.n_draws, oils.n_burn) == (30_000, 20_000)
    assert experiment.engine("iris", "path") == "path"


def test_priors_are_the_papers():
    assert experiment.sigma_prior("meat").support() == (0.0, 10.0)
    assert experiment.sigma_prior("olive-oil").support() == (0.0, 100.0)
    assert experiment.beta_prior("paper").std() == 50.0
    x = np.array([1.0, 40.0])
    cut, whole = experiment.beta_prior("cut"), experiment.beta_prior("paper")
    np.testing.assert_allclose(cut.pdf(x), 2.0 * whole.pdf(x))


@pytest.mark.parametrize("name", ["iris", "crabs"])
def test_the_two_priors_share_a_fit_and_agree_with_fits_of_their_own(name):
    common = {"name": name, "method": "d-nn1", "index": 0, "seed": 1}
    both = experiment.run_distance(**common, inference="pseudolikelihood", prior="both")
    for prior in ("cut", "paper"):
        alone = experiment.run_distance(**common, inference="pseudolikelihood", prior=prior)
        shared, own = both["priors"][prior], alone["priors"][prior]
        sd = own["posterior"]["beta_sd"]
        assert shared["posterior"]["beta_mean"] == pytest.approx(
            own["posterior"]["beta_mean"], abs=0.02 * sd
        )
        assert shared["losses"]["joint"]["log_loss"] == pytest.approx(
            own["losses"]["joint"]["log_loss"], abs=1e-3
        )
    assert both["priors"]["cut"]["posterior"]["mass_below_zero"] == 0.0


def test_both_predictives_are_measured_from_one_posterior():
    result = experiment.run_distance("iris", "d-nn1", 0, 1, "pseudolikelihood", "cut")
    losses = result["priors"]["cut"]["losses"]
    assert losses["joint"]["log_loss"] < losses["printed"]["log_loss"]
    assert len(result["priors"]["cut"]["errors_by_entropy"]) == 3


# Parts


def test_table1_agrees_with_the_paper_but_for_what_it_gives_a_reason_for(monkeypatch):
    monkeypatch.delenv("NEARFIELD_DATA", raising=False)
    section = tables.table1()
    data = section.tables[0].data.set_index("name")
    assert set(data.index) == set(BENCHMARKS)
    assert set(data.index[~data["agrees"]]) == {"pima", "olive"}
    assert (data.loc[~data["agrees"], "reason"].str.len() > 20).all()
    assert "Meat and Greek olive oil" in section.blocks[-1]
    assert data.loc["wine", "paper_n_features"] == TABLE1["wine"].n_features == 13


def test_the_papers_figure_is_compared_with_the_range_as_it_is_rounded():
    frame = pd.DataFrame(
        {
            "name": "iris",
            "method": "k-nn",
            "prior": "",
            "predictive": "votes",
            "split": [0, 1],
            "error": [0.0645, 0.10],
        }
    )
    summary = errors.summarise(frame, Settings())
    assert ERRORS["iris"]["k-nn"] == 6
    assert summary["is_in_range"].tolist() == [True]  # 6.45 is printed as 6
    summary = errors.summarise(frame.assign(error=[0.0655, 0.10]), Settings())
    assert summary["is_in_range"].tolist() == [False]
    reproduced, _, differences = errors.comparison(summary, "table2")
    assert reproduced.startswith("**Reproduced: 0 of the paper's 1 test errors")
    assert "*Iris*, k-nn: paper 6%, here 8.3%" in differences


def test_table2_is_written_whole_and_a_second_run_finds_it_done(settings, monkeypatch):
    settings = replace(settings, prior="both")
    (section,) = reproduce(["table2"], settings)
    out = settings.out
    record = json.loads((out / "table2.json").read_text())
    assert record["settings"]["seed"] == 2011
    assert record["versions"]["nearfield"]
    assert record["timings"]["cpu_seconds"] > 0.0
    table = pd.read_csv(out / "tables" / "table2.csv")
    assert table["paper"].tolist() == [6, 5, 5, 6]
    folder = out / "units" / "run_nearest"
    stored = [json.loads(path.read_text())["result"] for path in folder.glob("*.json")]
    means = 100.0 * np.mean([r["priors"][""]["losses"]["votes"]["error"] for r in stored])
    assert table["mean"][0] == pytest.approx(means)
    assert {"table2", "readings", "table2-losses", "table2-priors"} <= {
        table.name for table in section.tables
    }
    markdown = (out / "report.md").read_text()
    assert "![" in markdown
    assert (out / "figures" / "table2.png").read_bytes().startswith(b"\x89PNG")

    monkeypatch.setattr(experiment, "fit_quietly", None)  # whoever fits again fails
    (again,) = reproduce(["table2"], settings)
    pd.testing.assert_frame_equal(again.tables[0].data, section.tables[0].data)


def test_the_page_needs_nothing_but_itself(settings):
    list(reproduce(["table1", "table2"], settings))
    page = (settings.out / "report.html").read_text()
    assert not re.search(r"https?://", page)
    sources = re.findall(r'src="([^"]{0,30})', page)
    assert sources
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert "<link" not in page
    assert page.count("<table>") == page.count("</table>") >= 3
    assert page.count('<h2 id="part-') == 2
    assert "addEventListener" in page


def test_one_seed_gives_one_answer_for_any_number_of_jobs(settings, tmp_path):
    (one,) = reproduce(["table2"], settings)
    (two,) = reproduce(["table2"], replace(settings, n_jobs=2, out=tmp_path / "other"))
    pd.testing.assert_frame_equal(one.tables[0].data, two.tables[0].data)


def test_the_main_reading_of_knn_is_that_of_table2(settings):
    settings = replace(settings, n_splits=3)
    (unit,) = [
        unit
        for unit in readings.make_units(settings)
        if {"features": "standardised", "how": "stratified", "share": 0.25}.items()
        <= unit.arguments.items()
    ]
    found = unit.function(**unit.arguments)["errors"]["k-nn"]
    table2 = [experiment.run_nearest("iris", index, settings.seed) for index in range(3)]
    expected = [result["priors"][""]["losses"]["votes"]["error"] for result in table2]
    np.testing.assert_allclose(found, expected)


def test_readings_differ_in_features_split_and_size():
    def draw(how, share):
        return readings.draw("iris", how, share, [1, 0])

    stratified, random = draw("stratified", 0.5), draw("random", 0.5)
    assert np.bincount(stratified.train_labels).tolist() == [25, 25, 25]
    assert len(random.train_labels) == len(random.test_labels) == 75
    assert np.bincount(random.train_labels).tolist() != [25, 25, 25]
    assert len(draw("stratified", 0.75).train_labels) == 113
    whitened = readings.transform(random, "whitened").train_features
    np.testing.assert_allclose(np.cov(whitened.T), np.eye(4), atol=1e-8)
    standardised = readings.transform(random, "standardised").train_features
    np.testing.assert_allclose(standardised.std(axis=0), 1.0)
    assert readings.transform(random, "raw") is random


def test_readings_cover_all_methods_and_can_be_done_before_anything_else(settings):
    settings = replace(settings, n_splits=1, reading_methods=METHODS)
    units = readings.make_units(settings)
    assert len(units) == 3 * 2 * 3  # features, ways to draw, shares
    pairs = [(unit, unit.function(**unit.arguments)) for unit in units[:1]]
    section = tables.table2(pairs, settings)
    assert "readings" in [table.name for table in section.tables]
    assert set(section.tables[0].data["method"]) == set(METHODS)


def test_a_table_prints_its_records_and_leaves_out_what_is_missing():
    data = pd.DataFrame({"name": ["iris", "wine"], "mean": [1.25, 2.0], "sd": [0.5, np.nan]})
    columns = {"data set": "{title}", "error": "{mean:.1f} ± {sd:.1f}", "sd": "{sd:.0%}"}
    table = Table("t", "Caption", data, columns)
    assert table.rows() == [["Iris", "1.2 ± 0.5", "50%"], ["Wine", "2.0", ""]]
    assert "| --- | ---: | ---: |" in table.to_markdown()


def test_what_is_done_is_written_before_the_rest(settings, monkeypatch):
    real = experiment.split

    def stop_at_wine(name, *args):
        if name == "wine":
            raise KeyboardInterrupt
        return real(name, *args)

    monkeypatch.setattr(experiment, "split", stop_at_wine)
    with pytest.raises(KeyboardInterrupt):
        list(reproduce(["table2"], replace(settings, n_splits=1, data_sets=("iris", "wine"))))
    report = (settings.out / "report.md").read_text()
    assert "| Iris |" in report
    assert "| Wine |" not in report


def test_missing_spectra_are_said_and_the_run_goes_on(settings, monkeypatch):
    monkeypatch.delenv("NEARFIELD_DATA", raising=False)
    meat, sizes = reproduce(["meat", "table1"], settings)
    assert "NEARFIELD_DATA" in meat.blocks[0]
    assert sizes.tables
    assert "the spectra are not there" in (settings.out / "report.md").read_text()


def test_spectra_make_their_table_and_their_figure(settings, olive_oil):
    settings = replace(settings, data_home=olive_oil, prior="both")
    (section,) = reproduce(["olive-oil"], settings)
    assert section.tables[0].data["paper"].tolist() == [29, 20, 26, 20]
    assert (settings.out / "figures" / "olive-oil-k.png").exists()
    assert any("25 training and 40 test samples" in str(block) for block in section.blocks)
    sizes = tables.table1(olive_oil).tables[0].data
    assert sizes.set_index("name").loc["olive-oil", "agrees"]
    assert "figure 2" in section.title


def test_a_loss_of_other_files_is_not_taken_for_missing_spectra(settings, monkeypatch):
    def fail(*_):
        raise FileNotFoundError("something else")

    monkeypatch.setattr(experiment, "split", fail)
    with pytest.raises(FileNotFoundError, match="something else"):
        list(reproduce(["table2"], settings))


def test_unknown_parts_are_refused(settings):
    with pytest.raises(ValueError, match="table9"):
        list(reproduce(["table9"], settings))


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_splits": 0},
        {"inference": "magic"},
        {"prior": "none"},
        {"n_jobs": 0},
        {"seed": -1},
        {"data_sets": ("mars",)},
        {"reading_methods": ("magic",)},
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="Expected"):
        Settings(**wrong)


# Claims


def test_every_claim_gets_a_verdict_a_quotation_and_a_figure(settings):
    short = Chain(n_burn=30, n_draws=40, n_sweeps=5)
    settings = replace(
        settings,
        inference="exchange",
        n_splits=1,
        prior="both",
        paper_chain=short,
        mixing_chain=short,
        n_intruder_distances=3,
        n_grid=10,
    )
    (section,) = reproduce(["claims"], settings)
    verdicts = section.tables[0].data
    assert len(verdicts) == len(claims.CLAIMS) == 6
    assert set(verdicts["verdict"]) <= {findings.HOLDS, findings.IN_PART, findings.FAILS}
    markdown = (settings.out / "claims.md").read_text()
    for claim in claims.CLAIMS:
        assert TEXTS["claims"][claim]["quote"] in markdown
    assert len(list((settings.out / "figures").glob("claim-*.png"))) == 6
    assert markdown.count("**Verdict: ") == 6


def test_a_verdict_follows_the_share_of_cases():
    assert [findings.verdict(share) for share in (1.0, 0.8, 0.6, 0.4)] == [
        "holds",
        "holds",
        "in part",
        "does not hold",
    ]


def test_mixing_is_measured_on_the_spectra_that_are_there(settings, olive_oil):
    full = Settings(data_home=olive_oil)
    names = {unit.arguments["name"] for unit in claims.exchange.make_units(full)}
    assert names == {*BENCHMARKS, "olive-oil"}
    assert len(claims.exchange.make_units(full)) == 7 * 3 * 2


def test_the_full_posterior_is_by_path_sampling_when_pseudolikelihood_was_asked_for(settings):
    units = claims.pseudolikelihood.make_units(settings)
    assert {unit.arguments["inference"] for unit in units} == {"pseudolikelihood", "path"}
    names = {unit.arguments["name"] for unit in claims.pseudolikelihood.make_units(Settings())}
    assert names == set(BENCHMARKS)


@pytest.mark.parametrize(
    ("lowest", "far", "expected"),
    [
        ([0.5, 0.6, 0.6, 0.6], [1.0, 0.5, 0.5, 0.5], "holds"),
        ([0.5, 0.6, 0.6, 0.6], [1.0, 1.0, 0.5, 1.0], "in part"),
        ([0.5, 0.4, 0.4, 0.4], [1.0, 1.0, 1.0, 1.0], "does not hold"),
    ],
)
def test_robust_to_outliers_means_a_softer_intruder_and_doubt_far_away(lowest, far, expected):
    data = pd.DataFrame({"method": METHODS, "lowest": lowest, "far": far})
    assert claims.outlier.assess(data)[0] == expected


def test_a_chain_that_never_moved_has_no_effective_draws():
    assert claims.exchange.effective_draws(np.nan) == 0.0


# Command line


def test_the_command_prints_the_table_and_writes_the_document(tmp_path):
    out, document = tmp_path / "out", tmp_path / "docs" / "reproduction.md"
    arguments = ["table2", "--quick", "--splits", "1", "--jobs", "1", "--out", str(out)]
    arguments += ["--data-set", "iris"]
    run = CliRunner().invoke(app, ["reproduce", *arguments, "--document", str(document)])
    assert run.exit_code == 0, run.output
    assert "Iris" in run.output
    assert "d-nn3" in run.output
    assert "of the paper's 4 test errors lie within our range" in run.output
    assert run.output.index("Reproduced") < run.output.index("Table 2. Test error")
    assert "table2.png" in document.read_text()
    assert (tmp_path / "docs" / "figures" / "table2.png").exists()


def test_the_command_says_that_spectra_are_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("NEARFIELD_DATA", raising=False)
    run = CliRunner().invoke(app, ["reproduce", "olive-oil", "--out", str(tmp_path)])
    assert run.exit_code == 0
    assert "oliveoils.RData" in run.output


@pytest.mark.parametrize(
    "wrong",
    [["--splits", "0"], ["--inference", "magic"], ["table9"], ["--jobs", "0"], ["--data-set", "x"]],
)
def test_wrong_usage_ends_with_two(wrong, tmp_path):
    run = CliRunner().invoke(app, ["reproduce", *wrong, "--out", str(tmp_path)])
    assert run.exit_code == 2


def test_parts_and_choices_are_the_same_everywhere():
    assert [part.value for part in command.Part] == [*PARTS, "all"]
    assert list(KERNELS) == ["d-nn1", "d-nn2", "d-nn3"]
    assert reproduction.PARTS is PARTS
