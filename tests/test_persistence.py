"""Saved models: the same bit for bit, or refused; never code that runs, never half a file."""

import doctest
import io
import json
import os
import re
import stat
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    load,
    persistence,
    save,
)
from nearfield._files import replace_file
from nearfield.distances import LEARNED_METRICS
from nearfield.inference import Exchange, Pseudolikelihood
from nearfield.inference._priors import unpack_prior

FAST = "pseudolikelihood"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)) + 2.0 * (np.arange(24) % 2)[:, None]
Y = np.array(["no", "yes"])[np.arange(24) % 2]
NEW = RNG.normal(size=(9, 3))


def gaussian(**arguments):
    return DistanceNeighborsClassifier(**{"inference": FAST} | arguments)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def damaged(message="damaged or of another kind"):
    return pytest.raises(ValueError, match=message)


MODELS = {
    "gaussian": gaussian(),
    "radius": gaussian(kernel="radius", prior_beta=stats.norm(0.0, 50.0)),
    "exponential": gaussian(kernel="exponential", prior_sigma=stats.gamma(2.0, scale=3.0)),
    "printed": gaussian(predictive="printed", standardize=False),
    "symmetric": ProbabilisticKNeighborsClassifier(inference=Pseudolikelihood(density=2.0)),
    "directed": ProbabilisticKNeighborsClassifier("directed", prior_k=stats.randint(1, 6)),
    "cv": KNeighborsClassifierCV("manhattan"),
    "seuclidean": gaussian(metric="seuclidean"),
    "generator": gaussian(random_state=np.random.default_rng(3)),
    "random state": gaussian(random_state=np.random.RandomState(3)),
    "averaged": NearfieldClassifier(("gaussian",), ("euclidean", "within")),
    "pipeline": make_pipeline(StandardScaler(), gaussian(standardize=False)),
} | {name: gaussian(metric=name) for name in LEARNED_METRICS}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_after_a_round_trip_are_equal_bit_for_bit(name, path):
    model = MODELS[name].fit(X, Y)
    save(model, path)
    again = load(path)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert repr(again) == repr(model) or "0x" in repr(model)
    save(again, path)
    np.testing.assert_array_equal(load(path).predict_proba(NEW), model.predict_proba(NEW))


def test_all_that_was_fitted_comes_back(path):
    model = gaussian(prior_beta=stats.gamma(2.0, scale=3.0)).fit(X, Y)
    save(model, str(path))
    again = load(str(path))
    assert again.log_evidence_ == model.log_evidence_
    assert again.inference_ == FAST
    assert again.posterior_.summary().equals(model.posterior_.summary())
    assert again.prior_beta.mean() == again.priors_.beta.mean() == 6.0
    np.testing.assert_array_equal(again.classes_, ["no", "yes"])
    for ours, theirs in zip(
        again.predict_proba_interval(NEW), model.predict_proba_interval(NEW), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(again.outlier_score(NEW), model.outlier_score(NEW))
    np.testing.assert_array_equal(again.fit(X, Y).predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.filterwarnings("ignore:Expected R-hat")
def test_draws_and_their_settings_come_back(path, tmp_path):
    settings = Exchange(
        n_draws=20, n_burn=20, n_sweeps=2, n_chains=2, checkpoint=tmp_path / "run.npz"
    )
    model = gaussian(inference=settings, random_state=1).fit(X, Y)
    save(model, path)
    again = load(path)
    assert again.inference == settings
    assert again.posterior_.beta.shape == (2, 20)
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_models_that_are_not_fitted_come_back_too(path):
    save(gaussian(kernel="radius"), path)
    assert load(path).get_params()["kernel"] == "radius"


def test_cut_files_are_refused(path):
    save(gaussian().fit(X, Y), path)
    content = path.read_bytes()
    for share in (0.0, 0.01, 0.3, 0.7, 0.99):
        path.write_bytes(content[: int(share * len(content))])
        with damaged():
            load(path)


def test_damaged_files_are_refused_or_harmless(path):
    model = gaussian().fit(X, Y)
    expected = model.predict_proba(NEW)
    save(model, path)
    content = path.read_bytes()
    n_refused = 0
    for place in np.linspace(0, len(content) - 1, 120).astype(int):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        try:
            again = load(path)
        except ValueError:  # and nothing else
            n_refused += 1
        else:  # a date or a flag of the archive, nothing of the model
            np.testing.assert_array_equal(again.predict_proba(NEW), expected)
    assert n_refused > 80


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"PK\x03\x04", os.urandom(999)])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with damaged(re.escape(repr(str(path)))):
        load(path)


def test_missing_files_are_missing(path):
    with pytest.raises(FileNotFoundError):
        load(path)


