import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from killed_run import infer as infer_uninterrupted
from oracle import tiny_family, tiny_labels, tiny_priors
from scipy import stats

from nearfield._streams import stream_from_plain, stream_to_plain
from nearfield.field import DistanceFamily
from nearfield.inference import _chains, _checkpoint
from nearfield.inference._checkpoint import Checkpoint
from nearfield.inference._priors import Priors
from nearfield.inference.exchange import Exchange, ExchangeSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SCRIPT = Path(__file__).with_name("killed_run.py")
SHORT = Exchange(n_draws=20, n_burn=10, n_sweeps=5, n_chains=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def infer(path, seed=1, family=None, labels=None, priors=None, **settings):
    family = tiny_family("gaussian") if family is None else family
    labels = tiny_labels(tiny_family("gaussian")) if labels is None else labels
    priors = tiny_priors(family) if priors is None else priors
    engine = dataclasses.replace(SHORT, checkpoint=path, **settings)
    return engine.infer(np.random.default_rng(seed), family, labels, priors)


def assert_same_draws(one, two):
    np.testing.assert_array_equal(one.beta, two.beta)
    np.testing.assert_array_equal(one.scale, two.scale)
    np.testing.assert_array_equal(one.acceptance_rates, two.acceptance_rates)


@pytest.mark.parametrize(
    ("engine", "n_kills"),
    [
        ("exchange", 3),
        ("auxiliary", 1),
        pytest.param("exchange", 20, marks=pytest.mark.long),
        pytest.param("auxiliary", 20, marks=pytest.mark.long),
    ],
)
def test_a_run_killed_at_any_moment_goes_on_bit_for_bit(engine, n_kills, path, tmp_path):
    result = tmp_path / "result.npz"
    command = [sys.executable, str(SCRIPT), engine, str(path), str(result)]
    rng = np.random.default_rng(3)
    progress, most_saves = [0], 4 if n_kills < 5 else 2  # or many runs would come to the end
    for _ in range(n_kills):
        process = subprocess.Popen(command)
        wait_for_saves(path, process, n_saves=2 + int(rng.integers(most_saves)))
        time.sleep(rng.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        progress.append(n_iterations_done(path))
    assert progress == sorted(set(progress))  # every run got further
    assert progress[-1] < 5_000
    subprocess.run(command, check=True)
    expected = infer_uninterrupted(engine)
    with np.load(result) as draws:
        np.testing.assert_array_equal(draws["beta"], expected.beta)
        np.testing.assert_array_equal(draws["sigma"], expected.sigma)


def wait_for_saves(path, process, n_saves):
    last = path.stat().st_mtime_ns if path.exists() else 0
    for _ in range(n_saves):
        while (now := path.stat().st_mtime_ns if path.exists() else 0) == last:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.001)
        last = now


def n_iterations_done(path):
    with np.load(path, allow_pickle=False) as archive:
        return int(archive["counts"][:, 1].sum())


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_save_that_fails_leaves_the_last_checkpoint(path, monkeypatch, moment):
    expected = infer(None)
    infer(path, n_draws=1)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("no space left on device")

    calls = {"before": (_checkpoint, "pack"), "during": (os, "fsync"), "after": (os, "replace")}
    with monkeypatch.context() as patch:
        patch.setattr(*calls[moment], fail)
        with pytest.raises(OSError, match="no space"):
            infer(path, n_draws=1)
    assert path.read_bytes() == before
    path.unlink()
    assert_same_draws(infer(path), expected)


@pytest.mark.parametrize("n_steps", [0, 1, 7, 25, 45])
def test_ctrl_c_leaves_a_usable_checkpoint(path, monkeypatch, n_steps):
    expected = infer(None)
    monkeypatch.setattr(_chains, "ROUND_SECONDS", 0.0)
    step, calls = ExchangeSampler.step, []

    def interrupted_step(self, *arguments):
        calls.append(1)
        if len(calls) > n_steps:
            raise KeyboardInterrupt
        return step(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ExchangeSampler, "step", interrupted_step)
        with pytest.raises(KeyboardInterrupt):
            infer(path)
    assert n_iterations_done(path) >= n_steps - 1  # the round that was under way is lost
    assert_same_draws(infer(path), expected)


def test_a_finished_run_gives_its_result_at_once(path, monkeypatch):
    expected = infer(path)

    def never(*_):
        raise AssertionError("a finished run has no moves left")

    monkeypatch.setattr(ExchangeSampler, "step", never)
    assert_same_draws(infer(path), expected)


def test_a_checkpoint_changes_no_draw_and_leaves_one_file(path):
    assert_same_draws(infer(path), infer(None))
    assert list(path.parent.iterdir()) == [path]


def other_family():
    family = tiny_family("gaussian")
    distances = family.distances.copy()
    distances[0, 1] = distances[1, 0] = np.nextafter(distances[0, 1], np.inf)
    return DistanceFamily(distances, "gaussian", 2)


@pytest.mark.parametrize(
    "other",
    [
        {"labels": np.array([0, 1, 0, 1, 0, 1, 0, 1])},
        {"family": other_family()},
        {"family": tiny_family("radius")},
        {"priors": Priors(stats.norm(0.0, 2.0), stats.uniform(0.1, 2.4))},
        {"priors": Priors(stats.norm(0.5, 1.0), stats.uniform(0.1, 2.5))},
        {"seed": 2},
        {"n_draws": 21},
        {"n_burn": 11},
        {"n_sweeps": 6},
        {"n_chains": 3},
        {"start": "data"},
    ],
    ids=lambda other: "-".join(other),
)
def test_a_checkpoint_of_another_run_is_refused_and_kept(path, other):
    infer(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint of this run"):
        infer(path, **other)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_refused_and_kept(path):
    infer(path)
    whole = path.read_bytes()
    truncated = [whole[:length] for length in range(0, len(whole), 499)]
    for damaged in [b"no checkpoint at all", *truncated]:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="damaged or no checkpoint"):
            infer(path)
        assert path.read_bytes() == damaged
    for position in range(0, len(whole), 61):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        with pytest.raises(ValueError, match="damaged or no checkpoint"):
            infer(path)


def test_a_foreign_archive_is_refused(path):
    np.savez(path, draws=np.zeros(3))
    with pytest.raises(ValueError, match="damaged or no checkpoint"):
        infer(path)


def test_a_path_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(_chains, "start_chain", None)
    for path in (tmp_path / "missing" / "run.npz", tmp_path):
        with pytest.raises(ValueError, match="folder that exists"):
            infer(path)


@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_random_stream_comes_back_from_a_checkpoint(name):
    rng = np.random.Generator(getattr(np.random, name)(5))
    rng.random(3)
    rng.integers(5, dtype=np.int32)  # leaves half of a number in the buffer
    again = stream_from_plain(json.loads(json.dumps(stream_to_plain(rng))))
    np.testing.assert_array_equal(rng.random(50), again.random(50))


def test_checkpoints_are_named_by_paths_of_any_kind(path):
    assert Checkpoint.open(str(path), "f").path == path
