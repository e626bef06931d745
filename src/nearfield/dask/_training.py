"""Training points as they lie on the workers: blocks of features and labels, never in one place."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target

from nearfield.dask._rows import Rows, aligned, lengths_of
from nearfield.estimators._validation import MIN_POINTS, check_classes


class Blocks(NamedTuple):
    """Blocks of features, shape (n_b, n_features), and of labels 0..G-1, shape (n_b,)."""

    points: list[Delayed]
    labels: list[Delayed]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Blocks of features with their labels.

    Attributes
    ----------
    recipes : Blocks
        How the blocks come about.
    held : Blocks
        The same, kept on the workers for as long as this lives.
    lengths : ndarray of int, shape (n_blocks,)
    classes : ndarray, shape (n_classes,)
    class_counts : ndarray of int, shape (n_classes,)
    n_features : int
    """

    recipes: Blocks
    held: Blocks
    lengths: NDArray[np.int64]
    classes: NDArray[Any]
    class_counts: NDArray[np.int64]
    n_features: int

    @classmethod
    def from_rows(cls, X: Rows, y: Rows, options: dict[str, Any]) -> "TrainingRows":
        """Check the blocks, number their rows and find the classes.

        Parameters
        ----------
        X, y : Rows
            Cut alike or not, but of the same number of rows.
        options : dict
            Of scikit-learn's `check_array`.
        """
        held_X, held_y = X.persist(), y.persist()  # they are read more than once
        x_lengths, y_lengths = lengths_of(held_X, held_y)
        _check_lengths(x_lengths, y_lengths)
        classes, counts = _classes_of(held_y)
        check_classes(classes, sum(x_lengths))

        def blocks(features: Rows, labels: Rows) -> Blocks:
            cut = aligned(labels.blocks, y_lengths, x_lengths)
            return Blocks(
                [delayed(checked_points)(block, options) for block in features.blocks],
                [delayed(_encode)(block, classes) for block in cut],
            )

        return cls(
            blocks(X, y),
            blocks(held_X, held_y),
            np.array(x_lengths, dtype=np.int64),
            classes,
            counts,
            X.sample.shape[1],
        )

    @property
    def n_points(self) -> int:
        """The number of all training points."""
        return int(self.lengths.sum())

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The number of each block's first row, counted through all blocks."""
        return np.cumsum(self.lengths) - self.lengths


def checked_points(block: Any, options: dict[str, Any]) -> NDArray[np.float64]:
    """Accept a block of features, which may have no rows."""
    return check_array(block, ensure_min_samples=0, input_name="X", **options)


def _classes_of(y: Rows) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Find all classes, and how often each is there."""
    found = dask.compute(*[delayed(_classes_in)(block) for block in y.blocks])
    names, numbers = (
        np.concatenate(arrays)
        for arrays in zip(*[some for some in found if len(some[0])], strict=True)
    )
    classes, where = np.unique(names, return_inverse=True)
    return classes, np.bincount(where, numbers).astype(np.int64)


def _classes_in(block: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Find the classes in a block of labels, and how often each is there."""
    labels = column_or_1d(np.asarray(block))
    if pd.isna(labels).any():
        raise ValueError("Expected a class for every row; got NaN in y. Drop the rows without one.")
    if len(labels) and type_of_target(labels, "y") not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: expected classes in y; got values that are "
            f"{type_of_target(labels, 'y')}. Give whole numbers, text or truth values."
        )
    return np.unique(labels, return_counts=True)


def _encode(block: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    return np.searchsorted(classes, np.asarray(block).ravel()).astype(np.int64)


def _check_lengths(x_lengths: list[int], y_lengths: list[int]) -> None:
    if sum(x_lengths) != sum(y_lengths):
        raise ValueError(
            "Expected as many labels in y as rows in X; got inconsistent numbers: "
            f"{sum(y_lengths)} labels and {sum(x_lengths)} rows. Give one label a row."
        )
    if sum(x_lengths) < MIN_POINTS:
        raise ValueError(
            f"Expected at least {MIN_POINTS} rows in X; got {sum(x_lengths)}. Supply more points."
        )
