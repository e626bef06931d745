"""The pool of draws: labelings drawn at planned points, as their agreements at every scale."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.field import FieldFamily
from nearfield.inference._ladder import Plan
from nearfield.inference._scan import labels_at_zero
from nearfield.sampling.agreements import PairTable
from nearfield.sampling.canonical import Walk, stack_fields, walk_chains
from nearfield.sampling.tied_groups import tied_and_free

N_GROUPS = 8
"""Independent groups of draws, each left out in turn to see the error."""

_N_SWEEPS = 2  # between two draws
_N_SETTLING = 1  # sweeps more when a chain has come to another point
_LEAST_TIED = 0.1  # beta; what is next to free tells nothing
_MANY = 512  # labelings, whose agreements are worth a task of their own


class Pool(NamedTuple):
    """All draws so far, and the points that they were drawn at; the first is beta = 0."""

    labelings: NDArray[np.int8]  # shape (M, n)
    points: NDArray[np.int64]  # shape (M,): where each was drawn
    groups: NDArray[np.int64]  # shape (M,)
    drifts: NDArray[np.float64]  # shape (M, 2): zero on average at every point
    tied: NDArray[np.float64]  # shape (M,): log weight of groups of tied points; nan for none
    free: NDArray[np.float64]  # shape (M,): the same where ties do not hang on labels
    betas: NDArray[np.float64]  # shape (K,), of the points
    scales: NDArray[np.float64]  # shape (K,)
    log_highest: NDArray[np.float64]  # shape (K,): beta S of labels that are all the same
    parents: NDArray[np.int64]  # shape (K,): a point before each, and close to it

    def __add__(self, other: "Pool") -> "Pool":  # type: ignore[override]
        """Put other draws behind these; beta = 0 is one point for both."""
        n_more = len(self.betas) - 1
        points, parents = (np.where(x > 0, x + n_more, 0) for x in (other.points, other.parents))
        return self.extended(other._replace(points=points))._replace(
            betas=np.concatenate([self.betas, other.betas[1:]]),
            scales=np.concatenate([self.scales, other.scales[1:]]),
            log_highest=np.concatenate([self.log_highest, other.log_highest[1:]]),
            parents=np.concatenate([self.parents, parents[1:]]),
        )

    def extended(self, other: "Pool") -> "Pool":
        """Put other draws behind these, at the first of these points."""
        of_draws = "labelings", "points", "groups", "drifts", "tied", "free"
        return self._replace(
            **{k: np.concatenate([getattr(self, k), getattr(other, k)]) for k in of_draws}
        )


def draw_pool(
    rng: np.random.Generator,
    family: FieldFamily,
    scales: NDArray[np.float64],
    plan: Plan,
    n_draws: NDArray[np.int64],
    tied_from: float,
    n_jobs: int | None,
) -> Pool:
    """Walk a chain for each group and walk, with so many draws at each visit of a point.

    From the beta `tied_from` on ties are drawn too, but for rungs.

    A stream a group, so that the draws do not depend on `n_jobs`.
    """
    sampled, row_in_stack = np.unique(plan.rows, return_inverse=True)
    fields = [family.at(scales[row]) for row in sampled]
    stack = stack_fields(fields)
    stops = [np.repeat(walk, n_draws[walk]) for walk in plan.walks]
    walks = [Walk(plan.betas[s], row_in_stack[s], _sweeps_at(s)) for s in stops]

    def draw_group(stream):
        parts = []
        for walk in walks:
            keys = stream.integers(0, 2**64, dtype=np.uint64, size=1)
            start = labels_at_zero(stream, fields[0], 1)
            parts.append(walk_chains(stack, walk, start, keys))
        return [np.concatenate(arrays, axis=1)[0] for arrays in zip(*parts, strict=True)]

    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        drawn = parallel(delayed(draw_group)(stream) for stream in rng.spawn(N_GROUPS))
    labelings, _, drifts = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    points = np.tile(np.concatenate(stops), N_GROUPS)
    to_tie = np.flatnonzero(~plan.is_rung & (plan.betas >= max(tied_from, _LEAST_TIED)))
    tied, free = np.full((2, len(points)), np.nan)
    keys = rng.integers(0, 2**64, dtype=np.uint64, size=(len(to_tie), 2))

    def draw_ties(point, keys):
        here = np.flatnonzero(points == point)
        place = stack, row_in_stack[point], plan.betas[point]
        tied[here], free[here] = tied_and_free(*place, labelings[here], tuple(keys))

    with Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem") as parallel:
        parallel(delayed(draw_ties)(*task) for task in zip(to_tie, keys, strict=True))
    return Pool(
        labelings,
        points,
        np.repeat(np.arange(N_GROUPS), len(points) // N_GROUPS),
        drifts,
        tied,
        free,
        plan.betas,
        scales[plan.rows],
        plan.betas * stack.added_couplings[row_in_stack, -1],
        plan.parents,
    )


def _sweeps_at(stops: NDArray[np.int64]) -> NDArray[np.int64]:
    is_new = np.concatenate([[True], np.diff(stops) != 0])
    return _N_SWEEPS + _N_SETTLING * is_new


class AgreementTable:
    """Agreements of a growing pool at a growing set of scales; nothing is computed twice."""

    def __init__(self, family: FieldFamily, n_jobs: int | None) -> None:
        self.family, self.n_jobs = family, n_jobs
        self.scales = np.empty(0)
        self.values = np.empty((0, 0))

    def at(self, labelings: NDArray[np.int8], scales: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the agreements of all labelings, shape (M, R); those known come first."""
        wanted, column = np.unique(scales, return_inverse=True)
        values = np.empty((len(labelings), len(wanted)))
        known = np.isin(wanted, self.scales)
        n_known = len(self.values)
        values[:n_known, known] = self.values[:, np.searchsorted(self.scales, wanted[known])]
        values[:n_known, ~known] = self._compute(labelings[:n_known], wanted[~known])
        values[n_known:] = self._compute(labelings[n_known:], wanted)
        self.scales, self.values = wanted, values
        return values[:, column]

    def _compute(self, labelings, scales):
        if len(labelings) == 0 or len(scales) == 0:
            return np.empty((len(labelings), len(scales)))
        pairs = PairTable.of([self.family.at(scale) for scale in scales])
        with Parallel(n_jobs=self.n_jobs, prefer="threads") as parallel:
            parts = np.array_split(labelings, min(N_GROUPS, 1 + len(labelings) // _MANY))
            return np.concatenate(parallel(delayed(pairs.agreements)(part) for part in parts))
