"""Mutations of model files and checkpoints: `python tests/fuzz_files.py [n_mutations] [seed]`.

A mutated file is refused with a ValueError, or what it gives is in order: probabilities that are
finite and sum to one, and the same as before if only bytes were changed, which the checksums of
the archive tell. Anything else, such as another exception, a crash of the process or a minute
without an answer, is a failure.
"""

import copy
import dataclasses
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from oracle import tiny_family, tiny_labels, tiny_priors
from scipy import stats
from sklearn.metrics import pairwise_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    load,
    save,
)
from nearfield._archive import pack, sealed, unpack
from nearfield.inference import AuxiliaryVariable, Exchange, Pseudolikelihood
from nearfield.spectra import (
    MultiplicativeScatterCorrection,
    SavitzkyGolay,
    StandardNormalVariate,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)) + 2.0 * (np.arange(24) % 2)[:, None]
Y = np.array(["no", "yes"])[np.arange(24) % 2]
NEW = RNG.normal(size=(7, 3))
SEED = {"random_state": 0}
TABLE = pd.DataFrame(
    {"a": X[:, 0], "b": X[:, 1] > 0.5, "c": np.array(list("uvw"))[np.arange(24) % 3]}
)
TABLE.loc[3, "a"] = np.nan
NEW_TABLE = pd.DataFrame({"a": NEW[:, 0], "b": NEW[:, 1] > 0.5, "c": list("uvwuvxu")})
WIDE, NEW_WIDE = (points @ RNG.normal(size=(3, 24)) for points in (X, NEW))
SPECTRA_STEPS = MultiplicativeScatterCorrection(), SavitzkyGolay(5), StandardNormalVariate()
FAST = {"inference": "pseudolikelihood"}
NUMBERS = (0, -1, 1, 2, 24, 25, 64, 2**31, 2**31 - 1, 2**40, -(2**63), 10**400, 0.5, -0.0, 1e-320)
VALUES = (*NUMBERS, 1e308, 1e151, None, True, False, "", "a0", "a1", "radius", [], {}, [1, [2]])
ELEMENTS = (0.0, -1.0, 1.0, 23.0, 24.0, 1e9, 1e155, 1e308, np.inf, -np.inf, np.nan, 2.0**31)


def models():
    """Fit a small model of every kind: (name, model, what to predict from)."""
    d_nn, pk_nn = DistanceNeighborsClassifier, ProbabilisticKNeighborsClassifier
    distances, new_distances = pairwise_distances(X), pairwise_distances(NEW, X)
    given = [
        ("gaussian", d_nn(**FAST), X, NEW),
        ("radius", d_nn("radius", prior_beta=stats.norm(0.0, 50.0), **FAST), X, NEW),
        ("exponential", d_nn("exponential", metric="ard", **FAST), X, NEW),
        ("quadratic", d_nn(metric="quadratic", **FAST), X, NEW),
        ("graph", d_nn(n_neighbors=5, random_state=np.random.default_rng(1), **FAST), X, NEW),
        ("seuclidean", d_nn(metric="seuclidean", predictive="printed", **FAST), X, NEW),
        ("sparse", d_nn(metric="manhattan", **FAST), sp.csr_matrix(X), sp.csr_matrix(NEW)),
        ("precomputed", d_nn(metric="precomputed", **FAST), distances, new_distances),
        (
            "given graph",
            d_nn(metric="precomputed", n_neighbors=4, **FAST),
            distances,
            new_distances,
        ),
        ("symmetric", pk_nn(inference=Pseudolikelihood(density=2.0)), X, NEW),
        ("directed", pk_nn("directed", prior_k=stats.randint(1, 6)), X, NEW),
        ("votes", KNeighborsClassifierCV("manhattan"), X, NEW),
        ("average", NearfieldClassifier(**SEED), X, NEW),
        ("table", NearfieldClassifier(metrics=("euclidean", "within"), **SEED), TABLE, NEW_TABLE),
        ("pipeline", make_pipeline(StandardScaler(), d_nn(**FAST)), X, NEW),
        ("spectra steps", make_pipeline(*SPECTRA_STEPS, d_nn(**FAST)), WIDE, NEW_WIDE),
        ("spectra", NearfieldClassifier(preprocess="spectra", **SEED), WIDE, NEW_WIDE),
    ]
    return [(name, model.fit(points, Y), new) for name, model, points, new in given]


def mutate_bytes(rng, content):
    """Change some bytes, cut the file, or repeat a part of it; seal it anew, or not."""
    is_sealed = rng.random() < 0.7
    return sealed(_mutate_bytes(rng, content[:-64])) if is_sealed else _mutate_bytes(rng, content)


def _mutate_bytes(rng, content):
    changed = bytearray(content)
    kind = rng.integers(4)
    start = int(rng.integers(len(content)))
    if kind == 0:
        return bytes(changed[:start])
    if kind == 1:
        stop = min(len(content), start + int(rng.integers(1, 50)))
        return bytes(changed[:start] + changed[start:stop] + changed[start:])
    for place in rng.integers(len(content), size=int(rng.integers(1, 4))):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def mutate_fields(rng, content):
    """Change one value of the header, or one array, and keep the archive whole."""
    header, arrays = unpack(content)
    header, arrays = copy.deepcopy(header), dict(arrays)
    if rng.random() < 0.5 or not arrays:
        _mutate_header(rng, header)
    else:
        name = str(rng.choice(sorted(arrays)))
        arrays[name] = _mutate_array(rng, arrays[name], list(arrays.values()))
    try:
        return pack(header, arrays)
    except ValueError:  # what JSON cannot say
        return content[:-1]


