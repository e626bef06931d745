"""The datasets layer: the paper's data as published, clear errors, and exact splits."""

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdata
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from nearfield import datasets
from nearfield.datasets import (
    MEAT_TRAINING_COUNTS,
    load_crabs,
    load_glass,
    load_greek_olive_oil,
    load_iris,
    load_meat,
    load_olive,
    load_pima,
    load_wine,
    stratified_split,
)

EMBEDDED = [load_iris, load_wine, load_pima, load_glass, load_crabs, load_olive]

WAVELENGTHS = [f"nm{wavelength}" for wavelength in range(400, 2500, 2)]

MEAT_CLASSES = {"Chicken": 55, "Turkey": 55, "Pork": 55, "Beef": 32, "Lamb": 34}
OIL_CLASSES = {"Crete": 18, "Peloponnese": 28, "Other": 19}

needs_spectra = pytest.mark.skipif(
    not os.environ.get("NEARFIELD_DATA"), reason="NEARFIELD_DATA does not name the spectra's folder"
)


def words(text):
    return " ".join(text.split())


def class_sizes(bunch):
    return dict(zip(bunch.target_names.tolist(), np.bincount(bunch.target).tolist(), strict=True))


def identical_rows(data):
    return np.flatnonzero(pd.DataFrame(data).duplicated(keep=False)).tolist()


# --- the embedded sets ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "shape", "sizes"),
    [
        (load_iris, (150, 4), {"setosa": 50, "versicolor": 50, "virginica": 50}),
        (load_wine, (178, 13), {"class_0": 59, "class_1": 71, "class_2": 48}),
        (load_pima, (532, 7), {"No": 355, "Yes": 177}),
        (load_glass, (214, 9), {"WinF": 70, "WinNF": 76, "VehConTabl": 39, "Head": 29}),
        (load_crabs, (200, 5), {"B.M": 50, "B.F": 50, "O.M": 50, "O.F": 50}),
        (load_olive, (572, 8), {"Southern Italy": 323, "Sardinia": 98, "Northern Italy": 151}),
    ],
)
def test_shape_and_class_sizes_are_those_of_the_published_data(load, shape, sizes):
    bunch = load()
    assert bunch.data.shape == shape
    assert class_sizes(bunch) == sizes
    assert list(class_sizes(bunch)) == list(sizes)


@pytest.mark.parametrize(
    ("load", "table_1"),
    [
        (load_pima, {"G": 2, "F": 8, "N": 532}),
        (load_glass, {"G": 4, "F": 9, "N": 214}),
        (load_iris, {"G": 3, "F": 4, "N": 150}),
        (load_crabs, {"G": 4, "F": 5, "N": 200}),
        (load_wine, {"G": 3, "F": 13, "N": 178}),
        (load_olive, {"G": 3, "F": 9, "N": 572}),
    ],
)
def test_the_description_compares_the_data_with_table_1(load, table_1):
    bunch = load()
    description = words(bunch.DESCR)
    n_points, n_features = bunch.data.shape
    n_classes = len(bunch.target_names)
    n_extra = 1 if load in (load_pima, load_olive) else 0
    assert table_1 == {"G": n_classes, "F": n_features + n_extra, "N": n_points}
    assert f"Table 1 has G={n_classes}, F={table_1['F']}, N={n_points}" in description
    assert f"N={n_points} points, F={n_features} features, G={n_classes} classes" in description
    assert "Source: " in description


@pytest.mark.parametrize(
    ("load", "row", "values", "name"),
    [
        (load_pima, 0, [5, 86, 68, 28, 30.2, 0.364, 24], "No"),
        (load_pima, 200, [6, 148, 72, 35, 33.6, 0.627, 50], "Yes"),
        (load_glass, 0, [3.01, 13.64, 4.49, 1.10, 71.78, 0.06, 8.75, 0, 0], "WinF"),
        (load_crabs, 0, [8.1, 6.7, 16.1, 19.0, 7.0], "B.M"),
        (load_olive, 0, [10.75, 0.75, 2.26, 78.23, 6.72, 0.36, 0.6, 0.29], "Southern Italy"),
    ],
)
def test_known_rows_are_where_they_were_published(load, row, values, name):
    bunch = load()
    np.testing.assert_allclose(bunch.data[row], values, rtol=1e-12)
    assert bunch.target_names[bunch.target[row]] == name


