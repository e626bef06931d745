"""A fit that is interrupted, or that runs out of memory, leaves the estimator as it was."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.inference import AuxiliaryVariable, Exchange

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = make_blobs(30, 3, centers=3, cluster_std=3.0, random_state=1)
OTHER_X, OTHER_Y = make_blobs(24, 2, centers=2, cluster_std=3.0, random_state=2)
SHORT = {"n_draws": 12, "n_burn": 4, "n_sweeps": 3}
MODELS = {
    "average": NearfieldClassifier(random_state=0),
    "path sampling": DistanceNeighborsClassifier(random_state=0),
    "graph": DistanceNeighborsClassifier(
        n_neighbors=5, metric="ard", inference="pseudolikelihood", random_state=0
    ),
    "exchange": DistanceNeighborsClassifier(inference=Exchange(**SHORT), random_state=0),
    "auxiliary": DistanceNeighborsClassifier(inference=AuxiliaryVariable(**SHORT), random_state=0),
    "pk-nn": ProbabilisticKNeighborsClassifier(prior_k=stats.randint(1, 5), random_state=0),
    "votes": KNeighborsClassifierCV(),
}


class Interruption:
    """Raises an error at the n-th call of a function of nearfield, or counts the calls."""

    def __init__(self, error=None, at_call=0):
        self.error, self.at_call, self.n_calls = error, at_call, 0

    def __enter__(self):
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _profile(self, frame, event, _):
        if event == "call" and frame.f_globals.get("__name__", "").startswith("nearfield."):
            self.n_calls += 1
            if self.n_calls == self.at_call:
                raise self.error


def moments(model, n):
    """Choose calls of a fit after the first: early, late, and some in between."""
    n_calls = []
    for _ in range(5):
        with Interruption() as counted:
            clone(model).fit(X, Y)
        n_calls.append(counted.n_calls)
    # The first fit of a process also loads kernels; chains pause more often on a busy machine.
    return np.linspace(2, min(n_calls) - 2, n).astype(int).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(name):
    model, fitted = clone(MODELS[name]), clone(MODELS[name]).fit(OTHER_X, OTHER_Y)
    expected, state = fitted.predict_proba(OTHER_X), dict(vars(fitted))
    errors = [KeyboardInterrupt, MemoryError]
    for at_call, error in zip(moments(model, 6), 3 * errors, strict=True):
        with pytest.raises(error), Interruption(error, at_call):
            model.fit(X, Y)
        with pytest.raises(NotFittedError):
            model.predict_proba(X[:3])
        with pytest.raises(error), Interruption(error, at_call):
            fitted.fit(X, Y)
        assert vars(fitted) == state
        np.testing.assert_array_equal(fitted.predict_proba(OTHER_X), expected)


OUT_OF_MEMORY = """
import resource
import numpy as np
from nearfield import DistanceNeighborsClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
model = DistanceNeighborsClassifier(metric="precomputed", inference="pseudolikelihood")
distances = lambda points: np.abs(points[:, :1] - points[:, 0])
expected = model.fit(distances(X), y).predict_proba(distances(X))
many = np.broadcast_to(np.float32(1.0), (8_000, 8_000))
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + 2**28, -1))
try:
    model.fit(many, np.arange(8_000) % 2)
except MemoryError:
    pass
else:
    raise SystemExit("expected a MemoryError")
assert np.array_equal(model.predict_proba(distances(X)), expected)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_a_limit_of_memory_gives_a_memory_error_and_the_old_answers():
    subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], check=True)
