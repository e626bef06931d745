"""Draws of some labels of a field while the others are known.

What the known labels say is a field at each free site, which Gibbs sampling and cluster moves
both take in: clusters of free points then change class together.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compiled
from nearfield.field import LabelField
from nearfield.sampling.gibbs import class_sweeps
from nearfield.sampling.support import Coupling, add_coupling, coupling_arrays
from nearfield.sampling.swendsen_wang import find_bonds, move_clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def draw_free_labels(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    known: Ints,
    labels: Ints,
    n_sweeps: int,
) -> Ints:
    r"""Draw the last m labels of a field given the first n - m.

    .. math:: \pi(y) \propto \exp\Big(\sum_i a_{i y_i} + \beta \sum_{i<j} c_{ij} 1[y_i = y_j]\Big)

    over the free sites, with the known labels in their fields a. Approximate, exact as the sweeps
    grow. Each is a cluster move, where beta > 0, and a Gibbs sweep.

    Parameters
    ----------
    rng : numpy.random.Generator
    field : LabelField
        Of all n points, those with known labels first.
    beta : float
    known : ndarray of int, shape (n - m,)
    labels : ndarray of int, shape (m,)
        Where to start; left as they are.
    n_sweeps : int

    Returns
    -------
    labels : ndarray of int, shape (m,)
    """
    n_known, labels = len(known), labels.copy()
    to_known = field.coupling[n_known:, :n_known] @ np.eye(field.n_classes)[known]
    free = LabelField(field.coupling[n_known:, n_known:], field.n_classes, field.external_field)
    site_fields = field.external_field + beta * to_known
    keys = rng.integers(0, 2**64, dtype=np.uint64, size=n_sweeps)
    free_sweeps(coupling_arrays(free, beta), site_fields, beta > 0.0, labels, keys)
    return labels


@compiled
def free_sweeps(
    coupling: Coupling,
    site_fields: Floats,
    has_clusters: bool,
    labels: Ints,
    keys: NDArray[np.uint64],
) -> None:
    """Move clusters, then single labels, once a key, changing `labels` in place.

    Parameters
    ----------
    coupling : array, shape (m, m), or arrays of a CSR one
        Times beta.
    site_fields : shape (m, G)
    has_clusters : bool
        Whether beta is above zero.
    """
    n_points, n_classes = site_fields.shape
    log_weights, parents = np.empty((n_classes, n_points)), np.empty(n_points, dtype=np.uint32)
    bonds = find_bonds(coupling, 1.0, n_points, 0.0, 1.0)
    for key in keys:
        if has_clusters:
            first = np.uint64(n_points)  # the numbers before are those of the Gibbs sweep
            move_clusters(bonds, site_fields, labels, parents, key, first)
        log_weights[:] = site_fields.T
        for i in range(n_points):
            add_coupling(coupling, i, 1.0, log_weights, labels[i])
        class_sweeps(coupling, log_weights, labels, key, 1)
