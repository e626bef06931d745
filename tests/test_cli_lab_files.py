"""Files as a laboratory has them: each is read, or refused with what to do about it."""

import io

import numpy as np
import pandas as pd
import pytest
from cli_files import error_of, run

import nearfield

KNN = ("--model", "knn")
N_TRAIN, N_NEW = 40, 12


def spectra(n_rows, seed):
    """Make spectra of two classes at 400, 402, ... nm."""
    rng = np.random.default_rng(seed)
    is_beef = np.arange(n_rows) % 2 == 0
    wavelengths = np.arange(400, 424, 2)
    values = rng.normal(1.0, 0.1, (n_rows, len(wavelengths))) + 0.3 * is_beef[:, None]
    frame = pd.DataFrame(values.round(5), columns=[str(w) for w in wavelengths])
    return frame.assign(**{"class": np.where(is_beef, "beef", "pork")})


@pytest.fixture(scope="module")
def train():
    return spectra(N_TRAIN, 1)


@pytest.fixture(scope="module")
def new():
    return spectra(N_NEW, 2).drop(columns="class")


@pytest.fixture(scope="module")
def reference(tmp_path_factory, train, new):
    """A model of the plain csv file, and its predictions for the plain csv file."""
    folder = tmp_path_factory.mktemp("plain")
    train.to_csv(folder / "train.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    fit = run("fit", folder / "train.csv", "-t", "class", "-o", folder / "m", *KNN)
    assert (fit.exit_code, fit.stderr) == (0, "")
    return folder / "m", run("predict", folder / "m", folder / "new.csv").stdout


def fitted(path, *options):
    return run("fit", path, "-t", "class", "-o", path.with_suffix(".model"), *KNN, *options)


def as_csv(**options):
    return lambda frame, path: frame.to_csv(path, **{"index": False} | options)


WAYS = {
    "decimal-commas": as_csv(sep=";", decimal=","),
    "quoted-decimal-commas": as_csv(decimal=",", quoting=1),
    "tabs": as_csv(sep="\t", decimal=","),
    "utf-16": as_csv(encoding="utf-16"),
    "utf-16-without-mark": as_csv(encoding="utf-16-le", sep="\t"),
    "excel-separator-line": lambda f, p: p.write_text("sep=;\n" + f.to_csv(sep=";", index=False)),
    "trailing-separators": lambda f, p: p.write_text(f.to_csv(index=False).replace("\n", ",\n")),
    "empty-rows-below": lambda f, p: p.write_text(f.to_csv(index=False) + ",,\n" * 3),
    "old-mac": as_csv(lineterminator="\r"),
    "xlsx": lambda f, p: f.rename(columns=as_integer).to_excel(p, index=False, engine="openpyxl"),
    "ods": lambda f, p: f.to_excel(p, index=False, engine="odf"),
    "text-in-xlsx": lambda f, p: f.astype(str).to_excel(p, index=False, engine="openpyxl"),
    "r-write-csv": as_csv(index=True, quoting=2),
    "r-write-table": as_csv(index=True, index_label=False, sep=" ", quoting=2),
    "decimals-in-header": lambda f, p: f.rename(columns=with_decimals).to_csv(p, index=False),
}


def as_integer(name):
    return int(name) if name.isdigit() else name


def with_decimals(name):
    return f"{name}.00" if name.isdigit() else name


@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_the_same_however_it_is_written(tmp_path, reference, train, new, way):
    ending = next((e for e in ("xlsx", "ods") if way.endswith(e)), "csv")
    paths = [tmp_path / f"{name}.{ending}" for name in ("train", "new")]
    for frame, path in zip((train, new), paths, strict=True):
        WAYS[way](frame, path)
    fit = fitted(paths[0])
    assert fit.exit_code == 0, fit.output
    assert f"{N_TRAIN} rows, 12 features" in fit.stdout
    model, expected = reference
    assert run("predict", paths[0].with_suffix(".model"), paths[1]).stdout == expected
    assert run("predict", model, paths[1]).stdout == expected


def test_numeric_headers_work_in_evaluate_too(tmp_path, train, monkeypatch):
    monkeypatch.setattr("nearfield.cli.evaluate._peers", lambda *_, **__: {})
    train.to_csv(tmp_path / "train.csv", index=False)
    result = run("evaluate", tmp_path / "train.csv", "-t", "class", "--folds", 2, *KNN)
    assert result.exit_code == 0, result.output


def test_groups_are_never_in_two_folds():
    from nearfield.cli.evaluate import _folds

    groups = np.repeat(np.arange(10), 3)
    folds = _folds(np.where(groups % 2 == 0, "a", "b"), groups, 5, 0).test_fold
    assert all(len(np.unique(folds[groups == g])) == 1 for g in range(10))
    assert np.unique(folds).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="two groups each; got 2, of which 'a' has 1 group"):
        _folds(np.array(["a", "a", "b", "b"]), np.array([1, 1, 2, 3]), 2, 0)


