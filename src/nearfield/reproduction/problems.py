"""The paper's data sets, and their splits into training and test points."""

import os
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from nearfield import datasets
from nearfield.reproduction.paper import OLIVE_OIL_TRAIN, TRAIN_SHARE

DataHome = str | os.PathLike[str] | None


class Problem(NamedTuple):
    """Training and test points of one split."""

    train_features: NDArray[np.float64]
    train_labels: NDArray[np.int64]
    test_features: NDArray[np.float64]
    test_labels: NDArray[np.int64]


def load(name: str, data_home: DataHome = None) -> Bunch:
    """Load a data set as a Bunch; FileNotFoundError for spectra that are not in the folder."""
    if name == "meat":
        return datasets.load_meat(data_home)
    if name == "olive-oil":
        return datasets.load_greek_olive_oil(data_home)
    return getattr(datasets, f"load_{name}")()


def why_missing(name: str, data_home: DataHome = None) -> str | None:
    """Say where to get spectra that are not in the folder; None for data that is there."""
    try:
        load(name, data_home)
    except FileNotFoundError as error:
        return str(error)
    return None


def split(name: str, index: int, seed: int, data_home: DataHome = None) -> Problem:
    """Draw a stratified split with the paper's number of training points."""
    bunch = load(name, data_home)
    labels: NDArray[Any] = bunch.target
    size: int | float | Mapping[Any, int] = TRAIN_SHARE
    if name == "meat":
        labels, size = bunch.target_names[bunch.target], datasets.MEAT_TRAINING_COUNTS
    elif name == "olive-oil":
        size = OLIVE_OIL_TRAIN
    train, test = datasets.stratified_split(
        labels, size, random_state=np.random.default_rng([seed, index])
    )
    return Problem(bunch.data[train], bunch.target[train], bunch.data[test], bunch.target[test])


def petals(problem: Problem) -> Problem:
    """Keep the length and width of the petals of iris."""
    return problem._replace(
        train_features=problem.train_features[:, 2:4], test_features=problem.test_features[:, 2:4]
    )


def stream(seed: int, *names: str | int) -> int:
    """Derive a seed from the run's seed and the names of an experiment."""
    words = [zlib.crc32(str(name).encode()) for name in names]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0])
