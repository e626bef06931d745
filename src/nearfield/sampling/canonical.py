r"""Many draws at many points (beta, scale): one chain that walks through them all.

Cluster moves here cost :math:`O(\beta n)` in place of :math:`O(n^2)`. Two points that agree are
tied with probability :math:`1 - \exp(-\beta c_{ij})`: that of at least one event of a Poisson
process with rate :math:`\beta c_{ij}`. So each point has events at rate
:math:`\beta \sum_j c_{ij} / 2`, and each event picks its partner from the point's row of the
coupling, by an alias table (Walker, 1977).
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.sampling._random import uniform_at
from nearfield.sampling._support import add_coupling
from nearfield.sampling.cluster import draw_cluster_class, find_root
from nearfield.sampling.gibbs import draw_class, surely_stays

_MOST_EVENTS = 0.2  # of a point for each other point; beyond, looking at all pairs is cheaper
_LARGEST_RATE = 500.0  # beyond, exp(-rate) is too close to zero
_NEVER = 2.0**-54  # the smallest uniform number is not below it


class FieldStack(NamedTuple):
    """Fields of the same points at several scales, as the kernels take them."""

    coupling: NDArray[np.float64]  # shape (R, n, n)
    total_coupling: NDArray[np.float64]  # shape (R, n)
    thresholds: NDArray[np.float64]  # shape (R, n, n): when an alias table keeps its own column
    aliases: NDArray[np.int32]  # shape (R, n, n): what it gives otherwise
    external_field: NDArray[np.float64]  # shape (G,)


class Walk(NamedTuple):
    """Where a chain goes: a stop at each (beta, row of the stack), with so many sweeps there."""

    betas: NDArray[np.float64]  # shape (T,)
    rows: NDArray[np.int64]  # shape (T,)
    n_sweeps: NDArray[np.int64]  # shape (T,)


def stack_fields(fields: list[LabelField]) -> FieldStack:
    """Prepare fields for the kernels."""
    coupling = np.stack([field.to_dense().coupling for field in fields])
    thresholds, aliases = np.empty_like(coupling), np.empty(coupling.shape, dtype=np.int32)
    for row in range(len(fields)):
        fill_alias_tables(coupling[row], thresholds[row], aliases[row])
    return FieldStack(coupling, coupling.sum(axis=2), thresholds, aliases, fields[0].external_field)


def walk_chains(
    stack: FieldStack, walk: Walk, labels: NDArray[np.int8], keys: NDArray[np.uint64]
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Walk one chain a key through the stops of a walk; a cluster move goes before each sweep.

    Parameters
    ----------
    stack : FieldStack
    walk : Walk
    labels : ndarray, shape (C, n)
        Where the chains start; left where they end.
    keys : ndarray, shape (C,)

    Returns
    -------
    drawn : ndarray, shape (C, T, n)
        The labels when each stop is left.
    agreements : ndarray, shape (C, T)
        Their agreements at the scale of the stop.
    """
    n_chains, n_points = labels.shape
    drawn = np.empty((n_chains, len(walk.betas), n_points), dtype=np.int8)
    agreements = np.empty(drawn.shape[:2])
    for c in range(n_chains):
        walk_chain(*stack, *walk, labels[c], keys[c], drawn[c], agreements[c])
    return drawn, agreements


@njit(cache=True, nogil=True)
def walk_chain(
    coupling,
    total_coupling,
    thresholds,
    aliases,
    external_field,
    betas,
    rows,
    n_sweeps,
    start,
    key,
    drawn,
    agreements,
):
    """Walk one chain through all stops, filling in `drawn` and `agreements`."""
    n_points = start.shape[0]
    labels = start.astype(np.int64)
    support = np.empty((external_field.shape[0], n_points))
    log_weights = np.empty_like(external_field)
    parents = np.empty(n_points, dtype=np.int64)
    classes = np.empty(n_points, dtype=np.int64)
    position = np.uint64(0)
    for stop in range(betas.shape[0]):
        row, beta = rows[stop], betas[stop]
        sum_support(coupling[row], labels, support)
        for _ in range(n_sweeps[stop]):
            if beta > 0.0:
                position = tie_points(
                    coupling[row],
                    total_coupling[row],
                    thresholds[row],
                    aliases[row],
                    beta,
                    labels,
                    parents,
                    key,
                    position,
                )
                position = recolour(external_field, labels, parents, classes, key, position)
                sum_support(coupling[row], labels, support)
            position = sweep_labels(
                coupling[row], external_field, beta, labels, support, log_weights, key, position
            )
        drawn[stop] = labels
        agreements[stop] = agreement_of(labels, support)
    start[:] = labels


