"""Cluster moves (Swendsen and Wang, 1987): clusters of points change class at once.

Gibbs sampling from random labels freezes where beta is large: clusters that each agree within, but
not with each other, do not merge label by label. Cluster moves merge them.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import Rng, check_beta, check_generator, check_whole
from nearfield._compile import compilable, compiled, overload, types
from nearfield._vector import exp_of
from nearfield.field import LabelField
from nearfield.sampling.gibbs import draw_class, draw_labels
from nearfield.sampling.random_numbers import draw_key, uniform_at
from nearfield.sampling.support import Coupling, CsrArrays, coupling_arrays, starting_labels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pairs = NDArray[np.uint32]  # unsigned: a kernel need not test for a negative index
Begins = NDArray[np.int32]  # the bond in which each of equal cells of a line begins
Parents = NDArray[np.uint32]  # of each point in the forest of clusters; a root is its own

_STRONG = 0.1  # strength of a bond from which on it is visited in every move
_BONDS_PER_CELL = 4  # of the index of cumulative strengths
_N_SWEEPS_BEFORE = 10  # Gibbs sampling: the mean agreement is then within some 3% of that after 200


class Bonds(NamedTuple):
    """The bonds of a field at one beta, by their strength, beta times the coupling.

    Strong bonds are visited one by one. Weak ones, of which few are open, lie one after the other
    on a line, each as long as its coupling, so that a move visits only those that it opens.
    """

    strong: Pairs  # shape (P, 2): the two points of each
    probabilities: Floats  # shape (P,): of being open
    weak: Pairs  # shape (Q, 2)
    line: Floats  # shape (Q,): where each weak bond ends
    begins: Begins  # an index of the line
    length: float  # of the part of the line that has an index
    rate: float  # strength a length: beta
    opened: Pairs  # shape (P, 2): overwritten by every move


class SortedPairs(NamedTuple):
    """The pairs of a field, so sorted that their bonds at any beta are two slices."""

    couplings: Floats  # shape (P,): ascending
    line: Floats  # shape (P,): cumulative couplings
    begins: Begins  # an index of the line
    pairs: Pairs  # shape (P, 2): the two points of each


def draw_labels_cluster(
    rng: Rng, field: LabelField, beta: float, n_sweeps: int = 100, initial: ArrayLike | None = None
) -> Ints:
    r"""Draw a labeling by cluster moves: approximate, exact as the sweeps grow; beta >= 0.

    Each sweep opens a bond between every two points that agree with probability

    .. math:: 1 - \exp(-\beta c_{ij})

    and gives each cluster of connected points a class, g with probability proportional to
    :math:`\exp(\alpha_g \times \text{size})`. Parameters are those of `draw_labels`, but by default
    the sweeps start from labels that are random by clusters, not by points.

    Returns
    -------
    labels : ndarray of int, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import LabelField, gaussian_weights
    >>> from nearfield.sampling import draw_labels_cluster
    >>> rng = np.random.default_rng(0)
    >>> distances = distance_matrix(rng.normal(size=(30, 2)))
    >>> field = LabelField.from_weights(gaussian_weights(distances, 0.5), n_classes=2)
    >>> labels = draw_labels_cluster(rng, field, beta=1.5)
    >>> labels.shape
    (30,)
    >>> field.agreement(labels) > 15.0  # what labels at random have on average
    True
    """
    rng = check_generator(rng)
    beta = check_beta(beta)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=0)
    if beta < 0.0:
        raise ValueError(
            f"Expected beta >= 0, where cluster moves are defined; got beta={beta:g}. "
            "Use draw_labels instead."
        )
    labels = starting_labels(rng, field, initial)
    is_start = initial is None
    cluster_sweeps(
        coupling_arrays(field),
        field.external_field,
        beta,
        labels,
        draw_key(rng),
        n_sweeps,
        is_start,
    )
    return labels


def draw_after_clusters(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    n_sweeps: int,
    initial: ArrayLike | None = None,
) -> Ints:
    """Draw by Gibbs sampling, after a few cluster moves where there are any.

    By default these start from labels that are random by clusters. Without them the
    sweeps freeze, above the transition of the field, in labelings that agree less than the data,
    whatever their number; a chain then takes ever larger beta for better, into the thousands on
    the wine and olive data, far outside the prior.
    """
    if beta > 0.0:
        initial = draw_labels_cluster(rng, field, beta, _N_SWEEPS_BEFORE, initial)
    return draw_labels(rng, field, beta, n_sweeps, initial)


@compiled
def cluster_sweeps(
    coupling: Coupling,
    external_field: Floats,
    beta: float,
    labels: Ints,
    key: np.uint64,
    n_sweeps: int,
    is_start: bool,
) -> None:
    r"""Open bonds and recolour clusters `n_sweeps` times, changing `labels` in place.

    With `is_start` a first sweep makes the starting labels: all points are taken to agree, and
    bonds have the strength :math:`s' = \max(s - \log G, s / G)` in place of
    :math:`s = \beta c_{ij}`, at most what the field implies for independent labels.
    """
    n_points, n_classes = labels.shape[0], external_field.shape[0]
    site_fields = external_field.reshape((1, n_classes))
    parents, position = np.empty(n_points, dtype=np.uint32), np.uint64(0)
    if is_start:
        for i in range(n_points):
            labels[i] = 0
        bonds = find_bonds(coupling, beta, n_points, math.log(n_classes), 1.0 / n_classes)
        position = move_clusters(bonds, site_fields, labels, parents, key, position)
    bonds = find_bonds(coupling, beta, n_points, 0.0, 1.0)
    for _ in range(n_sweeps):
        position = move_clusters(bonds, site_fields, labels, parents, key, position)


@compilable
def move_clusters(
    bonds: Bonds,
    site_fields: Floats,
    labels: Ints,
    parents: Parents,
    key: np.uint64,
    position: np.uint64,
) -> np.uint64:
    """Open bonds of points that agree, and draw a class for each cluster; change `labels`.

    Parameters
    ----------
    bonds : Bonds
    site_fields : shape (n, G), or (1, G) for the same at all sites
    labels : shape (n,)
    parents : shape (n,)
        Overwritten.
    key, position
        The stream of random numbers, and the first number of it to use.

    Returns
    -------
    position : of the next unused number
    """
    n_points, n_classes = labels.shape[0], site_fields.shape[1]
    position = open_bonds(bonds, labels, parents, key, position)
    for i in range(n_points):
        labels[i] = find_root(parents, i)
    is_even = site_fields.shape[0] == 1
    for g in range(n_classes):
        is_even = is_even and site_fields[0, g] == site_fields[0, 0]
    # The class of a cluster takes the place of its root's parent.
    if is_even:
        for i in range(n_points):
            if labels[i] == i:
                parents[i] = np.int64(uniform_at(key, position) * n_classes)
                position += np.uint64(1)
    else:
        cluster_fields = np.zeros((n_points, n_classes))
        for i in range(n_points):
            site = i if site_fields.shape[0] > 1 else 0
            for g in range(n_classes):
                cluster_fields[labels[i], g] += site_fields[site, g]
        for i in range(n_points):
            if labels[i] == i:
                parents[i] = draw_class(cluster_fields[i], 0, uniform_at(key, position))
                position += np.uint64(1)
    for i in range(n_points):
        labels[i] = parents[labels[i]]
    return position


@compilable
def find_bonds(
    coupling: Coupling, beta: float, n_points: int, discount: float, share: float
) -> Bonds:
    r"""Find the bonds with a coupling above zero, beta > 0, and split them by their strength.

    .. math:: \max(\beta c_{ij} - \text{discount}, \text{share} \times \beta c_{ij})

    which is the strength itself with a discount of zero and a share of one.
    """
    row_couplings, row_others = np.empty(n_points), np.empty(n_points, dtype=np.int64)
    n_most = 0
    for i in range(n_points):
        n_most += couplings_before(coupling, i, row_couplings, row_others)
    probabilities, line = np.empty(n_most), np.empty(n_most)
    strong, weak = np.empty((n_most, 2), dtype=np.uint32), np.empty((n_most, 2), dtype=np.uint32)
    n_strong, n_weak, end = 0, 0, 0.0
    for i in range(n_points):
        for entry in range(couplings_before(coupling, i, row_couplings, row_others)):
            whole = beta * row_couplings[entry]
            strength = max(whole - discount, share * whole)
            if whole > _STRONG:
                probabilities[n_strong] = strength
                strong[n_strong, 0], strong[n_strong, 1] = i, row_others[entry]
                n_strong += 1
            elif strength > 0.0:
                end += strength
                line[n_weak] = end
                weak[n_weak, 0], weak[n_weak, 1] = i, row_others[entry]
                n_weak += 1
    probabilities, line = probabilities[:n_strong], line[:n_weak]
    fill_probabilities(probabilities, 1.0, probabilities)
    strong, opened = strong[:n_strong], np.empty((n_strong, 2), dtype=np.uint32)
    return Bonds(strong, probabilities, weak[:n_weak], line, index_line(line), end, 1.0, opened)


@compilable
def bonds_at(sorted_pairs: SortedPairs, beta: float) -> Bonds:
    """Give the bonds at beta > 0: as `find_bonds`, of pairs that were sorted for many betas."""
    couplings, line, begins, pairs = sorted_pairs
    n_pairs = couplings.shape[0]
    n_weak = first_above(couplings, 0, n_pairs, _STRONG / beta)
    strong, weak = pairs[n_weak:], pairs[:n_weak]
    probabilities, opened = np.empty(len(strong)), np.empty(strong.shape, dtype=np.uint32)
    fill_probabilities(couplings[n_weak:], beta, probabilities)
    length = line[n_pairs - 1] if n_pairs > 0 else 0.0
    return Bonds(strong, probabilities, weak, line[:n_weak], begins, length, beta, opened)


@compilable
def fill_probabilities(couplings: Floats, beta: float, probabilities: Floats) -> None:
    """Fill in the probability that the bond of two points that agree is open."""
    for bond in range(couplings.shape[0]):
        probabilities[bond] = 1.0 - exp_of(-beta * couplings[bond])


@compiled
def index_line(line: Floats) -> Begins:
    """Index rising numbers: the first one beyond where each of equal cells begins."""
    n_bonds = line.shape[0]
    begins = np.empty(n_bonds // _BONDS_PER_CELL + 2, dtype=np.int32)
    n_cells = begins.shape[0] - 1
    length = line[n_bonds - 1] / n_cells if n_bonds > 0 else 0.0
    bond = 0
    for cell in range(n_cells + 1):
        while bond < n_bonds and line[bond] <= cell * length:
            bond += 1
        begins[cell] = bond
    return begins


def couplings_before(coupling: Coupling, i: int, values: Floats, others: Ints) -> int:
    """Copy the couplings of a point to those before it, and their numbers; return how many."""
    _copy: Callable[..., int] = _copy_sparse if isinstance(coupling, tuple) else _copy_dense
    return _copy(coupling, i, values, others)


def _copy_dense(coupling: Floats, i: int, values: Floats, others: Ints) -> int:
    for j in range(i):
        values[j] = coupling[i, j]
        others[j] = j
    return i


def _copy_sparse(coupling: CsrArrays, i: int, values: Floats, others: Ints) -> int:
    data, indices, indptr = coupling
    n_before = 0
    for entry in range(indptr[i], indptr[i + 1]):
        if indices[entry] < i:
            values[n_before], others[n_before] = data[entry], indices[entry]
            n_before += 1
    return n_before


@overload(couplings_before)
def _compile_couplings_before(
    coupling: Any, i: Any, values: Any, others: Any
) -> Callable[..., int]:
    return _copy_sparse if isinstance(coupling, types.BaseTuple) else _copy_dense


@compilable
def open_bonds(
    bonds: Bonds, labels: Ints, parents: Parents, key: np.uint64, position: np.uint64
) -> np.uint64:
    """Open bonds of points that agree; make `parents` the forest of the clusters.

    Weak bonds are not visited each: along the line, events of a Poisson process have the rate beta,
    and a bond is open if any event falls on it, which has probability 1 - exp(-strength).

    Returns
    -------
    position : of the next unused number of the stream
    """
    for i in range(labels.shape[0]):
        parents[i] = i
    strong, probabilities, opened = bonds.strong, bonds.probabilities, bonds.opened
    n_opened = 0
    for bond in range(strong.shape[0]):  # counted, not branched on: open bonds are hard to predict
        i, j = strong[bond, 0], strong[bond, 1]
        is_open = uniform_at(key, position + np.uint64(bond)) < probabilities[bond]
        opened[n_opened, 0], opened[n_opened, 1] = i, j
        n_opened += is_open & (labels[i] == labels[j])
    for k in range(n_opened - 1, -1, -1):  # the strongest first if sorted, which connect most
        join_clusters(parents, opened[k, 0], opened[k, 1])
    position += np.uint64(strong.shape[0])
    line, n_weak = bonds.line, bonds.line.shape[0]
    if n_weak == 0 or line[n_weak - 1] <= 0.0:
        return position
    n_cells = bonds.begins.shape[0] - 1
    cells_per_unit = n_cells / bonds.length
    end, place = line[n_weak - 1], 0.0
    while True:
        place -= math.log(uniform_at(key, position)) / bonds.rate
        position += np.uint64(1)
        if place >= end:
            return position
        cell = np.uint64(min(np.int64(place * cells_per_unit), n_cells - 1))
        last = min(bonds.begins[cell + np.uint64(1)], n_weak - 1)
        bond = first_above(line, bonds.begins[cell], last, place)
        i, j = bonds.weak[bond, 0], bonds.weak[bond, 1]
        if labels[i] == labels[j]:
            join_clusters(parents, i, j)


@compilable(inline="always")
def first_above(values: Floats, start: int, end: int, place: float) -> int:
    """Return the first position from start on whose value, of rising ones, is above a place."""
    while start < end:
        middle = (start + end) // 2
        if values[middle] > place:
            end = middle
        else:
            start = middle + 1
    return start


@compilable(inline="always")
def join_clusters(parents: Parents, i: int, j: int) -> None:
    """Merge the clusters of two points."""
    if parents[i] != parents[j]:
        root = find_root(parents, parents[j])
        parents[find_root(parents, parents[i])] = root
        parents[i], parents[j] = root, root


@compilable
def find_root(parents: Parents, i: int) -> int:
    """Find the root of a point's cluster, with path halving."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i
