"""The auxiliary labels of a move: a draw from the field at the proposed parameters."""

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._target import Point
from nearfield.sampling import draw_labels, draw_labels_cluster

_N_CLUSTER_SWEEPS = 10  # the mean agreement is then within some 3% of that after 200


def draw_from_random_start(
    rng: np.random.Generator, point: Point, n_sweeps: int
) -> NDArray[np.int64]:
    """Draw by Gibbs sampling from random labels, after a few cluster moves where there are any.

    These start from labels that are random by groups of tied points. Without them the sweeps
    freeze, above the transition of the field, in labelings that agree less than the data,
    whatever their number; a chain then takes ever larger beta for better, into the thousands on
    the wine and olive data, far outside the prior.
    """
    return draw_from_field(rng, point.field, point.beta, n_sweeps)


def draw_from_field(
    rng: np.random.Generator, field: LabelField, beta: float, n_sweeps: int
) -> NDArray[np.int64]:
    """Draw from a random start, as `draw_from_random_start` does, at a beta."""
    initial = None
    if beta > 0.0:
        initial = draw_labels_cluster(rng, field, beta, _N_CLUSTER_SWEEPS)
    return draw_labels(rng, field, beta, n_sweeps, initial)


def draw_from_one_class(rng: np.random.Generator, point: Point, n_sweeps: int) -> NDArray[np.int64]:
    """Draw as from a random start, but from labels that are all of one class; beta > 0."""
    ordered = np.full(point.field.n_points, rng.integers(point.field.n_classes))
    initial = draw_labels_cluster(rng, point.field, point.beta, _N_CLUSTER_SWEEPS, ordered)
    return draw_labels(rng, point.field, point.beta, n_sweeps, initial)


def draw_from_labels(
    rng: np.random.Generator, point: Point, n_sweeps: int, initial: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw by Gibbs sampling from given labels."""
    return draw_labels(rng, point.field, point.beta, n_sweeps, initial)