def test_latin_1_is_read_and_said(tmp_path, train):
    path = tmp_path / "train.csv"
    train.assign(**{"class": train["class"].replace("beef", "b\u0153uf à l\u2019")}).to_csv(
        path, index=False, encoding="cp1252"
    )
    fit = fitted(path, "--json")
    assert fit.stderr == f"Note: {path} is not in UTF-8; read as Latin-1 (Windows-1252).\n"
    assert "b\u0153uf à l\u2019" in nearfield.load(path.with_suffix(".model")).classes_


def test_thousands_are_not_taken_for_decimals(tmp_path):
    path = tmp_path / "counts.csv"
    counts = pd.DataFrame(
        {"area": ["1,234", "2,345", "1,234", "9,876"] * 3, "class": list("ab") * 6}
    )
    counts.to_csv(path, index=False)
    assert "row 1 holds '1,234'" in error_of(fitted(path))
    # Of a file with semicolons the comma is the decimal's.
    counts.to_csv(path, index=False, sep=";")
    assert fitted(path).exit_code == 0


def test_sheets_are_named(tmp_path, train):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame({"info": ["x"]}).to_excel(writer, sheet_name="Info", index=False)
        train.to_excel(writer, sheet_name="Spectra", index=False)
    result = fitted(path)
    assert (
        f"Note: read sheet 'Info' of {path}; for another ('Spectra') pass --sheet" in result.stderr
    )
    assert fitted(path, "--sheet", "Spectra").exit_code == 0
    assert "its sheets are 'Info', 'Spectra'" in error_of(fitted(path, "--sheet", "spectra"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.rename(columns={"class": "Class"}), "did you mean 'Class'?"),
        (lambda f: f.rename(columns={"class": "clas"}), "did you mean 'clas'?"),
        (lambda f: f.set_axis(range(1, 41)).T.reset_index(names="nm"), "Transpose the table"),
        (lambda f: f.set_index("class").T.reset_index(names="class"), "if each column is a sample"),
        (lambda f: f.assign(**{"404": ["<0.05"] * 3 + [0.1] * 37}), "3 of 40 rows hold something"),
        (lambda f: f.assign(**{"404": ["<LOD"] * 3 + ["0,1"] * 37}), "limit of detection"),
        (lambda f: f.assign(**{"404": ["n.d."] * 3 + [0.1] * 37}), "Replace them by numbers"),
        (lambda f: f.assign(day=["2024-03-01", "2024-03-02"] * 20), "These are dates"),
        (lambda f: f.assign(day=["1.3.2024", "2.3.2024"] * 20), "--ignore 'day'"),
        (lambda f: f.assign(lot=[f"A{i % 30}" for i in range(40)]), "pass --id 'lot'"),
        (lambda f: f.assign(**{"class": None}), "it is empty"),
    ],
)
def test_a_refusal_says_what_it_is_and_what_to_do(tmp_path, train, change, message):
    path = tmp_path / "train.csv"
    change(train).to_csv(path, index=False)
    assert message in error_of(fitted(path))
    assert not path.with_suffix(".model").exists()


