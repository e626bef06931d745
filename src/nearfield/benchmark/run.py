"""Runs of the benchmark: one result for each data set, split and method."""

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield.benchmark.methods import METHODS, Maker, Shape
from nearfield.benchmark.problems import PROBLEMS, Data, Problem
from nearfield.benchmark.spectra import SPECTRA, SPECTRA_METHODS
from nearfield.benchmark.table_methods import LARGE_METHODS, TABLE_METHODS, installed
from nearfield.benchmark.tables import LARGE, MIXED
from nearfield.datasets import stratified_split
from nearfield.reproduction.metrics import point_losses
from nearfield.runs import Result, Store, Unit, run_units, watched

FIRST_SEED = 1000
"""Seed of the first split; methods were developed on splits with seeds below this."""

PACKAGES = ("nearfield", "numpy", "scipy", "scikit-learn", "numba")


class Suite(NamedTuple):
    """The data sets and methods of a benchmark."""

    problems: tuple[Problem, ...] = PROBLEMS
    methods: Mapping[str, Maker] = METHODS


PARTS: Mapping[str, Suite] = {
    "numeric": Suite(),
    "mixed": Suite(MIXED, TABLE_METHODS),
    "large": Suite(LARGE, {name: TABLE_METHODS[name] for name in LARGE_METHODS}),
    "spectra": Suite(SPECTRA, SPECTRA_METHODS),
}
"""The parts of the benchmark: small tables of numbers, small tables with categories and missing
values, large tables, and spectra."""


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
    suite: Suite | None = None,
) -> pd.DataFrame:
    """Run what is not yet in the folder, and return all results.

    A run that was stopped loses at most what was under way; called again it continues. The first
    splits of all data sets come first, so that a run cut short is a smaller benchmark.

    Parameters
    ----------
    folder : str or path
        Created if missing.
    problems, methods : sequence of str, optional
        Names of data sets and methods; all by default. Data sets that are not there are left out.
    n_splits : int
        Stratified splits of each data set.
    seed : int
        Split s of a data set is drawn with seed + s, the same for all methods.
    data_home : path, optional
        The folder with the spectra.
    n_jobs : int, optional
        Units at a time. Times are most accurate with one.
    verbose : int
        From 1 on, progress on standard error.
    suite : Suite, optional
        The data sets and methods to choose from; by default `PROBLEMS` and `METHODS`.

    Returns
    -------
    results : DataFrame
        As of `read_results`.
    """
    suite = suite or Suite()
    names = _chosen([problem.name for problem in suite.problems], problems, "problems")
    makers = installed(
        {name: suite.methods[name] for name in _chosen(list(suite.methods), methods, "methods")}
    )
    loaded = []
    for problem in suite.problems:
        if problem.name in names:
            try:
                loaded.append((problem, problem.load(data_home)))
            except (FileNotFoundError, ImportError) as error:
                warnings.warn(f"Without {problem.name}: {error}", stacklevel=2)
    units = [
        Unit(
            f"split {split + 1}",
            _run_method,
            {"problem": problem.name, "split": split, "method": method, "seed": seed + split},
            {"size": problem.sizes(data[1]), "data": data, "maker": maker},
        )
        for split in range(n_splits)
        for problem, data in loaded
        for method, maker in makers.items()
    ]
    results = run_units(units, Store(Path(folder)), n_jobs)
    for _ in watched(results, units, "benchmark") if verbose else results:
        pass
    return read_results(folder)


def read_results(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Read all results in a folder: a row for each data set, split and method.

    Returns
    -------
    results : DataFrame
        With columns problem, split, method, n_train, n_test, error, log_loss, brier, ece,
        fit_seconds, predict_seconds, failure (text, or missing), seed (of the split), date and
        versions.
    """
    results = Store(Path(folder)).read_all()
    if not results:
        raise FileNotFoundError(
            f"Expected results of the benchmark in {os.fspath(folder)!r}; there are none. "
            "Run the benchmark first."
        )
    return pd.DataFrame(results)


def _run_method(
    problem: str, split: int, method: str, seed: int, size: Any, data: Data, maker: Maker
) -> Result:
    """Measure a method on a split; a failure is recorded and stops nothing."""
    X, y = data
    train, test = stratified_split(y, size, random_state=seed)
    record: Result = {
        "problem": problem,
        "split": split,
        "method": method,
        "n_train": len(train),
        "n_test": len(test),
        "seed": seed,
        "date": time.strftime("%Y-%m-%d"),
        "versions": {package: version(package) for package in PACKAGES},
        "failure": None,
    }
    _warm_up()
    model = maker(Shape(len(train), X.shape[1], int(np.bincount(y[train]).min())), seed)
    try:
        # One core, as the goals have it, and no warning that would stop a long run.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record |= _measure(model, _rows(X, train), y[train], _rows(X, test), y[test])
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        record["failure"] = f"{type(error).__name__}: {error}"
    return record


def _rows(X: Any, rows: Any) -> Any:
    """Take rows of an array or of a data frame."""
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


@cache
def _warm_up() -> None:
    """Compile kernels and import modules before anything is timed."""
    X, y = np.arange(24.0).reshape(12, 2) ** 0.5, np.arange(12) % 2
    for kernel in ("gaussian", "radius"):
        model = DistanceNeighborsClassifier(kernel, inference="pseudolikelihood").fit(X, y)
        model.predict_proba(X)
    NearfieldClassifier(random_state=0).fit(X, y).predict_proba(X)


def _measure(model: Any, X: Any, y: Any, new_X: Any, new_y: Any) -> dict[str, float]:
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
