"""The support of new points under the radius kernel, at each of some scales.

All points within the radius weigh alike, so a support follows from counts: a training point adds
to its class from the first scale on that is larger than its distance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import bits_of

Floats = NDArray[np.float64]
SearchTable = tuple[Floats, NDArray[np.int32], Any, Any]  # of `search_table`

_CELLS_A_SCALE = 8


@compiled
def fill_in_weights(
    distances: Floats, scales: Floats, epsilon: float, gains: Floats, outside: Floats
) -> None:
    r"""Tabulate the in-weights of a new point, both of shape (n, n_scales).

    .. math:: \frac{\epsilon}{Z_j + \epsilon} \text{ outside the radius, } \quad
              \frac{1}{Z_j + 1} \text{ inside}, \qquad Z_j = \sum_{l \ne j} \kappa(d_{jl})

    `gains` are the differences of the two.
    """
    n_others = distances.shape[0] - 1
    others = np.empty(n_others)
    for j in range(distances.shape[0]):
        others[:j] = distances[j, :j]
        others[j:] = distances[j, j + 1 :]
        others.sort()
        n_inside = 0
        for s in range(scales.shape[0]):
            while n_inside < n_others and others[n_inside] < scales[s]:
                n_inside += 1
            normalizer = n_inside + epsilon * (n_others - n_inside)
            outside[j, s] = epsilon / (normalizer + epsilon)
            gains[j, s] = 1.0 / (normalizer + 1.0) - outside[j, s]


@compiled
def radius_support(
    distances: Floats,
    labels: NDArray[np.int64],
    class_sizes: Floats,
    search: SearchTable,
    gains: Floats,
    outside: Floats,
    epsilon: float,
    support: Floats,
) -> None:
    """Fill in the support of each class at every scale.

    Parameters
    ----------
    distances : ndarray, shape (m, n)
    labels : ndarray of int, shape (n,)
    class_sizes : ndarray, shape (G,)
    search : tuple
        Of `search_table`.
    gains : ndarray, shape (n, n_scales)
        Of `fill_in_weights`.
    outside : ndarray, shape (G, n_scales)
        Its in-weights outside the radius, summed by class.
    epsilon : float
        The kernel outside the radius.
    support : ndarray, shape (m, n_scales, G)
    """
    scales, starts, first_cell, shift = search
    n_classes, n_scales = outside.shape
    n_points, counts = labels.shape[0], np.empty(n_classes)
    entered, received = np.empty((n_scales, n_classes)), np.empty((n_classes, n_scales))
    for i in range(distances.shape[0]):
        entered[:], received[:], counts[:] = 0.0, outside, 0.0
        for j in range(n_points):
            if distances[i, j] < scales[-1]:
                g, entry = labels[j], entry_of(distances[i, j], scales, starts, first_cell, shift)
                entered[entry, g] += 1.0
                add_to(received[g, entry:], gains[j, entry:])
        n_inside = 0.0
        for s in range(n_scales):
            for g in range(n_classes):
                counts[g] += entered[s, g]
                n_inside += entered[s, g]
            normalizer = n_inside + epsilon * (n_points - n_inside)
            for g in range(n_classes):
                kernel = counts[g] + epsilon * (class_sizes[g] - counts[g])
                support[i, s, g] = kernel / normalizer + received[g, s]


@compiled
def add_to(sums: Floats, values: Floats) -> None:
    """Add values to sums in place: a loop from zero on, which vector instructions take."""
    for s in range(sums.shape[0]):
        sums[s] += values[s]


@compiled
def search_table(scales: Floats) -> SearchTable:
    """Prepare to search among rising scales, which are larger than zero.

    The bits of a distance, read as a whole number, rise with it; their first ones are the number
    of a cell. Returns the scales, the first scale of each cell or the first beyond, the number
    of the first cell, and how many bits are left out of that number.
    """
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
    return scales, starts, first_cell, shift


@compilable(inline="always")
def entry_of(
    distance: float, scales: Floats, starts: NDArray[np.int32], first_cell: int, shift: int
) -> int:
    """Find the first scale that is larger than a distance, which the last one is."""
    s = starts[max((bits_of(distance) >> shift) - first_cell, 0)]
    while scales[s] <= distance:
        s += 1
    return s
