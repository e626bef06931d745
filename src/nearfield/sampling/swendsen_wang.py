"""Cluster moves (Swendsen and Wang, 1987): clusters of points change class at once.

Gibbs sampling from random labels freezes where beta is large: clusters that each agree within, but
not with each other, do not merge label by label. Cluster moves merge them.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import Rng, check_beta, check_generator, check_whole
from nearfield._compile import compilable, compiled, overload, types
from nearfield._vector import exp_of
from nearfield.field import LabelField
from nearfield.sampling.gibbs import draw_class
from nearfield.sampling.random_numbers import draw_key, uniform_at
from nearfield.sampling.support import Coupling, CsrArrays, coupling_arrays, starting_labels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
StrongBonds = tuple[NDArray[np.int32], Floats]  # the points of each, shape (P, 2), and a number
WeakBonds = tuple[Floats, NDArray[np.int32], NDArray[np.int32], float]
"""Cumulative couplings, the points of each bond, an index of the former, and their total."""
Room = tuple[NDArray[np.uint32], NDArray[np.uint32], Ints, Floats]

STRONG = 0.1
"""Bonds of a larger strength, beta times the coupling, are visited one by one."""

_BONDS_PER_CELL = 4  # of the index of cumulative couplings of weak bonds


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
    (bonds, couplings), weak = split_bonds(coupling, beta, n_points)
    probabilities = np.empty_like(couplings)
    room = make_room(n_points, n_classes, len(couplings))
    site_fields = external_field.reshape((1, n_classes))
    n_used = np.uint64(0)
    for sweep in range(n_sweeps + is_start):
        discount, share = 0.0, 1.0
        if is_start and sweep == 0:
            for i in range(n_points):
                labels[i] = 0
            discount, share = math.log(n_classes), 1.0 / n_classes
        if sweep < 2:
            fill_bond_probabilities(couplings, beta, discount, share, probabilities)
        strong = bonds, probabilities
        n_used = move_clusters(strong, weak, beta * share, site_fields, labels, room, key, n_used)


@compilable
def make_room(n_points: int, n_classes: int, n_strong: int) -> Room:
    """Make the arrays that `move_clusters` overwrites."""
    return (
        np.empty(n_points, dtype=np.uint32),
        np.empty((n_strong, 2), dtype=np.uint32),
        np.empty(n_points, dtype=np.int64),
        np.empty((n_points, n_classes)),
    )


@compilable
def move_clusters(
    strong: StrongBonds,
    weak: WeakBonds,
    rate: float,
    site_fields: Floats,
    labels: Ints,
    room: Room,
    key: np.uint64,
    n_used: np.uint64,
) -> np.uint64:
    """Open bonds of points that agree, and draw a class for each cluster; change `labels`.

    Parameters
    ----------
    strong : points of the strong bonds, shape (P, 2), and their probabilities
    weak : of the weak bonds the cumulative couplings, the points, an index, and the total
    rate : float
        Of weak bonds, by coupling: beta.
    site_fields : shape (n, G), or (1, G) for the same at all sites
    room : from `make_room`

    Returns
    -------
    n_used : the next unused position of the stream
    """
    parents, opened, classes, cluster_fields = room
    for i in range(labels.shape[0]):
        parents[i] = i
    n_used = open_strong_bonds(strong[0], strong[1], labels, parents, opened, key, n_used)
    n_used = open_weak_bonds(weak, rate, labels, parents, key, n_used)
    return recolour(site_fields, labels, parents, classes, cluster_fields, key, n_used)


@compilable
def recolour(
    site_fields: Floats,
    labels: Ints,
    parents: NDArray[np.uint32],
    classes: Ints,
    cluster_fields: Floats,
    key: np.uint64,
    n_used: np.uint64,
) -> np.uint64:
    """Draw a class for each cluster, by the sum of its sites' fields."""
    n_points, n_classes = cluster_fields.shape
    is_even = site_fields.shape[0] == 1
    for g in range(n_classes):
        is_even = is_even and site_fields[0, g] == site_fields[0, 0]
    for i in range(n_points):
        labels[i] = find_root(parents, i)
    if not is_even:
        for i in range(n_points):
            for g in range(n_classes):
                cluster_fields[i, g] = 0.0
        for i in range(n_points):
            site = i if site_fields.shape[0] > 1 else 0
            for g in range(n_classes):
                cluster_fields[labels[i], g] += site_fields[site, g]
    for i in range(n_points):
        if parents[i] == i:
            uniform = uniform_at(key, n_used)
            n_used += np.uint64(1)
            if is_even:
                classes[i] = np.int64(uniform * n_classes)
            else:
                classes[i] = draw_class(cluster_fields[i], 0, uniform)
    for i in range(n_points):
        labels[i] = classes[labels[i]]
    return n_used


