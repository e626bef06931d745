"""Fit and predict on Dask collections: what they accept, refuse and give back, on small data."""

import copy
import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import nearfield
from nearfield.datasets import load_wine

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
nearfield_dask = pytest.importorskip("nearfield.dask")

X, Y = load_wine(return_X_y=True)
NAMES = [f"feature {f}" for f in range(X.shape[1])]
FRAME = pd.DataFrame(X, columns=NAMES, index=pd.Index(np.arange(len(X)) * 2, name="bottle"))
GRAPES = pd.Series(
    np.array(["barolo", "grignolino", "barbera"])[np.unique(Y, return_inverse=True)[1]]
)
GRAPES.index = FRAME.index
SETTINGS = {"inference": "pseudolikelihood", "random_state": 0}


@pytest.fixture(autouse=True)
def _here():
    """Most of this needs no cluster."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def local():
    return nearfield.DistanceNeighborsClassifier(**SETTINGS).fit(X, Y)


def fitted(features, classes, **settings):
    model = nearfield_dask.DistanceNeighborsClassifier(**SETTINGS | settings)
    return model.fit(features, classes)


def as_array(values, chunks=50):
    return da.from_array(values, chunks=chunks)


@pytest.fixture(scope="module")
def model():
    with dask.config.set(scheduler="synchronous"):
        return fitted(as_array(X), as_array(Y))


@pytest.mark.parametrize("class_prior", [None, [0.2, 0.3, 0.5]])
def test_arrays_give_the_answers_of_one_machine_lazily(model, local, class_prior):
    model, local = (copy.copy(m).set_params(class_prior=class_prior) for m in (model, local))
    new = as_array(X[::2] + 0.1, chunks=(40, 5))
    values = np.asarray(X[::2] + 0.1)
    pairs = [
        (model.predict_proba(new), local.predict_proba(values)),
        (model.predict_log_proba(new), local.predict_log_proba(values)),
        (model.predict(new), local.predict(values)),
        (model.outlier_score(new), local.outlier_score(values)),
        *zip(
            model.predict_proba_interval(new, 0.8),
            local.predict_proba_interval(values, 0.8),
            strict=True,
        ),
    ]
    for lazy, expected in pairs:
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == new.chunks[0]
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)
    assert model.score(as_array(X), as_array(Y, 33)) == local.score(X, Y)
    np.testing.assert_array_equal(model.to_local().predict_proba(values), pairs[0][1])
    np.testing.assert_array_equal(model.posterior_.beta, local.posterior_.beta)
    np.testing.assert_array_equal(model.class_counts_, np.unique(Y, return_counts=True)[1])


def test_frames_give_frames_with_the_same_index_and_partitions(local):
    features, classes = dd.from_pandas(FRAME, npartitions=3), dd.from_pandas(GRAPES, npartitions=2)
    model = fitted(features, classes)
    probabilities = model.predict_proba(features)
    assert isinstance(probabilities, dd.DataFrame)
    assert probabilities.divisions == features.divisions
    computed = probabilities.compute()
    pd.testing.assert_index_equal(computed.index, FRAME.index)
    assert list(computed.columns) == list(model.classes_) == ["barbera", "barolo", "grignolino"]
    ours = nearfield.DistanceNeighborsClassifier(**SETTINGS).fit(FRAME, GRAPES)
    np.testing.assert_array_equal(computed, ours.predict_proba(FRAME))
    predicted = model.predict(features)
    assert isinstance(predicted, dd.Series)
    assert list(predicted.compute()) == list(ours.predict(FRAME))
    pd.testing.assert_index_equal(predicted.compute().index, FRAME.index)
    assert model.score(features, classes) == ours.score(FRAME, GRAPES)
    assert list(model.feature_names_in_) == NAMES


def test_unknown_lengths_and_empty_blocks_are_counted(local):
    known = as_array(X)
    unknown = known[known[:, 0] > 0.0]
    model = fitted(unknown, as_array(Y, 41))
    np.testing.assert_array_equal(model.posterior_.beta, local.posterior_.beta)
    few = known[known[:, 0] > 14.3]  # in the first block alone
    assert np.isnan(model.predict_proba(few).shape[0])
    expected = local.predict_proba(X[X[:, 0] > 14.3])
    np.testing.assert_array_equal(model.predict_proba(few).compute(), expected)
    assert model.predict(few).compute().shape == expected.shape[:1]
    lower, upper = dask.compute(*model.predict_proba_interval(few))
    assert lower.shape == upper.shape == expected.shape
    features = dd.from_pandas(FRAME, npartitions=4)
    some = features[features["feature 0"] > 14.3]
    classes = dd.from_pandas(GRAPES, npartitions=4)
    of_frame = fitted(features, classes)
    computed = of_frame.predict_proba(some).compute()
    np.testing.assert_allclose(computed, expected[:, [2, 0, 1]], rtol=1e-12)


def test_a_block_may_lack_classes(local):
    order = np.argsort(Y, kind="stable")
    model = fitted(as_array(X[order], 30), as_array(Y[order], 30))
    ours = nearfield.DistanceNeighborsClassifier(**SETTINGS).fit(X[order], Y[order])
    np.testing.assert_array_equal(model.classes_, ours.classes_)
    expected = ours.predict_proba(X[:5])
    np.testing.assert_array_equal(model.predict_proba(as_array(X[:5])).compute(), expected)


def test_a_seed_of_any_kind_is_taken():
    for seed in (3, np.random.RandomState(3), np.random.default_rng(3), None):
        model = fitted(as_array(X), as_array(Y), random_state=seed)
        assert model.score(as_array(X), as_array(Y)) > 0.9


def test_a_pickled_copy_predicts_the_same(model):
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        copy.predict_proba(as_array(X)).compute(), model.predict_proba(as_array(X)).compute()
    )


def test_the_estimator_can_be_brought_home(model, local):
    np.testing.assert_array_equal(model.to_local().predict_proba(X), local.predict_proba(X))


def test_a_learned_metric_is_there(local):
    model = fitted(as_array(X), as_array(Y), metric="within")
    ours = nearfield.DistanceNeighborsClassifier(**SETTINGS, metric="within").fit(X, Y)
    np.testing.assert_allclose(
        model.predict_proba(as_array(X)).compute(), ours.predict_proba(X), atol=1e-12
    )
    assert type(model.metric_learner_) is type(ours.metric_learner_)


BAD_FITS = {
    "memory": (lambda: (X, as_array(Y)), TypeError, "X as a Dask array or frame; got ndarray"),
    "labels in memory": (lambda: (as_array(X), Y), TypeError, "y as a Dask array or frame"),
    "cube": (lambda: (as_array(X[None], 9), as_array(Y)), TypeError, "of 3 dimensions"),
    "one feature": (lambda: (as_array(X[:, 0]), as_array(Y)), ValueError, "two dimensions"),
    "lengths": (lambda: (as_array(X), as_array(Y[:-1])), ValueError, "177 labels and 178 rows"),
    "few": (lambda: (as_array(X[:2]), as_array(Y[:2])), ValueError, "at least 3 rows"),
    "one class": (lambda: (as_array(X), as_array(0 * Y)), ValueError, "one class"),
    "all classes": (
        lambda: (as_array(X), as_array(np.arange(len(X)))),
        ValueError,
        "fewer classes",
    ),
    "numbers": (lambda: (as_array(X), as_array(X[:, 0] + 0.5)), ValueError, "continuous"),
    "no label": (
        lambda: (as_array(X), as_array(np.where(Y == 1, np.nan, Y))),
        ValueError,
        "class for every row",
    ),
    "no value": (
        lambda: (as_array(np.where(X > 1_000.0, np.nan, X)), as_array(Y)),
        ValueError,
        "NaN",
    ),
    "text": (lambda: (as_array(X.astype(str) + "a"), as_array(Y)), ValueError, "convert string"),
}


@pytest.mark.parametrize("case", BAD_FITS)
def test_what_cannot_be_fitted_is_refused(case):
    make, error, message = BAD_FITS[case]
    with pytest.raises(error, match=message):
        fitted(*make())


def test_precomputed_distances_are_refused():
    with pytest.raises(ValueError, match="metric of features on Dask"):
        fitted(as_array(X), as_array(Y), metric="precomputed")


OTHERS = {
    "ProbabilisticKNeighborsClassifier": SETTINGS,
    "NearfieldClassifier": {"metrics": ("euclidean",), "n_folds": 2, "random_state": 0},
}
SPECTRA = {"preprocess": "spectra", "metrics": ("within",), "n_folds": 2, "random_state": 0}


@pytest.mark.parametrize("name", OTHERS)
def test_other_classifiers_give_the_answers_of_one_machine(name, tmp_path):
    theirs = getattr(nearfield_dask, name)(**OTHERS[name]).fit(as_array(X), as_array(Y))
    ours = getattr(nearfield, name)(**OTHERS[name]).fit(X, Y)
    new = as_array(X, 70)
    np.testing.assert_array_equal(theirs.predict_proba(new).compute(), ours.predict_proba(X))
    np.testing.assert_array_equal(theirs.predict(new).compute(), ours.predict(X))
    np.testing.assert_array_equal(theirs.outlier_score(new).compute(), ours.outlier_score(X))
    for bound, expected in zip(
        theirs.predict_proba_interval(new), ours.predict_proba_interval(X), strict=True
    ):
        np.testing.assert_array_equal(bound.compute(), expected)
    np.testing.assert_array_equal(theirs.membership(new).compute(), ours.membership(X))
    np.testing.assert_array_equal(theirs.predict_set(new).compute(), ours.predict_set(X))
    np.testing.assert_array_equal(theirs.decide(new).compute(), ours.decide(X))
    assert theirs.score(new, as_array(Y)) == ours.score(X, Y)
    copy = pickle.loads(pickle.dumps(theirs))
    np.testing.assert_array_equal(copy.predict_proba(new).compute(), ours.predict_proba(X))
    nearfield.save(theirs, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.predict_proba(X), ours.predict_proba(X))


def test_spectra_are_preprocessed_as_on_one_machine():
    wide = np.hstack([X, X[:, ::-1]])
    theirs = nearfield_dask.NearfieldClassifier(**SPECTRA).fit(as_array(wide), as_array(Y))
    ours = nearfield.NearfieldClassifier(**SPECTRA).fit(wide, Y)
    found = theirs.predict_proba(as_array(wide, 70)).compute()
    # Blocks of 70 rows and all rows are multiplied by the map of a metric in another order.
    np.testing.assert_allclose(found, ours.predict_proba(wide), rtol=0.0, atol=1e-14)


def test_an_average_is_described_and_refuses_what_makes_none():
    model = nearfield_dask.NearfieldClassifier(metrics=("euclidean",), n_folds=2, random_state=0)
    with pytest.raises(NotFittedError):
        model.summary()
    assert len(model.fit(as_array(X), as_array(Y)).summary()) == 2
    with pytest.raises(ValueError, match="averaging"):
        model.set_params(averaging="voting").fit(as_array(X), as_array(Y))


def test_what_cannot_be_predicted_is_refused(model):
    with pytest.raises(TypeError, match="got ndarray"):
        model.predict(X)
    with pytest.raises(ValueError, match="12 features"):
        model.predict_proba(as_array(X[:, 1:]))
    with pytest.raises(ValueError, match="level"):
        model.predict_proba_interval(as_array(X), 1.0)
    with pytest.raises(ValueError, match="class_prior"):
        copy.copy(model).set_params(class_prior=[1.0]).predict_proba(as_array(X))
    with pytest.raises(ValueError, match="to_local"):
        model.predict_joint(as_array(X))
    with pytest.raises(ValueError, match="to_local"):
        model.influence(as_array(X))
    with pytest.raises(ValueError, match=r"to_local\(\)\.explain"):
        model.explain(as_array(X))
    with pytest.raises(ValueError, match="177 for 178 rows"):
        model.score(as_array(X), as_array(Y[1:]))
    with pytest.raises(NotFittedError):
        nearfield_dask.DistanceNeighborsClassifier().predict(as_array(X))


def test_decisions_are_those_of_one_machine(model):
    local = model.to_local()
    x = as_array(X)
    np.testing.assert_array_equal(model.membership(x).compute(), local.membership(X))
    np.testing.assert_array_equal(model.predict_set(x, 0.8).compute(), local.predict_set(X, 0.8))
    np.testing.assert_array_equal(model.decide(x).compute(), local.decide(X))


def test_a_metric_with_gaps_is_brought_home_and_decides_there(tmp_path):
    gappy = np.where(X > 1_000.0, np.nan, X)
    model = fitted(as_array(gappy), as_array(Y), metric="nan_euclidean")
    ours = nearfield.DistanceNeighborsClassifier(**SETTINGS, metric="nan_euclidean").fit(gappy, Y)
    np.testing.assert_array_equal(model.held_out_proba_, ours.held_out_proba_)
    with pytest.raises(ValueError, match=r"without gaps.*to_local"):
        model.membership(as_array(gappy))
    nearfield.save(model, tmp_path / "model.nearfield")
    loaded = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(loaded.membership(gappy), ours.membership(gappy))


def test_frames_with_other_names_are_refused():
    features = dd.from_pandas(FRAME, npartitions=2)
    model = fitted(features, dd.from_pandas(GRAPES, npartitions=2))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(features.rename(columns={"feature 1": "colour"}))


def test_without_dask_the_import_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(ImportError, match=r'pip install "nearfield\[dask\]"'):
        importlib.reload(nearfield_dask)
