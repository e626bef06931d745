"""The cache of compiled kernels: what it is keyed by, where it lies, who may share it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from nearfield import _compile
from nearfield.inference import conditionals

PACKAGE = Path(_compile.__file__).parent

VALUE_AND_COMPILATIONS = """
import sys
import numpy as np
from nearfield.inference.conditionals import log_pseudolikelihoods
dtypes = sys.argv[1:] or ["float64"]
for dtype in dtypes:
    values = np.zeros(1)
    log_pseudolikelihoods(np.ones(1), np.ones((1, 1), dtype), np.zeros((1, 1), dtype), values)
    print(values[0])
print(sum(log_pseudolikelihoods.stats.cache_misses.values()))
"""


@pytest.fixture
def installed(tmp_path):
    """Copy a kernel, its helper and what compiles them to a folder, as an installation does."""
    for name in ("__init__.py", "_compile.py", "_vector.py", "inference/conditionals.py"):
        copy = tmp_path / "site" / "nearfield" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, copy)
    return tmp_path / "site"


def start(site, *dtypes, **variables):
    ours = ("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in ours}
    return subprocess.Popen(
        [sys.executable, "-c", VALUE_AND_COMPILATIONS, *dtypes],
        env=environment | {"PYTHONPATH": str(site)} | {k: str(v) for k, v in variables.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    *values, n_compiled = output.split()
    return [float(value) for value in values], int(n_compiled), errors


def run(site, *dtypes, **variables):
    return finish(start(site, *dtypes, **variables))


def test_an_upgrade_that_changes_only_a_helper_runs_no_old_kernel(installed, tmp_path):
    folder = {"NUMBA_CACHE_DIR": tmp_path / "cache"}
    before = run(installed, **folder)
    again = run(installed, **folder)
    helper = installed / "nearfield" / "_vector.py"
    text = helper.read_text()
    changed = text.replace("x = max(x, _LOWEST)", "x = max(x, _LOWEST) + 1.0")
    assert changed != text
    helper.write_text(changed)
    after = run(installed, **folder)
    assert before[:2] == ([pytest.approx(-np.log1p(np.exp(1.0)))], 1)
    assert again[:2] == (before[0], 0)
    assert after[:2] == ([pytest.approx(-np.log1p(np.exp(2.0)))], 1)


def test_without_a_folder_to_write_kernels_run_with_one_warning(installed):
    # A file where a folder is needed: a folder without permissions would not stop root.
    (installed / "nearfield" / "__pycache__").write_text("")
    values, n_compiled, errors = run(installed)
    assert values == [pytest.approx(-np.log1p(np.exp(1.0)))]
    assert n_compiled == 1
    assert errors.count("UserWarning") == 1
    assert "Set NUMBA_CACHE_DIR" in errors


def test_kernels_that_an_image_was_built_with_need_no_folder_of_the_user(installed, tmp_path):
    run(installed)
    assert list((installed / "nearfield" / "__pycache__" / "kernels").glob("*.kernel"))
    _, n_compiled, errors = run(installed, HOME=tmp_path / "nobody")
    assert n_compiled == 0
    assert not errors
    assert not (tmp_path / "nobody").exists()


def test_processes_that_compile_at_once_do_not_harm_each_other(installed, tmp_path):
    folder = {"NUMBA_CACHE_DIR": tmp_path / "cache"}
    at_once = [start(installed, dtype, **folder) for dtype in ("float64", "float32")]
    answers = [value for process in at_once for value in finish(process)[0]]
    values, n_compiled, _ = run(installed, "float64", "float32", **folder)
    assert values == answers
    assert n_compiled == 0
    assert not list((tmp_path / "cache").glob(".*"))


def twice(x):
    return 2.0 * x


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_compile, "_cache_folders", lambda: (tmp_path,))
    return tmp_path


def compilations(value=1.5):
    kernel = _compile.compiled(twice)
    assert kernel(value) == kernel.py_func(value) == 2.0 * value
    return sum(kernel.stats.cache_misses.values())


def test_damaged_cache_files_are_compiled_again(cache_folder):
    assert compilations() == 1
    assert compilations() == 0
    (path,) = cache_folder.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:20], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        assert compilations() == 1
        assert compilations() == 0


@pytest.mark.parametrize("option", ["BOUNDSCHECK", "DEBUGINFO_DEFAULT"])
def test_kernels_of_other_compiler_options_are_not_loaded(cache_folder, monkeypatch, option):
    assert compilations() == 1
    monkeypatch.setattr(numba.config, option, 1)
    assert compilations() == 1


def test_a_constant_that_kernels_read_is_part_of_the_key(monkeypatch):
    before = _compile._source_digest.__wrapped__(conditionals.__name__)
    assert before == _compile._source_digest.__wrapped__(conditionals.__name__)
    monkeypatch.setattr(conditionals, "_LARGE", 1e140)
    assert before != _compile._source_digest.__wrapped__(conditionals.__name__)


def test_a_full_folder_loses_its_older_half(tmp_path, monkeypatch):
    monkeypatch.setattr(_compile, "_N_FILES", 3)
    for k in range(4):
        (tmp_path / f"{k}.kernel").write_bytes(b"")
        os.utime(tmp_path / f"{k}.kernel", (k, k))
    _compile._thin_out.__wrapped__(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"2.kernel", "3.kernel"}


def test_a_closure_or_an_overload_in_another_module_is_refused():
    k = 2.0

    def times_k(x):
        return k * x

    with pytest.raises(TypeError, match="without a closure"):
        _compile.compiled(times_k)
    with pytest.raises(TypeError, match="beside log_pseudolikelihoods"):
        _compile.overload(conditionals.log_pseudolikelihoods.py_func)(twice)