def test_features_keep_their_published_names():
    assert load_pima().feature_names == ["npreg", "glu", "bp", "skin", "bmi", "ped", "age"]
    assert load_glass().feature_names == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    assert load_crabs().feature_names == ["FL", "RW", "CL", "CW", "BD"]
    assert load_olive().feature_names[0] == "palmitic"
    assert "area" not in load_olive().feature_names


@pytest.mark.parametrize("name", ["load_iris", "load_wine"])
@pytest.mark.parametrize("as_frame", [False, True])
def test_iris_and_wine_are_scikit_learns(name, as_frame):
    ours = getattr(datasets, name)(as_frame=as_frame)
    theirs = getattr(sklearn_datasets, name)(as_frame=as_frame)
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target)
    np.testing.assert_array_equal(ours.target_names, theirs.target_names)
    assert ours.feature_names == theirs.feature_names
    if as_frame:
        pd.testing.assert_frame_equal(ours.frame, theirs.frame)
        pd.testing.assert_frame_equal(ours.data, theirs.data)
        pd.testing.assert_series_equal(ours.target, theirs.target)


@pytest.mark.parametrize("load", EMBEDDED)
def test_arrays_have_scikit_learns_types(load):
    bunch = load()
    assert isinstance(bunch, Bunch)
    assert {"data", "target", "feature_names", "target_names", "DESCR", "frame"} <= set(bunch)
    assert bunch.data.dtype == np.float64
    assert bunch.data.flags.c_contiguous
    assert bunch.data.flags.writeable
    assert bunch.target.dtype == np.int64
    assert bunch.target.shape == (len(bunch.data),)
    assert bunch.target_names.dtype.kind == "U"
    assert isinstance(bunch.feature_names, list)
    assert bunch.frame is None
    assert np.isfinite(bunch.data).all()