@pytest.mark.parametrize("values", [["<0.05"] * 3 + [0.1] * 37, ["2024-03-01", "2024-03-02"] * 20])
def test_numbers_and_dates_are_never_taken_for_categories(tmp_path, train, values):
    train.assign(**{"404": values}).to_csv(tmp_path / "train.csv", index=False)
    assert "--categorical" not in error_of(fitted(tmp_path / "train.csv"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop(columns=["402", "410"]),
            "12 columns; 2 of these are missing ('402', '410')",
        ),
        (lambda f: f.drop(columns="402"), "11 columns named by numbers, from 400 to 422"),
        (
            lambda f: f.rename(columns=lambda w: str(int(w) + 1)),
            "'414' and 4 more); the table has 12",
        ),
        (lambda f: f.T.reset_index(names="nm"), "Transpose the table"),
        (lambda f: f.set_axis(f.iloc[0].map(str), axis=1), "the first row holds numbers"),
        (lambda f: f.assign(**{"404": ["<0.05"] + [0.1] * 11}), "1 of 12 rows hold something else"),
    ],
)
def test_new_files_that_do_not_fit_the_model_are_explained(
    tmp_path, reference, new, change, message
):
    change(new).to_csv(tmp_path / "new.csv", index=False)
    assert message in error_of(run("predict", reference[0], tmp_path / "new.csv"))


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        ([f"S-{i}" for i in range(N_TRAIN)], "differ in every row"),
        (range(1, N_TRAIN + 1), "it numbers the rows"),
        (np.arange(N_TRAIN) ** 2 + 10, "it numbers the rows"),
        (np.random.default_rng(0).permutation(N_TRAIN), "differ in every row"),
        ([None] * N_TRAIN, "it is empty"),
    ],
)
def test_columns_that_tell_rows_apart_are_left_out_and_said(tmp_path, train, ids, reason):
    path = tmp_path / "train.csv"
    train.assign(sample=ids).to_csv(path, index=False)
    result = fitted(path)
    assert "Note: left out column 'sample': " in result.stderr
    assert reason in result.stderr
    assert ("--id 'sample' to name the samples by it" in result.stderr) is (ids[0] is not None)
    assert "12 features" in result.stdout


def test_a_column_of_numbers_is_used_if_asked_for(tmp_path, train):
    path = tmp_path / "train.csv"
    train.assign(day=range(N_TRAIN)).to_csv(path, index=False)
    result = fitted(path, "--feature", "day")
    assert (result.stderr, "13 features" in result.stdout) == ("", True)


def test_measurements_are_no_identifiers(tmp_path, train):
    rng = np.random.default_rng(5)
    path = tmp_path / "train.csv"
    counts = rng.permutation(10_000)[:N_TRAIN]  # all different, in no order
    train.assign(counts=counts, height=np.arange(N_TRAIN) + 0.5).to_csv(path, index=False)
    assert "14 features" in fitted(path).stdout


def test_rows_without_a_class_are_left_out_and_counted(tmp_path, train):
    path = tmp_path / "train.csv"
    codes = train["class"].map({"beef": 1.0, "pork": 2.0})
    codes.iloc[[2, 5]] = np.nan
    train.assign(**{"class": codes}).to_csv(path, index=False)
    result = fitted(path)
    assert result.stderr == "Note: left out 2 rows without a class (rows 3, 6).\n"
    assert "38 rows" in result.stdout
    assert nearfield.load(path.with_suffix(".model")).classes_.tolist() == [1, 2]


