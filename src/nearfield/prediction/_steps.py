"""A posterior gathered by scale, for averages where the support jumps with the scale."""

import numpy as np

from nearfield.prediction._rules import Measure, beta_basis, cells
from nearfield.sampling.steps import StepMass

_N_EXACT_NODES = 32
N_EXACT_SCALES = 128
_N_GROUPS = 8
_JOINED = 3e-4  # mass x (change of beta x support)^3 that is averaged as one


def gather(measure: Measure) -> StepMass:
    """Gather the nodes or draws of a posterior by scale."""
    scales, index = np.unique(measure.scales, return_inverse=True)
    is_exact = len(measure.weights) <= _N_EXACT_NODES
    if is_exact:
        grid, place = np.unique(measure.betas, return_inverse=True)
        basis = np.eye(len(grid))[place]
    else:
        groups = cells(measure.scales, measure.weights, _N_GROUPS)
        grid, basis = beta_basis(measure, groups)
    mass = np.zeros((len(scales) + 1, len(grid)))
    np.add.at(mass[1:], index, basis * measure.weights[:, None])
    sums = np.zeros((len(scales) + 1, 3))
    for power in range(3):
        sums[1:, power] = np.bincount(index, measure.weights * measure.betas**power)
    # Of many nodes the average is no better than the six digits, which cost half as much.
    kind = np.float64 if len(measure.weights) <= N_EXACT_SCALES else np.float32
    return StepMass(
        scales,
        grid.astype(kind),
        np.cumsum(mass, axis=0).astype(kind),
        np.cumsum(sums, axis=0),
        0.0 if is_exact else _JOINED,
    )