@compilable
def split_bonds(coupling: Coupling, beta: float, n_points: int) -> tuple[StrongBonds, WeakBonds]:
    """Split the bonds with a coupling above zero into strong and weak ones.

    Returns the points and couplings of the strong bonds; and of the weak ones the cumulative
    couplings, the points, the index of the former, and their total.
    """
    row_couplings, row_others = np.empty(n_points), np.empty(n_points, dtype=np.int64)
    n_most = 0
    for i in range(n_points):
        n_most += couplings_before(coupling, i, row_couplings, row_others)
    couplings, cumulative = np.empty(n_most), np.empty(n_most)
    strong_bonds = np.empty((n_most, 2), dtype=np.int32)
    weak_bonds = np.empty((n_most, 2), dtype=np.int32)
    n_strong, n_weak, total = 0, 0, 0.0
    for i in range(n_points):
        for entry in range(couplings_before(coupling, i, row_couplings, row_others)):
            strength = beta * row_couplings[entry]
            if strength > STRONG:
                couplings[n_strong] = row_couplings[entry]
                strong_bonds[n_strong, 0], strong_bonds[n_strong, 1] = i, row_others[entry]
                n_strong += 1
            elif strength > 0.0:
                total += row_couplings[entry]
                cumulative[n_weak] = total
                weak_bonds[n_weak, 0], weak_bonds[n_weak, 1] = i, row_others[entry]
                n_weak += 1
    strong = strong_bonds[:n_strong], couplings[:n_strong]
    weak = cumulative[:n_weak], weak_bonds[:n_weak], index_cumulative(cumulative[:n_weak]), total
    return strong, weak


@compiled
def index_cumulative(cumulative: Floats) -> NDArray[np.int32]:
    """Index cumulative couplings: the bond in which each of equal cells begins."""
    n_pairs = cumulative.shape[0]
    begins = np.empty(n_pairs // _BONDS_PER_CELL + 2, dtype=np.int32)
    n_cells = begins.shape[0] - 1
    length = cumulative[n_pairs - 1] / n_cells if n_pairs > 0 else 0.0
    pair = 0
    for cell in range(n_cells + 1):
        while pair < n_pairs and cumulative[pair] <= cell * length:
            pair += 1
        begins[cell] = pair
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
def fill_bond_probabilities(
    couplings: Floats, beta: float, discount: float, share: float, probabilities: Floats
) -> None:
    """Fill in the probability that the bond of two points that agree is open."""
    for pair in range(couplings.shape[0]):
        strength = beta * couplings[pair]
        probabilities[pair] = -max(strength - discount, share * strength)
    for pair in range(couplings.shape[0]):  # apart, for the vector registers
        probabilities[pair] = 1.0 - exp_of(probabilities[pair])


@compilable
def open_strong_bonds(
    pairs: NDArray[np.int32],
    probabilities: Floats,
    labels: Ints,
    parents: NDArray[np.uint32],
    opened: NDArray[np.uint32],
    key: np.uint64,
    n_used: np.uint64,
) -> np.uint64:
    """Open strong bonds one by one; return the next unused position of the stream.

    `opened` is scratch space for the points of all bonds.
    """
    n_opened = 0
    for pair in range(pairs.shape[0]):  # counted, not branched on: open bonds are hard to predict
        i, j = np.uint32(pairs[pair, 0]), np.uint32(pairs[pair, 1])
        is_open = uniform_at(key, n_used + np.uint64(pair)) < probabilities[pair]
        opened[n_opened, 0], opened[n_opened, 1] = i, j
        n_opened += is_open & (labels[i] == labels[j])
    for k in range(n_opened - 1, -1, -1):  # the strongest first, which connect most
        join_clusters(parents, opened[k, 0], opened[k, 1])
    return n_used + np.uint64(pairs.shape[0])


@compilable
def open_weak_bonds(
    bonds: WeakBonds,
    rate: float,
    labels: Ints,
    parents: NDArray[np.uint32],
    key: np.uint64,
    n_used: np.uint64,
) -> np.uint64:
    """Open weak bonds without visiting each.

    Along the cumulative couplings, events of a Poisson process have the rate beta. A bond is open
    if any event falls on it, which has probability 1 - exp(-strength).
    """
    cumulative, pairs, begins, length = bonds
    n_pairs = cumulative.shape[0]
    if n_pairs == 0 or cumulative[n_pairs - 1] <= 0.0:
        return n_used
    n_cells = begins.shape[0] - 1
    cells_per_unit = n_cells / length
    end, place = cumulative[n_pairs - 1], 0.0
    while True:
        place -= math.log(uniform_at(key, n_used)) / rate
        n_used += np.uint64(1)
        if place >= end:
            break
        cell = np.uint64(min(np.int64(place * cells_per_unit), n_cells - 1))
        last = min(begins[cell + np.uint64(1)], n_pairs - 1)
        pair = first_above(cumulative, begins[cell], last, place)
        i, j = np.uint32(pairs[pair, 0]), np.uint32(pairs[pair, 1])
        if labels[i] == labels[j]:
            join_clusters(parents, i, j)
    return n_used


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
def join_clusters(parents: NDArray[np.uint32], i: int | np.uint32, j: int | np.uint32) -> None:
    """Merge the clusters of two points."""
    if parents[i] != parents[j]:
        root = find_root(parents, parents[j])
        parents[find_root(parents, parents[i])] = root
        parents[i], parents[j] = root, root


@compilable
def find_root(parents: NDArray[np.uint32], i: int) -> int:
    """Find the root of a point's cluster, with path halving."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i