@pytest.mark.parametrize("load", EMBEDDED)
def test_as_frame_gives_the_same_values_as_pandas_objects(load):
    arrays, frames = load(), load(as_frame=True)
    assert isinstance(frames.data, pd.DataFrame)
    assert isinstance(frames.target, pd.Series)
    assert frames.target.name == "target"
    assert frames.target.dtype == np.int64
    assert list(frames.data.columns) == arrays.feature_names
    assert list(frames.frame.columns) == [*arrays.feature_names, "target"]
    assert (frames.data.dtypes == np.float64).all()
    np.testing.assert_array_equal(frames.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(frames.target.to_numpy(), arrays.target)


@pytest.mark.parametrize("load", EMBEDDED)
def test_return_x_y_gives_data_and_target_alone(load):
    bunch = load()
    X, y = load(return_X_y=True)
    np.testing.assert_array_equal(X, bunch.data)
    np.testing.assert_array_equal(y, bunch.target)
    X, y = load(return_X_y=True, as_frame=True)
    assert isinstance(X, pd.DataFrame)
    assert isinstance(y, pd.Series)


@pytest.mark.parametrize("load", EMBEDDED)
def test_options_of_the_embedded_loaders_are_keyword_only(load):
    with pytest.raises(TypeError, match="positional"):
        load(True)


def test_a_loaded_array_can_be_changed_without_changing_the_next_load():
    first = load_crabs()
    first.data[:] = 0.0
    first.target[:] = 0
    assert load_crabs().data.min() > 0.0
    assert load_crabs().target.max() == 3


def test_classes_of_the_embedded_tables_are_in_order_of_first_appearance():
    for load in (load_pima, load_glass, load_crabs, load_olive):
        _, first_places = np.unique(load().target, return_index=True)
        assert (np.diff(first_places) > 0).all()


def test_pima_carries_the_published_split():
    pima = load_pima()
    np.testing.assert_array_equal(pima.train_indices, np.arange(200))
    np.testing.assert_array_equal(pima.test_indices, np.arange(200, 532))
    assert np.bincount(pima.target[pima.train_indices]).tolist() == [132, 68]
    assert np.bincount(pima.target[pima.test_indices]).tolist() == [223, 109]


@pytest.mark.parametrize(
    ("load", "rows"),
    [
        (load_iris, [101, 142]),
        (load_wine, []),
        (load_pima, []),
        (load_glass, [38, 39]),
        (load_crabs, []),
        (load_olive, []),
    ],
)
def test_identical_rows_are_the_known_ones_and_described(load, rows):
    bunch = load()
    assert identical_rows(bunch.data) == rows
    assert ("identical" in bunch.DESCR) == bool(rows)
    if rows:
        assert f"Rows {rows[0]} and {rows[1]} are identical" in words(bunch.DESCR)


def test_the_package_ships_the_four_small_tables_and_no_spectra():
    folder = Path(datasets.__file__).parent / "data"
    assert sorted(file.name for file in folder.iterdir()) == [
        "crabs.csv",
        "glass.csv",
        "olive.csv",
        "pima.csv",
    ]


# --- the spectra: files made for the test --------------------------------------------------------


def made_spectra(sizes):
    """Values with a known place: row + wavelength / 1e4."""
    n_points = sum(sizes.values())
    values = np.arange(n_points)[:, None] + np.arange(400, 2500, 2) / 1e4
    return values, np.repeat(list(sizes), list(sizes.values()))


def made_table(sizes):
    values, labels = made_spectra(sizes)
    return pd.DataFrame(values, columns=WAVELENGTHS).assign(**{"class": labels})


def write_csv(folder, name, sizes):
    made_table(sizes).to_csv(folder / name, index=False)


def write_meat_rdata(folder, values, labels):
    rdata.write_rda(folder / "Meat.RData", {"Meat": {"x": values, "y": pd.Categorical(labels)}})


def write_oil_rdata(folder, values, labels):
    objects = {"oliveoils": values, "oliveoillabels": labels, ".Random.seed": np.arange(3)}
    rdata.write_rda(folder / "oliveoils.RData", objects)


@pytest.fixture(autouse=True)
def _no_folder_from_the_environment(request, monkeypatch):
    if "spectra_folder" not in request.fixturenames:
        monkeypatch.delenv("NEARFIELD_DATA", raising=False)


def test_meat_is_the_same_from_csv_and_rdata(tmp_path):
    values, labels = made_spectra(MEAT_CLASSES)
    (tmp_path / "csv").mkdir()
    (tmp_path / "r").mkdir()
    write_csv(tmp_path / "csv", "meat.csv", MEAT_CLASSES)
    write_meat_rdata(tmp_path / "r", values, labels)
    from_csv, from_r = load_meat(tmp_path / "csv"), load_meat(tmp_path / "r")
    for bunch in (from_csv, from_r):
        np.testing.assert_allclose(bunch.data, values, rtol=1e-14)
        assert class_sizes(bunch) == MEAT_CLASSES
        assert bunch.target_names.tolist() == list(MEAT_CLASSES)
        assert bunch.feature_names == WAVELENGTHS
        assert bunch.data.dtype == np.float64
        assert bunch.target.dtype == np.int64
        assert bunch.frame is None
    np.testing.assert_array_equal(from_csv.target, from_r.target)
    assert from_csv.DESCR == from_r.DESCR


def test_greek_olive_oil_in_r_is_rescaled_and_respelled(tmp_path):
    values, labels = made_spectra(OIL_CLASSES)
    (tmp_path / "csv").mkdir()
    (tmp_path / "r").mkdir()
    write_csv(tmp_path / "csv", "greek_olive_oil.csv", OIL_CLASSES)
    r_labels = np.where(labels == "Peloponnese", "Peloponese", labels)
    write_oil_rdata(tmp_path / "r", np.round(values * 1e7), r_labels)
    from_csv = load_greek_olive_oil(tmp_path / "csv")
    from_r = load_greek_olive_oil(tmp_path / "r")
    np.testing.assert_allclose(from_r.data, from_csv.data, rtol=1e-14)
    np.testing.assert_array_equal(from_r.target, from_csv.target)
    assert from_r.target_names.tolist() == from_csv.target_names.tolist() == list(OIL_CLASSES)
    assert from_r.feature_names == from_csv.feature_names == WAVELENGTHS


def test_the_order_of_rows_and_columns_in_a_csv_does_not_change_the_codes(tmp_path):
    table = made_table(MEAT_CLASSES)
    table.iloc[::-1, ::-1].to_csv(tmp_path / "meat.csv", index=False)
    bunch = load_meat(tmp_path)
    assert bunch.target_names.tolist() == list(MEAT_CLASSES)
    assert bunch.feature_names == WAVELENGTHS
    np.testing.assert_allclose(bunch.data, table[WAVELENGTHS].to_numpy()[::-1], rtol=1e-14)
    assert bunch.target[0] == 4


def test_the_csv_goes_before_the_rdata(tmp_path):
    write_csv(tmp_path, "meat.csv", MEAT_CLASSES)
    (tmp_path / "Meat.RData").write_bytes(b"not read")
    assert load_meat(tmp_path).data.shape == (231, 1050)


def test_the_environment_variable_names_the_folder_and_the_argument_overrides_it(
    tmp_path, monkeypatch
):
    write_csv(tmp_path, "meat.csv", MEAT_CLASSES)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("NEARFIELD_DATA", str(tmp_path))
    assert load_meat().data.shape == (231, 1050)
    with pytest.raises(FileNotFoundError, match="holds neither"):
        load_meat(tmp_path / "empty")
    monkeypatch.setenv("NEARFIELD_DATA", str(tmp_path / "empty"))
    X, y = load_meat(str(tmp_path), return_X_y=True, as_frame=True)
    assert isinstance(X, pd.DataFrame)
    assert y.name == "target"


@pytest.mark.parametrize(
    ("load", "names", "origin"),
    [
        (load_meat, ("Meat.RData", "meat.csv"), r"CRAN package RPEClust 0\.1\.0"),
        (
            load_greek_olive_oil,
            ("oliveoils.RData", "greek_olive_oil.csv"),
            "public teaching repository",
        ),
    ],
)
def test_a_missing_file_says_what_where_and_how(load, names, origin, tmp_path, monkeypatch):
    advice = f"Expected {names[0]} or {names[1]} .*{{}}.*{origin}.*data_home.*NEARFIELD_DATA"
    with pytest.raises(FileNotFoundError, match=advice.format("NEARFIELD_DATA names none")):
        load()
    with pytest.raises(FileNotFoundError, match=advice.format("holds neither")):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=advice.format("nowhere' is not a folder")):
        load(tmp_path / "nowhere")
    monkeypatch.setenv("NEARFIELD_DATA", "")
    with pytest.raises(FileNotFoundError, match="no folder was named"):
        load()