@njit(cache=True, nogil=True)
def fill_alias_tables(coupling, thresholds, aliases):
    """Make the alias table of every row (Vose, 1991)."""
    n_points = coupling.shape[0]
    small = np.empty(n_points, dtype=np.int64)
    large = np.empty(n_points, dtype=np.int64)
    for i in range(n_points):
        n_small, n_large = 0, 0
        scale = n_points / coupling[i].sum()
        for j in range(n_points):
            thresholds[i, j] = coupling[i, j] * scale
            aliases[i, j] = j
            if thresholds[i, j] < 1.0:
                small[n_small] = j
                n_small += 1
            else:
                large[n_large] = j
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            less, more = small[n_small], large[n_large - 1]
            aliases[i, less] = more
            thresholds[i, more] -= 1.0 - thresholds[i, less]
            if thresholds[i, more] < 1.0:
                n_large -= 1
                small[n_small] = more
                n_small += 1


@register_jitable
def tie_points(coupling, total_coupling, thresholds, aliases, beta, labels, parents, key, position):
    """Tie points that agree, each with its probability; return the next unused position."""
    n_points = labels.shape[0]
    n_left = n_points - count_classes(labels, parents)  # groups that can still be joined
    for i in range(n_points):
        parents[i] = i
    for i in range(n_points):
        if n_left == 0:
            break
        rate = 0.5 * beta * total_coupling[i]
        if rate < _MOST_EVENTS * n_points and rate < _LARGEST_RATE:
            # A Poisson number of events: uniforms whose product stays above exp(-rate).
            left = uniform_at(key, position) * math.exp(rate)
            position += np.uint64(1)
            while left > 1.0:
                column = uniform_at(key, position) * n_points
                j = int(column)
                if column - j >= thresholds[i, j]:
                    j = int(aliases[i, j])
                if labels[j] == labels[i]:
                    n_left -= join(parents, i, j)
                left *= uniform_at(key, position + np.uint64(1))
                position += np.uint64(2)
        else:  # so many events that looking at every pair is cheaper
            for j in range(n_points):
                strength = 0.5 * beta * coupling[i, j]
                if strength > _NEVER and labels[j] == labels[i]:
                    uniform = uniform_at(key, position + np.uint64(j))
                    if uniform < strength and uniform < -math.expm1(-strength):
                        n_left -= join(parents, i, j)
            position += np.uint64(n_points)
    return position


@register_jitable
def join(parents, i, j):
    """Join the groups of two points; return how many groups fewer there are."""
    first, second = find_root(parents, i), find_root(parents, j)
    parents[first] = second
    return 1 if first != second else 0


@register_jitable
def count_classes(labels, is_seen):
    """Count the classes among the labels; `is_seen` is room for one number a point."""
    n_classes = 0
    is_seen[:] = 0
    for i in range(labels.shape[0]):
        # With more classes than points a class may have no room; then it is counted twice.
        slot = labels[i] if labels[i] < is_seen.shape[0] else 0
        if is_seen[slot] == 0:
            is_seen[slot] = 1
            n_classes += 1
    return n_classes


@register_jitable
def recolour(external_field, labels, parents, classes, key, position):
    """Draw a class for every group of tied points; return the next unused position."""
    n_points, n_classes = labels.shape[0], external_field.shape[0]
    for i in range(n_points):
        classes[i] = 0  # first the size of the group
    is_even = True
    for g in range(n_classes):
        is_even = is_even and external_field[g] == external_field[0]
    for i in range(n_points):
        labels[i] = find_root(parents, i)
        classes[labels[i]] += 1
    for i in range(n_points):
        if parents[i] == i:
            uniform = uniform_at(key, position)
            position += np.uint64(1)
            if is_even:
                classes[i] = np.int64(uniform * n_classes)
            else:
                classes[i] = draw_cluster_class(external_field, classes[i], uniform)
    for i in range(n_points):
        labels[i] = classes[labels[i]]
    return position


@register_jitable
def sweep_labels(coupling, external_field, beta, labels, support, log_weights, key, position):
    """Draw every label from its full conditional; return the next unused position."""
    for i in range(labels.shape[0]):
        old = labels[i]
        for g in range(log_weights.shape[0]):
            log_weights[g] = external_field[g] + beta * support[g, i]
        uniform = uniform_at(key, position)
        position += np.uint64(1)
        if not surely_stays(log_weights, old, uniform):
            new = draw_class(log_weights, old, uniform)
            if new != old:
                labels[i] = new
                add_coupling(coupling, i, -1.0, support, old)
                add_coupling(coupling, i, 1.0, support, new)
    return position


@register_jitable
def sum_support(coupling, labels, support):
    """Fill in the support of every class, shape (G, n), from scratch."""
    support[:] = 0.0
    for i in range(labels.shape[0]):
        add_coupling(coupling, i, 1.0, support, labels[i])


@register_jitable
def agreement_of(labels, support):
    """Compute S from the support."""
    total = 0.0
    for i in range(labels.shape[0]):
        total += support[labels[i], i]
    return 0.5 * total
