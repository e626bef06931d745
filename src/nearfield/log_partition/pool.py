"""The pool of draws: labelings drawn at thermodynamic states, as their agreements at all scales."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.log_partition.bonds import cluster_log_weights
from nearfield.log_partition.chains import FieldStack, Schedule, run_chains, stack_fields
from nearfield.log_partition.scan import labels_at_zero
from nearfield.log_partition.states import States

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_GROUPS = 8
"""Independent groups of draws, each left out in turn for the error."""


_N_SWEEPS = 2  # between two draws, each a cluster move and a Gibbs sweep
# More when a chain comes to another state, and more still to a restrained one, which relaxes more
# slowly. What is left shows as a difference between forward and backward.
_N_SETTLING, _N_RESTRAINED_SETTLING = 1, 2
_LEAST_BONDED = 0.1  # beta from which bonds are drawn; those of nearly free fields tell nothing


class Pool(NamedTuple):
    """All draws so far, and the states that they were drawn at; the first is beta = 0."""

    labelings: NDArray[np.integer]  # shape (M, n)
    states: Ints  # shape (M,): where each was drawn
    groups: Ints  # shape (M,)
    is_forward: NDArray[np.bool_]  # shape (M,): on the way from beta = 0
    agreements: Floats  # shape (M,): at the scale of the state
    steins: Floats  # shape (M, 2): zero in expectation at every state
    conditional: Floats  # shape (M,): u of bonds given the labels; nan for none
    free: Floats  # shape (M,): u of independent bonds
    betas: Floats  # shape (K,), of the states
    scales: Floats  # shape (K,)
    stiffness: Floats  # shape (K,)
    centres: Floats  # shape (K,)
    log_highest: Floats  # shape (K,): beta S of labels that are all the same

    def __add__(self, other: "Pool") -> "Pool":  # type: ignore[override]
        """Append draws at other states; beta = 0 is one state for both."""
        n_more = len(self.betas) - 1
        states = np.where(other.states > 0, other.states + n_more, 0)
        return self.extended(other._replace(states=states))._replace(
            **{k: np.concatenate([getattr(self, k), getattr(other, k)[1:]]) for k in _OF_STATES}
        )

    def extended(self, other: "Pool") -> "Pool":
        """Append draws at the same states."""
        return self._replace(
            **{k: np.concatenate([getattr(self, k), getattr(other, k)]) for k in _OF_DRAWS}
        )

    def without(self, is_out: NDArray[np.bool_]) -> "Pool":
        """Leave out some of the states, a mask of shape (K,), and their draws."""
        kept = ~is_out[self.states]
        part = self._replace(
            **{k: getattr(self, k)[kept] for k in _OF_DRAWS},
            **{k: getattr(self, k)[~is_out] for k in _OF_STATES},
        )
        return part._replace(states=(np.cumsum(~is_out) - 1)[part.states])

    def log_potentials(self, agreements: Floats) -> Floats:
        """Log q of all draws in all states, from agreements at the states' scales, (M, K)."""
        log_q = agreements * self.betas
        restrained = np.flatnonzero(self.stiffness)
        if len(restrained):
            off = agreements[:, restrained] - self.centres[restrained]
            log_q[:, restrained] -= 0.5 * self.stiffness[restrained] * off**2
        return log_q


_OF_DRAWS, _OF_STATES = Pool._fields[:8], Pool._fields[8:]


def draw_pool(
    rng: np.random.Generator,
    field_at: Callable[[float], LabelField],
    scales: Floats,
    states: States,
    n_draws: Ints,
    bonds_from: float,
    n_jobs: int | None,
) -> Pool:
    """Run a chain for each group and schedule, with so many draws at each visit of a state.

    From the beta `bonds_from` on bonds are drawn too, but for rungs and restrained states. A
    stream a group, so that the draws do not depend on `n_jobs`.
    """
    sampled, row_in_stack = np.unique(states.rows, return_inverse=True)
    fields = [field_at(scales[row]) for row in sampled]
    stack = stack_fields(fields)
    visits = [np.repeat(visited, n_draws[visited]) for visited in states.schedules]
    schedules = [
        Schedule(
            states.betas[v],
            row_in_stack[v],
            states.stiffness[v],
            states.centres[v],
            _sweeps_at(v, states),
        )
        for v in visits
    ]

    def draw_group(stream: np.random.Generator) -> list[NDArray[Any]]:
        parts = []
        for schedule in schedules:
            keys = stream.integers(0, 2**64, dtype=np.uint64, size=1)
            start = labels_at_zero(stream, fields[0], 1)
            parts.append(run_chains(stack, schedule, start, keys))
        return [np.concatenate(arrays, axis=1)[0] for arrays in zip(*parts, strict=True)]

    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        drawn = parallel(delayed(draw_group)(stream) for stream in rng.spawn(N_GROUPS))
    labelings, agreements, steins = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    each = np.tile(np.concatenate(visits), N_GROUPS)
    is_forward = np.concatenate([np.arange(len(v)) < len(v) // 2 for v in visits])
    from_beta = max(bonds_from, _LEAST_BONDED)
    conditional, free = _draw_bonds(
        rng, stack, states, row_in_stack, labelings, each, from_beta, n_jobs
    )
    return Pool(
        labelings,
        each,
        np.repeat(np.arange(N_GROUPS), len(each) // N_GROUPS),
        np.tile(is_forward, N_GROUPS),
        agreements,
        steins,
        conditional,
        free,
        states.betas,
        scales[states.rows],
        states.stiffness,
        states.centres,
        states.betas * stack.largest_agreements[row_in_stack],
    )


def _draw_bonds(
    rng: np.random.Generator,
    stack: FieldStack,
    states: States,
    row_in_stack: Ints,
    labelings: NDArray[np.integer],
    each: Ints,
    bonds_from: float,
    n_jobs: int | None,
) -> tuple[Floats, Floats]:
    """Draw bonds at the states whose log z these tell; nan at all others."""
    is_bonded = ~states.is_rung & (states.stiffness == 0.0)
    is_bonded &= states.betas >= bonds_from
    to_bond = np.flatnonzero(is_bonded)
    conditional, free = np.full((2, len(each)), np.nan)
    keys = rng.integers(0, 2**64, dtype=np.uint64, size=(len(to_bond), 2))

    def draw(state: int, keys: NDArray[np.uint64]) -> None:
        here = np.flatnonzero(each == state)
        where = stack, row_in_stack[state], states.betas[state]
        given = labelings[here]
        conditional[here] = cluster_log_weights(*where, given, keys[0])
        free[here] = cluster_log_weights(*where, np.zeros_like(given), keys[1])

    with Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem") as parallel:
        parallel(delayed(draw)(*task) for task in zip(to_bond, keys, strict=True))
    return conditional, free


def _sweeps_at(visits: Ints, states: States) -> Ints:
    is_new = np.concatenate([[True], np.diff(visits) != 0])
    is_restrained = states.stiffness[visits] > 0.0
    n_settling = _N_SETTLING + _N_RESTRAINED_SETTLING * is_restrained
    return _N_SWEEPS + is_new * n_settling
