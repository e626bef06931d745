"""Far points in the near field: estimates agree with all distances, and say how well."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from ctrl_c import listen_to_ctrl_c
from shapes import clustered, high_dimensional, imbalanced, uniform
from sklearn.exceptions import ConvergenceWarning

from nearfield import DistanceNeighborsClassifier
from nearfield.near import cells, drawn

PSEUDO = {"inference": "pseudolikelihood", "random_state": 0}


@pytest.fixture
def estimates(monkeypatch):
    """Make few points many: of far ones only some are seen, in the sums that need them too."""

    def make(n_seen, n_references):
        monkeypatch.setattr(drawn, "MAX_ALL_REFERENCES", 100)
        monkeypatch.setattr(drawn, "N_REFERENCES", n_references)
        monkeypatch.setattr(cells, "MAX_EXACT", 100)
        monkeypatch.setattr("nearfield.near.error.MAX_EXACT", 100)
        monkeypatch.setattr(cells, "_POINTS_A_CELL", 16)
        for name in ("N_WHOLE", "N_SEEN"):
            monkeypatch.setattr(cells, name, n_seen)

    return make


def with_posterior_of(dense, near):
    """Let only the sums differ."""
    dense.posterior_ = near.posterior_
    dense._predictor = dense._make_predictor()
    return dense


def fitted(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DistanceNeighborsClassifier(**PSEUDO, **settings).fit(X, y)


def gaps_between(dense, near, new):
    return np.abs(dense.predict_proba(new) - near.predict_proba(new)).max(axis=1)


@pytest.mark.parametrize("shape", [uniform, imbalanced])
def test_the_reported_error_is_of_the_size_of_the_error(estimates, shape):
    X, y = shape(2_400)
    dense = fitted(X[:1_200], y[:1_200])
    estimates(384, 300)
    near = fitted(X[:1_200], y[:1_200], n_neighbors=32)
    gaps = gaps_between(with_posterior_of(dense, near), near, X[1_200:])
    found = np.quantile(gaps, 0.99)
    assert near.neighborhood_error_ > 1e-3
    # 1% of the points are twelve: the quantile is known to a factor of about two.
    assert 0.3 * found < near.neighborhood_error_ < 3.0 * found


def test_the_reported_error_covers_the_radius_kernel(estimates):
    X, y = uniform(800)
    exact = fitted(X[:400], y[:400], kernel="radius", n_neighbors=399)
    assert exact.neighborhood_error_ == 0.0
    estimates(64, 160)
    near = fitted(X[:400], y[:400], kernel="radius", n_neighbors=32)
    found = np.quantile(gaps_between(with_posterior_of(exact, near), near, X[400:]), 0.99)
    assert found > 1e-3
    assert near.neighborhood_error_ > 0.3 * found


@pytest.mark.parametrize(
    ("metric", "search"),
    [("euclidean", "exact"), ("manhattan", "exact"), ("euclidean", "approximate")],
)
@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_far_away_probabilities_tend_to_their_limit(kernel, metric, search):
    if search == "approximate":
        pytest.importorskip("faiss")
    X, y = clustered(300)
    settings = {"kernel": kernel, "metric": metric}
    near = fitted(X, y, n_neighbors=20, search=search, **settings)
    dense = with_posterior_of(fitted(X, y, **settings), near)
    directions = np.random.default_rng(0).normal(size=(40, X.shape[1]))
    scores = []
    for distance in (1e4, 1e8, 1e12):
        # Farther than 1,024 times the largest distance they are taken from there.
        assert gaps_between(dense, near, distance * directions).max() < 2.0 / 1_024
        scores.append(near.outlier_score(distance * directions))
    assert (np.diff(scores, axis=0) > 0.0).all()


@pytest.mark.long
@pytest.mark.parametrize(
    "shape",
    [
        clustered,
        uniform,
        imbalanced,
        pytest.param(
            high_dimensional,
            marks=pytest.mark.xfail(
                reason="82% of the points: in 40 features the cells around a point miss many near "
                "ones, and 1,024 references stand for those",
                strict=True,
            ),
        ),
    ],
)
def test_estimates_at_5_000_points_agree_with_all_distances(estimates, shape):
    X, y = shape(6_000)
    dense = fitted(X[:5_000], y[:5_000])
    estimates(3_584, 1_024)  # as many are seen as matter, which is what 16,384 are for a million
    near = fitted(X[:5_000], y[:5_000], n_neighbors=64)
    assert near.neighborhood_error_ > 0.0
    assert np.mean(gaps_between(dense, near, X[5_000:]) < 0.01) >= 0.99


@pytest.mark.long
def test_the_near_field_at_10_000_points_agrees_with_all_distances():
    X, y = clustered(11_000)
    near = fitted(X[:10_000], y[:10_000])
    dense = fitted(X[:1_000], y[:1_000])
    assert near.neighborhood_error_ == 0.0
    space, labels = near.metric_space_, near.labels_
    family = dense._make_family(space.training_distances(X[:10_000], None), 4)
    dense._keep(space, family, labels, near.priors_, near.posterior_, "pseudolikelihood")
    assert gaps_between(dense, near, X[10_000:]).max() < 1e-3


@pytest.mark.parametrize(("verbose", "is_terminal"), [(1, True), (1, False), (0, True)])
def test_a_near_fit_shows_its_progress_where_a_person_watches(
    monkeypatch, capsys, verbose, is_terminal
):
    X, y = uniform(300)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    fitted(X, y, n_neighbors=16, verbose=verbose)
    shown = capsys.readouterr()
    is_shown = verbose > 0 and is_terminal
    for name in ("normalisers", "neighbours", "conditionals"):
        assert (name in shown.err) == is_shown
    assert shown.out == ""


INTERRUPTED = """
import json, os, threading, time
import numpy as np
from nearfield import DistanceNeighborsClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 6))
y = (X[:, 0] > 0).astype(int)
DistanceNeighborsClassifier(n_neighbors=8, random_state=0).fit(X[:200], y[:200])
model = DistanceNeighborsClassifier(n_neighbors=32, n_jobs=2, random_state=0)
print("fitting", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    time.sleep(1.0)
    others = [t for t in threading.enumerate() if t is not threading.main_thread()]
    print(json.dumps({"fitted": sorted(n for n in vars(model) if n.endswith("_")),
                      "threads": [t.name for t in others if not t.daemon],
                      "processes": os.path.exists("/proc/self/task/%d/children" % os.getpid())
                      and open("/proc/self/task/%d/children" % os.getpid()).read().split()}))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_near_fit_leaves_nothing_half():
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=listen_to_ctrl_c,
    ) as child:
        assert child.stdout.readline().strip() == "fitting"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)  # in the middle of it
        child.send_signal(signal.SIGINT)
        left = json.loads(child.stdout.read())
        assert child.wait(30) == 0
    assert "posterior_" not in left["fitted"]
    assert "family_" not in left["fitted"]
    assert left["threads"] == []
    assert not left["processes"]
