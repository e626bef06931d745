"""The support of new points under the radius kernel, at each of some scales."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield._vector import bits_of
from nearfield.sampling.steps import average_pieces

# Small helpers take single arrays: a call counts the references of all tables that it is given,
# which costs more than what they do.

_CELLS_A_SCALE = 8


class ScaleSearch(NamedTuple):
    """Rising scales, and where to search among them.

    A distance is read as a whole number by its bits, which rises with it; the first bits are the
    number of a cell. So cells are narrow where distances are small.

    Attributes
    ----------
    scales : ndarray, shape (n_scales,)
    starts : ndarray of int, shape (n_cells,)
        The first scale of each cell, or the first beyond.
    first_cell : int
        The number of the first cell.
    shift : int
        How many bits a cell does not look at.
    """

    scales: NDArray[np.float64]
    starts: NDArray[np.int32]
    first_cell: int
    shift: int | np.signedinteger


class RadiusTables(NamedTuple):
    """What the support of new points needs to know of the training points.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
    n_in_class : ndarray, shape (G,)
    search : ScaleSearch
    gains : ndarray, shape (n, n_scales)
        How much more each point listens to a new one within reach than beyond.
    outside : ndarray, shape (G, n_scales)
        How much all points of a class listen to a new one beyond reach.
    epsilon : float
        What a point beyond reach weighs.
    """

    labels: NDArray[np.int64]
    n_in_class: NDArray[np.float64]
    search: ScaleSearch
    gains: NDArray[np.float64]
    outside: NDArray[np.float64]
    epsilon: float


@njit(cache=True, nogil=True, error_model="numpy")
def radius_probabilities(distances, tables, posterior, external_field, probabilities):
    """Fill in the averaged class probabilities of new points; the rest as in `average_pieces`."""
    n_scales = tables.search.scales.shape[0]
    stops = np.arange(1, n_scales + 1)
    support = np.empty((n_scales, external_field.shape[0]))
    for i in range(distances.shape[0]):
        fill_support(distances[i], tables, support)
        average_pieces(n_scales, stops, support, posterior, external_field, probabilities[i])


@njit(cache=True, nogil=True, error_model="numpy")
def radius_support(distances, tables, support):
    """Fill in the support at every scale, shape (m, n_scales, G)."""
    for i in range(distances.shape[0]):
        fill_support(distances[i], tables, support[i])


@njit(cache=True, nogil=True, error_model="numpy")
def fill_support(row, tables, support):
    """Fill in the support of one new point at every scale, shape (n_scales, G)."""
    labels, gains, n_in_class, epsilon = (
        tables.labels,
        tables.gains,
        tables.n_in_class,
        tables.epsilon,
    )
    scales, starts, first_cell, shift = tables.search
    n_classes, n_scales = tables.outside.shape
    entered = np.zeros((n_scales, n_classes))
    heard = tables.outside.copy()
    for j in range(row.shape[0]):
        if row[j] < scales[-1]:
            g, entry = labels[j], entry_of(row[j], scales, starts, first_cell, shift)
            entered[entry, g] += 1.0
            for s in range(entry, n_scales):
                heard[g, s] += gains[j, s]
    counts, n_points = np.zeros(n_classes), row.shape[0]
    for s in range(n_scales):
        for g in range(n_classes):
            counts[g] += entered[s, g]
        factor = 1.0 / weight_of(counts, n_points, epsilon)
        for g in range(n_classes):
            weight = counts[g] + epsilon * (n_in_class[g] - counts[g])
            support[s, g] = weight * factor + heard[g, s]


@register_jitable(inline="always")
def weight_of(counts, n_points, epsilon):
    """Add up what all points weigh, given how many of each class are in reach."""
    n_reached = 0.0
    for g in range(counts.shape[0]):
        n_reached += counts[g]
    return n_reached + epsilon * (n_points - n_reached)


@njit(cache=True, nogil=True, error_model="numpy")
def search_table(scales):
    """Prepare to search among rising scales, which are larger than zero."""
    most_cells, shift = _CELLS_A_SCALE * scales.shape[0], np.int64(0)
    while (bits_of(scales[-1]) >> shift) - (bits_of(scales[0]) >> shift) >= most_cells:
        shift += 1
    first_cell = bits_of(scales[0]) >> shift
    n_cells = (bits_of(scales[-1]) >> shift) - first_cell + 1
    starts = np.empty(n_cells, dtype=np.int32)
    s = 0
    for cell in range(n_cells):
        while (bits_of(scales[s]) >> shift) < first_cell + cell:
            s += 1
        starts[cell] = s
    return ScaleSearch(scales, starts, first_cell, shift)


@register_jitable(inline="always")
def entry_of(distance, scales, starts, first_cell, shift):
    """Find the first scale that is larger than a distance, which the last one is."""
    s = starts[max((bits_of(distance) >> shift) - first_cell, 0)]
    while scales[s] <= distance:
        s += 1
    return s