def drop_label_column(table):
    return table.drop(columns="class")


def drop_last_row(table):
    return table.iloc[:-1]


def drop_wavelength(table):
    return table.drop(columns="nm400")


def rename_wavelength(table):
    return table.rename(columns={"nm402": "reflectance"})


def put(value):
    def change(table):
        table = table.astype({"nm404": object})
        table.loc[7, "nm404"] = value
        return table

    return change


def relabel_first(table):
    table.loc[0, "class"] = "Horse"
    return table


def label_by_sample(table):
    return table.assign(**{"class": [f"sample{i}" for i in range(len(table))]})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_label_column, r"Expected a column 'class' .*got 1050 columns: 'nm400', .*\.\.\."),
        (drop_last_row, r"Expected 231 spectra of 1050 wavelengths .*shape \(230, 1050\)"),
        (drop_wavelength, r"Expected 231 spectra of 1050 wavelengths .*shape \(231, 1049\)"),
        (rename_wavelength, r"Expected the columns nm400, .*got also 'reflectance' \(1 unknown"),
        (put("wet"), "Expected finite numbers .*got 'wet' in data row 7 .*column 'nm404'"),
        (put(""), "Expected finite numbers .*got '' in data row 7 .*column 'nm404'"),
        (put("NaN"), "Expected finite numbers .*in data row 7 .*column 'nm404'"),
        (put("inf"), "Expected finite numbers .*in data row 7 .*column 'nm404'"),
        (relabel_first, "Expected the classes {'Chicken': 55, .*got .*'Chicken': 54.*'Horse': 1"),
        (label_by_sample, "Expected the classes {'Chicken': 55, .*got .*'sample0': 1"),
    ],
)
def test_a_damaged_csv_is_one_error_that_names_the_file_and_the_damage(damage, message, tmp_path):
    table = made_table(MEAT_CLASSES)
    damage(table).to_csv(tmp_path / "meat.csv", index=False)
    with pytest.raises(ValueError, match=message) as caught:
        load_meat(tmp_path)
    assert str(tmp_path / "meat.csv") in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expected a csv table"),
        (b"nm400,class\n1,Beef\n1,Beef,3,4\n", "Expected a csv table"),
        (b"\xff\xfe\x00\x80,class\n", "Expected a csv table"),
        (b"class\n", r"Expected 231 spectra .*shape \(0, 0\)"),
        (b"nm400,class\n", r"Expected 231 spectra .*shape \(0, 1\)"),
    ],
)
def test_a_file_that_is_no_spectra_table_is_a_value_error(content, message, tmp_path):
    (tmp_path / "meat.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_meat(tmp_path)


def test_a_csv_cut_off_in_a_row_is_a_value_error(tmp_path):
    write_csv(tmp_path, "meat.csv", MEAT_CLASSES)
    whole = (tmp_path / "meat.csv").read_bytes()
    (tmp_path / "meat.csv").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"Expected .*meat\.csv"):
        load_meat(tmp_path)


