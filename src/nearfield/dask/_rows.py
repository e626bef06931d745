"""Dask collections as blocks of rows, and blocks of results as Dask collections again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import each


@dataclass(frozen=True, eq=False)
class Rows:
    """A Dask array or frame by its blocks of consecutive rows, all columns in each.

    Attributes
    ----------
    collection : dask Array, DataFrame or Series
    blocks : tuple of Delayed
        NumPy arrays, or pandas frames or series.
    """

    collection: Any
    blocks: tuple[Delayed, ...]

    @classmethod
    def from_collection(cls, collection: Any, what: str) -> "Rows":
        """Take a Dask collection apart; refuse anything else."""
        if isinstance(collection, da.Array) and collection.ndim in (1, 2):
            whole = collection.rechunk({1: -1}) if collection.ndim == 2 else collection
            return cls(collection, tuple(whole.to_delayed().ravel()))
        if isinstance(collection, dd.DataFrame | dd.Series):
            return cls(collection, tuple(collection.to_delayed()))
        shape = f" of {collection.ndim} dimensions" if isinstance(collection, da.Array) else ""
        raise TypeError(
            f"Expected {what} as a Dask array or frame; got {type(collection).__name__}{shape}. "
            "Use the classifiers of nearfield for data in memory, or dask.array.from_array."
        )

    @property
    def is_frame(self) -> bool:
        """Whether the blocks are pandas frames or series."""
        return not isinstance(self.collection, da.Array)

    @property
    def sample(self) -> Any:
        """An empty array or frame with the columns of the collection."""
        if self.is_frame:
            return self.collection._meta
        return np.empty((0, *self.collection.shape[1:]))

    def lengths(self, blocks: Sequence[Delayed] | None = None) -> list[int]:
        """Count the rows of each block; if Dask does not know, by computing these `blocks`."""
        if not self.is_frame and not np.isnan(self.collection.chunks[0]).any():
            return [int(length) for length in self.collection.chunks[0]]
        return list(dask.compute(*each(len, blocks or self.blocks)))

    def with_results(self, results: Sequence[Delayed], form: NDArray[Any], names: Any) -> Any:
        """Make a lazy collection of results, one row for each of these.

        Parameters
        ----------
        results : sequence of Delayed
            An array for each block.
        form : ndarray, shape (1,) or (1, n_columns)
            An array as they are.
        names : sequence
            Of the columns, if there are any.
        """
        columns, dtype = form.shape[1:], form.dtype
        if not self.is_frame:
            arrays = [
                da.from_delayed(result, (length, *columns), dtype=dtype)
                for result, length in zip(results, self.collection.chunks[0], strict=True)
            ]
            return da.concatenate(arrays, allow_unknown_chunksizes=True)
        framed = [
            delayed(_frame)(result, block, names)
            for result, block in zip(results, self.blocks, strict=True)
        ]
        meta = _frame(form[:0], self.collection._meta, names)
        divisions = self.collection.divisions
        return dd.from_delayed(framed, meta=meta, divisions=divisions, verify_meta=False)


def aligned(
    blocks: Sequence[Delayed], lengths: Sequence[int], wanted: Sequence[int]
) -> Sequence[Delayed]:
    """Cut blocks of values, one a row, anew, so that they have the wanted numbers of rows."""
    if list(lengths) == list(wanted):
        return blocks
    arrays = [
        da.from_delayed(block, (length,), dtype=object)
        for block, length in zip(blocks, lengths, strict=True)
        if length
    ]
    return list(da.concatenate(arrays).rechunk((tuple(wanted),)).to_delayed())


def _frame(results: NDArray[Any], block: Any, names: Any) -> Any:
    """Give results the index of the block that they belong to."""
    if results.ndim == 1:
        return pd.Series(results, index=block.index)
    return pd.DataFrame(results, index=block.index, columns=list(names))
