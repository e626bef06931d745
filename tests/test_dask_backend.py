"""Chains, grids, folds and splits on a Dask cluster, through joblib: the same answers as here."""

import json
import warnings

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield.benchmark import run_benchmark
from nearfield.datasets import load_iris
from nearfield.inference import Exchange, PathSampling
from nearfield.reproduction import Settings
from nearfield.reproduction.errors import make_units
from nearfield.runs import Store, run_units

distributed = pytest.importorskip("distributed")

MODELS = {
    "chains": DistanceNeighborsClassifier(
        inference=Exchange(n_draws=20, n_burn=20, n_sweeps=5, n_chains=2), random_state=0
    ),
    "grid": DistanceNeighborsClassifier(inference=PathSampling(), random_state=0),
    "folds": NearfieldClassifier(metrics=("euclidean", "within"), n_folds=2, random_state=0),
}
TASKS = {"chains": "advance", "grid": "scan_scale", "folds": "fit_held_out"}


class _Names(distributed.SchedulerPlugin):
    """The names of the tasks that workers have finished."""

    def __init__(self):
        self.finished = set()

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "memory":
            self.finished.add(str(key))


@pytest.fixture
def finished(dask_client, dask_cluster):
    """Work through joblib on the cluster, and see what arrives there."""
    plugin = _Names()
    dask_cluster.scheduler.add_plugin(plugin, name="names")
    with joblib.parallel_config(backend="dask"):
        yield plugin.finished
    dask_cluster.scheduler.remove_plugin("names")


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_on_the_cluster_gives_the_same_answer(finished, name):
    X, y = load_iris(return_X_y=True)
    model = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the chains are short
        there = model.fit(X[::3], y[::3]).predict_proba(X)
        assert any(TASKS[name] in task for task in finished), finished
        with joblib.parallel_config(backend="threading", n_jobs=1):
            here = model.fit(X[::3], y[::3]).predict_proba(X)
    np.testing.assert_array_equal(there, here)


def test_new_points_stay_where_the_model_is(finished):
    X, y = load_iris(return_X_y=True)
    model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X, y)
    finished.clear()
    model.predict_proba(X)
    assert not finished


def test_splits_of_the_benchmark_run_on_the_cluster(finished, tmp_path):
    def losses(folder):
        frame = run_benchmark(folder, problems=["iris"], methods=["k-nn"], n_splits=2)
        return frame[["split", "error", "log_loss"]].to_numpy()

    there = losses(tmp_path / "there")
    assert any("run_unit" in task for task in finished), finished
    with joblib.parallel_config(backend="threading", n_jobs=1):
        here = losses(tmp_path / "here")
    np.testing.assert_array_equal(there, here)


def test_splits_of_the_reproduction_run_on_the_cluster(finished, tmp_path):
    settings = Settings(n_splits=1, inference="pseudolikelihood", prior="cut")
    unit = make_units(["iris"], settings)[1]
    assert unit.arguments["method"] == "d-nn1"

    def errors(folder):
        ((_, result),) = run_units([unit], Store(folder), 2)
        del result["cpu_seconds"]
        return json.dumps(result, sort_keys=True)

    there = errors(tmp_path / "there")
    assert any("run_unit" in task for task in finished), finished
    with joblib.parallel_config(backend="threading"):
        assert there == errors(tmp_path / "here")