@pytest.mark.parametrize("n_kept", [0, 1, 10, 1000, 100_000])
def test_an_rdata_file_cut_off_is_a_value_error_that_names_it(n_kept, tmp_path):
    write_meat_rdata(tmp_path, *made_spectra(MEAT_CLASSES))
    whole = (tmp_path / "Meat.RData").read_bytes()
    assert n_kept < len(whole)
    (tmp_path / "Meat.RData").write_bytes(whole[:n_kept])
    with pytest.raises(ValueError, match=r"Expected R data in .*Meat\.RData; .*fetch it again"):
        load_meat(tmp_path)


def test_a_web_page_saved_as_rdata_is_a_value_error(tmp_path):
    (tmp_path / "oliveoils.RData").write_text("<html>Not found</html>")
    with pytest.raises(ValueError, match=r"Expected R data in .*oliveoils\.RData"):
        load_greek_olive_oil(tmp_path)


@pytest.mark.parametrize(
    "objects",
    [{"other": np.arange(3)}, {"Meat": np.arange(3.0)}, {"Meat": {"x": np.arange(3.0)}}],
)
def test_rdata_with_other_objects_is_a_value_error(objects, tmp_path):
    rdata.write_rda(tmp_path / "Meat.RData", objects)
    with pytest.raises(ValueError, match="Expected a list Meat with the matrix x and the labels y"):
        load_meat(tmp_path)


def test_an_rds_file_under_the_name_of_rdata_is_a_value_error(tmp_path):
    rdata.write_rds(tmp_path / "Meat.RData", np.arange(3.0))
    with pytest.raises(ValueError, match=r"Meat\.RData; got ndarray"):
        load_meat(tmp_path)


def test_rdata_of_the_wrong_shape_cells_or_classes_is_a_value_error(tmp_path):
    values, labels = made_spectra(OIL_CLASSES)
    labels = np.where(labels == "Peloponnese", "Peloponese", labels)
    write_oil_rdata(tmp_path, values[:, :-1], labels)
    with pytest.raises(ValueError, match=r"Expected 65 spectra .*shape \(65, 1049\)"):
        load_greek_olive_oil(tmp_path)
    write_oil_rdata(tmp_path, values, labels[:-1])
    with pytest.raises(ValueError, match=r"Expected the classes .*'Other': 18"):
        load_greek_olive_oil(tmp_path)
    values[3, 5] = np.nan
    write_oil_rdata(tmp_path, values, labels)
    with pytest.raises(ValueError, match=r"Expected finite numbers .*row 3 .*column 'nm410'"):
        load_greek_olive_oil(tmp_path)


