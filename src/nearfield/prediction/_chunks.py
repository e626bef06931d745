"""New points in chunks, so that memory stays bounded whatever their number."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from nearfield._checks import check_whole


def map_chunks(
    function: Callable[[Any], Any], X: Any, chunk_size: int, n_jobs: int | None = None
) -> Any:
    """Apply a function to consecutive chunks of rows and put the results together.

    Parameters
    ----------
    function : callable
        Takes some rows of `X` and returns an array, or a tuple of arrays, with as many rows.
    X : array-like or sparse matrix, shape (m, ...)
        Anything with a shape whose rows can be sliced; with m >= 1.
    chunk_size : int
        The most rows to hand over at once.
    n_jobs : int, optional
        Threads to work in, as in joblib; the result does not depend on it.

    Returns
    -------
    result : ndarray, or tuple of ndarray
    """
    chunk_size = check_whole(chunk_size, "chunk_size", minimum=1)
    if X.shape[0] <= chunk_size:  # a pool costs more than a small chunk
        return function(X)
    starts = range(0, X.shape[0], chunk_size)
    # Results of a single chunk are small beside the chunk: only these are kept. Threads, whatever
    # the backend: to another process the whole model would have to go along with each chunk.
    parts = Parallel(n_jobs=n_jobs, require="sharedmem")(
        delayed(function)(X[start : start + chunk_size]) for start in starts
    )
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return np.concatenate(parts)
