"""Runs of the benchmark: one small file for each data set, split and method."""

import json
import os
import time
import warnings
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield._files import replace_file
from nearfield.benchmark.methods import METHODS, Shape
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.datasets import stratified_split
from nearfield.reproduction.metrics import point_losses

FIRST_SEED = 1000
"""Of the splits: the methods were made and tuned on others, with seeds below this."""

PACKAGES = ("nearfield", "numpy", "scipy", "scikit-learn", "numba")


class Task(NamedTuple):
    """One method on one split of one data set, and the file that its result goes to."""

    problem: str
    split: int
    method: str
    path: Path


def run_benchmark(
    folder: str | os.PathLike[str],
    *,
    problems: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_splits: int = 20,
    seed: int = FIRST_SEED,
    data_home: Path | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Run what is not yet in the folder, and return all results.

    Stopped at any moment it loses at most what was under way; called again it goes on. The first
    splits of all data sets come first, so that a run cut short is a smaller benchmark.

    Parameters
    ----------
    folder : str or path
        Made if it is not there.
    problems, methods : sequence of str, optional
        Names among `PROBLEMS` and `METHODS`; all by default. Data that is not there is left out.
    n_splits : int
        Stratified splits of each data set.
    seed : int
        Split s of a data set is drawn with seed + s, the same for all methods.
    data_home : path, optional
        The folder with the spectra.
    n_jobs : int, optional
        Tasks at a time. Times are measured best one at a time.
    verbose : int
        From 1 on, a line on standard error a task.

    Returns
    -------
    results : DataFrame
        As of `read_results`.
    """
    folder = Path(folder)
    chosen = _chosen([problem.name for problem in PROBLEMS], problems, "problems")
    names = _chosen(list(METHODS), methods, "methods")
    loaded = {}
    for problem in PROBLEMS:
        if problem.name in chosen:
            try:
                loaded[problem.name] = problem, problem.load(data_home)
            except FileNotFoundError as error:
                warnings.warn(f"Without {problem.name}: {error}", stacklevel=2)
    tasks = [
        Task(name, split, method, folder / _slug(name) / f"{split:02d} {_slug(method)}.json")
        for split in range(n_splits)
        for name in loaded
        for method in names
    ]
    Parallel(n_jobs=n_jobs, verbose=10 * verbose)(
        delayed(_run_task)(task, *loaded[task.problem], seed)
        for task in tasks
        if not task.path.exists()
    )
    return read_results(folder)


def read_results(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read all results in a folder: a row for each data set, split and method.

    Returns
    -------
    results : DataFrame
        With columns problem, split, method, n_train, n_test, error, log_loss, brier, ece,
        fit_seconds, predict_seconds, failure (text, or missing), seed, date and versions.
    """
    paths = sorted(Path(folder).glob("*/*.json"))
    if not paths:
        raise FileNotFoundError(
            f"Expected results of the benchmark in {os.fspath(folder)!r}; there are none. "
            "Run the benchmark first."
        )
    return pd.DataFrame([json.loads(path.read_text(encoding="utf-8")) for path in paths])


def _run_task(
    task: Task, problem: Problem, data: tuple[NDArray[np.float64], NDArray[np.int64]], seed: int
) -> None:
    X, y = data
    train, test = stratified_split(y, problem.sizes(y), random_state=seed + task.split)
    record: dict[str, Any] = {
        "problem": task.problem,
        "split": task.split,
        "method": task.method,
        "n_train": len(train),
        "n_test": len(test),
        "seed": seed + task.split,
        "date": time.strftime("%Y-%m-%d"),
        "versions": {package: version(package) for package in PACKAGES},
        "failure": None,
    }
    _warm_up()
    shape = Shape(len(train), X.shape[1], int(np.bincount(y[train]).min()))
    model = METHODS[task.method](shape, seed + task.split)
    try:
        # One core, as the goals have it, and no warning that would stop a long run.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record |= _measure(model, X[train], y[train], X[test], y[test])
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        record["failure"] = f"{type(error).__name__}: {error}"
    task.path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(task.path, json.dumps(record, indent=1).encode())


@cache
def _warm_up() -> None:
    """Compile what is compiled, and import what is imported late, before anything is timed."""
    X, y = np.arange(24.0).reshape(12, 2) ** 0.5, np.arange(12) % 2
    for kernel in ("gaussian", "radius"):
        model = DistanceNeighborsClassifier(kernel, inference="pseudolikelihood").fit(X, y)
        model.predict_proba(X)
    NearfieldClassifier().fit(X, y).predict_proba(X)


def _measure(model, X, y, new_X, new_y) -> dict[str, float]:
    started = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    probabilities = model.predict_proba(new_X)
    ended = time.process_time()
    losses = point_losses(probabilities, new_y)
    return losses | {"fit_seconds": fitted - started, "predict_seconds": ended - fitted}


def _chosen(known: list[str], asked: Sequence[str] | None, what: str) -> list[str]:
    if asked is None:
        return known
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise ValueError(f"Expected {what} among {known}; got {unknown}. Choose from these.")
    return [name for name in known if name in asked]


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name.lower())
