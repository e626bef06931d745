"""The command where the system is not at its best: pipes, devices, signals, small terminals."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
from cli_files import error_of, iris_table, run
from ctrl_c import listen_to_ctrl_c
from openpyxl import load_workbook

COMMAND = Path(sys.executable).with_name("nearfield")
KNN = ("--model", "knn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and a model of it."""
    path = tmp_path_factory.mktemp("system")
    iris_table().to_csv(path / "iris.csv", index=False)
    fit = run("fit", path / "iris.csv", "-t", "species", "-o", path / "m", *KNN)
    assert fit.exit_code == 0, fit.output
    return path


def start(*arguments, **options):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)], preexec_fn=listen_to_ctrl_c, **pipes | options
    )


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, 130, b"Interrupted.\n"), (signal.SIGTERM, 143, b"Terminated.\n")],
)
def test_a_signal_ends_the_command_cleanly(tmp_path, number, code, words):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start("fit", fifo, "-t", "y", "-o", tmp_path / "m", *KNN)
    with fifo.open("wb") as pipe:
        pipe.write(b"a,y\n" * 2**16)  # more than a pipe holds: returns once it is being read
        pipe.flush()
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout, stderr) == (code, b"", words)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_a_named_pipe_is_read_like_a_file(folder, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    content = (folder / "iris.csv").read_bytes()
    writer = threading.Thread(target=fifo.write_bytes, args=(content,))
    writer.start()
    through_pipe = run("predict", folder / "m", fifo)
    writer.join()
    assert through_pipe.stdout == run("predict", folder / "m", folder / "iris.csv").stdout


@pytest.mark.parametrize("arguments", [("predict", "m", "long.csv"), ("fit", "--help")])
def test_a_reader_that_has_seen_enough_hears_no_complaint(folder, arguments):
    iris_table(150).loc[lambda f: f.index.repeat(30)].to_csv(folder / "long.csv", index=False)
    process = start(*arguments, cwd=folder)
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    process.wait(120)
    assert b"Traceback" not in stderr
    assert b"Exception" not in stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "m", "iris.csv", "--out", "/dev/full"),
        ("fit", "iris.csv", "-t", "species", "--out", "/dev/full", *KNN),
    ],
)
def test_a_full_device_is_an_error_of_one_line(folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    assert error_of(run(*arguments)) == "/dev/full: No space left on device."


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that takes no file")
def test_a_folder_that_takes_no_file_is_named(folder):
    result = run("predict", folder / "m", folder / "iris.csv", "--out", "/proc/p.csv")
    assert error_of(result).startswith("/proc/p.csv: ")


def test_a_closed_standard_output_is_an_error_of_one_line(folder):
    command = f"'{COMMAND}' predict m iris.csv >&-"
    result = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii", "COLUMNS": "20"},
    ],
)
def test_predictions_do_not_depend_on_locale_or_terminal(tmp_path, environment):
    table = iris_table().replace({"species": {"setosa": "seto\u0161a"}})
    table.to_csv(tmp_path / "iris.csv", index=False)
    fit = run("fit", tmp_path / "iris.csv", "-t", "species", "-o", tmp_path / "m", *KNN)
    assert fit.exit_code == 0, fit.output
    process = start("predict", "m", "iris.csv", cwd=tmp_path, env=os.environ | environment)
    stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stderr) == (0, b"")
    assert "seto\u0161a" in stdout.decode()


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_progress_is_shown_where_a_person_watches(folder, term):
    watched, theirs = pty.openpty()
    environment = os.environ | {"TERM": term, "COLUMNS": "60"}
    process = start("predict", "m", "iris.csv", cwd=folder, stderr=theirs, env=environment)
    os.close(theirs)
    stdout, _ = process.communicate(timeout=120)
    shown = b""
    with open(watched, "rb", buffering=0) as terminal:
        try:
            while part := terminal.read(4096):
                shown += part
        except OSError:  # the other end is closed
            pass
    assert process.returncode == 0
    assert stdout.startswith(b"row,class")  # and none of it there
    assert b"Traceback" not in shown
    if term == "xterm":
        assert b"Predicting 45 rows" in shown
    else:
        assert b"\x1b[" not in shown


