"""Averages over the posterior by the near field, of points as they see it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.near.field import NearField
from nearfield.near.sums import FieldSums
from nearfield.near.support_table import SupportTable
from nearfield.prediction._intervals import equal_nodes
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._rules import Measure
from nearfield.prediction._smooth import Nodes
from nearfield.sampling.mean_softmax import mean_softmax

Floats = NDArray[np.float64]

_MAX_SCALES = 128
_FARTHER = 3.0


@dataclass(frozen=True, eq=False)
class Probes:
    """Some training points, each as it is and again farther from all: what rules are tried on."""

    table: SupportTable

    def support(self, sigmas: Floats, is_joint: bool) -> Floats:
        """Give the support of each class at each sigma, shape (m, n_sigmas, G)."""
        farther = self.table.farther(sigmas, _FARTHER)
        return np.concatenate([self.table.at(sigmas, is_joint), farther])


@dataclass(frozen=True, eq=False)
class NearSums:
    """The support at some sigmas."""

    near_field: NearField
    sigmas: Floats
    is_joint: bool

    def support(self, seen: Any) -> Floats:
        """Give the support of each class at each sigma, shape (m, n_sigmas, G)."""
        if isinstance(seen, Probes):
            return seen.support(self.sigmas, self.is_joint)
        support = self.prepared.support(seen, self.is_joint)
        return support.out + support.back if self.is_joint else support.out

    @cached_property
    def prepared(self) -> FieldSums:
        """The sums at these sigmas."""
        return self.near_field.sums_at(self.sigmas)


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

    def probabilities(self, neighborhood: Any) -> Floats:
        """Average the class probabilities of points, shape (m, G)."""
        support, interpolation = self.at(self.nodes.scales)(neighborhood)
        probabilities = np.empty((len(support), len(self.external_field)))
        nodes = self.nodes
        mean_softmax(
            support,
            *interpolation,
            nodes.starts,
            nodes.betas,
            nodes.weights,
            self.external_field,
            probabilities,
        )
        return probabilities

    def at(self, scales: Floats) -> Callable[[Any], tuple[Floats, Interpolation]]:
        """Prepare the support at other sigmas; no interpolation follows it."""
        sums = NearSums(self.sums.near_field, scales, self.sums.is_joint)
        return lambda neighborhood: (sums.support(neighborhood), Interpolation.none(len(scales)))
