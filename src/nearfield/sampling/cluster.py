"""Cluster moves (Swendsen and Wang, 1987): whole groups of points change class at once.

Gibbs sampling from random labels freezes where beta is large: groups of points that each agree
within, but not with each other, have no way to merge label by label. Cluster moves merge them.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_beta, check_generator, check_whole
from nearfield.field import LabelField
from nearfield.sampling._random import draw_key, uniform_at
from nearfield.sampling._support import coupling_arrays, starting_labels


def draw_labels_cluster(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    n_sweeps: int = 100,
    initial: ArrayLike | None = None,
) -> NDArray[np.int64]:
    r"""Draw a labeling by cluster moves: approximate, exact as the sweeps grow; beta >= 0.

    Each sweep ties every two points that agree with probability

    .. math:: 1 - \exp(-\beta c_{ij})

    and gives each group of tied points a class, g with probability proportional to
    :math:`\exp(\alpha_g \times \text{size})`. Parameters are those of `draw_labels`.

    Returns
    -------
    labels : ndarray of int, shape (n,)
    """
    check_generator(rng)
    beta = check_beta(beta)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=0)
    if beta < 0.0:
        raise ValueError(
            f"Expected beta >= 0, where points that agree can be tied; got beta={beta:g}. "
            "Use draw_labels instead."
        )
    labels = starting_labels(rng, field, initial)
    cluster_sweeps(
        coupling_arrays(field),
        field.external_field,
        beta,
        labels,
        draw_key(rng),
        draw_key(rng),
        n_sweeps,
    )
    return labels


@njit(cache=True, nogil=True)
def cluster_sweeps(coupling, external_field, beta, labels, tie_key, class_key, n_sweeps):
    """Tie and recolour all points `n_sweeps` times, changing `labels` in place."""
    n_points = labels.shape[0]
    parents = np.empty(n_points, dtype=np.int64)
    sizes = np.empty(n_points, dtype=np.int64)
    for sweep in range(n_sweeps):
        parents[:] = np.arange(n_points)
        for i in range(n_points):
            position = (sweep * n_points + i) * n_points
            tie_row(coupling, i, beta, labels, parents, tie_key, position)
        sizes[:] = 0
        for i in range(n_points):
            sizes[find_root(parents, i)] += 1
        for i in range(n_points):  # a root takes its new class before or after its members
            root = find_root(parents, i)
            uniform = uniform_at(class_key, sweep * n_points + root)
            labels[i] = draw_cluster_class(external_field, sizes[root], uniform)


def tie_row(coupling, i, beta, labels, parents, key, position):
    """Tie a point to those before it that agree with it, each at random."""
    _tie = _tie_sparse if isinstance(coupling, tuple) else _tie_dense
    _tie(coupling, i, beta, labels, parents, key, position)


def _tie_dense(coupling, i, beta, labels, parents, key, position):
    for j in range(i):
        if labels[j] == labels[i]:
            tie(parents, i, j, beta * coupling[i, j], uniform_at(key, position + j))


def _tie_sparse(coupling, i, beta, labels, parents, key, position):
    data, indices, indptr = coupling
    for entry in range(indptr[i], indptr[i + 1]):
        j = indices[entry]
        if j < i and labels[j] == labels[i]:
            tie(parents, i, j, beta * data[entry], uniform_at(key, position + j))


@overload(tie_row, inline="always")
def _compile_tie_row(coupling, i, beta, labels, parents, key, position):
    return _tie_sparse if isinstance(coupling, types.BaseTuple) else _tie_dense


@register_jitable(inline="always")
def tie(parents, i, j, strength, uniform):
    """Join the groups of two points if uniform < 1 - exp(-strength)."""
    # Most ties are weak, and 1 - exp(-x) <= x decides them without an exp.
    if uniform < strength and uniform < -math.expm1(-strength):
        parents[find_root(parents, i)] = find_root(parents, j)


@register_jitable
def find_root(parents, i):
    """Find the point that stands for a group, shortening the way there."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@register_jitable
def draw_cluster_class(external_field, size, uniform):
    """Draw the class of a group of points by inversion."""
    n_classes = external_field.shape[0]
    largest = external_field.max()
    total = 0.0
    for g in range(n_classes):
        total += math.exp(size * (external_field[g] - largest))
    left = uniform * total
    for g in range(n_classes - 1):
        left -= math.exp(size * (external_field[g] - largest))
        if left < 0.0:
            return g
    return n_classes - 1
