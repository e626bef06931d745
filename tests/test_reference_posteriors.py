"""The reference posteriors for other implementations agree with what path sampling gives."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from reference_posteriors import DOCUMENT, MODELS, SETS, problem  # noqa: E402

from nearfield.inference import PathSampling  # noqa: E402

POSTERIORS = json.loads(DOCUMENT.read_text())["posteriors"]
SPECTRA = ("meat", "greek_olive_oil")


def assert_agrees(name, model):
    reference = POSTERIORS[name][model]
    family, labels, priors = problem(name, model)
    posterior = PathSampling().infer(np.random.default_rng(1), family, labels, priors)
    assert np.bincount(labels).tolist() == reference["class_counts"]
    errors = np.hypot(posterior.log_evidence_error, reference["log_evidence_error"])
    off = abs(posterior.log_evidence - reference["log_evidence"])
    assert off < 0.1 + 3.0 * errors
    mean, sd = posterior.mean(), posterior.sd()
    for parameter, expected in reference["parameters"].items():
        assert abs(mean[parameter] - expected["mean"]) < 0.1 * expected["sd"]
        assert sd[parameter] == pytest.approx(expected["sd"], rel=0.1)


def test_all_data_sets_and_models_are_there():
    assert set(POSTERIORS) == set(SETS)
    assert all(set(models) == set(MODELS) for models in POSTERIORS.values())


@pytest.mark.parametrize(("name", "model"), [("iris", "gaussian"), ("wine", "k")])
def test_path_sampling_gives_the_reference_posterior(name, model):
    assert_agrees(name, model)


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SETS)
def test_path_sampling_gives_every_reference_posterior(name, model):
    if name in SPECTRA and "NEARFIELD_DATA" not in os.environ:
        pytest.skip("NEARFIELD_DATA names no folder with the spectra")
    assert_agrees(name, model)