def test_a_row_of_units_below_the_header_is_left_out(tmp_path, train, new, reference):
    path, model = tmp_path / "units.csv", tmp_path / "units.model"
    header, rows = train.to_csv(index=False).split("\n", 1)
    path.write_text("\n".join([header, "AU," * (train.shape[1] - 1), rows]))
    result = fitted(path)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "Note: left out 1 row without a class (row 1).\n"
    new.to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", model, tmp_path / "new.csv").stdout == reference[1]


def test_a_row_of_units_is_left_out_of_new_rows_too(tmp_path, new, reference):
    path = tmp_path / "new.csv"
    header, rows = new.to_csv(index=False).split("\n", 1)
    path.write_text("\n".join([header, ",".join(["AU", "%", *[""] * (new.shape[1] - 2)]), rows]))
    result = run("predict", reference[0], path)
    assert result.stderr == "Note: left out row 1, which holds units (AU, %).\n"
    found, expected = (pd.read_csv(io.StringIO(text)) for text in (result.stdout, reference[1]))
    assert found["row"].tolist() == list(range(2, N_NEW + 2))
    pd.testing.assert_frame_equal(found.drop(columns="row"), expected.drop(columns="row"))


@pytest.mark.parametrize("first", ["<0.1", "n.d.", "LOD", "traces", "?"])
def test_a_first_row_without_a_measured_value_is_no_row_of_units(tmp_path, new, reference, first):
    header, rows = new.to_csv(index=False).split("\n", 1)
    (tmp_path / "new.csv").write_text("\n".join([header, f"{first}," * new.shape[1], rows]))
    assert repr(first) in error_of(run("predict", reference[0], tmp_path / "new.csv"))


def test_percentages_are_numbers_and_said(tmp_path, train, new, reference):
    """The class may hold percent signs as well, and keeps them."""
    signed = train["404"].map(lambda v: f"{v} %".replace(".", ","))
    purity = train["class"].map({"beef": "100%", "pork": "90%"})
    path = tmp_path / "train.csv"
    train.assign(**{"404": signed, "class": purity}).to_csv(path, index=False)
    result = fitted(path)
    expected = "column '404' holds percent signs in 40 of 40 rows: 5% was read as 5.\n"
    assert result.stderr.endswith(expected)
    assert nearfield.load(path.with_suffix(".model")).classes_.tolist() == ["100%", "90%"]
    new.assign(**{"404": new["404"].map(lambda v: f"{v}%")}).to_csv(tmp_path / "new.csv")
    found = run("predict", path.with_suffix(".model"), tmp_path / "new.csv")
    assert "holds percent signs in 12 of 12 rows" in found.stderr
    probabilities, plain = (
        pd.read_csv(io.StringIO(text)).filter(like="probability").to_numpy()
        for text in (found.stdout, reference[1])
    )
    np.testing.assert_array_equal(probabilities, plain)


def test_percentages_that_need_mending_are_no_categories(tmp_path, train):
    values = ["<0,5%"] * 3 + ["5,1%", "6%"] * 18 + [7]
    train.assign(fat=values).to_csv(tmp_path / "train.csv", index=False)
    assert "3 of 40 rows hold something else, row 1 holds '<0,5%'" in error_of(
        fitted(tmp_path / "train.csv")
    )


def test_text_that_names_replicates_is_pointed_out(tmp_path, train):
    path = tmp_path / "train.csv"
    names = [f"S{i // 4 * 2 + i % 2}" for i in range(N_TRAIN)]
    train.assign(sample=names).to_csv(path, index=False)
    assert "pass --groups 'sample'" in fitted(path).stderr
    assert (
        "--groups 'sample' only left that column out" in fitted(path, "--groups", "sample").stderr
    )  # k-nn holds no rows out
    assert fitted(path, "--categorical", "sample").stderr == ""
    train.assign(plant=[f"P{i % 7}" for i in range(N_TRAIN)]).to_csv(path, index=False)
    assert fitted(path).stderr == ""


