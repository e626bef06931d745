"""Averages over the posterior by the near field, of points as they see it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearfield.near.field import NearField
from nearfield.prediction._intervals import equal_nodes
from nearfield.prediction._rules import Measure
from nearfield.prediction._smooth import Nodes
from nearfield.sampling.mean_softmax import mean_softmax
from nearfield.sampling.near_support import Neighborhood

Floats = NDArray[np.float64]

_MAX_SCALES = 128


@dataclass(frozen=True, eq=False)
class NearSums:
    """The support at some sigmas."""

    near_field: NearField
    sigmas: Floats
    is_joint: bool

    def support(self, neighborhood: Neighborhood) -> Floats:
        """Give the support of each class at each sigma, shape (m, n_sigmas, G)."""
        return self.near_field.support(neighborhood, self.sigmas, self.is_joint)


@dataclass(frozen=True, eq=False)
class StepAverage:
    """The average where the support jumps with sigma: at every sigma of the posterior.

    If it has more than a few, at some that share it evenly.
    """

    sums: NearSums
    nodes: Nodes
    external_field: Floats

    @classmethod
    def of(
        cls, measure: Measure, near_field: NearField, is_joint: bool, external_field: Floats
    ) -> "StepAverage":
        """Choose the nodes."""
        if len(np.unique(measure.scales)) > _MAX_SCALES:
            measure = equal_nodes(measure)
        nodes = Nodes.of(measure)
        return cls(NearSums(near_field, nodes.scales, is_joint), nodes, external_field)

    def probabilities(self, neighborhood: Neighborhood) -> Floats:
        """Average the class probabilities of points, shape (m, G)."""
        support, interpolation = self.at(self.nodes.scales)(neighborhood)
        probabilities = np.empty((len(support), len(self.external_field)))
        nodes = self.nodes
        mean_softmax(
            support,
            interpolation,
            nodes.starts,
            nodes.betas,
            nodes.weights,
            self.external_field,
            probabilities,
        )
        return probabilities

    def at(self, scales: Floats) -> Callable[[Neighborhood], tuple[Floats, Floats]]:
        """Prepare the support at other sigmas; no interpolation follows it."""
        sums = NearSums(self.sums.near_field, scales, self.sums.is_joint)
        return lambda neighborhood: (sums.support(neighborhood), np.empty((len(scales), 0)))
