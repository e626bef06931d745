import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer
from cli_files import error_of, iris_table, run
from typer.testing import CliRunner

import nearfield
from nearfield.cli import _run, app, main
from nearfield.cli._json import to_json
from nearfield.cli._run import one_line_errors, result_on_stdout

COMMAND = Path(sys.executable).with_name("nearfield")


def installed(*arguments, **options):
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=120, **options
    )


def command_of(function):
    """Make a command line of one function, as the commands wear it."""
    small = typer.Typer(pretty_exceptions_enable=False)
    small.command()(one_line_errors(result_on_stdout(function)))
    return CliRunner().invoke(small, [])


def raising(error):
    def command() -> str:
        raise error

    return command_of(command)


def test_version_is_printed():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"nearfield {nearfield.__version__}\n"


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate", "report", "reproduce", "benchmark"])
def test_help_of_each_command_has_an_example(name):
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"Example: nearfield {name} " in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("fit",),
        ("fit", "data.csv", "--target", "y"),
        ("fit", "data.csv", "--target", "y", "--out", "m", "--model", "best"),
        ("fit", "data.csv", "--target", "y", "--out", "m", "--seed", "-1"),
        ("fit", "data.csv", "--target", "y", "--out", "m", "--model", "knn", "--inference", "path"),
        ("predict", "-", "-"),
        ("predict", "model", "data.csv", "--level", "1.5"),
        ("evaluate", "data.csv", "--target", "y", "--folds", "1"),
        ("evaluate", "data.csv", "--target", "y", "--inference", "guess"),
    ],
)
def test_wrong_usage_exits_with_2_and_leaves_stdout_to_help(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("Expected this;\n  got that."), "Expected this; got that."),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), "a.csv: No such file"),
        (OSError("something"), "something"),
        (MemoryError(), "MemoryError"),
        (KeyError("x"), "KeyError: 'x'. This is a defect"),
    ],
)
def test_an_error_is_one_line_on_stderr(error, line):
    assert error_of(raising(error)).startswith(line)


def test_debug_shows_where_an_error_came_from(monkeypatch):
    monkeypatch.setattr(_run, "shows_tracebacks", False)
    assert run("--debug", "evaluate", "no.csv", "--target", "y").exception.errno == 2
    assert run("evaluate", "no.csv", "--target", "y").exit_code == 1


def test_interrupt_ends_with_130():
    result = raising(KeyboardInterrupt())
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted.\n")


def test_a_closed_pipe_ends_in_silence():
    result = raising(BrokenPipeError())
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")


def test_the_entry_point_runs_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["nearfield", "--version"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("nearfield ")


def test_streams_that_are_no_files_are_kept_clean_too(monkeypatch):
    monkeypatch.setattr(sys, "__stdout__", None)

    def command() -> str:
        print("chatter")
        return "result"

    assert command_of(command).stdout == "result"


def test_wrong_usage_found_inside_a_command_exits_with_2():
    assert raising(typer.BadParameter("no")).exit_code == 2


def test_a_warning_is_one_line_and_said_once():
    def command() -> str:
        with warnings.catch_warnings(action="always"):
            for _ in range(3):
                warnings.warn("Expected more;\ngot less.", UserWarning, stacklevel=1)
        return "result"

    result = command_of(command)
    assert (result.exit_code, result.stdout) == (0, "result")
    assert result.stderr == "Warning: Expected more; got less.\n"


def test_stdout_holds_the_result_and_nothing_that_was_printed():
    def command() -> bytes:
        print("chatter")
        return b"result"

    result = command_of(command)
    assert (result.stdout, result.stderr) == ("result", "chatter\n")


def test_a_command_without_a_result_writes_nothing():
    assert command_of(lambda: None).stdout == ""


def test_not_even_other_processes_can_write_to_stdout():
    script = """
import os, subprocess
from nearfield.cli._run import result_on_stdout
@result_on_stdout
def command():
    os.write(1, b"from C\\n")
    subprocess.run(["echo", "from a worker"])
    return "result"
command()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout == "result"
    assert result.stderr == "from C\nfrom a worker\n"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    script = "from nearfield.cli._run import *\n" + (
        "one_line_errors(result_on_stdout(lambda: 'x' * 10**6))()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()  # the pipe has no reader any more
    assert b"Broken" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1


def test_json_is_strict_and_takes_numbers_of_numpy():
    import numpy as np

    value = {"a": np.float64("nan"), "b": np.array([1, 2]), "c": (np.bool_(True), "x", None)}
    assert json.loads(to_json(value)) == {"a": None, "b": [1, 2], "c": [True, "x", None]}


@pytest.mark.parametrize("module", ["sklearn", "pandas", "matplotlib", "numba"])
def test_the_command_line_starts_without_heavy_libraries(module):
    script = f"import sys, nearfield.cli; print({module!r} in sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr


def test_the_module_runs_the_command_line():
    command = [sys.executable, "-m", "nearfield", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"nearfield {nearfield.__version__}\n"


def test_installed_command_fits_and_predicts_through_pipes(tmp_path):
    table = iris_table()
    table.to_csv(tmp_path / "iris.csv", index=False)
    fit = installed("fit", "iris.csv", "-t", "species", "-o", "m", "--json", cwd=tmp_path)
    assert fit.returncode == 0, fit.stderr
    assert json.loads(fit.stdout)["model"] == "nearfield"  # and nothing printed beside the JSON
    new = table.drop(columns="species").to_csv(index=False)
    predict = installed("predict", "m", "-", cwd=tmp_path, input=new)
    assert predict.returncode == 0, predict.stderr
    import pandas as pd

    predictions = pd.read_csv(io.StringIO(predict.stdout))
    assert len(predictions) == len(table)
    assert (predictions["class"] == table["species"]).mean() > 0.9


def test_installed_command_fails_in_one_line_without_a_traceback(tmp_path):
    result = installed("evaluate", tmp_path / "no.csv", "--target", "y")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"Error: {tmp_path / 'no.csv'}: No such file or directory.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_a_failed_run(tmp_path):
    iris_table().to_csv(tmp_path / "iris.csv", index=False)
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [COMMAND, "fit", "iris.csv", "--target", "species", "--out", "m", "--model", "knn"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "Error: No space left on device."
    assert "Traceback" not in result.stderr


def test_every_command_is_there():
    names = [command.name for command in app.registered_commands]
    assert names == [
        "fit",
        "predict",
        "explain",
        "evaluate",
        "report",
        "reproduce",
        "benchmark",
        "warmup",
    ]
