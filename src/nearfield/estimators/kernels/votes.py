"""Votes of the k nearest neighbours: a bound found by counting, then a sort of the few below it."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import ANY_ORDER

Floats = NDArray[np.float64]

_MOST_COUNTS = 40


@compiled
def count_votes(distances: Floats, labels: NDArray[np.int64], k: int, votes: Floats) -> None:
    """Add up, for each row of distances, the labels of its k smallest; of equals the first.

    Parameters
    ----------
    distances : ndarray, shape (m, n)
    labels : ndarray of int, shape (n,)
    k : int
        From 1 to n.
    votes : ndarray, shape (m, G)
        Zeros, to be filled in.
    """
    places = np.empty(labels.shape[0] + 1, dtype=np.int64)
    bound = 0.0
    for i in range(distances.shape[0]):
        row = distances[i]
        bound = bound_of_smallest(row, k, bound)
        n_found = 0
        for j in range(row.shape[0]):
            places[n_found] = j
            n_found += row[j] <= bound
        found = places[:n_found]
        for place in np.argsort(row[found], kind="mergesort")[:k]:
            votes[i, labels[found[place]]] += 1


@compiled
def bound_of_smallest(row: Floats, k: int, guess: float) -> float:
    """Find a value with at least k of a row at or below it, and not many more unless they tie.

    Bisection, where a step counts the row by vector instructions. A good guess, as the bound of a
    similar row, saves steps and changes nothing else of use.
    """
    enough = k + max(8, k // 4)
    low, high = -np.inf, np.inf
    bound = guess if guess > 0.0 else row.max()
    step = 0.85  # how much the bound changes until it has been too low and too high
    for _ in range(_MOST_COUNTS):
        n_below = count_below(row, bound)
        if k <= n_below <= enough:
            return bound
        if n_below < k:
            low = bound
        else:
            high = bound
        if low > -np.inf and high < np.inf:
            bound = low + 0.5 * (high - low)
        else:
            bound = bound / step if high == np.inf else bound * step
            step *= step
    return high


@compiled(fastmath=ANY_ORDER)
def count_below(row: Floats, bound: float) -> float:
    """Count the values at or below a bound."""
    count = 0.0
    for j in range(row.shape[0]):
        count += 1.0 if row[j] <= bound else 0.0
    return count
