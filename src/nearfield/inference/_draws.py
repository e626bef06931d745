"""The auxiliary labels of a move: a draw from the field at the proposed parameters."""

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.sampling import draw_labels, draw_labels_cluster

_N_CLUSTER_SWEEPS = 10  # the mean agreement is then within some 3% of that after 200


def draw_after_clusters(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    n_sweeps: int,
    initial: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Draw by Gibbs sampling, after a few cluster moves where there are any.

    By default these start from labels that are random by groups of tied points. Without them the
    sweeps freeze, above the transition of the field, in labelings that agree less than the data,
    whatever their number; a chain then takes ever larger beta for better, into the thousands on
    the wine and olive data, far outside the prior.
    """
    if beta > 0.0:
        initial = draw_labels_cluster(rng, field, beta, _N_CLUSTER_SWEEPS, initial)
    return draw_labels(rng, field, beta, n_sweeps, initial)
