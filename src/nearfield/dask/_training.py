"""Training points as they lie on the workers: blocks of features and labels, never in one place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import dask
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target

from nearfield.dask._kept import Kept
from nearfield.dask._rows import Rows, aligned
from nearfield.estimators import MIN_POINTS, check_classes

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Block(NamedTuple):
    """Some training points with their labels and row numbers."""

    rows: NDArray[np.int64]  # shape (n,), among all training points; they rise
    labels: Labels  # shape (n,)
    points: Floats  # shape (n, n_features)


@dataclass(frozen=True, eq=False)
class TrainingBlocks:
    """Training points in blocks, with the methods of `nearfield.estimators.TrainingPoints`.

    Attributes
    ----------
    points, labels : Kept
        Arrays of shape (n_b, n_features), and of labels 0..G-1, shape (n_b,).
    lengths : list of int
        The numbers of rows n_b.
    classes : ndarray, shape (n_classes,)
    class_counts : ndarray of int, shape (n_classes,)
    n_features : int
    """

    points: Kept
    labels: Kept
    lengths: list[int]
    classes: NDArray[Any]
    class_counts: NDArray[np.int64]
    n_features: int

    @classmethod
    def from_rows(cls, X: Rows, y: Rows, options: dict[str, Any]) -> "TrainingBlocks":
        """Check the blocks, count their rows and find the classes.

        Parameters
        ----------
        X, y : Rows
            Cut alike or not, but of the same number of rows.
        options : dict
            Of scikit-learn's `check_array`.
        """
        points = Kept(partial(each, partial(checked_points, options=options), X.blocks))
        values = Kept(partial(each, _checked_classes, y.blocks))
        x_lengths, y_lengths = X.lengths(points.values), y.lengths(values.values)
        _check_lengths(sum(x_lengths), sum(y_lengths))
        found = dask.compute(*[delayed(np.unique)(v, return_counts=True) for v in values.values])
        names, counts = map(np.concatenate, zip(*[s for s in found if len(s[0])], strict=True))
        classes, where = np.unique(names, return_inverse=True)
        check_classes(classes, sum(x_lengths))
        labels = Kept(partial(_label, classes, y_lengths, x_lengths), values).wait()
        values.release()
        class_counts = np.bincount(where, counts).astype(np.int64)
        return cls(points, labels, x_lengths, classes, class_counts, X.sample.shape[1])

    @property
    def n_points(self) -> int:
        """The number of all training points."""
        return sum(self.lengths)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def none(self) -> Floats:
        """No points, but all features: shape (0, n_features)."""
        return np.empty((0, self.n_features))

    def map(self, function: Callable[[Floats], Floats]) -> "TrainingBlocks":
        """Replace points by a function of them, row by row."""
        return replace(
            self, points=Kept(partial(each, partial(_unless_empty, function)), self.points)
        )

    def total(self, function: Callable[[Floats], Any]) -> Any:
        """Give a function of the points whose values over blocks of points add up."""
        return np.sum(dask.compute(*each(function, self.points.values)), axis=0)

    def largest(self, function: Callable[[Floats], Any]) -> Any:
        """Give a function of the points of which the largest value over blocks counts."""
        return np.max(dask.compute(*each(function, self.points.values)), axis=0)

    def of_labels(self, function: Callable[[Labels], Any]) -> Any:
        """Give a function of all labels, from one worker."""
        return delayed(function)(delayed(np.concatenate)(self.labels.values)).compute()

    def apply(self, function: Callable[[Floats, Labels], Any], rows: NDArray[np.int64]) -> Any:
        """Give a function of some points and their labels, from one worker."""
        blocks = number_blocks(self.lengths, self.points.values, self.labels.values)
        some = collect(blocks, rows)
        return delayed(function)(some.points, some.labels).compute()

    def release(self) -> None:
        """Keep the blocks on the workers no longer."""
        self.points.release()
        self.labels.release()


def number_blocks(
    lengths: list[int], points: Sequence[Delayed], labels: Sequence[Delayed]
) -> list[Delayed]:
    """Give the rows of blocks their numbers: a `Block` each."""
    first_rows = (np.cumsum(lengths) - lengths).tolist()
    return [delayed(_number)(*block) for block in zip(first_rows, labels, points, strict=True)]


def collect(parts: Sequence[Delayed], rows: NDArray[np.int64] | None = None) -> Delayed:
    """Bring rows of parts, which have a field `rows`, to one worker: in this order, or rising."""
    if rows is not None:
        parts = [delayed(pick)(part, rows) for part in parts]
    return delayed(join)(parts, rows)


def pick(part: Any, rows: NDArray[np.int64]) -> Any:
    """Take those of some rows that are in a part."""
    places = np.flatnonzero(np.isin(part.rows, rows, assume_unique=True))
    return type(part)(*(array[places] for array in part))


def join(parts: Sequence[Any], rows: NDArray[np.int64] | None = None) -> Any:
    """Put parts together, their rows in this order, or rising."""
    whole = type(parts[0])(*map(np.concatenate, zip(*parts, strict=True)))
    order = np.argsort(whole.rows, kind="stable")
    if rows is not None:
        order = order[np.searchsorted(whole.rows[order], rows)]
    return type(whole)(*(array[order] for array in whole))


def checked_points(block: Any, options: dict[str, Any]) -> Floats:
    """Accept a block of features, which may have no rows."""
    return check_array(block, ensure_min_samples=0, input_name="X", **options)


def _checked_classes(block: Any) -> NDArray[Any]:
    """Accept a block of classes, which may have no rows."""
    values = column_or_1d(np.asarray(block))
    if pd.isna(values).any():
        raise ValueError("Expected a class for every row; got NaN in y. Drop the rows without one.")
    if len(values) and type_of_target(values, "y") not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: expected classes in y; got values that are "
            f"{type_of_target(values, 'y')}. Give whole numbers, text or booleans."
        )
    return values


def _check_lengths(n_rows: int, n_labels: int) -> None:
    if n_rows != n_labels:
        raise ValueError(
            "Expected as many labels in y as rows in X; got inconsistent numbers: "
            f"{n_labels} labels and {n_rows} rows. Give one label a row."
        )
    if n_rows < MIN_POINTS:
        raise ValueError(
            f"Expected at least {MIN_POINTS} rows in X; got {n_rows}. Supply more points."
        )


def _label(
    classes: NDArray[Any], lengths: list[int], wanted: list[int], values: Sequence[Delayed]
) -> list[Delayed]:
    """Turn blocks of y into labels, and cut them as those of X."""
    return each(partial(np.searchsorted, classes), aligned(values, lengths, wanted))


def _number(first_row: int, labels: Labels, points: Floats) -> Block:
    return Block(first_row + np.arange(len(labels)), labels, points)


def _unless_empty(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    return function(points) if len(points) else points


def each(function: Callable[[Any], Any], values: Sequence[Delayed]) -> list[Delayed]:
    """Apply a function where the values are."""
    return [delayed(function)(value) for value in values]
