"""What one seed promises: docs/explanation/seeds.md."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield.datasets import load_wine
from nearfield.inference import Exchange

X, Y = load_wine(return_X_y=True)
EXCHANGE = Exchange(n_draws=20, n_burn=10, n_sweeps=5)
MODELS = {
    "average": NearfieldClassifier(random_state=0),
    "path": DistanceNeighborsClassifier(random_state=0),
    "exchange": DistanceNeighborsClassifier("exponential", inference=EXCHANGE, random_state=0),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
DIGEST = """
import hashlib
from nearfield import NearfieldClassifier
from nearfield.datasets import load_wine
X, y = load_wine(return_X_y=True)
model = NearfieldClassifier(random_state=0).fit(X[::2], y[::2])
print(hashlib.sha256(model.predict_proba(X[1::2]).tobytes()).hexdigest())
"""


def test_compiled_and_cached_runs_and_any_number_of_threads_give_equal_bits(tmp_path):
    digests = set()
    for n_threads in (1, 1, 2):  # compiled, loaded, loaded
        variables = {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": str(n_threads)}
        command = [sys.executable, "-c", DIGEST]
        run = subprocess.run(command, env=os.environ | variables, check=True, capture_output=True)
        digests.add(run.stdout)
    assert len(digests) == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("name", MODELS)
def test_threads_and_processes_give_equal_bits(name, backend):
    alone = MODELS[name].fit(X[::2], Y[::2]).predict_proba(X[1::2])
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = MODELS[name].fit(X[::2], Y[::2]).predict_proba(X[1::2])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("name", MODELS)
def test_rows_predicted_together_or_one_by_one_agree(name):
    model = MODELS[name].fit(X[::2], Y[::2])
    one_by_one = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(1, 60, 2)])
    np.testing.assert_allclose(model.predict_proba(X[1:60:2]), one_by_one, rtol=0.0, atol=1e-12)
