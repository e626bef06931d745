"""Averages over the posterior where the support jumps with the scale; the case of k."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfield.field import NeighborFamily
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._rules import Floats, Measure, beta_basis, cells
from nearfield.sampling.nearest import average_scales, nearest_others, neighbor_support
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


@dataclass(frozen=True, eq=False)
class NeighborAverage:
    """The posterior average of class probabilities with k nearest neighbours."""

    labels: NDArray[np.int64]
    external_field: Floats
    is_joint: bool
    posterior: StepMass
    nearest: Floats
    n_as_near: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        measure: Measure,
        family: NeighborFamily,
        labels: NDArray[np.int64],
        external_field: Floats,
        is_joint: bool,
    ) -> "NeighborAverage":
        """Sort the neighbours of the training points."""
        posterior = gather(measure)
        nearest = np.empty((family.n_points, int(posterior.scales[-1])))
        n_as_near = np.empty(family.n_points, dtype=np.int64)
        nearest_others(family.distances, nearest, n_as_near)
        return cls(labels, external_field, is_joint, posterior, nearest, n_as_near)

    def probabilities(self, distances: Floats) -> Floats:
        """Average the class probabilities of new points, shape (m, G)."""
        probabilities = np.empty((len(distances), len(self.external_field)))
        support, _ = self.at(self.posterior.scales)(distances)
        average_scales(support, self.posterior, self.external_field, probabilities)
        return probabilities

    def at(self, scales: Floats) -> Callable[[Floats], tuple[Floats, Interpolation]]:
        """Prepare the support at some k of the posterior, which rise; no interpolation follows."""
        ks = np.append(scales, np.inf)  # never reached: an end for the search

        def support(distances: Floats) -> tuple[Floats, Interpolation]:
            values = np.empty((len(distances), len(scales), len(self.external_field)))
            neighbor_support(
                distances, self.labels, ks, self.nearest, self.n_as_near, self.is_joint, values
            )
            return values, Interpolation.none(len(scales))

        return support
