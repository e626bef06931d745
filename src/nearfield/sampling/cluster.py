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
from nearfield._vector import exp_of
from nearfield.field import LabelField
from nearfield.sampling._random import draw_key, uniform_at
from nearfield.sampling._support import coupling_arrays, starting_labels

STRONG = 0.1
"""Ties that are stronger are looked at one by one."""

_PAIRS_A_STRETCH = 4  # on the line of weak ties; of every stretch the first pair is known


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
    :math:`\exp(\alpha_g \times \text{size})`. Parameters are those of `draw_labels`, but by default
    the sweeps start from labels that are random by groups of points, not by points: groups that
    are tied whatever their labels are need not find each other first.

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
        initial is None,
    )
    return labels


@njit(cache=True, nogil=True)
def cluster_sweeps(coupling, external_field, beta, labels, tie_key, class_key, n_sweeps, is_start):
    r"""Tie and recolour all points `n_sweeps` times, changing `labels` in place.

    With `is_start` a first sweep makes labels to start from out of nothing: it takes all points to
    agree, and ties by :math:`s' = \max(s - \log G, s / G)` in place of :math:`s = \beta c_{ij}`.
    Ties of that strength are as if independent of the labels, and no more than the field has.
    """
    n_points = labels.shape[0]
    n_classes = external_field.shape[0]
    (couplings, strong_pairs), weak = sort_ties(coupling, beta, n_points)
    probabilities = np.empty_like(couplings)
    tied = np.empty_like(strong_pairs, dtype=np.uint32)
    parents = np.empty(n_points, dtype=np.uint32)
    sizes = np.empty(n_points, dtype=np.int64)
    n_used = np.uint64(0)
    for sweep in range(n_sweeps + is_start):
        discount, share = 0.0, 1.0
        if is_start and sweep == 0:
            labels[:] = 0
            discount, share = math.log(n_classes), 1.0 / n_classes
        if sweep < 2:
            fill_probabilities(couplings, beta, discount, share, probabilities)
        for i in range(n_points):
            parents[i] = i
        n_used = tie_strong(strong_pairs, probabilities, labels, parents, tied, tie_key, n_used)
        n_used = tie_weak(weak, beta * share, labels, parents, tie_key, n_used)
        sizes[:] = 0
        for i in range(n_points):
            parents[i] = find_root(parents, i)
            sizes[parents[i]] += 1
        for i in range(n_points):
            if parents[i] == i:
                uniform = uniform_at(class_key, sweep * n_points + i)
                labels[i] = draw_cluster_class(external_field, sizes[i], uniform)
        for i in range(n_points):
            labels[i] = labels[parents[i]]


@register_jitable
def sort_ties(coupling, beta, n_points):
    """Part the pairs that can be tied into strong and weak ones.

    Returns, of each kind, the couplings and the two points of every pair; the couplings of the
    weak ones are added up along the line of them, whose index and length follow.
    """
    row_couplings, row_others = np.empty(n_points), np.empty(n_points, dtype=np.int64)
    n_most = count_pairs(coupling)
    couplings, cumulative = np.empty(n_most), np.empty(n_most)
    strong_pairs = np.empty((n_most, 2), dtype=np.int32)
    weak_pairs = np.empty((n_most, 2), dtype=np.int32)
    n_strong, n_weak, total = 0, 0, 0.0
    for i in range(n_points):
        for entry in range(couplings_before(coupling, i, row_couplings, row_others)):
            strength = beta * row_couplings[entry]
            if strength > STRONG:
                couplings[n_strong] = row_couplings[entry]
                strong_pairs[n_strong, 0], strong_pairs[n_strong, 1] = i, row_others[entry]
                n_strong += 1
            elif strength > 0.0:
                total += row_couplings[entry]
                cumulative[n_weak] = total
                weak_pairs[n_weak, 0], weak_pairs[n_weak, 1] = i, row_others[entry]
                n_weak += 1
    strong = couplings[:n_strong], strong_pairs[:n_strong]
    weak = cumulative[:n_weak], weak_pairs[:n_weak], index_line(cumulative[:n_weak]), total
    return strong, weak


