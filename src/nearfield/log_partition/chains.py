r"""Chains that visit a schedule of thermodynamic states, compiled.

A state is a field (a row of a stack), beta, and a harmonic restraint of the agreement:

.. math:: \log q(y) = \sum_i \alpha_{y_i} + \beta S(y) - \frac{\kappa}{2} (S(y) - s)^2

With kappa = 0 it is the field itself. With kappa > 0 it is the Gaussian ensemble (Challa and
Hetherington, 1988), or umbrella sampling: where the field has a first-order transition, states
whose centres s rise from disorder to order have a single mode each, and a chain follows them
through the agreements that no beta makes probable. Before each Gibbs sweep goes a cluster move;
under a restraint it is accepted or rejected (Metropolis and Hastings).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled, overload, types
from nearfield.field import LabelField
from nearfield.log_partition.stein import fill_stein
from nearfield.sampling.gibbs import draw_class_at, lead_of, staying_lead
from nearfield.sampling.random_numbers import uniform_at
from nearfield.sampling.support import Coupling, add_coupling, move_coupling
from nearfield.sampling.swendsen_wang import SortedPairs, bonds_at, index_line, move_clusters

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Restraint = tuple[float, float]  # kappa and s


class FieldStack(NamedTuple):
    """Fields of the same points at several scales, as the kernels take them."""

    coupling: Coupling  # shape (R, n, n); of sparse fields (R, nnz) with the indices of a CSR array
    total_coupling: Floats  # shape (R, n)
    sorted_pairs: SortedPairs  # of arrays with one more axis, the first, of length R
    external_field: Floats  # shape (G,)

    @property
    def largest_agreements(self) -> Floats:
        """The agreement of labels that are all the same, shape (R,)."""
        return 0.5 * self.total_coupling.sum(axis=1)


class Schedule(NamedTuple):
    """States in the order in which a chain visits them; a draw is recorded at each visit."""

    betas: Floats  # shape (T,)
    rows: Ints  # shape (T,): of the stack
    stiffness: Floats  # shape (T,): kappa
    centres: Floats  # shape (T,): s
    n_sweeps: Ints  # shape (T,)


class Draws(NamedTuple):
    """What chains recorded at each visit."""

    labels: NDArray[np.integer]  # shape (C, T, n)
    agreements: Floats  # shape (C, T): at the scale of the state
    steins: Floats  # shape (C, T, 2): zero in expectation, see `fill_stein`


def stack_fields(fields: list[LabelField]) -> FieldStack:
    """Prepare fields for the kernels: sparse if all of them are, else dense."""
    coupling, pairs, unsorted = stack_couplings(fields)
    order = np.argsort(unsorted, axis=1)
    couplings = np.take_along_axis(unsorted, order, axis=1)
    lines = np.cumsum(couplings, axis=1)
    begins = np.stack([index_line(line) for line in lines])
    total_coupling = np.stack([field.total_coupling for field in fields])
    sorted_pairs = SortedPairs(couplings, lines, begins, pairs[order])
    return FieldStack(coupling, total_coupling, sorted_pairs, fields[0].external_field)


def stack_couplings(fields: list[LabelField]) -> tuple[Any, NDArray[np.uint32], Any]:
    """Stack the couplings; list all pairs, of sparse fields those that are coupled anywhere.

    Returns the stack, the two points of each pair, shape (P, 2), and their couplings, (R, P).
    """
    if all(field.is_sparse for field in fields):
        coupling, pairs = _aligned_sparse([field.coupling for field in fields])
        is_lower = pairs[:, 0] > pairs[:, 1]
        return coupling, pairs[is_lower], coupling[0][:, is_lower]
    coupling = np.stack([field.to_dense().coupling for field in fields])
    pairs = np.stack(np.tril_indices(coupling.shape[1], -1), axis=1).astype(np.uint32)
    return coupling, pairs, coupling[:, pairs[:, 0], pairs[:, 1]]


def _aligned_sparse(couplings: list[Any]) -> tuple[Any, NDArray[np.uint32]]:
    """Store sparse couplings on the union of their patterns: data (R, nnz), indices, indptr."""
    union = sp.csr_array(sum((abs(c) for c in couplings[1:]), start=abs(couplings[0])))
    union.sort_indices()
    rows = np.repeat(np.arange(union.shape[0]), np.diff(union.indptr))
    keys = rows * union.shape[1] + union.indices
    data = np.zeros((len(couplings), union.nnz))
    for values, coupling in zip(data, couplings, strict=True):
        entries = sp.coo_array(coupling)
        values[np.searchsorted(keys, entries.row * union.shape[1] + entries.col)] = entries.data
    pairs = np.stack([rows, union.indices], axis=1).astype(np.uint32)
    return (data, union.indices, union.indptr), pairs


def run_chains(
    stack: FieldStack, schedule: Schedule, labels: NDArray[np.integer], keys: NDArray[np.uint64]
) -> Draws:
    """Run one chain a key through the schedule.

    Parameters
    ----------
    stack : FieldStack
    schedule : Schedule
    labels : ndarray, shape (C, n)
        Where the chains start; overwritten by where they end.
    keys : ndarray, shape (C,)
    """
    n_chains, n_points = labels.shape
    drawn = np.empty((n_chains, len(schedule.betas), n_points), dtype=labels.dtype)
    agreements = np.empty(drawn.shape[:2])
    steins = np.empty((*drawn.shape[:2], 2))
    for c in range(n_chains):
        run_chain(
            stack.coupling,
            stack.total_coupling,
            stack.sorted_pairs,
            stack.external_field,
            *schedule,
            labels[c],
            keys[c],
            drawn[c],
            agreements[c],
            steins[c],
        )
    return Draws(drawn, agreements, steins)


def coupling_row(coupling: Coupling, row: int) -> Coupling:
    """Return the coupling of one field of a stack."""
    if isinstance(coupling, tuple):
        return coupling[0][row], coupling[1], coupling[2]
    return coupling[row]


@overload(coupling_row, inline="always")
def _compile_coupling_row(coupling: Any, row: Any) -> Callable[..., Any]:
    if isinstance(coupling, types.BaseTuple):
        return lambda coupling, row: (coupling[0][row], coupling[1], coupling[2])
    return lambda coupling, row: coupling[row]


@compilable
def pairs_row(sorted_pairs: SortedPairs, row: int) -> SortedPairs:
    """Return the sorted pairs of one field of a stack."""
    couplings, lines, begins, pairs = sorted_pairs
    return SortedPairs(couplings[row], lines[row], begins[row], pairs[row])


@compiled
def run_chain(
    coupling: Coupling,
    total_coupling: Floats,
    sorted_pairs: SortedPairs,
    external_field: Floats,
    betas: Floats,
    rows: Ints,
    stiffness: Floats,
    centres: Floats,
    n_sweeps: Ints,
    start: NDArray[np.integer],
    key: np.uint64,
    drawn: NDArray[np.integer],
    agreements: Floats,
    steins: Floats,
) -> None:
    """Run one chain through a schedule, filling in `drawn`, `agreements` and `steins`."""
    n_points, n_classes = start.shape[0], external_field.shape[0]
    labels, before = np.empty(n_points, np.int64), np.empty(n_points, np.int64)
    support, other_support = np.empty((n_classes, n_points)), np.empty((n_classes, n_points))
    scratch = np.empty((6, n_points))
    of_sweep = np.empty((n_classes, 1)), np.empty(n_classes), scratch[0], scratch[1]
    site_fields = external_field.reshape((1, n_classes))
    parents = np.empty(n_points, dtype=np.uint32)
    copy_labels(start, labels)
    position, agreement = np.uint64(0), 0.0
    bonds = bonds_at(pairs_row(sorted_pairs, 0), 1.0)
    for stop in range(betas.shape[0]):
        row, beta = rows[stop], betas[stop]
        restraint = stiffness[stop], centres[stop]
        here = coupling_row(coupling, row)
        if stop > 0 and row == rows[stop - 1] and beta == betas[stop - 1]:
            pass  # the bonds and the support are up to date
        else:
            if beta > 0.0:
                bonds = bonds_at(pairs_row(sorted_pairs, row), beta)
            if beta <= 0.0 or restraint[0] > 0.0:
                sum_support(here, total_coupling[row], labels, support)
                agreement = agreement_of(labels, support)
        for _ in range(n_sweeps[stop]):
            if beta > 0.0:
                copy_labels(labels, before)
                position = move_clusters(bonds, site_fields, labels, parents, key, position)
                sum_support(here, total_coupling[row], labels, support)
                old_agreement, agreement = agreement, agreement_of(labels, support)
                if restraint[0] > 0.0:
                    log_ratio = restraint_energy(old_agreement, restraint)
                    log_ratio -= restraint_energy(agreement, restraint)
                    if math.log(uniform_at(key, position)) >= log_ratio:
                        copy_labels(before, labels)
                        sum_support(here, total_coupling[row], labels, support)
                        agreement = old_agreement
                    position += np.uint64(1)
            agreement, position = sweep_labels(
                here,
                external_field,
                beta,
                restraint,
                labels,
                support,
                agreement,
                of_sweep,
                key,
                position,
            )
        copy_labels(labels, drawn[stop])
        agreement = agreement_of(labels, support)
        agreements[stop] = agreement
        other = row + 1 if row + 1 < total_coupling.shape[0] else max(row - 1, 0)
        other_coupling = coupling_row(coupling, other)
        sum_support(other_coupling, total_coupling[other], labels, other_support)
        tilt = beta - restraint[0] * (agreement - restraint[1])
        fill_stein(
            external_field,
            tilt,
            restraint[0],
            labels,
            support,
            other_support,
            scratch,
            steins[stop],
        )
    copy_labels(labels, start)


# Loops here and below in place of `target[:] = values`: that takes Numba seconds to compile.
@compilable
def copy_labels(labels: NDArray[np.integer], target: NDArray[np.integer]) -> None:
    """Overwrite the target with labels."""
    for i in range(labels.shape[0]):
        target[i] = labels[i]


@compilable
def restraint_energy(agreement: float, restraint: Restraint) -> float:
    """Return kappa (S - s)^2 / 2."""
    return 0.5 * restraint[0] * (agreement - restraint[1]) ** 2


@compilable
def sweep_labels(
    coupling: Coupling,
    external_field: Floats,
    beta: float,
    restraint: Restraint,
    labels: Ints,
    support: Floats,
    agreement: float,
    scratch: tuple[Floats, Floats, Floats, Floats],
    key: np.uint64,
    position: np.uint64,
) -> tuple[float, np.uint64]:
    """Draw every label from its full conditional; return the agreement and the next position.

    A label that changes from class f to g changes the agreement by delta = h_ig - h_if, and
    log q by alpha_g - alpha_f + (beta - kappa (S - s)) delta - kappa delta^2 / 2.
    """
    log_weights, cumulative, uniforms, thresholds = scratch
    stiffness, centre = restraint
    n_classes, n_points = support.shape
    log_n_others = math.log(max(n_classes - 1.0, 1.0))
    for i in range(n_points):
        uniforms[i] = uniform_at(key, position + np.uint64(i))
        thresholds[i] = staying_lead(uniforms[i], log_n_others)
    for i in range(n_points):
        old = labels[i]
        tilt = beta - stiffness * (agreement - centre)
        own = support[old, i]
        for g in range(n_classes):
            delta = support[g, i] - own
            log_weights[g, 0] = external_field[g] + (tilt - 0.5 * stiffness * delta) * delta
        largest, lead = lead_of(log_weights, 0, old)
        if lead > thresholds[i]:
            continue
        new = draw_class_at(log_weights, 0, cumulative, largest, old, uniforms[i])
        if new != old:
            agreement += support[new, i] - own
            labels[i] = new
            move_coupling(coupling, i, support, old, new)
    return agreement, position + np.uint64(n_points)


@compilable
def sum_support(coupling: Coupling, total_coupling: Floats, labels: Ints, support: Floats) -> None:
    """Fill in the support of every class, shape (G, n): of the largest, what others leave."""
    n_classes, n_points = support.shape
    largest, most = 0, -1
    for g in range(n_classes):
        count = 0
        for i in range(n_points):
            count += labels[i] == g
            support[g, i] = 0.0
        if count > most:
            largest, most = g, count
    for i in range(n_points):
        if labels[i] != largest:
            add_coupling(coupling, i, 1.0, support, labels[i])
    for i in range(n_points):
        support[largest, i] = total_coupling[i]
    for g in range(n_classes):
        if g != largest:
            for i in range(n_points):
                support[largest, i] -= support[g, i]


@compilable
def agreement_of(labels: Ints, support: Floats) -> float:
    """Compute S from the support."""
    total = 0.0
    for i in range(labels.shape[0]):
        total += support[labels[i], i]
    return 0.5 * total
