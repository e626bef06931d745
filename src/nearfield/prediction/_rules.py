"""Few nodes in place of many: a discrete measure replaced by one that integrates the same.

The posterior of thousands of draws is one measure on (beta, log scale); what prediction averages
over it is smooth. So a few nodes with the right moments do for all of the draws.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

_ORDER_SCALE = 3
_ORDER_BETA = 4
_BETA_GRIDS = ((1, 8), (2, 8), (4, 8), (6, 8), (8, 8))  # whole vectors of numbers
_TRIAL_SUPPORT = np.array([0.25, 0.5, 1.0, 2.0, 3.0])  # between two classes
_BETA_TOLERANCE = 5e-5  # of absolute errors added up: what is left of them in the end is far less


class Measure(NamedTuple):
    """Weighted nodes; the weights sum to one, and may be below zero here and there.

    The scales are log sigma for a smooth kernel, sigma or k themselves for others.
    """

    betas: Floats
    scales: Floats
    weights: Floats

    def part(self, index: NDArray[np.int64]) -> "Measure":
        """Take some of the nodes."""
        return Measure(self.betas[index], self.scales[index], self.weights[index])


def gauss_nodes(values: Floats, weights: Floats, n_nodes: int) -> Floats:
    """Find the nodes of the Gauss rule of a discrete measure, by the Lanczos process.

    Fewer than `n_nodes` where there are not so many different values.

    Golub and Welsch (1969): the eigenvalues of the Jacobi matrix of the measure.
    """
    centre = np.average(values, weights=weights)
    spread = np.ptp(values) or 1.0
    scaled = (values - centre) / spread
    basis = [np.sqrt(weights / weights.sum())]
    diagonal, off_diagonal = [], []
    while True:
        vector = scaled * basis[-1]
        diagonal.append(float(vector @ basis[-1]))
        for _ in range(2):  # a second time for the rounding errors of the first
            vector = vector - np.array(basis).T @ (np.array(basis) @ vector)
        norm = float(np.linalg.norm(vector))
        if len(diagonal) == n_nodes or norm < 1e-9:
            break
        off_diagonal.append(norm)
        basis.append(vector / norm)
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
    if len(nodes) == 1:
        return np.ones((len(values), 1))
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 1.0)
    # The barycentric form, its factors in the log: with many nodes their product overflows.
    logs = -np.log(np.abs(gaps)).sum(axis=1)
    factors = np.prod(np.sign(gaps), axis=1) * np.exp(logs - logs.max())
    offsets = values[:, None] - nodes
    is_node = offsets == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = factors / offsets
        basis = terms / terms.sum(axis=1, keepdims=True)
    at_node = is_node.any(axis=1)
    basis[at_node] = is_node[at_node]
    return basis


def local_basis(places: Floats, n_grid: int, n_around: int) -> tuple[NDArray[np.int64], Floats]:
    r"""Interpolate between grid points 0, 1, ..: by the polynomial through those around.

    .. math:: f(x) \approx \sum_c a_c f(x_{\text{first} + c})

    Returns
    -------
    first : ndarray of int, shape (n_places,)
    coefficients : ndarray, shape (n_places, n_around)
    """
    first = np.floor(places).astype(np.int64) - (n_around // 2 - 1)
    first = np.clip(first, 0, n_grid - n_around)
    return first, lagrange_basis(np.arange(float(n_around)), places - first)


def compress(measure: Measure, n_scale_cells: int, n_beta_cells: int) -> Measure:
    """Replace a measure by few nodes in each of n_scale_cells x n_beta_cells cells.

    Polynomials on a cell, up to degree 2 in the log scale times degree 3 in beta, integrate
    the same. All cells with the same scales have the same few scales as nodes.
    """
    parts: list[Measure] = []
    for in_scale in cells(measure.scales, measure.weights, n_scale_cells):
        stripe = measure.part(in_scale)
        scales = gauss_nodes(stripe.scales, stripe.weights, _ORDER_SCALE)
        # In arcsinh(beta): near zero, within about one, is where probabilities turn.
        for in_beta in cells(np.arcsinh(stripe.betas), stripe.weights, n_beta_cells):
            parts.append(_cell_rule(stripe.part(in_beta), scales))
    return Measure(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _cell_rule(cell: Measure, scales: Floats) -> Measure:
    betas = gauss_nodes(cell.betas, cell.weights, _ORDER_BETA)
    weighted = cell.weights[:, None] * lagrange_basis(scales, cell.scales)
    weights = weighted.T @ lagrange_basis(betas, cell.betas)
    return Measure(np.tile(betas, len(scales)), np.repeat(scales, len(betas)), weights.ravel())


def cells(values: Floats, weights: Floats, n_cells: int) -> list[NDArray[np.int64]]:
    """Cut values into cells of about equal width, and of about equal weight: a bit of both."""
    order = np.argsort(values, kind="stable")
    width = (values[order] - values[order[0]]) / (np.ptp(values) or 1.0)
    mass = np.cumsum(weights[order]) - 0.5 * weights[order]
    place = 0.5 * (width + mass / weights.sum())
    cuts = np.searchsorted(place, np.arange(1, n_cells) / n_cells)
    return [cell for cell in np.split(order, cuts) if cell.size]


def beta_basis(measure: Measure, groups: list[NDArray[np.int64]]) -> tuple[Floats, Floats]:
    r"""Find a grid on which the betas of all nodes can be gathered, whatever their scale.

    .. math:: f(\beta_i) \approx \sum_b m_{ib} f(\beta_b)

    for the functions that prediction averages, which are as smooth as a sigmoid of beta times a
    support.

    Parameters
    ----------
    measure : Measure
    groups : list of ndarray of int
        The nodes of similar scale: in each group, the two sides agree on average.

    Returns
    -------
    grid : ndarray, shape (n_grid,)
    basis : ndarray, shape (n_nodes, n_grid)
        m_ib
    """
    expected = expit(_TRIAL_SUPPORT * measure.betas[:, None])
    for n_cells, order in _BETA_GRIDS:
        grid, basis = _piecewise_basis(measure.betas, measure.weights, n_cells, order)
        errors = basis @ expit(_TRIAL_SUPPORT * grid[:, None]) - expected
        error = sum(np.abs(measure.weights[group] @ errors[group]) for group in groups)
        if np.max(error) < _BETA_TOLERANCE:
            break
    return grid, basis


def _piecewise_basis(
    values: Floats, weights: Floats, n_cells: int, order: int
) -> tuple[Floats, Floats]:
    groups = cells(np.arcsinh(values), weights, n_cells)
    nodes = [gauss_nodes(values[i], weights[i], order) for i in groups]
    basis = np.zeros((len(values), sum(map(len, nodes))))
    column = 0
    for in_cell, in_nodes in zip(groups, nodes, strict=True):
        stop = column + len(in_nodes)
        basis[in_cell, column:stop] = lagrange_basis(in_nodes, values[in_cell])
        column = stop
    return np.concatenate(nodes), basis