def test_tables_for_people_fit_a_narrow_terminal(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("nearfield.cli.evaluate._peers", lambda *_, **__: {})
    result = run("evaluate", folder / "iris.csv", "-t", "species", "--folds", 2, *KNN)
    lines = result.stdout.splitlines()
    assert "knn" in lines
    assert any(line.startswith("  log loss: ") for line in lines)


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_an_input_is_never_overwritten(folder, tmp_path, command):
    data, link = tmp_path / "iris.csv", tmp_path / "link.csv"
    content = (folder / "iris.csv").read_bytes()
    data.write_bytes(content)
    link.symlink_to(data)
    first = ("fit", "-t", "species", *KNN) if command == "fit" else ("predict", folder / "m")
    for out in (data, link):
        assert "which is read" in error_of(run(*first, data, "--out", out))
    assert data.read_bytes() == content
    assert run(*first, data, "--out", data, "--force").exit_code == 0
    assert data.read_bytes() != content


@pytest.mark.parametrize("name", ["notes.txt", "other.csv", "book.xlsx", "photo"])
def test_a_file_of_another_kind_is_never_overwritten(folder, tmp_path, name):
    out = tmp_path / name
    out.write_bytes(b"a,b\n1,2\n" if name != "photo" else b"\xff\xd8\xff")
    content = out.read_bytes()
    fit = ("fit", folder / "iris.csv", "-t", "species", "--out", out, *KNN)
    predict = ("predict", folder / "m", folder / "iris.csv", "--out", out)
    for arguments, kind in ((fit, "a model"), (predict, "predictions")):
        assert f"Expected {kind}, or no file yet, at '{out}'" in error_of(run(*arguments))
        assert out.read_bytes() == content
        assert run(*arguments, "--force").exit_code == 0
        out.write_bytes(content)


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.xlsx", "p.parquet"])
def test_models_and_predictions_replace_their_own_kind(folder, tmp_path, name):
    for _ in range(2):
        out = ("--out", tmp_path / "m")
        assert run("fit", folder / "iris.csv", "-t", "species", *out, *KNN).exit_code == 0
        out = ("--out", tmp_path / name)
        assert run("predict", tmp_path / "m", folder / "iris.csv", *out).exit_code == 0


def test_a_name_that_promises_another_format_is_refused(folder, tmp_path):
    for name in ("p.xls", "p.json", "p.xls.gz"):
        result = run("predict", folder / "m", folder / "iris.csv", "--out", tmp_path / name)
        assert "Expected a name that ends in .csv" in error_of(result)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate"])
def test_what_unpacks_to_more_than_the_limit_is_refused(folder, tmp_path, command):
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"a,species\n" + b"1,x\n" * 10**6))
    arguments = {
        "fit": ("fit", bomb, "-t", "species", "-o", tmp_path / "m"),
        "predict": ("predict", folder / "m", bomb),
        "evaluate": ("evaluate", bomb, "-t", "species"),
    }[command]
    message = error_of(run(*arguments, "--max-size", "0.001"))
    assert "at most 0.001 GB" in message
    assert "--max-size" in message


@pytest.mark.parametrize("name", ["wide.xlsx", "wide.ods", "wide.parquet"])
def test_workbooks_and_parquet_have_the_limit_too(tmp_path, name):
    from nearfield.cli._tables import read_table
    from nearfield.cli._writing import write_table

    path = tmp_path / name
    path.write_bytes(write_table(pd.DataFrame({"a": [1.0] * 2000, "b": [2.0] * 2000}), name))
    assert len(read_table(str(path))) == 2000
    assert path.stat().st_size < 31_000
    with pytest.raises(ValueError, match="--max-size"):
        read_table(str(path), max_bytes=31_000)


def test_text_that_a_spreadsheet_would_run_is_disarmed(folder, tmp_path):
    table = iris_table()
    ids = ["=1+1", "+1", "-x", "@SUM(A1)", "-", "a=b", *map(str, range(39))]
    table.assign(sample=ids, number=-1.5).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("predict", folder / "m", tmp_path / "new.csv", "--id", "sample")
    written = run(*arguments, "--keep", "number").stdout.splitlines()
    assert [line.split(",")[0] for line in written[1:8]] == [
        *("'=1+1", "'+1", "'-x", "'@SUM(A1)", "-", "a=b", "0")
    ]
    assert written[1].split(",")[1] == "-1.5"
    run(*arguments, "--out", tmp_path / "p.xlsx")
    cell = load_workbook(tmp_path / "p.xlsx").active["A2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")


def test_doubtful_rows_are_named(folder, tmp_path):
    iris_table(150).to_csv(tmp_path / "new.csv", index=False)
    model = ("--model", "dnn1", "--inference", "pseudolikelihood")
    run("fit", folder / "iris.csv", "-t", "species", "-o", tmp_path / "m", *model)
    arguments = ("predict", tmp_path / "m", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    doubtful = json.loads(run(*arguments, "--json").stdout)["doubtful"]
    predictions = pd.read_csv(tmp_path / "p.csv")
    top = predictions.filter(like="probability_").max(axis=1)
    assert doubtful == predictions["row"][top < 0.8].tolist()
    assert doubtful
    assert f"with no class above a probability of 0.8: {doubtful[0]}" in run(*arguments).stdout


def test_rows_without_any_value_are_named(folder, tmp_path):
    table = iris_table(6).drop(columns="species")
    table.iloc[4] = None
    table.assign(sample="x").to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", folder / "m", tmp_path / "new.csv")
    assert "Note: 1 row without any of the model's features (row 5)" in result.stderr