@pytest.mark.parametrize(
    ("load", "name", "sizes", "phrases"),
    [
        (load_meat, "meat.csv", MEAT_CLASSES, ["60 training and 171 test", "70 and 161"]),
        (load_greek_olive_oil, "greek_olive_oil.csv", OIL_CLASSES, ["18, 28 and 19", "1e7"]),
    ],
)
def test_the_spectra_describe_where_the_paper_differs(load, name, sizes, phrases, tmp_path):
    write_csv(tmp_path, name, sizes)
    description = words(load(tmp_path).DESCR)
    for phrase in [*phrases, "400-2098", "400-2498", "F=1050", f"N={sum(sizes.values())}"]:
        assert phrase in description


# --- the spectra: the real files, where the user has them ----------------------------------------


@pytest.fixture
def spectra_folder():
    return Path(os.environ["NEARFIELD_DATA"])


@needs_spectra
def test_the_real_meat_spectra_are_the_published_ones(spectra_folder):
    bunch = load_meat()
    assert bunch.data.shape == (231, 1050)
    assert class_sizes(bunch) == MEAT_CLASSES
    assert bunch.data[0, 0] == pytest.approx(1.0454071, abs=1e-7)
    assert bunch.target_names[bunch.target[0]] == "Chicken"


@needs_spectra
def test_the_real_greek_olive_oil_spectra_are_the_published_ones(spectra_folder):
    bunch = load_greek_olive_oil()
    assert bunch.data.shape == (65, 1050)
    assert class_sizes(bunch) == OIL_CLASSES
    assert bunch.data[0, 0] == pytest.approx(0.5593839, abs=1e-7)


@needs_spectra
@pytest.mark.parametrize(
    ("load", "csv_name", "rdata_name"),
    [
        (load_meat, "meat.csv", "Meat.RData"),
        (load_greek_olive_oil, "greek_olive_oil.csv", "oliveoils.RData"),
    ],
)
def test_the_real_csv_and_rdata_agree(load, csv_name, rdata_name, spectra_folder, tmp_path):
    if not all((spectra_folder / name).is_file() for name in (csv_name, rdata_name)):
        pytest.skip("the folder holds one form only")
    bunches = []
    for name in (csv_name, rdata_name):
        alone = tmp_path / name.replace(".", "_")
        alone.mkdir()
        shutil.copy(spectra_folder / name, alone / name)
        bunches.append(load(alone))
    from_csv, from_r = bunches
    np.testing.assert_allclose(from_csv.data, from_r.data, rtol=1e-12)
    np.testing.assert_array_equal(from_csv.target, from_r.target)
    np.testing.assert_array_equal(from_csv.target_names, from_r.target_names)
    assert from_csv.feature_names == from_r.feature_names


# --- splits --------------------------------------------------------------------------------------


def test_the_meat_table_splits_into_70_and_161():
    names = np.repeat(list(MEAT_CLASSES), list(MEAT_CLASSES.values()))
    train, test = stratified_split(names, MEAT_TRAINING_COUNTS, random_state=1)
    assert (len(train), len(test)) == (70, 161)
    for name, n_test in {"Chicken": 40, "Turkey": 35, "Pork": 42, "Beef": 21, "Lamb": 23}.items():
        assert np.sum(names[train] == name) == MEAT_TRAINING_COUNTS[name]
        assert np.sum(names[test] == name) == n_test


