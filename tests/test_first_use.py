"""What the first use after installation compiles, and `nearfield warmup`, which does it ahead."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from nearfield import _compile
from nearfield.cli import app

FIRST_USE = """
from nearfield import NearfieldClassifier
from nearfield.datasets import load_wine, stratified_split
X, y = load_wine(return_X_y=True)
train, test = stratified_split(y, 0.25, random_state=0)
model = NearfieldClassifier(random_state=0, n_jobs=1).fit(X[train], y[train])
model.predict_proba(X[test]), model.predict(X[test])
"""

MANY_POINTS = """
import numpy as np
from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
rng = np.random.default_rng(0)
y = rng.integers(2, size=3_000)
X = rng.normal(size=(3_000, 4)) + y[:, None]
for model in (NearfieldClassifier(random_state=0), DistanceNeighborsClassifier(random_state=0)):
    model.fit(X, y).predict_proba(X[:9])
"""

# Each takes 0.2 to 1 s to compile. A new one should be worth that to every new user: can NumPy do
# it as fast, or can a kernel share the types of its arguments with another call?
KERNELS = {
    "best_beta",
    "euclidean_rows",
    "exp32_of",
    "exp_of",
    "field_slopes",
    "fill_gradient",
    "held_out_support",
    "mean_softmax",
    "scale_points",
    "smallest_of",
    "smooth_support",
    "training_totals",
    "weigh_neighbors",
}
IN_BOTH_PRECISIONS = {"euclidean_rows", "smallest_of"}


def compiled_names(script, folder):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)
    return sorted(path.name.rpartition("-")[0] for path in folder.glob("*.kernel"))


def test_the_first_fit_and_prediction_compile_few_kernels_once_each(tmp_path):
    names = compiled_names(FIRST_USE, tmp_path)
    assert names == sorted([*KERNELS, *IN_BOTH_PRECISIONS])


def test_after_warmup_fits_and_predictions_compile_nothing():
    result = CliRunner().invoke(app, ["warmup"])
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("Compiled or loaded the classifiers in ")
    script = f"""
from nearfield import _compile
def refuse():
    raise AssertionError("a kernel was compiled")
_compile._tell_who_watches = refuse
{FIRST_USE}
{MANY_POINTS}
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_who_watches_is_told_of_compilation(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    _compile._tell_who_watches.__wrapped__()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == int(is_terminal)
    assert all("compiling" in line and "seconds" in line for line in lines)
