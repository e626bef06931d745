"""Credible intervals of class probabilities, from nodes that share the posterior evenly."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearfield.prediction._knots import Interpolation
from nearfield.prediction._rules import Floats, Measure
from nearfield.prediction._smooth import Nodes
from nearfield.sampling.mean_softmax import node_probabilities

_N_NODES = 512
_VALUES_AT_ONCE = 2**21


def equal_nodes(measure: Measure) -> Measure:
    """Choose nodes of equal weight from a measure: systematic sampling along its scales."""
    order = np.lexsort((measure.betas, measure.scales))
    n_nodes = _N_NODES if len(order) > 1 else 1
    cumulative = np.cumsum(measure.weights[order])
    levels = (np.arange(n_nodes) + 0.5) / n_nodes * cumulative[-1]
    chosen = measure.part(order[np.searchsorted(cumulative, levels)])
    return chosen._replace(weights=np.full(n_nodes, 1.0 / n_nodes))


@dataclass(frozen=True, eq=False)
class IntervalNodes:
    """Nodes of equal weight, and how to get the support of new points at their scales."""

    nodes: Nodes
    support_at: Callable[[Any], tuple[Floats, Interpolation]]
    external_field: Floats

    @classmethod
    def of(cls, average: Any, measure: Measure, external_field: Floats) -> "IntervalNodes":
        """Prepare for a posterior and its average, smooth or by steps."""
        nodes = Nodes.of(equal_nodes(measure))
        return cls(nodes, average.at(nodes.scales), external_field)

    def quantiles(self, distances: Any, levels: tuple[float, ...]) -> Floats:
        """Give quantiles of the class probabilities of new points, shape (n_levels, m, G)."""
        n_classes, n_nodes = len(self.external_field), len(self.nodes.betas)
        quantiles = np.empty((len(levels), len(distances), n_classes))
        n_rows = max(1, _VALUES_AT_ONCE // (n_classes * n_nodes))
        for start in range(0, len(distances), n_rows):
            rows = slice(start, start + n_rows)
            support, interpolation = self.support_at(distances[rows])
            values = np.empty((len(support), n_classes, n_nodes))
            node_probabilities(
                support,
                *interpolation,
                self.nodes.starts,
                self.nodes.betas,
                self.external_field,
                values,
            )
            quantiles[:, rows] = np.quantile(values, levels, axis=2)
        return quantiles
