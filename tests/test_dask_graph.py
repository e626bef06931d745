"""The neighbour graph over shards: the answers of one machine, whatever happens to the workers."""

import os
import pickle
import signal

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs

import nearfield
from nearfield.inference import Pseudolikelihood
from nearfield.neighbors import (
    NeighborGraph,
    NeighborLists,
    ShortLists,
    make_index,
    merge_lists,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
nearfield_dask = pytest.importorskip("nearfield.dask")

from nearfield.dask import _graph, _shards  # noqa: E402
from nearfield.dask._rows import Rows  # noqa: E402
from nearfield.dask._training import TrainingBlocks, collect  # noqa: E402
from nearfield.estimators import MetricSpace  # noqa: E402

X, Y = make_blobs(900, 5, centers=8, cluster_std=4.0, random_state=1)
Y %= 4
X[:, 1] *= 10.0
NEW = X[::9] + 0.05
TIED = np.round(X[:, :3] / [8.0, 60.0, 8.0])  # many points at the same place, over all blocks
SETTINGS = {"random_state": 5}
ROUNDING = 1e-10


@pytest.fixture(autouse=True)
def _small_limits(use_sizes):
    """Make sampled conditionals and the choice of k happen with few points."""
    use_sizes(
        max_dense_automatic=500, max_folds=500, max_all_sites=600, n_sites=250, n_pilot_sites=100
    )


@pytest.fixture
def here():
    """Work without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


def as_array(values, chunks=270):
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def local_model(features=X, labels=Y, name="DistanceNeighborsClassifier", **settings):
    return getattr(nearfield, name)(**SETTINGS | settings).fit(features, labels)


def dask_model(features=None, labels=None, name="DistanceNeighborsClassifier", **settings):
    features = as_array(X) if features is None else features
    labels = as_array(Y, 500) if labels is None else labels
    return getattr(nearfield_dask, name)(**SETTINGS | settings).fit(features, labels)


@pytest.fixture
def expected():
    return local_model(n_neighbors=24).predict_proba(NEW)


class Killer(distributed.SchedulerPlugin):
    """Kills a worker, or its connection, as soon as it has finished a certain task."""

    def __init__(self, cluster, task, is_connection=False):
        self.cluster, self.task, self.is_connection = cluster, task, is_connection
        self.killed = None

    def transition(self, key, start, finish, *args, worker=None, **kwargs):
        if finish == "memory" and self.task in str(key) and self.killed is None:
            if self.is_connection:
                self.killed = worker
                self.cluster.scheduler.stream_comms[worker].abort()
                return
            nannies = self.cluster.workers.values()
            (nanny,) = [nanny for nanny in nannies if nanny.worker_address == worker]
            self.killed = nanny.pid
            os.kill(nanny.pid, signal.SIGKILL)


@pytest.fixture
def killer(dask_cluster, dask_client):
    def make(task, is_connection=False):
        plugin = Killer(dask_cluster, task, is_connection)
        dask_cluster.scheduler.add_plugin(plugin, name="killer")
        return plugin

    yield make
    dask_cluster.scheduler.remove_plugin("killer")


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, atol=ROUNDING, rtol=0.0)


def test_a_cluster_gives_the_answer_of_one_machine(dask_client, expected):
    model = dask_model(n_neighbors=24)
    assert len(model._model.shards.kept.values) == 4
    assert_same(model.predict_proba(as_array(NEW, 60)).compute(), expected)
    copy = pickle.loads(pickle.dumps(model))
    lazy = model.predict_proba(as_array(NEW, 60))
    del model  # a lazy result keeps what it needs
    assert_same(lazy.compute(), expected)
    del lazy  # what it keeps on the workers goes with it
    assert_same(copy.predict_proba(as_array(NEW)).compute(), expected)


def test_the_training_data_do_not_come_to_the_client(dask_client, monkeypatch):
    sizes = []
    gather = distributed.Client._gather

    async def weighed(self, *args, **kwargs):
        results = await gather(self, *args, **kwargs)
        sizes.append(len(cloudpickle.dumps(results)))
        return results

    monkeypatch.setattr(distributed.Client, "_gather", weighed)
    wide = np.hstack([X, np.zeros((len(X), 995))])  # constant features change no distance
    model = dask_model(as_array(wide), n_neighbors=24)
    assert len(sizes) > 3  # the lengths, the moments, the sites
    assert sum(sizes) < wide.nbytes / 8
    new = np.hstack([NEW, np.zeros((len(NEW), 995))])
    found = model.predict_proba(as_array(new, 100)).compute()
    assert_same(found, local_model(wide, n_neighbors=24).predict_proba(new))


@pytest.mark.parametrize("task", ["_make_shard", "answer", "_graph_rows", "_edges"])
def test_a_worker_killed_in_the_middle_of_fit_changes_nothing(killer, expected, task):
    killed = killer(task)
    model = dask_model(n_neighbors=24)
    assert killed.killed is not None
    assert_same(model.predict_proba(as_array(NEW, 50)).compute(), expected)


@pytest.mark.parametrize("task", ["search_home", "visit"])
def test_a_worker_killed_in_the_middle_of_predict_changes_nothing(killer, expected, task):
    model = dask_model(n_neighbors=24)
    probabilities = model.predict_proba(as_array(NEW, 30))
    killed = killer(task)
    found = probabilities.compute()
    assert killed.killed is not None
    assert_same(found, expected)


def test_a_lost_connection_to_the_scheduler_changes_nothing(killer, expected):
    killed = killer("answer", is_connection=True)
    model = dask_model(n_neighbors=24)
    assert killed.killed is not None
    assert_same(model.predict_proba(as_array(NEW, 50)).compute(), expected)


ORDER = np.argsort(Y, kind="stable")
SORTED = X[ORDER], Y[ORDER]  # blocks lack classes
DISTANCE, PROBABILISTIC = "DistanceNeighborsClassifier", "ProbabilisticKNeighborsClassifier"
CASES = {
    "chosen k": {},
    "radius": {"kernel": "radius", "metric": "manhattan"},
    "intercepts": {"metric": "chebyshev", "fit_intercept": True, "n_neighbors": 12},
    "learned": {"kernel": "exponential", "metric": "within", "predictive": "printed"},
    "scaled": {"metric": "seuclidean", "standardize": False, "n_neighbors": 1},
    "mahalanobis": {"metric": "mahalanobis", "inference": Pseudolikelihood(density=0.5)},
    "symmetric": {"name": PROBABILISTIC},
    "directed": {"name": PROBABILISTIC, "neighborhood": "directed"},
}


@pytest.mark.parametrize("case", CASES)
def test_all_models_are_those_of_one_machine(here, case):
    features = da.from_array(SORTED[0], chunks=((150, 0, 450, 300), 3))
    labels = as_array(SORTED[1], 130)
    if case == "radius":  # of unknown lengths
        features, labels = features[features[:, 0] < 1e9], labels[labels >= 0]
    ours, theirs = local_model(*SORTED, **CASES[case]), dask_model(features, labels, **CASES[case])
    check_predictions(ours, theirs, NEW)
    np.testing.assert_allclose(theirs.intercept_, ours.intercept_, atol=ROUNDING)
    assert theirs.priors_.scale.support() == ours.priors_.scale.support()
    assert theirs.inference_ == ours.inference_ == "pseudolikelihood"
    empty = theirs.predict_proba(as_array(NEW)[as_array(NEW)[:, 0] > 1e9])
    assert empty.compute().shape == (0, 4)


def check_predictions(ours, theirs, new):
    """Compare all that two models say."""
    lazy, prior = as_array(new, 40), [0.4, 0.3, 0.2, 0.1]
    assert theirs._model.family.n_neighbors == ours.family_.n_neighbors
    np.testing.assert_allclose(theirs.posterior_.beta, ours.posterior_.beta, rtol=1e-8)
    for model in (ours, theirs):
        model.set_params(class_prior=prior)
    assert_same(theirs.predict_proba(lazy).compute(), ours.predict_proba(new))
    assert_same(theirs.outlier_score(lazy).compute(), ours.outlier_score(new))
    bounds = dask.compute(*theirs.predict_proba_interval(lazy, 0.8))
    for bound, expected in zip(bounds, ours.predict_proba_interval(new, 0.8), strict=True):
        assert_same(bound, expected)
    brought = theirs.to_local()
    assert_same(brought.predict_proba(new), ours.predict_proba(new))
    assert_same(brought.outlier_score(new), ours.outlier_score(new))


def test_frames_over_shards_give_frames(here):
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X)) * 2)
    features = dd.from_pandas(frame, npartitions=5)
    labels = dd.from_pandas(pd.Series(np.array(list("wxyz"))[Y], index=frame.index), npartitions=3)
    model = dask_model(features, labels, n_neighbors=9)
    some = features[features["a"] > np.quantile(X[:, 0], 0.99)]  # some partitions are empty
    found, expected = model.predict_proba(some).compute(), local_model(n_neighbors=9)
    assert list(found.columns) == list("wxyz")
    assert_same(found, expected.predict_proba(frame.loc[found.index].to_numpy()))
    assert model.predict(some).compute().index.equals(found.index)
    assert model.score(features, labels) == expected.score(X, Y)


def test_threads_give_the_answer_of_one_machine():
    with dask.config.set(scheduler="threads", num_workers=3):
        model = dask_model(n_neighbors=9)
        found = model.predict_proba(as_array(NEW, 20)).compute()
    assert_same(found, local_model(n_neighbors=9).predict_proba(NEW))


@pytest.mark.parametrize("case", ["chosen k", "radius", "symmetric", "directed"])
def test_ties_and_duplicates_across_shards_are_those_of_one_machine(here, case):
    ours = local_model(TIED, **CASES[case])
    theirs = dask_model(as_array(TIED, 200), **CASES[case])
    check_predictions(ours, theirs, TIED[::10])


def make_shards(points, metric="euclidean", n_blocks=4):
    space = MetricSpace(metric, {}, None, None, points[:0])
    blocks = (
        Rows.from_collection(as_array(some, -(-len(X) // n_blocks)), "") for some in (points, Y)
    )
    return _shards.Shards.from_training(TrainingBlocks.from_rows(*blocks, {}), space)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("points", [X, TIED, np.ones_like(X)], ids=["apart", "tied", "one place"])
def test_the_graph_is_that_of_one_machine(here, metric, points):
    expected = NeighborGraph.from_index(make_index(points, metric=metric), points, 20)
    training = _graph.ShardedTraining(make_shards(points, metric), "gaussian", False, seed=3)
    found = collect(training.build(20).parts.values).compute()
    np.testing.assert_array_equal(found.rows, np.arange(len(points)))
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-15)
    if metric != "cosine":  # whose distances have rounding errors, by which equals are sorted
        np.testing.assert_array_equal(found.codes // 4, expected.rows)
    np.testing.assert_array_equal(found.labels, Y)
    np.testing.assert_array_equal(found.codes % 4, Y[found.codes // 4])


def test_shards_are_even_and_regions_of_the_space():
    cuts = _shards.Cuts.from_points(X, 8)
    counts = np.bincount(cuts.shard_of(X), minlength=8)
    assert counts.sum() == len(X)
    assert counts.max() - counts.min() <= 3
    assert set(_shards.Cuts.from_points(np.ones((9, 2)), 4).shard_of(np.ones((9, 2)))) == {0}
    assert set(_shards.Cuts.from_points(X, 1).shard_of(X)) == {0}


def test_many_small_blocks_are_joined(here):
    model = dask_model(as_array(X, 4), as_array(Y, 7), n_neighbors=9)
    assert len(model._model.shards.kept.values) == 8
    assert_same(
        model.predict_proba(as_array(NEW)).compute(), local_model(n_neighbors=9).predict_proba(NEW)
    )


def test_a_model_on_dask_is_saved_as_that_of_one_machine(here, tmp_path):
    for settings in ({"n_neighbors": 9}, {"name": PROBABILISTIC, "neighborhood": "directed"}):
        model = dask_model(**settings)
        nearfield.save(model, tmp_path / "model.nearfield")
        loaded = nearfield.load(tmp_path / "model.nearfield")
        assert type(loaded).__module__.startswith("nearfield.estimators")
        assert_same(loaded.predict_proba(NEW), model.predict_proba(as_array(NEW)).compute())


DECIDING = {
    DISTANCE: {},
    PROBABILISTIC: {"neighborhood": "directed"},
    "NearfieldClassifier": {"metrics": ("euclidean",)},
}


def test_decisions_on_one_worker_are_those_of_one_machine(here, use_sizes):
    use_sizes(max_learning=100)  # fewer than there are: all points count, each in a fold
    few, labels = X[:200], Y[:200]
    ours = nearfield.DistanceNeighborsClassifier(**SETTINGS).fit(few, labels)
    theirs = nearfield_dask.DistanceNeighborsClassifier(**SETTINGS)
    theirs.fit(as_array(few), as_array(labels))
    np.testing.assert_array_equal(
        theirs.predict_set(as_array(NEW, 60)).compute(), ours.predict_set(NEW)
    )
    np.testing.assert_array_equal(theirs.calibration_rows_, ours.calibration_rows_)


@pytest.mark.parametrize("name", DECIDING)
def test_decisions_over_shards_are_those_of_one_machine(here, name, use_sizes):
    use_sizes(max_calibration=400, max_learning=400, n_learning=300)
    settings = SETTINGS | DECIDING[name]
    ours = getattr(nearfield, name)(**settings).fit(X, Y)
    theirs = getattr(nearfield_dask, name)(**settings).fit(as_array(X), as_array(Y))
    new = as_array(NEW, 60)
    assert_same(theirs.held_out_proba_, ours.held_out_proba_)
    assert_same(theirs.membership(new).compute(), ours.membership(NEW))
    np.testing.assert_array_equal(theirs.predict_set(new).compute(), ours.predict_set(NEW))
    np.testing.assert_array_equal(theirs.decide(new).compute(), ours.decide(NEW))


def test_predictions_are_lazy(here):
    model = dask_model(n_neighbors=9)

    def refuse(block):
        raise AssertionError("computed")

    lazy = as_array(NEW).map_blocks(refuse, meta=np.empty((0, 5)))
    for method in (
        model.predict_proba,
        model.predict,
        model.outlier_score,
        model.predict_log_proba,
    ):
        method(lazy)
    model.predict_proba_interval(lazy)
    with pytest.raises(AssertionError, match="computed"):
        model.predict(lazy).compute()


def test_what_cannot_be_done_over_shards_is_refused(here):
    with pytest.raises(ValueError, match="Expected pseudolikelihood"):
        dask_model(inference="path")
    with pytest.raises(ValueError, match="n_neighbors"):
        dask_model(n_neighbors=0)
    with pytest.raises(ValueError, match="kernel"):
        dask_model(kernel="square")
    with pytest.raises(ValueError, match="search"):
        dask_model(search="quick")
    with pytest.raises(ValueError, match="neighborhood"):
        dask_model(name=PROBABILISTIC, neighborhood="both")
    flat = as_array(np.hstack([X, X[:, :1]]))
    with pytest.raises(ValueError, match="covariance has an inverse"):
        dask_model(flat, metric="mahalanobis")
    with pytest.raises(ValueError, match="largest distance"):
        dask_model(as_array(X * 1e150), standardize=False)
    with pytest.raises(ValueError, match="to_local"):
        dask_model(n_neighbors=9).partial_fit(as_array(X), as_array(Y))


@pytest.fixture
def _small_samples(use_sizes):
    use_sizes(n_sample=200, n_weighing=150, max_normalizing=400, max_learning=500, n_learning=300)


@pytest.mark.usefixtures("_small_samples")
@pytest.mark.parametrize("settings", [{}, {"power_transform": False, "kernels": ("exponential",)}])
def test_the_average_over_shards_is_that_of_one_machine(here, settings, tmp_path):
    settings = {"metrics": ("euclidean", "within"), "random_state": 2} | settings
    skewed, new = np.exp(X / [8.0, 80.0, 8.0, 8.0, 8.0]), np.exp(NEW / [8.0, 80.0, 8.0, 8.0, 8.0])
    ours = local_model(skewed, name="NearfieldClassifier", **settings)
    theirs = dask_model(as_array(skewed), name="NearfieldClassifier", **settings)
    assert_same(theirs.weights_, ours.weights_)
    pd.testing.assert_frame_equal(theirs.summary(), ours.summary())
    lazy = as_array(new, 40)
    for model in (ours, theirs):
        model.set_params(class_prior=[0.4, 0.3, 0.2, 0.1])
    assert_same(theirs.predict_proba(lazy).compute(), ours.predict_proba(new))
    assert_same(theirs.outlier_score(lazy).compute(), ours.outlier_score(new))
    bounds = dask.compute(*theirs.predict_proba_interval(lazy))
    for bound, expected in zip(bounds, ours.predict_proba_interval(new), strict=True):
        assert_same(bound, expected)
    np.testing.assert_array_equal(theirs.predict(lazy).compute(), ours.predict(new))
    nearfield.save(theirs, tmp_path / "average.nearfield")
    assert_same(
        nearfield.load(tmp_path / "average.nearfield").predict_proba(new), ours.predict_proba(new)
    )
    copy = pickle.loads(pickle.dumps(theirs))
    assert_same(copy.predict_proba(lazy).compute(), ours.predict_proba(new))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_a_query_within_limits_finds_what_is_within_them(metric):
    index = make_index(X, metric=metric)
    everything = index.query(NEW, 30)
    limits = everything.distances[np.arange(len(NEW)), np.arange(len(NEW)) % 40 % 30]
    limits *= 1.0 + 1e-12  # past the rounding of a square
    limits[::7] = np.inf
    limits[3] = 0.0  # farther than none
    found = index.query_within(NEW, 20, limits)
    is_within = everything.distances[:, :20] <= limits[:, None]
    np.testing.assert_array_equal(
        found.distances, np.where(is_within, everything.distances[:, :20], np.inf)
    )
    np.testing.assert_array_equal(found.rows, np.where(is_within, everything.rows[:, :20], -1))
    assert not np.isfinite(found.distances[3]).any()


def test_merged_lists_are_the_nearest_of_all():
    rng = np.random.default_rng(4)
    distances = np.sort(rng.integers(0, 20, (6, 30)), axis=1).astype(float)  # many are equal
    rows = np.arange(30) + np.zeros((6, 1), dtype=np.int64)
    shards = rng.integers(0, 3, (6, 30))
    lists = []
    for shard in range(3):
        of_shard = np.where(shards == shard, distances, np.inf)
        order = np.argsort(of_shard, axis=1, kind="stable")
        found = (np.take_along_axis(array, order, axis=1) for array in (of_shard, rows))
        lists.append(ShortLists.from_lists(np.arange(6), NeighborLists(*found)))
    merged = merge_lists(lists, 6, 8)
    np.testing.assert_array_equal(merged.distances, distances[:, :8])
    np.testing.assert_array_equal(merged.rows, rows[:, :8])
    again = merge_lists(lists, 6, 40)
    np.testing.assert_array_equal(again.distances[:, :30], distances)
    assert not np.isfinite(again.distances[:, 30:]).any()
    assert (again.rows[:, 30:] == -1).all()
