import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import nearfield
from nearfield import __main__ as main_job
from nearfield.inference import Exchange

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


def test_main_job_prints_every_data_set_beside_the_paper(monkeypatch, capsys):
    monkeypatch.setattr(main_job, "QUICK", Exchange(n_draws=8, n_burn=8, n_sweeps=2, n_chains=2))
    main_job.main()
    lines = capsys.readouterr().out.splitlines()
    for name, sizes in {"pima": "2  7  532", "olive": "3  8  572", "iris": "3  4  150"}.items():
        (line,) = [line for line in lines if line.strip().startswith(name)]
        assert sizes in line
    assert sum("paper " in line for line in lines[4:]) == 6
