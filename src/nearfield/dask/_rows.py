"""Dask collections as blocks of rows, and blocks of results as Dask collections again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray


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
            "Use the classifiers of nearfield for data in memory, or "
            "dask.array.from_array."
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

    @property
    def known_lengths(self) -> list[int] | None:
        """The number of rows in each block, where Dask knows them without computing."""
        if self.is_frame or np.isnan(self.collection.chunks[0]).any():
            return None
        return [int(length) for length in self.collection.chunks[0]]

    def persist(self) -> "Rows":
        """Keep the blocks where they are computed, on the workers."""
        return Rows(self.collection, dask.persist(*self.blocks))

    def lazily(
        self, function: Callable[..., Delayed], names: Sequence[Any] | None, dtype: Any
    ) -> Any:
        """Make a collection of results, one row for each of these.

        Parameters
        ----------
        function : callable
            Takes a block and returns the block of its results.
        names : sequence or None
            Of the columns; none for results with one value a row.
        dtype : dtype
        """
        results = [function(block) for block in self.blocks]
        if self.is_frame:
            return self._framed(results, names, dtype)
        lengths = self.collection.chunks[0]
        columns = () if names is None else (len(names),)
        arrays = [
            da.from_delayed(result, (length, *columns), dtype=dtype)
            for result, length in zip(results, lengths, strict=True)
        ]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)

    def _framed(self, results: list[Delayed], names: Sequence[Any] | None, dtype: Any) -> Any:
        meta = frame_results(
            np.empty((0,) if names is None else (0, len(names)), dtype), names, None
        )
        meta.index = self.collection._meta.index
        framed = [
            delayed(frame_results)(result, names, block)
            for result, block in zip(results, self.blocks, strict=True)
        ]
        divisions = self.collection.divisions
        return dd.from_delayed(framed, meta=meta, divisions=divisions, verify_meta=False)


def frame_results(results: NDArray[Any], names: Sequence[Any] | None, block: Any) -> Any:
    """Give results the index of the block that they belong to."""
    index = getattr(block, "index", None)
    if names is None:
        return pd.Series(results, index=index)
    return pd.DataFrame(results, index=index, columns=list(names))


def lengths_of(*parts: Rows) -> list[list[int]]:
    """Count the rows in the blocks of each, by computing those that Dask does not know."""
    known = [rows.known_lengths for rows in parts]
    counts = [
        [delayed(len)(block) for block in rows.blocks] if lengths is None else lengths
        for rows, lengths in zip(parts, known, strict=True)
    ]
    return [list(lengths) for lengths in dask.compute(*counts)]


def aligned(blocks: Sequence[Delayed], lengths: Sequence[int], wanted: Sequence[int]) -> list[Any]:
    """Cut blocks of values anew, so that they have the wanted numbers of rows.

    Parameters
    ----------
    blocks : sequence of Delayed
        Arrays or series, one value a row.
    lengths, wanted : sequence of int
        With the same sum.
    """
    if list(lengths) == list(wanted):
        return list(blocks)
    starts, stops = _bounds(lengths)
    return [
        delayed(_join)(
            [
                delayed(_cut)(block, int(low - start), int(high - start))
                for block, start, stop in zip(blocks, starts, stops, strict=True)
                if start < high and low < stop
            ]
        )
        for low, high in zip(*_bounds(wanted), strict=True)
    ]


def _bounds(lengths: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    stops = np.cumsum(np.asarray(lengths, dtype=np.int64))
    return stops - np.asarray(lengths, dtype=np.int64), stops


def _cut(block: Any, low: int, high: int) -> NDArray[Any]:
    return np.asarray(block)[max(low, 0) : high]


def _join(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(pieces) if pieces else np.empty(0)
