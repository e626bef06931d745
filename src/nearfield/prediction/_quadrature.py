"""Quadrature rules of discrete measures: a few nodes that integrate like many."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def gauss_nodes(values: Floats, weights: Floats, n_nodes: int) -> Floats:
    """Find the nodes of the Gauss rule of a discrete measure, by the Lanczos process.

    Fewer than `n_nodes` where there are not so many different values.

    Golub and Welsch (1969): the eigenvalues of the Jacobi matrix of the measure.
    """
    centre = np.average(values, weights=weights)
    spread = np.ptp(values) or 1.0
    scaled = (values - centre) / spread
    basis = np.empty((n_nodes, len(values)))
    basis[0] = np.sqrt(weights / weights.sum())
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    while True:
        found = basis[: len(diagonal) + 1]
        vector = scaled * found[-1]
        diagonal.append(float(vector @ found[-1]))
        for _ in range(2):  # a second time for the rounding errors of the first
            vector = vector - found.T @ (found @ vector)
        norm = float(np.linalg.norm(vector))
        if len(diagonal) == n_nodes or norm < 1e-9:
            break
        off_diagonal.append(norm)
        basis[len(diagonal)] = vector / norm
    jacobi = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    nodes = np.linalg.eigvalsh(jacobi)
    # A measure with nearly all of its weight in one place can have nodes that are all but equal.
    is_apart = np.append(True, np.diff(nodes) > 1e-9)
    return centre + spread * nodes[is_apart]


def lagrange_basis(nodes: Floats, values: Floats) -> Floats:
    r"""Evaluate the polynomials that are one at a node and zero at the others.

    Returns
    -------
    basis : ndarray, shape (n_values, n_nodes)
        Rows sum to one: :math:`f(x) \approx \sum_q \ell_q(x) f(x_q)`.
    """
    basis = np.ones((len(values), len(nodes)))
    for q, node in enumerate(nodes):
        for other in np.delete(nodes, q):
            basis[:, q] *= (values - other) / (node - other)
    return basis


def cells(values: Floats, weights: Floats, n_cells: int) -> list[NDArray[np.int64]]:
    """Cut values into cells of about equal width, and of about equal weight: a bit of both."""
    order = np.argsort(values, kind="stable")
    width = (values[order] - values[order[0]]) / (np.ptp(values) or 1.0)
    mass = np.cumsum(weights[order]) - 0.5 * weights[order]
    place = 0.5 * (width + mass / weights.sum())
    cuts = np.searchsorted(place, np.arange(1, n_cells) / n_cells)
    return [cell for cell in np.split(order, cuts) if cell.size]
