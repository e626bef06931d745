"""Resumable runs: units of work that are done once, whatever stops the run."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nearfield.runs import Store, Unit, run_units, watched, write_file


def _square(number, log):
    path = Path(log)
    calls = [*(path.read_text().split() if path.exists() else []), str(number)]
    path.write_text(" ".join(calls))
    if number == 3 and calls.count("3") == 1:
        raise KeyboardInterrupt
    return {"square": number**2}


def _units(tmp_path, n):
    log = {"log": str(tmp_path / "log")}
    return [Unit("squares", _square, {"number": i}, log) for i in range(n)]


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    units, store, done = _units(tmp_path, 5), Store(tmp_path / "units"), []
    with pytest.raises(KeyboardInterrupt):
        done.extend(run_units(units, store, 1))
    again = [(unit.arguments["number"], r["square"]) for unit, r in run_units(units, store, 1)]
    assert sorted(again) == [(i, i**2) for i in range(5)]
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3", "3", "4"]


def test_results_of_other_work_or_damaged_ones_are_not_taken(tmp_path):
    (unit, other), store = _units(tmp_path, 2), Store(tmp_path / "units")
    store.write(unit, {"square": 0})
    assert store.read(unit) == {"square": 0}
    assert store.read(other) is None
    assert replace(store, is_fresh=True).read(unit) is None
    path = store.path(unit)
    path.rename(store.path(other))
    assert store.read(other) is None  # what lies there is of other work
    path.write_text(store.path(other).read_text()[:-5])
    assert store.read(unit) is None
    assert store.read_all() == [{"square": 0}]


def test_arguments_tell_units_apart_and_context_does_not(tmp_path):
    (unit,) = _units(tmp_path, 1)
    elsewhere = replace(unit, context={"log": "elsewhere"})
    assert (elsewhere.name, elsewhere.identity) == (unit.name, unit.identity)
    other = replace(unit, arguments={"number": 7})
    assert other.name != unit.name
    assert other.identity != unit.identity


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    write_file(path, "old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def slow_square(number):
    time.sleep(0.1)
    return {"square": number**2, "process": os.getpid()}


def test_a_killed_run_keeps_what_was_done(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_runs import *\n"
        "units = [Unit('g', slow_square, {'number': i}) for i in range(100)]\n"
        "list(run_units(units, Store(Path(sys.argv[2])), 1))\n"
    )
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path)]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + 60.0
        while len(list(tmp_path.rglob("*.json"))) < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    n_done = len(Store(tmp_path).read_all())
    assert 3 <= n_done < 100
    units = [Unit("g", slow_square, {"number": i}) for i in range(n_done + 2)]
    results = [result for _, result in run_units(units, Store(tmp_path), 1)]
    assert [result["square"] for result in results] == [i**2 for i in range(n_done + 2)]
    assert sum(result["process"] == os.getpid() for result in results) == 2


REPRODUCE = ("reproduce", "table2", "--quick", "--splits", 2, "--jobs", 1, "--data-set", "iris")
BENCHMARK = ("benchmark", "--problem", "iris", "--splits", 4, "--method", "nearfield")


@pytest.mark.long
@pytest.mark.parametrize("command", [REPRODUCE, BENCHMARK], ids=lambda command: command[0])
def test_a_command_killed_at_random_moments_has_the_results_of_one_that_was_not(tmp_path, command):
    rng = np.random.default_rng(0)
    program = Path(sys.executable).with_name("nearfield")

    def results(folder):
        return [
            {
                name: value
                for name, value in result.items()
                if "seconds" not in name and name != "date"
            }
            for result in Store(folder).read_all()
        ]

    def start(folder):
        arguments = [str(part) for part in (program, *command, "--out", folder)]
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    started = time.monotonic()
    assert start(tmp_path / "whole").wait() == 0
    seconds = time.monotonic() - started
    for _ in range(20):
        process = start(tmp_path / "killed")
        time.sleep(rng.uniform(0.0, seconds))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start(tmp_path / "killed").wait() == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole") != []


def test_progress_shows_bars_on_a_terminal_and_a_line_a_group_elsewhere(monkeypatch, capsys):
    units = [Unit("Iris", _square, {}), Unit("Wine", _square, {})]
    pairs = [(unit, {}) for unit in units]
    assert list(watched(pairs, units, "table2")) == pairs
    assert capsys.readouterr().err == "table2: Iris done\ntable2: Wine done\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(watched(pairs, units, "table2")) == pairs
    shown = capsys.readouterr().err
    assert "Iris" in shown
    assert "2/2" in shown
