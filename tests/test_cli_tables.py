import bz2
import gzip
import io
import lzma
import sys
import types

import numpy as np
import pandas as pd
import pytest
from cli_files import iris_table

from nearfield.cli._columns import Roles, prediction_data, training_data
from nearfield.cli._compression import compress, decompress
from nearfield.cli._tables import MAX_BYTES, read_table
from nearfield.cli._writing import write_table

CSV = "length,width,species\n1.5,2,a\n3,4.25,b\n"


@pytest.fixture
def write(tmp_path):
    def make(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return make


def expected_table():
    return pd.DataFrame({"length": [1.5, 3.0], "width": [2.0, 4.25], "species": ["a", "b"]})


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (CSV, "data.csv"),
        (CSV.replace(",", "\t"), "data.tsv"),
        (CSV.replace(",", ";"), "data.csv"),
        (CSV.replace(",", ", "), "data.txt"),
        ("\ufeff" + CSV.replace("\n", "\r\n"), "excel.csv"),
        ('"length","width","species"\n1.5,2,"a"\n3,4.25,"b"\n', "quoted.csv"),
        (gzip.compress(CSV.encode(), mtime=0), "data.csv.gz"),
        (bz2.compress(CSV.encode()), "data.csv.bz2"),
        (lzma.compress(CSV.encode()), "data.csv.xz"),
        (gzip.compress(CSV.encode(), mtime=0), "misnamed.csv"),
    ],
)
def test_tables_of_all_kinds_are_read_alike(write, content, name):
    pd.testing.assert_frame_equal(
        read_table(write(content, name)).reset_index(drop=True), expected_table()
    )


def test_parquet_is_read(tmp_path):
    frame = expected_table()
    frame.to_parquet(tmp_path / "data.parquet")
    pd.testing.assert_frame_equal(
        read_table(str(tmp_path / "data.parquet")).reset_index(drop=True), frame
    )


def test_parquet_whose_notes_about_columns_are_damaged_is_refused(write):
    buffer = io.BytesIO()
    iris_table(5).to_parquet(buffer, index=False)
    damaged = buffer.getvalue().replace(b"pandas_type", b"pandas_tope")
    with pytest.raises(ValueError, match="damaged"):
        read_table(write(damaged, "data.parquet"))


def test_standard_input_is_read(monkeypatch):
    stdin = types.SimpleNamespace(buffer=io.BytesIO(gzip.compress(CSV.encode(), mtime=0)))
    monkeypatch.setattr(sys, "stdin", stdin)
    pd.testing.assert_frame_equal(read_table("-").reset_index(drop=True), expected_table())


@pytest.mark.parametrize(
    "name",
    [
        *("p.csv", "p.tsv", "p.parquet", "p.csv.gz", "p.tsv.bz2", "p.csv.xz", "p.parquet.gz"),
        *("p.xlsx", "p.ods"),
    ],
)
def test_what_is_written_is_read_again(write, name):
    frame = iris_table(9)
    content = write_table(frame, name)
    if not name.endswith((".xlsx", ".ods")):  # which hold the time of writing
        assert content == write_table(frame, name)
    pd.testing.assert_frame_equal(read_table(write(content, name)).reset_index(drop=True), frame)
    if name == "p.tsv":
        assert b"\t" in content


def test_zstandard_is_used_if_it_is_installed(monkeypatch):
    class Compressor:
        def compress(self, content):
            return b"\x28\xb5\x2f\xfd" + content

    class Decompressor:
        def stream_reader(self, file, read_across_frames):
            file.read(4)
            return file

    fake = types.SimpleNamespace(ZstdCompressor=Compressor, ZstdDecompressor=Decompressor)
    monkeypatch.setitem(sys.modules, "zstandard", fake)
    packed = compress(b"content", "p.csv.zst")
    assert packed != b"content"
    assert decompress(packed, "p.csv.zst", MAX_BYTES) == b"content"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("zstandard", "p.csv.zst"),
        ("pyarrow.parquet", "p.parquet"),
        ("openpyxl", "p.xlsx"),
        ("odf", "p.ods"),
    ],
)
def test_a_missing_library_is_named(monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="not installed"):
        write_table(iris_table(3), name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("\n  \n", "it is empty"),
        ("length,width,species\n", "at least one row"),
        ("1.5,1.5,0\n3,4,1\n", "first row holds numbers"),
        ("a,b,a\n1,2,3\n", "'a' comes more than once"),
        ("a,b\n1,2\n4,5,6\n", "as long as the header .* line 3 has 3"),
        ("a,b\n1,2,3,4\n4,5,6,7\n", "rows of 4 columns below"),
        (b"\xff\xfe\x00\xd8rubbish!", "text in UTF-16"),
        (b"a,b\n1,\x002\n", r"code 0\) is not text"),
        ('a,b\n1,"2\n3,4\n', "quotation mark"),
        (b"\xd0\xcf\x11\xe0" + bytes(99), r"old Excel file \(.xls\)"),
        (gzip.compress(CSV.encode(), mtime=0)[:-12], "damaged"),
        (bz2.compress(CSV.encode())[:-5], "damaged|rows|header|empty"),
        (lzma.compress(CSV.encode())[:-12], "damaged"),
        (b"PAR1 this is no Parquet PAR1", "whole Parquet file"),
    ],
)
def test_bad_files_are_refused(write, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(content))


