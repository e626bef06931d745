"""The near field over shards: the answers of one machine, whatever happens to the workers."""

import os
import pickle
import signal

import cloudpickle
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import nearfield
from nearfield.inference import Pseudolikelihood

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
nearfield_dask = pytest.importorskip("nearfield.dask")

from nearfield.dask import (  # noqa: E402
    _field,
    _search,
    _settings,
    _shards,
    _sums,
    _sums_by_rows,
)
from nearfield.near import _rows, cells, drawn, error, fit  # noqa: E402
from nearfield.near._measure import Ruler  # noqa: E402

X, Y = make_blobs(800, 5, centers=4, cluster_std=4.0, random_state=1)
X[:, 1] *= 10.0
NEW = X[::8] + 0.05
SETTINGS = {"n_neighbors": 24, "random_state": 5}
ROUNDING = 1e-6


def as_array(values, chunks=270):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def local_model(features=X, labels=Y, **settings):
    return nearfield.DistanceNeighborsClassifier(**SETTINGS | settings).fit(features, labels)


def dask_model(features=None, labels=None, **settings):
    features = as_array(X) if features is None else features
    labels = as_array(Y, 500) if labels is None else labels
    model = nearfield_dask.DistanceNeighborsClassifier(**SETTINGS | settings)
    return model.fit(features, labels)


@pytest.fixture(scope="module")
def expected():
    return local_model().predict_proba(NEW)