def test_declared_categories_may_be_many(tmp_path, train):
    path = tmp_path / "train.csv"
    train.assign(lot=[f"A{i % 30}" for i in range(N_TRAIN)]).to_csv(path, index=False)
    assert "--categorical 'lot'" in error_of(fitted(path))
    assert fitted(path, "--categorical", "lot").exit_code == 0


def test_rows_with_missing_values_are_dropped_on_request(tmp_path, train, new):
    frame = train.copy()
    frame.iloc[4, 2] = np.nan
    path, later = tmp_path / "train.csv", tmp_path / "new.csv"
    frame.to_csv(path, index=False)
    result = fitted(path, "--missing", "drop")
    assert result.stderr == "Note: left out 1 row with missing values (row 5).\n"
    assert "39 rows" in result.stdout
    holed = new.copy()
    holed.iloc[1, 3:] = np.nan
    holed.to_csv(later, index=False)
    result = run("predict", path.with_suffix(".model"), later, "--missing", "drop")
    assert pd.read_csv(io.StringIO(result.stdout))["row"].tolist() == [1, *range(3, N_NEW + 1)]
    new.assign(**{"404": np.nan}).to_csv(later, index=False)
    result = run("predict", path.with_suffix(".model"), later, "--missing", "drop")
    assert "all 12 have some, 12 of them in column '404'" in error_of(result)


def test_ids_are_carried_into_the_predictions(tmp_path, train, new):
    path, later = tmp_path / "train.csv", tmp_path / "new.csv"
    train.assign(probe=[f"T{i}" for i in range(N_TRAIN)]).to_csv(path, index=False)
    new.assign(probe=[f"N{i}" for i in range(N_NEW)], well=new["400"]).to_csv(later, index=False)
    assert fitted(path, "--id", "probe").stderr == ""
    model = path.with_suffix(".model")

    def first_column(*options):
        return pd.read_csv(io.StringIO(run("predict", model, later, *options).stdout)).iloc[:, 0]

    assert first_column().name == "probe"
    assert first_column().tolist() == [f"N{i}" for i in range(N_NEW)]
    assert first_column("--id", "well").name == "well"
    new.to_csv(later, index=False)
    assert first_column().tolist() == list(range(1, N_NEW + 1))
    assert "a column 'probe'" in error_of(run("predict", model, later, "--id", "probe"))


def test_a_model_of_the_command_is_an_estimator_in_python(tmp_path, train, new):
    path = tmp_path / "train.csv"
    train.to_csv(path, index=False)
    options = ("--model", "dnn1", "--inference", "pseudolikelihood")
    run("fit", path, "-t", "class", "-o", tmp_path / "m", *options)
    model = nearfield.load(tmp_path / "m")
    assert isinstance(model, nearfield.DistanceNeighborsClassifier)
    assert model.outlier_score(new).shape == (N_NEW,)
    assert model.influence(new).shape[0] == N_NEW
    ours = nearfield.DistanceNeighborsClassifier(inference="pseudolikelihood", random_state=0)
    ours.fit(train.drop(columns="class"), train["class"])
    np.testing.assert_array_equal(model.predict_proba(new), ours.predict_proba(new))
    assert model.get_params() == ours.get_params()


def test_probabilities_are_rounded_unless_asked_otherwise(tmp_path, train, new):
    path, later = tmp_path / "train.csv", tmp_path / "new.csv"
    train.to_csv(path, index=False)
    new.to_csv(later, index=False)
    options = ("--model", "dnn1", "--inference", "pseudolikelihood")
    run("fit", path, "-t", "class", "-o", tmp_path / "m", *options)

    def predicted(*more):
        text = run("predict", tmp_path / "m", later, *more).stdout
        return pd.read_csv(io.StringIO(text), converters={"probability_beef": float})

    exact = nearfield.load(tmp_path / "m").predict_proba(new)[:, 0]
    np.testing.assert_array_equal(predicted()["probability_beef"], exact.round(4))
    np.testing.assert_allclose(
        predicted("--full-precision")["probability_beef"], exact, rtol=1e-15, atol=0
    )
