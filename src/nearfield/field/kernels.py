"""Compiled weights and supports of the k-nearest-neighbour graph.

A row of the graph holds the distances of a point's neighbours, nearest first. Its weights are
proportional to a kernel of the distance; points that tie at the k-th distance share the rest of
the weight.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp_of
from nearfield.field.weights import RADIUS_EPSILON
from nearfield.neighbors import TIE_TOLERANCE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ReverseArrays = tuple[NDArray[Any], ...]  # starts, rows and distances of `ReverseNeighbors`

GAUSSIAN, EXPONENTIAL, RADIUS, UNIFORM = range(4)
KERNEL_CODES = {
    "gaussian": GAUSSIAN,
    "exponential": EXPONENTIAL,
    "radius": RADIUS,
    "uniform": UNIFORM,
}

_BELOW = 1.0 - TIE_TOLERANCE  # times a distance: what is not closer ties with it
_LOG_EPSILON = np.log(RADIUS_EPSILON)


@compiled
def fill_weights(distances: Floats, k: int, kernel: int, rate: float, weights: Floats) -> None:
    """Fill in the weights of each row, shape (n, n_columns); they sum to one."""
    for i in range(distances.shape[0]):
        _fill_row(distances[i], k, kernel, rate, weights[i])


@compiled
def fill_log_normalizers(
    distances: Floats, k: int, kernel: int, rates: Floats, log_normalizers: Floats
) -> None:
    r"""Fill in log normalising constants relative to the nearest neighbour, shape (n, n_rates).

    .. math:: \log \sum_{j \in N_k(i)} \kappa(d_{ij}) / \kappa(d_{i1})

    Minus infinity for k = 0.
    """
    values = np.empty(distances.shape[1])
    for i in range(distances.shape[0]):
        for s in range(rates.shape[0]):
            total = _fill_shares(distances[i], k, kernel, rates[s], values) if k > 0 else 0.0
            log_normalizers[i, s] = np.log(total)


@compiled
def add_out_support(
    distances: Floats, neighbor_labels: Ints, k: int, kernel: int, rates: Floats, support: Floats
) -> None:
    """Add the out-weights of some points by the class of the neighbour, shape (m, n_rates, G)."""
    weights = np.empty(distances.shape[1])
    for i in range(distances.shape[0]):
        for s in range(rates.shape[0]):
            n_weights = _fill_row(distances[i], k, kernel, rates[s], weights)
            for c in range(n_weights):
                support[i, s, neighbor_labels[i, c]] += weights[c]


@compiled
def add_in_support(
    distances: Floats,
    labels: Ints,
    places: NDArray[np.integer],
    k: int,
    kernel: int,
    rates: Floats,
    support: Floats,
) -> None:
    """Add the in-weights of some sites by the class of the point that gives them.

    Parameters
    ----------
    distances : ndarray, shape (n, n_columns)
        Rows of the graph.
    labels : ndarray of int, shape (n,)
        The class of the point of each row.
    places : ndarray of int, shape (n, n_columns)
        Which site each neighbour is, or -1.
    k : int
    kernel : int
    rates : ndarray, shape (n_rates,)
    support : ndarray, shape (n_sites, n_rates, G)
    """
    weights = np.empty(distances.shape[1])
    for j in range(distances.shape[0]):
        for s in range(rates.shape[0]):
            n_weights = _fill_row(distances[j], k, kernel, rates[s], weights)
            for c in range(n_weights):
                if places[j, c] >= 0:
                    support[places[j, c], s, labels[j]] += weights[c]


@compiled
def add_new_in_support(
    reverse: ReverseArrays,
    labels: Ints,
    distances: Floats,
    k: int,
    kernel: int,
    rates: Floats,
    log_rest: Floats,
    reach_all: bool,
    support: Floats,
) -> None:
    r"""Add the in-weights of new points: each is a further neighbour of the points that it reaches.

    .. math:: \frac{\kappa(d^*_j)}{Z_j + \kappa(d^*_j)}

    with Z_j the normalising constant of the k - 1 nearest neighbours of j, since the new point
    replaces the last one; if it ties with that one, they share its weight.

    Parameters
    ----------
    reverse : tuple of ndarray
        `ReverseNeighbors` of the new points.
    labels : ndarray of int, shape (n,)
    distances : ndarray, shape (n, n_columns)
        The graph of the training points.
    k : int
    kernel : int
    rates : ndarray, shape (n_rates,)
    log_rest : ndarray, shape (n, n_rates)
        log Z_j relative to the nearest neighbour.
    reach_all : bool
        All points are neighbours: the new point replaces none.
    support : ndarray, shape (m, n_rates, G)
    """
    starts, rows, new_distances = reverse
    for i in range(starts.shape[0] - 1):
        for t in range(starts[i], starts[i + 1]):
            j, distance = rows[t], new_distances[t]
            row, label = distances[j], labels[j]
            is_inside = reach_all or row[k - 1] * _BELOW > distance
            if not is_inside and row[k - 1] < distance * _BELOW:
                continue
            for s in range(rates.shape[0]):
                if is_inside:
                    log_ratio = _log_ratio(kernel, rates[s], distance, row[0])
                    weight = 1.0 / (1.0 + np.exp(log_rest[j, s] - log_ratio))
                else:
                    weight = _tied_weight(row, distance, k, kernel, rates[s])
                support[i, s, label] += weight


@compiled
def add_uniform_out_support(
    distances: Floats, neighbor_labels: Ints, ks: Floats, support: Floats
) -> None:
    """Add the out-weights of the uniform kernel at each k, shape (m, n_ks, G); `ks` rise."""
    n_columns = distances.shape[1]
    corners = np.empty((n_columns + 2, support.shape[2]))
    for i in range(distances.shape[0]):
        corners[:] = 0.0
        first = 0
        while first < n_columns:
            stop = _end_of_ties(distances[i], first)
            for c in range(first, stop):
                _add_ramp(corners, neighbor_labels[i, c], first, stop, 1.0 / (stop - first))
            first = stop
        _add_ramps_at(corners, ks, support[i])


@compiled
def add_uniform_in_support(
    distances: Floats, labels: Ints, places: NDArray[np.integer], ks: Floats, support: Floats
) -> None:
    """Add the in-weights of the uniform kernel at each k; as `add_in_support`."""
    n_columns = distances.shape[1]
    corners = np.zeros((support.shape[0], n_columns + 2, support.shape[2]))
    for j in range(distances.shape[0]):
        first = 0
        while first < n_columns:
            stop = _end_of_ties(distances[j], first)
            for c in range(first, stop):
                if places[j, c] >= 0:
                    _add_ramp(corners[places[j, c]], labels[j], first, stop, 1.0 / (stop - first))
            first = stop
    for i in range(support.shape[0]):
        _add_ramps_at(corners[i], ks, support[i])


@compiled
def add_uniform_new_in_support(
    reverse: ReverseArrays, labels: Ints, distances: Floats, ks: Floats, support: Floats
) -> None:
    """Add the in-weights of new points for the uniform kernel; as `add_new_in_support`."""
    starts, rows, new_distances = reverse
    n_columns = distances.shape[1]
    corners = np.empty((n_columns + 2, support.shape[2]))
    for i in range(starts.shape[0] - 1):
        corners[:] = 0.0
        for t in range(starts[i], starts[i + 1]):
            j = rows[t]
            first, stop = _tie_group(distances[j], new_distances[t])
            _add_ramp(corners, labels[j], first, stop + 1, 1.0 / (stop - first + 1))
        _add_ramps_at(corners, ks, support[i])


@compilable
def _log_ratio(kernel: int, rate: float, distance: float, reference: float) -> float:
    """Evaluate log kappa(distance) - log kappa(reference)."""
    if kernel == GAUSSIAN:
        return -rate * (distance - reference) * (distance + reference)
    if kernel == EXPONENTIAL:
        return -rate * (distance - reference)
    if kernel == RADIUS:
        return _LOG_EPSILON * ((distance >= rate) - (reference >= rate))
    return 0.0


@compilable
def _fill_row(row: Floats, k: int, kernel: int, rate: float, weights: Floats) -> int:
    """Fill in the weights of a row; return how many are not zero for certain."""
    factor = 1.0 / _fill_shares(row, k, kernel, rate, weights)
    stop = _tied_places(row, k)[1]
    for c in range(stop):
        weights[c] *= factor
    for c in range(stop, weights.shape[0]):
        weights[c] = 0.0
    return stop


@compilable
def _fill_shares(row: Floats, k: int, kernel: int, rate: float, values: Floats) -> float:
    """Fill in the kernels relative to the nearest neighbour, times their share; return the sum."""
    first, stop = _tied_places(row, k)
    nearest = row[0]
    if kernel == GAUSSIAN:
        for c in range(stop):
            values[c] = exp_of(-rate * (row[c] - nearest) * (row[c] + nearest))
    elif kernel == EXPONENTIAL:
        for c in range(stop):
            values[c] = exp_of(-rate * (row[c] - nearest))
    else:
        for c in range(stop):
            values[c] = np.exp(_log_ratio(kernel, rate, row[c], nearest))
    if stop > first:
        share = (k - first) / (stop - first)
        for c in range(first, stop):
            values[c] *= share
    return _total(values, stop)


@compiled(fastmath=ANY_ORDER)
def _total(values: Floats, n_values: int) -> float:
    total = 0.0
    for c in range(n_values):
        total += values[c]
    return total


@compilable
def _tied_places(row: Floats, k: int) -> tuple[int, int]:
    """Find the places first .. stop - 1 that share the k-th; (k, k) if none has to."""
    if k >= row.shape[0] or row[k] * _BELOW > row[k - 1]:
        return min(k, row.shape[0]), min(k, row.shape[0])
    first = k - 1
    while first > 0 and row[first] * _BELOW <= row[first - 1]:
        first -= 1
    return first, _end_of_ties(row, first)


@compilable
def _end_of_ties(row: Floats, first: int) -> int:
    """Find the first place after `first` that does not tie with the one before it."""
    stop = first + 1
    while stop < row.shape[0] and row[stop] * _BELOW <= row[stop - 1]:
        stop += 1
    return stop


@compilable
def _tie_group(row: Floats, distance: float) -> tuple[np.intp, np.intp]:
    """Count the neighbours closer than a new point, and those closer or as close."""
    n_closer = np.searchsorted(row, distance * _BELOW)
    stop = n_closer
    while stop < row.shape[0] and row[stop] * _BELOW <= distance:
        stop += 1
    return n_closer, stop


@compilable
def _tied_weight(row: Floats, distance: float, k: int, kernel: int, rate: float) -> float:
    """Compute the in-weight of a new point that ties with the k-th neighbour."""
    first, stop = _tie_group(row, distance)
    if first >= k:
        return 0.0
    share = min((k - first) / (stop - first + 1), 1.0)
    own = share * np.exp(_log_ratio(kernel, rate, distance, distance))
    total = own
    for c in range(min(stop, row.shape[0])):
        value = np.exp(_log_ratio(kernel, rate, row[c], distance))
        total += value if c < first else share * value
    return own / total


@compilable
def _add_ramp(
    corners: Floats, label: int, n_before: int | np.intp, n_until: int | np.intp, share: float
) -> None:
    """Let a class rise by `share` at each k from n_before + 1 to n_until."""
    if n_before + 1 < corners.shape[0]:
        corners[n_before + 1, label] += share
    if n_until + 1 < corners.shape[0]:
        corners[n_until + 1, label] -= share


@compilable
def _add_ramps_at(corners: Floats, ks: Floats, support: Floats) -> None:
    """Add up the ramps of each class and divide by k, at each of some rising k."""
    for g in range(support.shape[1]):
        slope, height, n_done = 0.0, 0.0, 0
        for k in range(1, corners.shape[0] - 1):
            slope += corners[k, g]
            height += slope
            if n_done < ks.shape[0] and k == ks[n_done]:
                support[n_done, g] += height / k
                n_done += 1
