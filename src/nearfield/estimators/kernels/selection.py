"""The smallest values of a row: a bound found by counting, then a sort of the few below it."""

import numpy as np

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER

_MOST_COUNTS = 40
_MOST_IN_A_BUCKET = 32


@compiled
def bound_of_smallest(row, k, guess):
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
def count_below(row, bound):
    """Count the values at or below a bound."""
    count = 0.0
    for j in range(row.shape[0]):
        count += 1.0 if row[j] <= bound else 0.0
    return count


@compiled
def sorted_below(row, bound, places, buckets, counts):
    """Note the places of the values at or below a bound, smallest first; of equals the first.

    Counting by buckets brings them nearly in order, insertion does the rest.

    Parameters
    ----------
    row : ndarray, shape (n,)
    bound : float
    places : ndarray of int, shape (>= n + 1,)
        To be filled in.
    buckets : ndarray of int, shape (>= n + 1,)
        Room to work.
    counts : ndarray of int, shape (>= n + 1,)
        Room to work.

    Returns
    -------
    n_found : int
    """
    n_found = 0
    smallest = bound
    for j in range(row.shape[0]):
        buckets[n_found] = j
        n_found += row[j] <= bound
    for f in range(n_found):
        smallest = min(smallest, row[buckets[f]])
    if n_found == 0:
        return 0
    scale = n_found / (bound - smallest) if bound > smallest else 0.0
    counts[: n_found + 1] = 0
    for f in range(n_found):
        counts[bucket_of(row[buckets[f]], smallest, scale, n_found) + 1] += 1
    fullest = 0
    for b in range(n_found):
        fullest = max(fullest, counts[b + 1])
        counts[b + 1] += counts[b]
    if fullest > _MOST_IN_A_BUCKET:  # insertion would take long
        found = buckets[:n_found].copy()
        places[:n_found] = found[np.argsort(row[found], kind="mergesort")]
        return n_found
    for f in range(n_found):
        b = bucket_of(row[buckets[f]], smallest, scale, n_found)
        places[counts[b]] = buckets[f]
        counts[b] += 1
    insert_in_order(row, places, n_found)
    return n_found


@compilable
def bucket_of(value, smallest, scale, n_buckets):
    """Find the bucket of a value; whatever is no number goes to the last."""
    place = (value - smallest) * scale
    return int(place) if place < n_buckets else n_buckets - 1


@compilable
def insert_in_order(row, places, n_places):
    """Sort places by their values, which are nearly in order."""
    for f in range(1, n_places):
        place, value = places[f], row[places[f]]
        before = f - 1
        while before >= 0 and row[places[before]] > value:
            places[before + 1] = places[before]
            before -= 1
        places[before + 1] = place
