"""Many draws at many points (beta, scale): one chain that walks through them all.

Before each sweep goes a cluster move, as in `nearfield.sampling.cluster`. The pairs of every
field are sorted by their coupling beforehand, so that whatever beta is, the strong ones, which
are looked at one by one, are the last of them.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.sampling._random import uniform_at
from nearfield.sampling._support import add_coupling, move_coupling
from nearfield.sampling.cluster import (
    STRONG,
    draw_cluster_class,
    fill_probabilities,
    find_root,
    first_above,
    index_line,
    tie_strong,
    tie_weak,
)
from nearfield.sampling.drift import fill_drift
from nearfield.sampling.gibbs import draw_class_at, two_largest, upper_logit


class FieldStack(NamedTuple):
    """Fields of the same points at several scales, as the kernels take them."""

    coupling: NDArray[np.float64]  # shape (R, n, n)
    total_coupling: NDArray[np.float64]  # shape (R, n)
    pair_couplings: NDArray[np.float64]  # shape (R, P): of all pairs, ascending
    added_couplings: NDArray[np.float64]  # shape (R, P): the sum of those so far
    begins: NDArray[np.int32]  # shape (R, L): an index of these sums
    pairs: NDArray[np.int32]  # shape (R, P, 2): their points
    external_field: NDArray[np.float64]  # shape (G,)


class Walk(NamedTuple):
    """Where a chain goes: a stop at each (beta, row of the stack), with so many sweeps there."""

    betas: NDArray[np.float64]  # shape (T,)
    rows: NDArray[np.int64]  # shape (T,)
    n_sweeps: NDArray[np.int64]  # shape (T,)


def stack_fields(fields: list[LabelField]) -> FieldStack:
    """Prepare fields for the kernels."""
    coupling = np.stack([field.to_dense().coupling for field in fields])
    every_pair = np.stack(np.tril_indices(coupling.shape[1], -1), axis=1).astype(np.int32)
    unsorted = coupling[:, every_pair[:, 0], every_pair[:, 1]]
    order = np.argsort(unsorted, axis=1)
    pair_couplings = np.take_along_axis(unsorted, order, axis=1)
    added = np.cumsum(pair_couplings, axis=1)
    return FieldStack(
        coupling,
        coupling.sum(axis=2),
        pair_couplings,
        added,
        np.stack([index_line(line) for line in added]),
        every_pair[order],
        fields[0].external_field,
    )


def walk_chains(
    stack: FieldStack,
    walk: Walk,
    labels: NDArray[np.int8],
    keys: NDArray[np.uint64],
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]:
    """Walk one chain a key through the stops of a walk; a cluster move goes before each sweep.

    Parameters
    ----------
    stack : FieldStack
    walk : Walk
    labels : ndarray, shape (C, n)
        Where the chains start; left where they end.
    keys : ndarray, shape (C,)
    bounds : tuple
        Of the agreements, low <= S < high: whatever would leave them is not done.

    Returns
    -------
    drawn : ndarray, shape (C, T, n)
        The labels when each stop is left.
    agreements : ndarray, shape (C, T)
        Their agreements at the scale of the stop.
    drifts : ndarray, shape (C, T, 2)
        Of these agreements, and of those at the next scale, or at the last but one if there is
        no next (`nearfield.sampling.drift`).
    """
    n_chains, n_points = labels.shape
    drawn = np.empty((n_chains, len(walk.betas), n_points), dtype=np.int8)
    agreements = np.empty(drawn.shape[:2])
    drifts = np.empty((*drawn.shape[:2], 2))
    for c in range(n_chains):
        room = drawn[c], agreements[c], drifts[c]
        walk_chain(*stack, *walk, labels[c], keys[c], *bounds, *room)
    return drawn, agreements, drifts


@njit(cache=True, nogil=True)
def walk_chain(
    coupling,
    total_coupling,
    pair_couplings,
    added_couplings,
    begins,
    pairs,
    external_field,
    betas,
    rows,
    n_sweeps,
    start,
    key,
    low,
    high,
    drawn,
    agreements,
    drifts,
):
    """Walk one chain through all stops, filling in `drawn`, `agreements` and `drifts`."""
    n_points = start.shape[0]
    labels = start.astype(np.int64)
    support = np.empty((external_field.shape[0], n_points))
    other_support = np.empty_like(support)
    room = np.empty((5, n_points))
    n_classes = external_field.shape[0]
    of_sweep = np.empty((n_classes, 1)), np.empty(n_classes), room[0], room[1]
    parents = np.empty(n_points, dtype=np.uint32)
    classes = np.empty(n_points, dtype=np.int64)
    before = labels.copy()
    probabilities = np.empty(pair_couplings.shape[1])
    tied = np.empty((pair_couplings.shape[1], 2), dtype=np.uint32)
    position, n_weak = np.uint64(0), 0
    for stop in range(betas.shape[0]):
        row, beta = rows[stop], betas[stop]
        if stop > 0 and row == rows[stop - 1] and beta == betas[stop - 1]:
            pass  # all is as it was
        elif beta > 0.0:
            n_weak = first_above(pair_couplings[row], 0, pair_couplings.shape[1], STRONG / beta)
            strong = pair_couplings[row, n_weak:]
            fill_probabilities(strong, beta, 0.0, 1.0, probabilities[n_weak:])
        else:  # no cluster move will do it
            sum_support(coupling[row], total_coupling[row], labels, support)
        for _ in range(n_sweeps[stop]):
            if beta > 0.0:
                for i in range(n_points):
                    parents[i] = i
                    before[i] = labels[i]
                position = tie_strong(
                    pairs[row, n_weak:],
                    probabilities[n_weak:],
                    labels,
                    parents,
                    tied,
                    key,
                    position,
                )
                added = added_couplings[row]
                weak = added[:n_weak], pairs[row, :n_weak], begins[row], added[-1]
                position = tie_weak(weak, beta, labels, parents, key, position)
                position = recolour(external_field, labels, parents, classes, key, position)
                sum_support(coupling[row], total_coupling[row], labels, support)
            agreement = agreement_of(labels, support)
            if not low <= agreement < high:
                labels[:] = before
                sum_support(coupling[row], total_coupling[row], labels, support)
                agreement = agreement_of(labels, support)
            position = sweep_labels(
                coupling[row],
                external_field,
                beta,
                labels,
                support,
                of_sweep,
                (agreement, low, high),
                key,
                position,
            )
        drawn[stop] = labels
        agreements[stop] = agreement_of(labels, support)
        other = row + 1 if row + 1 < coupling.shape[0] else max(row - 1, 0)
        sum_support(coupling[other], total_coupling[other], labels, other_support)
        fill_drift(external_field, beta, labels, support, other_support, room, drifts[stop])
    start[:] = labels


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
def sweep_labels(coupling, external_field, beta, labels, support, room, within, key, position):
    """Draw every label from its full conditional; return the next unused position.

    A label that would take the agreement out of its bounds is left as it was; `within` is the
    agreement and its bounds.
    """
    log_weights, cumulative, uniforms, thresholds = room
    agreement, low, high = within
    n_classes, n_points = support.shape
    log_n_others = math.log(max(n_classes - 1.0, 1.0))
    for i in range(n_points):
        uniforms[i] = uniform_at(key, position + np.uint64(i))
        thresholds[i] = upper_logit(uniforms[i]) + log_n_others  # as in `class_sweeps`
    for i in range(n_points):
        old = labels[i]
        for g in range(n_classes):
            log_weights[g, 0] = external_field[g] + beta * support[g, i]
        largest, second = two_largest(log_weights, 0)
        log_weight = log_weights[np.uint64(old), 0]
        if log_weight - (second if log_weight == largest else largest) > thresholds[i]:
            continue
        new = draw_class_at(log_weights, 0, cumulative, largest, old, uniforms[i])
        gain = support[new, i] - support[old, i]
        if new != old and low <= agreement + gain < high:
            agreement += gain
            labels[i] = new
            move_coupling(coupling, i, support, old, new)
    return position + np.uint64(n_points)


@register_jitable
def sum_support(coupling, total_coupling, labels, support):
    """Fill in the support of every class, shape (G, n): of the largest, what others leave."""
    n_classes = support.shape[0]
    counts = np.zeros(n_classes, dtype=np.int64)
    for i in range(labels.shape[0]):
        counts[labels[i]] += 1
    largest = counts.argmax()
    support[:] = 0.0
    for i in range(labels.shape[0]):
        if labels[i] != largest:
            add_coupling(coupling, i, 1.0, support, labels[i])
    support[largest] = total_coupling
    for g in range(n_classes):
        if g != largest:
            support[largest] -= support[g]


@register_jitable
def agreement_of(labels, support):
    """Compute S from the support."""
    total = 0.0
    for i in range(labels.shape[0]):
        total += support[labels[i], i]
    return 0.5 * total
