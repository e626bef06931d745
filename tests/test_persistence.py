"""Saved models: the same bit for bit, or refused; never code that runs, never half a file."""

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
import scipy.sparse as sp
from fuzz_files import fuzz
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    _archive,
    load,
    persistence,
    save,
)
from nearfield._files import replace_file
from nearfield._streams import stream_from_plain, stream_to_plain
from nearfield.distances import LEARNED_METRICS
from nearfield.inference import Exchange, Pseudolikelihood
from nearfield.spectra import MultiplicativeScatterCorrection

FIXTURES = Path(__file__).with_name("models")
FAST = "pseudolikelihood"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)) + 2.0 * (np.arange(24) % 2)[:, None]
Y = np.array(["no", "yes"])[np.arange(24) % 2]
NEW = RNG.normal(size=(9, 3))


def gaussian(**arguments):
    return DistanceNeighborsClassifier(**{"inference": FAST} | arguments)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nearfield"


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
    "averaged": NearfieldClassifier(("gaussian",), ("euclidean", "within"), random_state=0),
    "plain": NearfieldClassifier(("gaussian",), ("euclidean",), power_transform=False),
    "class prior": gaussian(class_prior=[0.2, 0.8], fit_intercept=True),
    "spectra": make_pipeline(MultiplicativeScatterCorrection(), gaussian()),
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
    if hasattr(model, "predict_set"):
        np.testing.assert_array_equal(again.predict_set(NEW), model.predict_set(NEW))
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


def test_a_file_with_any_other_byte_is_refused(path):
    save(gaussian().fit(X, Y), path)
    content = path.read_bytes()
    for place in np.linspace(0, len(content) - 1, 120).astype(int):
        changed = bytearray(content)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with damaged():
            load(path)


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"PK\x03\x04", os.urandom(999)])
def test_other_files_are_refused(path, content):
    path.write_bytes(content)
    with damaged(re.escape(repr(str(path)))):
        load(path)


def test_missing_files_are_missing(path):
    with pytest.raises(FileNotFoundError):
        load(path)


def edited(path, change):
    """Change a saved model by a function of its header and arrays, and keep the archive whole."""
    header, arrays = _archive.unpack(path.read_bytes())
    change(header, arrays)
    path.write_bytes(_archive.pack(header, arrays))


def fitted_part(header):
    return header["model"]["record"]["fitted"]


def set_graph_k(header, arrays):
    fitted_part(header)["family"]["graph"]["graph"]["n_neighbors"] = 0


def set_neighbor(header, arrays):
    arrays[fitted_part(header)["family"]["graph"]["graph"]["rows"]][0, 0] = 10**6


def set_label(header, arrays):
    arrays[fitted_part(header)["labels"]][0] = 7


def set_center(header, arrays):
    arrays[header["shared"][0]["standardization"]["center"]][0] = np.nan


def set_factor(header, arrays):
    arrays[header["shared"][0]["standardization"]["factor"]][0] = -1.0


def set_weights(header, arrays):
    arrays[fitted_part(header)["posterior"]["nodes"]["weight"]][:] = 0.0


def set_scale(header, arrays):
    arrays[fitted_part(header)["posterior"]["nodes"]["scale"]][0] = 0.0


def drop_point(header, arrays):
    name = header["shared"][0]["points"]["dense"]
    arrays[name] = arrays[name][:-1]


def drop_classes(header, arrays):
    name = fitted_part(header)["classes"]
    arrays[name] = arrays[name][:1]


def set_unknown_kind(header, arrays):
    header["model"]["kind"] = "os.system"


@pytest.mark.parametrize(
    "change",
    [
        set_graph_k,
        set_neighbor,
        set_label,
        set_center,
        set_factor,
        set_weights,
        set_scale,
        drop_point,
        drop_classes,
        set_unknown_kind,
    ],
)
def test_values_that_no_fit_makes_are_refused(path, change):
    save(gaussian(n_neighbors=5).fit(X, Y), path)
    edited(path, change)
    with damaged("value that no fit makes"):
        load(path)


