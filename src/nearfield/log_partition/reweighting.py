"""Weights that turn draws of a mixture of fields into draws of one field, at many betas."""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield._vector import exp_of

Floats = NDArray[np.float64]


@compiled(fastmath={"contract"})
def fill_weights(
    betas: Floats,
    agreements: Floats,
    log_density: Floats,
    weights: Floats,
    log_largest: Floats,
    n_effective: Floats,
) -> None:
    r"""Fill in the weights of all draws at each beta, shape (B, M), the largest of them one.

    .. math:: w_{bm} \propto \exp(\beta_b S_m) / D_m, \qquad n_b = (\sum_m w)^2 / \sum_m w^2

    Parameters
    ----------
    betas : shape (B,)
    agreements, log_density : shape (M,)
        S and log D of each draw.
    weights : shape (B, M)
    log_largest, n_effective : shape (B,)
        The log of what the weights of each beta were divided by, and how many draws they are
        worth.
    """
    n_draws = agreements.shape[0]
    for b in range(betas.shape[0]):
        largest = -np.inf
        for m in range(n_draws):
            weights[b, m] = betas[b] * agreements[m] - log_density[m]
            largest = max(largest, weights[b, m])
        for m in range(n_draws):  # apart from the sums, for the vector registers
            weights[b, m] = exp_of(weights[b, m] - largest)
        total, squares = 0.0, 0.0
        for m in range(n_draws):
            total += weights[b, m]
            squares += weights[b, m] ** 2
        log_largest[b], n_effective[b] = largest, total**2 / squares