def _mutate_header(rng, header):
    places = list(_places(header))
    parent, key = places[rng.integers(len(places))]
    kind = rng.integers(4)
    if kind == 0 and isinstance(parent, dict):
        del parent[key]
    elif kind == 1:  # what is elsewhere in the file
        other, place = places[rng.integers(len(places))]
        parent[key] = copy.deepcopy(other[place])
    elif kind == 2 and isinstance(parent[key], int | float):
        parent[key] += int(rng.choice([-1, 1, 1000]))
    else:
        parent[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def _places(tree):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(items):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _mutate_array(rng, array, others):
    kind = rng.integers(6)
    if kind == 0:
        return others[rng.integers(len(others))]
    if kind == 1:
        return array[:-1] if array.ndim else array
    if kind == 2 and array.dtype.kind != "U":
        return array.astype(str(rng.choice(["<f4", "<f8", "<i4", "<i8", "|b1", "<U3"])))
    if kind == 3:
        return np.concatenate([array, array]) if array.ndim else array
    changed = array.copy()
    if array.dtype.kind in "if" and array.size:
        for place in rng.integers(array.size, size=int(rng.integers(1, 3))):
            value = ELEMENTS[rng.integers(len(ELEMENTS))]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                changed.flat[place] = np.array(value).astype(array.dtype)
    return changed


def check_model(path, new, expected, is_same):
    """Load a mutated file and predict; return "refused", "same" or "legitimate"."""
    try:
        model = load(path)
        probabilities = model.predict_proba(new)
        if hasattr(model, "outlier_score"):
            model.outlier_score(new)
            model.predict_proba_interval(new)
    except ValueError:
        return "refused"
    except AttributeError:
        if hasattr(model, "classes_"):
            raise
        return "refused"  # whole, and not fitted
    assert len(probabilities) == len(expected)
    is_shaped = probabilities.shape == expected.shape
    if is_shaped and np.allclose(probabilities, expected, rtol=0.0, atol=1e-12):
        return "same"
    assert not is_same, f"other probabilities, past the checksums: {probabilities - expected}"
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-6)
    return "legitimate"


def run_engine(engine, path):
    family = tiny_family("gaussian")
    settings = {"n_draws": 12, "n_burn": 6, "n_sweeps": 3, "n_chains": 2, "checkpoint": path}
    return dataclasses.replace(engine, **settings).infer(
        np.random.default_rng(1), family, tiny_labels(family), tiny_priors(family)
    )


def check_checkpoint(engine, path, expected, is_same):
    """Go on from a mutated checkpoint; return "refused", "same" or "legitimate"."""
    try:
        posterior = run_engine(engine, path)
    except ValueError:
        return "refused"
    if np.array_equal(posterior.beta, expected.beta) and np.array_equal(
        posterior.scale, expected.scale
    ):
        return "same"
    assert not is_same, "other draws, past the checksums"
    assert np.isfinite(posterior.beta).all()
    assert (posterior.scale > 0.0).all()
    return "legitimate"


def cases(folder):
    """Give, for each kind of file, its name, its content, and what checks a mutated one."""
    path = Path(folder) / "file"
    for name, model, new in models():
        save(model, path)
        again = load(path).predict_proba(new)
        yield name, path.read_bytes(), lambda p, s, n=new, e=again: check_model(p, n, e, s)
    for engine in (Exchange(), AuxiliaryVariable()):
        path.unlink()
        expected = run_engine(engine, path)
        check = lambda p, s, g=engine, e=expected: check_checkpoint(g, p, e, s)  # noqa: E731
        yield type(engine).__name__, path.read_bytes(), check


def fuzz(n_mutations, seed, max_seconds=60):
    """Mutate files of every kind in turn; return the number of each outcome."""
    rng, outcomes = np.random.default_rng(seed), Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kinds = list(cases(folder))
        path = Path(folder) / "mutated"
        for k in range(n_mutations):
            name, content, check = kinds[k % len(kinds)]
            is_bytes = rng.random() < 0.3
            path.write_bytes((mutate_bytes if is_bytes else mutate_fields)(rng, content))
            if hasattr(signal, "alarm"):
                signal.alarm(max_seconds)
            try:
                with np.errstate(all="ignore"):
                    outcomes["bytes" if is_bytes else "fields", check(path, is_bytes)] += 1
            except BaseException:
                kept = Path(tempfile.gettempdir()) / f"fuzz-{seed}-{k}"
                kept.write_bytes(path.read_bytes())
                print(f"mutation {k} of seed {seed}, {name}: kept as {kept}", file=sys.stderr)
                raise
            finally:
                if hasattr(signal, "alarm"):
                    signal.alarm(0)
    return outcomes


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    n, seed = [*arguments, *(100_000, 1)[len(arguments) :]]
    started = time.process_time()
    for batch in range(0, n, 1_000):
        outcome = fuzz(min(1_000, n - batch), seed + batch)
        print(
            batch + min(1_000, n - batch), dict(outcome), f"{time.process_time() - started:.0f} s"
        )