@pytest.mark.parametrize(
    ("step", "attribute"),
    [(StandardScaler(), "mean"), (MultiplicativeScatterCorrection(), "reference")],
)
def test_a_step_that_lacks_what_it_transforms_by_is_refused(path, step, attribute):
    save(make_pipeline(step, gaussian()).fit(X, Y), path)

    def drop(header, arrays):
        header["model"]["record"]["steps"][0]["record"]["fitted"][attribute] = None

    edited(path, drop)
    with damaged("value that no fit makes"):
        load(path)


def test_only_distributions_of_the_list_are_made(path):
    save(gaussian(prior_beta=stats.norm(0.0, 50.0)), path)

    def change(header, arrays):
        header["model"]["record"]["settings"]["prior_beta"]["prior"][0] = "ttest_ind"

    edited(path, change)
    with damaged("no distribution 'ttest_ind'"):
        load(path)


def test_a_later_version_of_the_format_says_what_to_do(path):
    save(gaussian(), path)
    edited(path, lambda header, arrays: header.update(version=99, nearfield="7.0"))
    with pytest.raises(ValueError, match=r"Expected version 1 .*got 99, written by nearfield 7\.0"):
        load(path)
    edited(path, lambda header, arrays: header.update(format="nearfield checkpoint"))
    with damaged("another kind of file"):
        load(path)


def double(values):
    return 2.0 * values


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (gaussian(metric=lambda a, b: abs(a - b).sum()), "Give metrics and kernels by name"),
        (gaussian(prior_beta=stats.rv_histogram((np.ones(2), np.arange(3.0))).freeze()), "priors"),
        (make_pipeline(FunctionTransformer(double), gaussian()), "FunctionTransformer has no form"),
        (gaussian(metric_params={"w": threading.Lock()}), "plain values"),
        (LogisticRegression(), "LogisticRegression has no form"),
        (3, "int has no form"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(path, model, message):
    with pytest.raises(TypeError, match=message):
        save(model, path)
    assert not path.exists()


def test_precomputed_distances_and_sparse_points_come_back(path):
    distances, new = pairwise_distances(X), pairwise_distances(NEW, X)
    for settings in ({}, {"n_neighbors": 4}):
        model = gaussian(metric="precomputed", **settings).fit(distances, Y)
        save(model, path)
        np.testing.assert_array_equal(load(path).predict_proba(new), model.predict_proba(new))
    model = gaussian().fit(sp.csr_matrix(X), Y)
    save(model, path)
    again = load(path)
    assert sp.issparse(again.metric_space_.points)
    np.testing.assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))


@pytest.mark.parametrize(
    "classes",
    [np.array([3, 7]), np.array([False, True]), np.array([1.0, 2.0]), np.array(["a", "b"], object)],
    ids=lambda classes: str(classes.dtype),
)
def test_classes_of_every_kind_come_back(path, classes):
    model = KNeighborsClassifierCV().fit(X, classes[np.arange(24) % 2])
    save(model, path)
    again = load(path)
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_names_of_features_come_back(path):
    pd = pytest.importorskip("pandas")
    model = gaussian().fit(pd.DataFrame(X, columns=["a", "b", "ü"]), Y)
    save(model, path)
    assert load(path).feature_names_in_.tolist() == ["a", "b", "ü"]


def test_members_of_an_average_share_points_and_spaces(path):
    rng = np.random.default_rng(2)
    labels = np.arange(300) % 3
    points = rng.normal(size=(300, 8)) + labels[:, None] * rng.normal(size=8)
    model = NearfieldClassifier(random_state=0).fit(points, labels)
    save(model, path)
    again = load(path)
    spaces = {id(each.metric_space_) for each in again.estimators_}
    assert len(spaces) == len({id(each.metric_space_) for each in model.estimators_})
    np.testing.assert_array_equal(again.predict_proba(points), model.predict_proba(points))


def test_a_graph_larger_than_the_points_is_searched_anew(path):
    rng = np.random.default_rng(3)
    labels = np.arange(400) % 2
    points = rng.normal(size=(400, 1)) + labels[:, None]
    model = gaussian(n_neighbors=40).fit(points, labels)
    save(model, path)
    header, _ = _archive.unpack(path.read_bytes())
    assert fitted_part(header)["family"]["graph"]["graph"]["rows"] is None
    again = load(path)
    np.testing.assert_array_equal(again.family_.graph.distances, model.family_.graph.distances)
    np.testing.assert_allclose(
        again.predict_proba(points), model.predict_proba(points), rtol=0.0, atol=1e-12
    )