def train(frame, **options):
    return training_data(frame, Roles("species", **options))


def test_numbers_become_features_in_their_order():
    frame = iris_table(6).assign(is_large=[True, False] * 3, count=pd.array([1] * 6, "Int64"))
    training = train(frame, ignored=["sepal_width"])
    assert list(training.features.columns) == [
        *("sepal_length", "petal_length", "petal_width", "is_large", "count")
    ]
    assert (training.features.dtypes == np.float64).all()
    assert training.target.tolist() == frame["species"].tolist()


@pytest.mark.parametrize(
    ("column", "target"),
    [([1, 2] * 3, [1, 2] * 3), ([True, False] * 3, [True, False] * 3), (["1", "b"] * 3, None)],
)
def test_classes_keep_their_kind(column, target):
    frame = iris_table(6).assign(species=column)
    assert train(frame).target.tolist() == (target or column)


def test_infinite_values_are_named_by_row_and_column():
    frame = iris_table(6)
    frame.loc[2, "petal_width"] = -np.inf
    with pytest.raises(ValueError, match="infinite in row 2, column 'petal_width'"):
        train(frame)
    frame["petal_length"] = np.inf
    with pytest.raises(ValueError, match="; and 2 more"):
        train(frame)


def test_text_and_numbers_that_are_categories_become_text():
    frame = iris_table(6).assign(colour=["red", None, "red "] * 2, ward=[1.0, 2.0, np.nan] * 2)
    features = train(frame, categorical=["ward"]).features
    plain = features.astype(object).where(features.notna(), None)
    assert plain["colour"].tolist() == ["red", None, "red"] * 2
    assert plain["ward"].tolist() == ["1", "2", None] * 2


def test_the_first_value_that_is_no_number_is_shown():
    frame = iris_table(6).assign(petal_width=["1", "2", "?", "3", "4", "5"])
    with pytest.raises(ValueError, match=r"1 of 6 rows .*row 2 holds '\?'"):
        train(frame)


def test_dates_are_no_numbers():
    frame = iris_table(6).assign(day=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="text of few values, in column 'day'"):
        train(frame)


def test_a_column_that_is_not_there_is_named_beside_those_that_are():
    with pytest.raises(ValueError, match="a column 'kind'; the columns are 'sepal_length'"):
        training_data(iris_table(6), Roles("kind"))
    with pytest.raises(ValueError, match="a column 'id'"):
        train(iris_table(6), ignored=["id"])


def test_a_table_of_nothing_but_the_target_is_refused():
    with pytest.raises(ValueError, match="at least one column of features besides"):
        train(iris_table(6)[["species"]])


def test_prediction_takes_the_columns_of_the_model_in_its_order():
    frame = iris_table(6)
    columns = {"petal_width": "number", "sepal_length": "number"}
    features = prediction_data(frame, columns, {})
    pd.testing.assert_frame_equal(features, frame[["petal_width", "sepal_length"]])


def test_prediction_points_out_new_categories_and_refuses_text_for_numbers(capsys):
    frame = iris_table(6).assign(colour=list("aabbcc"))
    prediction_data(frame, {"colour": "category"}, {"colour": ["a", "b"]})
    assert "column 'colour' holds values that the model was not fitted to in 2 rows (c)" in (
        capsys.readouterr().err
    )
    with pytest.raises(ValueError, match=r"numbers, as in the data .* in column 'colour'"):
        prediction_data(frame, {"colour": "number"}, {})
