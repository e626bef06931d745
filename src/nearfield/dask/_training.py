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

from nearfield.dask._kept import Kept, each
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
    blocks : Kept
        A `Block` each; none is empty.
    n_points : int
        The number of all training points.
    classes : ndarray, shape (n_classes,)
    class_counts : ndarray of int, shape (n_classes,)
    n_features : int
    """

    blocks: Kept
    n_points: int
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
        lengths, y_lengths = X.lengths(points.values), y.lengths(values.values)
        n_points = sum(lengths)
        _check_lengths(n_points, sum(y_lengths))
        found = dask.compute(*each(partial(np.unique, return_counts=True), values.values))
        names, counts = map(np.concatenate, zip(*[s for s in found if len(s[0])], strict=True))
        classes, where = np.unique(names, return_inverse=True)
        check_classes(classes, n_points)
        first_rows = (np.cumsum(lengths) - lengths).tolist()

        def build(points: Sequence[Delayed], values: Sequence[Delayed]) -> list[Delayed]:
            values = aligned(values, y_lengths, lengths)
            parts = zip(lengths, first_rows, values, points, strict=True)
            return [delayed(_number)(classes, *part) for n, *part in parts if n]

        blocks = Kept(build, points, values).in_place_of_parents()
        class_counts = np.bincount(where, counts).astype(np.int64)
        return cls(blocks, n_points, classes, class_counts, X.sample.shape[1])

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
        return replace(self, blocks=Kept(partial(each, partial(_map, function)), self.blocks))

    def total(self, function: Callable[[Floats], Any]) -> Any:
        """Give a function of the points whose values over blocks of points add up."""
        return np.sum(self._of_blocks(function), axis=0)

    def largest(self, function: Callable[[Floats], Any]) -> Any:
        """Give a function of the points of which the largest value over blocks counts."""
        return np.max(self._of_blocks(function), axis=0)

    def of_labels(self, function: Callable[[Labels], Any]) -> Any:
        """Give a function of all labels, from one worker."""
        labels = [block.labels for block in self.blocks.values]
        return delayed(function)(delayed(np.concatenate)(labels)).compute()

    def apply(self, function: Callable[[Floats, Labels], Any], rows: NDArray[np.int64]) -> Any:
        """Give a function of some points and their labels, from one worker."""
        some = collect(self.blocks.values, rows)
        return delayed(function)(some.points, some.labels).compute()

    def _of_blocks(self, function: Callable[[Floats], Any]) -> Any:
        return dask.compute(*[delayed(function)(block.points) for block in self.blocks.values])


def _number(classes: NDArray[Any], first_row: int, values: NDArray[Any], points: Floats) -> Block:
    rows = first_row + np.arange(len(points))
    return Block(rows, np.searchsorted(classes, values), points)


def _map(function: Callable[[Floats], Floats], block: Block) -> Block:
    return block._replace(points=function(block.points))


def collect(parts: Sequence[Delayed], rows: NDArray[np.int64] | None = None) -> Delayed:
    """Bring rows of parts, which have a field `rows`, to one worker: in this order, or rising."""
    if rows is not None:
        parts = each(partial(_pick, rows=rows), parts)
    return delayed(join)(parts, rows)


def _pick(part: Any, rows: NDArray[np.int64]) -> Any:
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
