import re
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import nearfield

ROOT = Path(__file__).parents[1]


def test_version_is_that_of_the_distribution():
    assert nearfield.__version__ == version("nearfield")


@pytest.mark.parametrize("module", ["matplotlib", "arviz", "xarray", "rdata"])
def test_heavy_libraries_are_imported_only_when_used(module):
    script = (
        f"import sys, nearfield.inference, nearfield.datasets; print({module!r} in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_wheel_carries_the_embedded_data_and_nothing_else(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist()}
    assert {"pima.csv", "glass.csv", "crabs.csv", "olive.csv", "py.typed"} <= names
    assert not {name for name in names if "meat" in name.lower() or name.endswith(".RData")}


def test_main_job_prints_every_data_set_beside_the_paper(tmp_path):
    command = [sys.executable, "-m", "nearfield", "reproduce", "table1", "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    rows = dict(re.findall(r"^ +(\w[\w ]*?) {2,}((?:\d+,? +){6})", run.stdout, re.MULTILINE))
    numbers = {name: re.findall(r"\d+", cells) for name, cells in rows.items()}
    assert numbers["Pima"] == ["2", "7", "532", "2", "8", "532"]
    assert numbers["Olive"] == ["3", "8", "572", "3", "9", "572"]
    assert numbers["Iris"][:3] == numbers["Iris"][3:]
    assert len(numbers) >= 6
