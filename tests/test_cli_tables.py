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

from nearfield.cli._columns import prediction_data, training_data
from nearfield.cli._compression import compress, decompress
from nearfield.cli._tables import read_table, write_table

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
    pd.testing.assert_frame_equal(read_table(write(content, name)), expected_table())


def test_parquet_is_read(tmp_path):
    frame = expected_table()
    frame.to_parquet(tmp_path / "data.parquet")
    pd.testing.assert_frame_equal(read_table(str(tmp_path / "data.parquet")), frame)


def test_standard_input_is_read(monkeypatch):
    stdin = types.SimpleNamespace(buffer=io.BytesIO(gzip.compress(CSV.encode(), mtime=0)))
    monkeypatch.setattr(sys, "stdin", stdin)
    pd.testing.assert_frame_equal(read_table("-"), expected_table())


@pytest.mark.parametrize(
    "name", ["p.csv", "p.tsv", "p.parquet", "p.csv.gz", "p.tsv.bz2", "p.csv.xz", "p.parquet.gz"]
)
def test_what_is_written_is_read_again(write, name):
    frame = iris_table(9)
    content = write_table(frame, name)
    assert content == write_table(frame, name)  # no time of writing inside
    pd.testing.assert_frame_equal(read_table(write(content, name)), frame)
    if name == "p.tsv":
        assert b"\t" in content


def test_zstandard_is_used_if_it_is_installed(monkeypatch):
    class Compressor:
        def compress(self, content):
            return b"\x28\xb5\x2f\xfd" + content

    class Decompressor:
        def decompressobj(self):
            return types.SimpleNamespace(decompress=lambda content: content[4:])

    fake = types.SimpleNamespace(ZstdCompressor=Compressor, ZstdDecompressor=Decompressor)
    monkeypatch.setitem(sys.modules, "zstandard", fake)
    packed = compress(b"content", "p.csv.zst")
    assert packed != b"content"
    assert decompress(packed, "p.csv.zst") == b"content"


@pytest.mark.parametrize(
    ("module", "name"), [("zstandard", "p.csv.zst"), ("pyarrow.parquet", "p.parquet")]
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
        ("1.5,2,0\n3,4,1\n", "first row holds numbers only"),
        ("5\n6\n", "first row holds numbers only"),
        (",length,species\n1,2,a\n", "column 1 has none"),
        ("a,b,a\n1,2,3\n", "a comes more than once"),
        ("a,b\n1,2,3\n4,5,6\n", "rows as long as the header"),
        ("a,b\n1,2\n4,5,6\n", "rows as long as the header"),
        (b"\xff\xfe\x00\x01rubbish", "UTF-8"),
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
    return training_data(
        frame, "species", options.pop("ignored", []), **{"one_hot": False} | options
    )


def test_numbers_become_features_in_their_order():
    frame = iris_table(6).assign(is_large=[True, False] * 3, count=pd.array([1] * 6, "Int64"))
    training = train(frame, ignored=["sepal_width"])
    assert list(training.features.columns) == [
        *("sepal_length", "petal_length", "petal_width", "is_large", "count")
    ]
    assert (training.features.dtypes == np.float64).all()
    assert training.target.tolist() == frame["species"].tolist()
    assert training.text_columns == []


@pytest.mark.parametrize(
    ("column", "target"),
    [([1, 2] * 3, [1, 2] * 3), ([True, False] * 3, [True, False] * 3), (["1", "b"] * 3, None)],
)
def test_classes_keep_their_kind(column, target):
    frame = iris_table(6).assign(species=column)
    assert train(frame).target.tolist() == (target or column)


def test_missing_values_are_named_by_row_and_column():
    frame = iris_table(30)
    frame.loc[4, "sepal_width"] = np.nan
    frame.loc[9, "species"] = None
    with pytest.raises(ValueError, match="row 5, column 'sepal_width'; row 10, column 'species' "):
        train(frame)
    frame.loc[:, "petal_width"] = np.nan
    with pytest.raises(ValueError, match="; and 27 more"):
        train(frame)


def test_infinite_values_are_named_by_row_and_column():
    frame = iris_table(6)
    frame.loc[2, "petal_width"] = -np.inf
    with pytest.raises(ValueError, match="infinite in row 3, column 'petal_width'"):
        train(frame)


def test_text_is_refused_unless_it_is_to_be_encoded():
    frame = iris_table(6).assign(colour=["red", "blue", "red"] * 2, place=list("abcabc"))
    with pytest.raises(ValueError, match=r"'colour' \(and 1 more .*row 1 holds 'red'.*--one-hot"):
        train(frame)
    training = train(frame, one_hot=True)
    assert training.text_columns == ["colour", "place"]
    assert training.features["colour"].tolist() == ["red", "blue", "red"] * 2


def test_the_first_value_that_is_no_number_is_shown():
    frame = iris_table(6).assign(petal_width=["1", "2", "?", "3", "4", "5"])
    with pytest.raises(ValueError, match=r"row 3 holds '\?'"):
        train(frame)


def test_dates_are_no_numbers():
    frame = iris_table(6).assign(day=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="Expected numbers in column 'day'"):
        train(frame)


def test_a_column_that_is_not_there_is_named_beside_those_that_are():
    with pytest.raises(ValueError, match="a column 'kind'; the columns are 'sepal_length'"):
        training_data(iris_table(6), "kind", [], one_hot=False)
    with pytest.raises(ValueError, match="a column 'id'"):
        train(iris_table(6), ignored=["id"])


def test_a_table_of_nothing_but_the_target_is_refused():
    with pytest.raises(ValueError, match="at least one column besides"):
        train(iris_table(6)[["species"]])


def test_prediction_takes_the_columns_of_the_model_in_its_order():
    frame = iris_table(6)
    features = prediction_data(frame, ["petal_width", "sepal_length"], {})
    pd.testing.assert_frame_equal(features, frame[["petal_width", "sepal_length"]])


def test_prediction_refuses_what_the_model_does_not_know():
    frame = iris_table(6).assign(colour=list("aabbcc"))
    with pytest.raises(ValueError, match=r"\(a, b\); row 5 holds 'c'"):
        prediction_data(frame, ["colour"], {"colour": ["a", "b"]})
    with pytest.raises(ValueError, match="numbers in column 'colour'"):
        prediction_data(frame, ["colour"], {})