class Trap:
    """Does harm when it is made."""

    def __reduce__(self):
        return (Trap, ())

    def __new__(cls):
        (Path.cwd() / "harm").touch()
        return super().__new__(cls)

    def __setstate__(self, state):
        (Path.cwd() / "harm").touch()


def test_foreign_types_are_refused_and_nothing_of_them_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = gaussian(metric_params={"trap": Trap()})
    skops.io.dump({"format": 1, "nearfield": "0", "estimator": model}, path)
    (tmp_path / "harm").unlink()  # the trap works
    with pytest.raises(ValueError, match=r"got \['.*Trap'\]. Nothing was loaded.*trusted"):
        load(path)
    assert not (tmp_path / "harm").exists()


def edited(path, change):
    """Change the description of a saved model, and keep the archive whole."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["schema.json"] = change(parts["schema.json"].decode()).encode()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    path.write_bytes(content.getvalue())


@pytest.mark.parametrize(
    ("module", "name"), [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")]
)
def test_functions_that_run_things_are_refused(path, module, name):
    save(gaussian(), path)
    node = {"__class__": name, "__module__": module, "__loader__": "FunctionNode"}

    def change(schema):
        tree = json.loads(schema)
        state = tree["content"]["estimator"]["content"]["content"]
        state["metric"] = node | {"content": {"module_path": module, "function": name}}
        return json.dumps(tree)

    edited(path, change)
    with pytest.raises(ValueError, match=rf"{module}\.{name}|damaged"):
        load(path)


def test_only_distributions_are_made_from_their_names(path):
    save(gaussian(prior_beta=stats.norm(0.0, 50.0)), path)
    edited(path, lambda schema: schema.replace('\\"norm\\"', '\\"ttest_ind\\"'))
    with damaged():
        load(path)
    with pytest.raises(ValueError, match=r"Expected a distribution of .* got 'ttest_ind'"):
        unpack_prior({"scipy.stats": "ttest_ind", "args": [], "kwds": {}})


def test_files_of_something_else_are_refused(path):
    for content in ({"a": 1}, [1, 2], {"format": 1, "nearfield": "0", "estimator": 3}):
        skops.io.dump(content, path)
        with pytest.raises(ValueError, match=r"written by nearfield\.save"):
            load(path)
    skops.io.dump({"format": 99, "nearfield": "7.0", "estimator": gaussian()}, path)
    with pytest.raises(ValueError, match=r"Expected format 1 .*got 99, written by nearfield 7\.0"):
        load(path)


def double(values):
    return 2.0 * values


def test_what_could_not_be_loaded_is_not_saved(path):
    for model in (
        gaussian(metric=lambda a, b: abs(a - b).sum()),
        gaussian(prior_beta=stats.rv_histogram((np.ones(2), np.arange(3.0))).freeze()),
        make_pipeline(FunctionTransformer(double), gaussian()),
        gaussian(metric_params={"w": threading.Lock()}),
    ):
        with pytest.raises(TypeError, match="Expected a model made of"):
            save(model, path)
    with pytest.raises(TypeError, match="Expected an estimator; got int"):
        save(3, path)
    assert not path.exists()


def test_further_types_can_be_trusted_by_name(path):
    model = make_pipeline(FunctionTransformer(double), gaussian()).fit(X, Y)
    name = f"{double.__module__}.double"
    save(model, path, trusted=[name])
    with pytest.raises(ValueError, match="Expected only types that nearfield knows"):
        load(path)
    again = load(path, trusted=[name])
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


def test_other_estimators_of_scikit_learn_are_fine(path):
    save(LogisticRegression().fit(X, Y), path)
    assert load(path).score(X, Y) > 0.5


def test_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(gaussian(kernel="radius"), path)

    def fail(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(persistence.os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        save(gaussian(), path)
    assert load(path).kernel == "radius"
    assert list(path.parent.iterdir()) == [path]


def test_file_is_replaced_in_one_piece(path):
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace_file(path, b"new")
        assert reader.read() == b"old"  # whoever had it open still sees the old one, whole
    assert path.read_bytes() == b"new"


def test_links_stay_links_and_others_may_read_the_file(path, tmp_path):
    link = tmp_path / "link.skops"
    link.symlink_to(path)
    replace_file(link, b"content")
    assert link.is_symlink()
    assert path.read_bytes() == b"content"
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Expected a folder '.*nowhere' to write 'model'"):
        save(gaussian(), tmp_path / "nowhere" / "model")


def test_example_in_the_documentation_is_true():
    results = doctest.testmod(persistence)
    assert results.attempted > 5
    assert results.failed == 0


def test_save_and_load_are_at_the_top():
    assert nearfield.save is save
    assert nearfield.load is load