@pytest.fixture
def here():
    """Work without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


class Killer(distributed.SchedulerPlugin):
    """Kills a worker as soon as it has finished a certain task."""

    def __init__(self, cluster, task):
        self.cluster, self.task, self.killed = cluster, task, None

    def transition(self, key, start, finish, *args, worker=None, **kwargs):
        if finish == "memory" and self.task in str(key) and self.killed is None:
            nannies = self.cluster.workers.values()
            (nanny,) = [nanny for nanny in nannies if nanny.worker_address == worker]
            self.killed = nanny.pid
            os.kill(nanny.pid, signal.SIGKILL)


@pytest.fixture
def killer(dask_cluster, dask_client):
    def make(task):
        plugin = Killer(dask_cluster, task)
        dask_cluster.scheduler.add_plugin(plugin, name="killer")
        return plugin

    yield make
    dask_cluster.scheduler.remove_plugin("killer")


def test_a_cluster_gives_the_answer_of_one_machine(dask_client, expected):
    model = dask_model()
    assert model._model.sharded.n_shards == 3
    found = model.predict_proba(as_array(NEW, 60))
    np.testing.assert_allclose(found.compute(), expected, atol=ROUNDING, rtol=0.0)
    copy = pickle.loads(pickle.dumps(model))
    del model, found  # what they keep on the workers goes with them
    again = copy.predict_proba(as_array(NEW)).compute()
    np.testing.assert_allclose(again, expected, atol=ROUNDING, rtol=0.0)


def test_the_training_data_do_not_come_to_the_client(dask_client, monkeypatch):
    sizes = []
    gather = distributed.Client._gather

    async def weighed(self, *args, **kwargs):
        results = await gather(self, *args, **kwargs)
        sizes.append(len(cloudpickle.dumps(results)))
        return results

    monkeypatch.setattr(distributed.Client, "_gather", weighed)
    wide = np.hstack([X, np.zeros((len(X), 95))])  # constant features change no distance
    model = dask_model(as_array(wide))
    assert len(sizes) > 3  # the lengths, the moments, the posterior
    assert sum(sizes) < wide.nbytes / 8
    new = np.hstack([NEW, np.zeros((len(NEW), 95))])
    found = model.predict_proba(as_array(new, 100)).compute()
    expected = local_model(wide).predict_proba(new)
    np.testing.assert_allclose(found, expected, atol=ROUNDING, rtol=0.0)


def test_a_worker_killed_in_the_middle_of_fit_changes_nothing(killer, expected):
    killed = killer("_lower_minima")
    model = dask_model()
    assert killed.killed is not None
    found = model.predict_proba(as_array(NEW, 50)).compute()
    np.testing.assert_allclose(found, expected, atol=ROUNDING, rtol=0.0)


def test_a_worker_killed_in_the_middle_of_predict_changes_nothing(killer, expected):
    model = dask_model()
    probabilities = model.predict_proba(as_array(NEW, 30))
    killed = killer("_search")
    found = probabilities.compute()
    assert killed.killed is not None
    np.testing.assert_allclose(found, expected, atol=ROUNDING, rtol=0.0)


ORDER = np.argsort(Y[:500], kind="stable")
SORTED = X[:500][ORDER], Y[:500][ORDER]  # blocks lack classes
CASES = {
    "radius": {"kernel": "radius", "metric": "manhattan"},
    "intercepts": {"metric": "chebyshev", "external_field": "fitted"},
    "learned": {"kernel": "exponential", "metric": "within", "predictive": "printed"},
    "scaled": {"metric": "seuclidean", "standardize": False},
    "mahalanobis": {"metric": "mahalanobis", "inference": Pseudolikelihood(density=0.5)},
}


@pytest.mark.parametrize("case", CASES)
def test_all_models_are_those_of_one_machine(here, case):
    settings = CASES[case] | {"n_neighbors": 12}
    features = da.from_array(SORTED[0], chunks=((150, 0, 250, 100), 3))
    labels = as_array(SORTED[1], 130)
    if case == "radius":  # of unknown lengths
        features, labels = features[features[:, 0] < 1e9], labels[labels >= 0]
    ours, theirs = local_model(*SORTED, **settings), dask_model(features, labels, **settings)
    new, values = as_array(NEW[:60], 40), NEW[:60]
    tight = {"atol": ROUNDING, "rtol": 0.0}
    np.testing.assert_allclose(
        theirs.predict_proba(new, [0.4, 0.3, 0.2, 0.1]),
        ours.predict_proba(values, [0.4, 0.3, 0.2, 0.1]),
        **tight,
    )
    np.testing.assert_allclose(theirs.outlier_score(new), ours.outlier_score(values), **tight)
    for bound, expected in zip(
        theirs.predict_proba_interval(new), ours.predict_proba_interval(values), strict=True
    ):
        # A node of the posterior more or less, where its weight is a matter of rounding.
        np.testing.assert_allclose(bound, expected, atol=1e-3)
    np.testing.assert_allclose(theirs.external_field_, ours.external_field_, **tight)
    np.testing.assert_allclose(theirs.posterior_.beta, ours.posterior_.beta, rtol=1e-6)
    assert theirs.priors_.scale.support() == ours.priors_.scale.support()
    assert theirs.inference_ == ours.inference_ == "pseudolikelihood"
    empty = theirs.predict_proba(new[new[:, 0] > 1e9])
    assert empty.compute().shape == (0, 4)


@pytest.fixture
def small_limits(monkeypatch):
    """Make sums by samples, few references and the choice of neighbours happen at small sizes."""
    for module in (cells, error, _rows, _field, _sums_by_rows):
        monkeypatch.setattr(module, "MAX_EXACT", 500)
    monkeypatch.setattr(cells, "N_WHOLE", 80)
    monkeypatch.setattr(cells, "N_SEEN", 80)
    monkeypatch.setattr(cells, "_POINTS_A_CELL", 20)
    monkeypatch.setattr(drawn, "MAX_ALL_REFERENCES", 500)
    monkeypatch.setattr(drawn, "N_REFERENCES", 200)
    monkeypatch.setattr(fit, "N_SITES", 150)
    monkeypatch.setattr("nearfield.estimators._near.MAX_DENSE_AUTOMATIC", 500)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
def test_samples_are_those_of_one_machine(here, small_limits, metric):
    settings = {"n_neighbors": None, "metric": metric}
    ours, theirs = local_model(**settings), dask_model(**settings)
    assert theirs._model.n_neighbors == ours.family_.n_neighbors
    assert ours.neighborhood_error_ > 0.0
    assert theirs.neighborhood_error_ == pytest.approx(ours.neighborhood_error_, rel=1e-3)
    probabilities = theirs.predict_proba(as_array(NEW[:60]))
    np.testing.assert_allclose(probabilities, ours.predict_proba(NEW[:60]), atol=ROUNDING)
    local = theirs.to_local()
    np.testing.assert_allclose(local.predict_proba(NEW[:60]), probabilities, atol=ROUNDING)


def test_too_few_neighbors_are_warned_of(here, small_limits):
    with pytest.warns(ConvergenceWarning, match="n_neighbors=1 "):
        dask_model(n_neighbors=1)


def test_what_the_near_field_cannot_do_on_dask_is_refused(here):
    with pytest.raises(ValueError, match="Expected pseudolikelihood"):
        dask_model(inference="path")
    with pytest.raises(ValueError, match="n_neighbors"):
        dask_model(n_neighbors=0)
    with pytest.raises(ValueError, match="search"):
        dask_model(search="quick")
    flat = as_array(np.hstack([X, X[:, :1]]))
    with pytest.raises(ValueError, match="covariance has an inverse"):
        dask_model(flat, metric="mahalanobis")
    with pytest.raises(ValueError, match="largest distance"):
        dask_model(as_array(X * 1e200), standardize=False)


def test_groups_of_cells_are_even_and_none_is_without_a_cell():
    rng = np.random.default_rng(3)
    centres, sizes = rng.normal(size=(40, 3)), rng.integers(50, 150, 40)
    for n_groups in (1, 3, 7, 40):
        group_of = _shards.group_cells(centres, sizes, n_groups)
        assert sorted(set(group_of)) == list(range(n_groups))
    counts = np.bincount(_shards.group_cells(centres, sizes, 4), sizes)
    assert counts.max() < 1.5 * counts.min()


def test_a_shard_without_points_takes_part(here):
    settings = _settings.Settings(9, 5, 4, "gaussian", Ruler(), "exact", 1)
    shard = _shards.Shard(X[:9], Y[:9], np.arange(9))
    empty = shard.part(np.zeros(9, dtype=bool))
    shards = [dask.delayed(part) for part in (empty, shard)]
    indexes = [dask.delayed(_search.build_index)(part, Ruler(), "exact") for part in shards]
    found = _search.find_nearest(shards, indexes, dask.delayed(X[2:4]), 3).compute()
    np.testing.assert_array_equal(found.rows[:, 0], [2, 3])
    assert not _shards.is_among(shard.rows, empty.rows).any()
    outline = _field._outline(settings, found, _field.Farthest(X[:1], 9.0, 0))
    nearest = np.ones(9)
    exact = [
        _sums.exact_over_shards(settings, parts, *map(dask.delayed, (shard, nearest, outline)))
        for parts in (shards, shards[1:])
    ]
    both, one = dask.compute(*exact)
    np.testing.assert_array_equal(both.log_totals, one.log_totals)


def test_merged_lists_are_the_nearest_of_all():
    rng = np.random.default_rng(4)
    distances = rng.integers(0, 20, (6, 30)).astype(float)  # many are equal
    rows = np.argsort(rng.random((6, 30)), axis=1)
    parts = [slice(11), slice(11, 30)]
    lists = [_search.Found(distances[:, part], rows[:, part]) for part in parts]
    merged = _search.merge(lists, 8)
    np.testing.assert_array_equal(merged.distances, np.sort(distances, axis=1)[:, :8])
    distance_of = np.take_along_axis(distances, np.argsort(rows, axis=1), axis=1)
    np.testing.assert_array_equal(
        np.take_along_axis(distance_of, merged.rows, axis=1), merged.distances
    )
    assert all(len(set(listed)) == 8 for listed in merged.rows)