def test_the_same_model_makes_the_same_file(path):
    model = gaussian().fit(X, Y)
    save(model, path)
    first = path.read_bytes()
    save(model, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_random_streams_of_settings_go_on(kind):
    stream = kind(5)
    stream.normal(size=3)
    again = stream_from_plain(json.loads(json.dumps(stream_to_plain(stream))))
    np.testing.assert_array_equal(stream.normal(size=9), again.normal(size=9))


def test_a_stream_that_would_read_beyond_its_buffer_is_refused():
    plain = stream_to_plain(np.random.RandomState(5))
    plain["state"]["pos"] = 625
    with pytest.raises(ValueError, match="out of its range"):
        stream_from_plain(plain)


def npy(array, shape):
    """Give the bytes of an array whose header claims another shape."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue().replace(str(array.shape).encode(), str(shape).encode(), 1)


def zipped(members, **options):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", **options) as archive:
        for name, data in members:
            archive.writestr(name, data)
        archive.comment = bytes(64)
    return _archive.sealed(content.getvalue()[:-64])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("header.json", b"{}"), ("a.npy", npy(np.zeros(10), (10**12,)))], "number of bytes"),
        ([("header.json", b"{}"), ("a.npy", npy(np.zeros(10), (-1,)))], "number of bytes"),
        ([("header.json", b"{}"), ("a.npy", bytes(2**24))], "expands by more than 100"),
        ([("header.json", b"{}"), ("../a.npy", b"")], "not allowed"),
        ([("header.json", b"{}"), ("a.npy", b"1"), ("a.npy", b"2")], "not allowed"),
        ([("header.json", b'{"a": 1, "a": 2}')], "a name twice"),
        ([("header.json", b'{"a": NaN}')], "no number of JSON"),
        ([("header.json", b'{"a": 1e999}')], "1e999 is too large"),
        ([("header.json", b'{"a": 1%s}' % (b"0" * 400))], "is too large"),
        ([("header.json", b"[]")], "no object"),
        ([("a.npy", b"")], "no header"),
    ],
)
def test_archives_that_ask_for_too_much_are_refused_unread(members, message):
    content = zipped(members, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=message):
        _archive.unpack(content)


def test_a_member_that_is_longer_than_it_says_is_cut_off():
    content = zipped([("header.json", b"{}"), ("a.npy", bytes(2**21))], compression=8)
    size = (2**21).to_bytes(4, "little")
    assert content.count(size) == 2  # in the member and in the directory
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        _archive.unpack(_archive.sealed(content[:-64].replace(size, (1_000).to_bytes(4, "little"))))


def test_arrays_that_compress_well_are_not_taken_for_a_bomb():
    arrays = {"zeros": np.zeros(2**20), "text": np.array(["a", "\U0001f600b"])}
    header, again = _archive.unpack(_archive.pack({"a": 1}, arrays))
    assert header == {"a": 1}
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].flags.writeable


def test_arrays_of_objects_are_never_read():
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="the type object"):
        _archive.unpack(zipped([("header.json", b"{}"), ("a.npy", file.getvalue())]))


@pytest.mark.filterwarnings("ignore")
def test_mutated_files_are_refused_or_in_order():
    outcomes = fuzz(300, seed=20)
    assert outcomes["bytes", "refused"] > 60
    assert outcomes["fields", "refused"] > 80
    assert outcomes["bytes", "legitimate"] == 0


@pytest.mark.parametrize("folder", sorted(FIXTURES.iterdir()), ids=lambda folder: folder.name)
def test_files_of_earlier_versions_predict_the_same(folder):
    points = np.load(folder / "points.npy")
    for file in sorted(folder.glob("*.nearfield")):
        expected = np.load(file.with_suffix(".npy"))
        np.testing.assert_allclose(load(file).predict_proba(points), expected, rtol=0, atol=1e-12)


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
    link = tmp_path / "link.nearfield"
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


def test_save_and_load_are_at_the_top():
    assert nearfield.save is save
    assert nearfield.load is load
