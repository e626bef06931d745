"""Random numbers that belong to rows: the same for a row wherever and in whatever order it is.

A sample that is drawn by them is the same on one machine and over shards of the data.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def row_uniforms(rows: ArrayLike, seed: int, stream: int) -> NDArray[np.float64]:
    """Give each row a uniform number in [0, 1): its own, of a seed and a stream.

    The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), applied to a counter.

    Parameters
    ----------
    rows : array-like of int, shape (n,)
    seed : int
        Below 2**64.
    stream : int
        Numbers of different streams have nothing to do with each other.
    """
    start = _mix(np.array([seed], dtype=np.uint64) + _weyl(np.array([stream + 1], dtype=np.uint64)))
    mixed = _mix(start + _weyl(np.asarray(rows).astype(np.uint64)))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def sample_rows(n_rows: int, size: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Draw different rows: those with the smallest numbers, in their order."""
    numbers = row_uniforms(np.arange(n_rows), seed, stream)
    size = min(size, n_rows)
    drawn = np.argpartition(numbers, size - 1)[:size]
    return drawn[np.argsort(numbers[drawn], kind="stable")].astype(np.int64)


def _weyl(counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return counters * np.uint64(0x9E3779B97F4A7C15)  # wraps around, as it should


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