def test_the_meat_table_is_keyed_by_the_target_names_and_read_only(tmp_path):
    write_csv(tmp_path, "meat.csv", MEAT_CLASSES)
    meat = load_meat(tmp_path, as_frame=True)
    assert list(MEAT_TRAINING_COUNTS) == meat.target_names.tolist()
    train, _ = stratified_split(meat.target_names[meat.target], MEAT_TRAINING_COUNTS)
    assert np.bincount(meat.target[train]).tolist() == [15, 20, 13, 11, 11]
    with pytest.raises(TypeError):
        MEAT_TRAINING_COUNTS["Beef"] = 0


@pytest.mark.parametrize(
    ("sizes", "train_size", "counts"),
    [
        ((50, 50, 50), 0.25, (13, 13, 12)),  # 37.5 points, halves up
        ((18, 28, 19), 25, (7, 11, 7)),  # shares 6.92, 10.77, 7.31
        ((355, 177), 200, (133, 67)),
        ((98, 1, 1), 10, (8, 1, 1)),  # each class has a training point
        ((98, 1, 1), 3, (1, 1, 1)),
        ((98, 1, 1), 2, (2, 0, 0)),  # fewer points than classes
        ((90, 5, 5), 97, (89, 4, 4)),  # each class has a test point
        ((90, 5, 5), 98, (88, 5, 5)),  # two test points for three classes
        ((1, 1), 1, (1, 0)),
        ((5,), 2, (2,)),
    ],
)
def test_counts_follow_the_largest_remainder_within_the_bounds(sizes, train_size, counts):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    train, _ = stratified_split(labels, train_size, random_state=0)
    assert tuple(np.bincount(labels[train], minlength=len(sizes))) == counts


@given(
    labels=st.lists(st.sampled_from("abcde"), min_size=2, max_size=60),
    fraction=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32),
)
def test_every_split_is_a_partition_exact_in_total_and_close_to_proportion(labels, fraction, seed):
    labels = np.array(labels)
    n_points = len(labels)
    n_train = 1 + int(fraction * (n_points - 2))
    train, test = stratified_split(labels, n_train, random_state=seed)
    assert len(train) == n_train
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n_points))
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()

    classes, sizes = np.unique(labels, return_counts=True)
    train_counts = np.array([np.sum(labels[train] == name) for name in classes])
    if n_train >= len(classes):
        assert (train_counts >= 1).all()
        if n_points - n_train >= np.sum(sizes > 1):
            assert (train_counts[sizes > 1] < sizes[sizes > 1]).all()
    # Where the plain largest remainder respects the bounds, it is the answer.
    shares = n_train * sizes / n_points
    if (shares >= 1).all() and (sizes - shares >= 1).all():
        assert (np.abs(train_counts - shares) < 1).all()

    again, _ = stratified_split(labels, n_train, random_state=seed)
    np.testing.assert_array_equal(train, again)


@given(data=st.data(), labels=st.lists(st.integers(-3, 3), min_size=2, max_size=40))
def test_a_mapping_is_followed_to_the_letter(data, labels):
    counts = {g: data.draw(st.integers(0, labels.count(g))) for g in set(labels)}
    train, test = stratified_split(labels, counts, random_state=0)
    chosen = np.array(labels)[train]
    assert {g: int(np.sum(chosen == g)) for g in counts} == counts
    assert len(train) + len(test) == len(labels)


def test_every_point_of_a_class_is_equally_likely_to_train():
    labels = np.repeat([0, 1], [10, 30])
    rng = np.random.default_rng(5)
    n_splits = 2000
    n_times = np.zeros(40)
    for _ in range(n_splits):
        train, _ = stratified_split(labels, 8, random_state=rng)
        n_times[train] += 1
    standard_error = np.sqrt(n_splits * 0.2 * 0.8)
    assert np.abs(n_times - 0.2 * n_splits).max() < 5 * standard_error


def test_kinds_of_labels_and_order_of_names_do_not_change_the_split():
    codes = np.repeat([0, 1, 2], [8, 12, 20])
    expected, _ = stratified_split(codes, 10, random_state=3)
    names = np.array(["a", "b", "c"])[codes]
    for labels in (codes.tolist(), names, names.tolist(), pd.Series(names), pd.Categorical(names)):
        train, _ = stratified_split(labels, 10, random_state=3)
        np.testing.assert_array_equal(train, expected)
    for counts in ({"c": 5, "b": 3, "a": 2}, {"a": np.int64(2), "b": 3, "c": 5}):
        train, _ = stratified_split(names, counts, random_state=3)
        np.testing.assert_array_equal(train, expected)