@njit(cache=True, nogil=True)
def index_line(cumulative):
    """Find, on a line of added couplings, the pair that each of equal stretches begins in."""
    n_pairs = cumulative.shape[0]
    begins = np.empty(n_pairs // _PAIRS_A_STRETCH + 2, dtype=np.int32)
    n_stretches = begins.shape[0] - 1
    length = cumulative[n_pairs - 1] / n_stretches if n_pairs > 0 else 0.0
    pair = 0
    for stretch in range(n_stretches + 1):
        while pair < n_pairs and cumulative[pair] <= stretch * length:
            pair += 1
        begins[stretch] = pair
    return begins


def count_pairs(coupling):
    """Return how many pairs can have a coupling at most."""
    return len(coupling[0]) if isinstance(coupling, tuple) else coupling.size // 2


def couplings_before(coupling, i, values, others):
    """Copy the coupling of a point to those before it, and which these are; return how many."""
    _copy = _copy_sparse if isinstance(coupling, tuple) else _copy_dense
    return _copy(coupling, i, values, others)


def _copy_dense(coupling, i, values, others):
    for j in range(i):
        values[j] = coupling[i, j]
        others[j] = j
    return i


def _copy_sparse(coupling, i, values, others):
    data, indices, indptr = coupling
    n_before = 0
    for entry in range(indptr[i], indptr[i + 1]):
        if indices[entry] < i:
            values[n_before], others[n_before] = data[entry], indices[entry]
            n_before += 1
    return n_before


@overload(count_pairs)
def _compile_count_pairs(coupling):
    if isinstance(coupling, types.BaseTuple):
        return lambda coupling: coupling[0].size
    return lambda coupling: coupling.size // 2


@overload(couplings_before)
def _compile_couplings_before(coupling, i, values, others):
    return _copy_sparse if isinstance(coupling, types.BaseTuple) else _copy_dense


@register_jitable
def fill_probabilities(couplings, beta, discount, share, probabilities):
    """Fill in how probable the tie of each pair is, if the two agree."""
    for pair in range(couplings.shape[0]):
        strength = beta * couplings[pair]
        probabilities[pair] = -max(strength - discount, share * strength)
    for pair in range(couplings.shape[0]):  # apart, for the vector registers
        probabilities[pair] = 1.0 - exp_of(probabilities[pair])


@register_jitable(inline="always")
def tie_strong(pairs, probabilities, labels, parents, tied, key, n_used):
    """Tie points that agree at random, pair by pair; return how many numbers are used now.

    `tied` is room for the points of as many pairs as there are.
    """
    n_tied = 0
    for pair in range(pairs.shape[0]):  # counted, not branched on: a processor cannot guess ties
        i, j = np.uint32(pairs[pair, 0]), np.uint32(pairs[pair, 1])
        is_tied = uniform_at(key, n_used + np.uint64(pair)) < probabilities[pair]
        tied[n_tied, 0], tied[n_tied, 1] = i, j
        n_tied += is_tied & (labels[i] == labels[j])
    for k in range(n_tied - 1, -1, -1):  # where couplings ascend, the later ones find it done
        join_groups(parents, tied[k, 0], tied[k, 1])
    return n_used + np.uint64(pairs.shape[0])


@register_jitable(inline="always")
def tie_weak(ties, rate, labels, parents, key, n_used):
    """Tie points that agree at random, without a look at each pair.

    Along the line of added couplings ties happen at a constant rate, beta. A pair is tied if any
    happens on its stretch, which is so with probability 1 - exp(-strength).
    """
    cumulative, pairs, begins, length = ties
    n_pairs = cumulative.shape[0]
    if n_pairs == 0:
        return n_used
    n_stretches = begins.shape[0] - 1
    stretches_per_unit = n_stretches / length
    end, place = cumulative[n_pairs - 1], 0.0
    while True:
        place -= math.log(uniform_at(key, n_used)) / rate
        n_used += np.uint64(1)
        if place >= end:
            break
        stretch = np.uint64(min(np.int64(place * stretches_per_unit), n_stretches - 1))
        last = min(begins[stretch + np.uint64(1)], n_pairs - 1)
        pair = first_above(cumulative, begins[stretch], last, place)
        i, j = np.uint32(pairs[pair, 0]), np.uint32(pairs[pair, 1])
        if labels[i] == labels[j]:
            join_groups(parents, i, j)
    return n_used


@register_jitable(inline="always")
def first_above(values, start, end, place):
    """Return the first position from start on whose value, of rising ones, is above a place."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] > place:
            end = middle
        else:
            start = middle + 1
    return start


@register_jitable(inline="always")
def join_groups(parents, i, j):
    """Make one group of those of two points."""
    if parents[i] != parents[j]:
        root = find_root(parents, parents[j])
        parents[find_root(parents, parents[i])] = root
        parents[i], parents[j] = root, root


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