def test_random_states_of_every_kind_fix_the_split_and_generators_move_on():
    labels = np.repeat([0, 1], 50)

    def train(random_state):
        return stratified_split(labels, 30, random_state=random_state)[0].tolist()

    assert train(7) == train(7) == train(np.random.default_rng(7))
    assert train(7) != train(8)
    for make in (np.random.default_rng, np.random.RandomState):
        rng = make(7)
        first_split, second_split = train(rng), train(rng)
        assert first_split == train(make(7))
        assert first_split != second_split
    assert len(train(None)) == 30


@pytest.mark.parametrize("random_state", ["seed", -1, 1.5])
def test_a_bad_random_state_is_a_value_error(random_state):
    with pytest.raises(ValueError, match="Expected random_state to be"):
        stratified_split([0, 1], 1, random_state=random_state)


@pytest.mark.parametrize(
    ("train_size", "message"),
    [
        (0, r"1 <= training points <= N - 1; got train_size=0, which is 0 of N=4"),
        (4, r"1 <= training points <= N - 1; got train_size=4, which is 4 of N=4"),
        (-1, "1 <= training points <= N - 1; got train_size=-1"),
        (0.0, r"0 < train_size < 1 for a fraction; got train_size=0\.0"),
        (1.0, r"0 < train_size < 1 for a fraction; got train_size=1\.0"),
        (2.5, r"0 < train_size < 1 for a fraction; got train_size=2\.5"),
        (float("nan"), "0 < train_size < 1 for a fraction; got train_size=nan"),
        (0.01, r"got train_size=0\.01, which is 0 of N=4"),
        (0.99, r"got train_size=0\.99, which is 4 of N=4"),
        (True, "Expected train_size to be an int, a float .*got True"),
        ("half", "Expected train_size to be an int, a float .*got 'half'"),
        (None, "Expected train_size to be an int, a float .*got None"),
    ],
)
def test_a_bad_size_is_an_error_with_the_inequality_and_the_values(train_size, message):
    with pytest.raises(ValueError, match=message):
        stratified_split([0, 0, 1, 1], train_size)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            {"a": 1},
            r"one training count for each of the classes \['a', 'b'\]; got none for \['b'\]",
        ),
        ({"a": 1, "b": 1, "c": 1}, r"counts for the unknown \['c'\]"),
        ({0: 1, 1: 1}, r"got none for \['a', 'b'\], and counts for the unknown \[0, 1\]"),
        ({}, r"got none for \['a', 'b'\]"),
        ({"a": 3, "b": 1}, "0 <= count <= class size; got count=3 for class 'a' of size 2"),
        ({"a": 1, "b": -1}, "0 <= count <= class size; got count=-1 for class 'b' of size 2"),
        ({"a": 1.0, "b": 1}, r"an integer .*got count=1\.0 for class 'a'"),
        ({"a": True, "b": 1}, "an integer .*got count=True for class 'a'"),
    ],
)
def test_a_bad_mapping_is_an_error_that_names_the_class(counts, message):
    with pytest.raises(ValueError, match=message):
        stratified_split(["a", "a", "b", "b"], counts)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], r"shape \(N,\) with N >= 2; got shape \(0,\)"),
        ([1], r"got shape \(1,\)"),
        ([[0], [1]], r"got shape \(2, 1\)"),
        (["a", None, "b"], "got 1 missing, the first at index 1"),
        (["a", "b", float("nan")], "got 1 missing, the first at index 2"),
        ([np.nan, 1.0, np.nan], "got 2 missing, the first at index 0"),
    ],
)
def test_bad_labels_are_a_clear_error(labels, message):
    with pytest.raises(ValueError, match=message):
        stratified_split(labels, 1)
