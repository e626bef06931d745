"""Chains that tour a ladder of betas, drawing at each by cluster moves and sweeps."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._interpolant import LogPartition
from nearfield.inference._scan import annealed, labels_at_zero
from nearfield.sampling._random import draw_key
from nearfield.sampling.canonical import FieldStack, Walk, stack_fields, walk_chains
from nearfield.sampling.reflection import reflect_drifts
from nearfield.sampling.tied_groups import tied_and_free

N_GROUPS = 16
"""Chains, each left out in turn to see the error."""

_SPACING = 0.8  # of rungs, in what one draw can tell apart
_N_SWEEPS = 1  # between two draws
_N_SETTLING = 3  # sweeps more when a chain has come to another rung
_N_STARTING = 20  # and before its first draw


class Tours(NamedTuple):
    """All draws so far, and the rungs that they were drawn at."""

    betas: NDArray[np.float64]  # shape (K,), of the rungs
    agreements: NDArray[np.float64]  # shape (M,)
    drifts: NDArray[np.float64]  # shape (M, 2): zero on average at every rung
    points: NDArray[np.int64]  # shape (M,): the rung of each draw
    groups: NDArray[np.int64]  # shape (M,): its chain
    is_back: NDArray[np.bool_]  # shape (M,): whether the chain was on its way to zero
    tied: NDArray[np.float64]  # shape (M,): log weight of groups of tied points; nan for none
    free: NDArray[np.float64]  # shape (M,): the same where ties do not hang on labels

    def __add__(self, other: "Tours") -> "Tours":  # type: ignore[override]
        """Put other draws at the same rungs behind these."""
        pairs = zip(self[1:], other[1:], strict=True)
        return Tours(self.betas, *(np.concatenate(pair) for pair in pairs))

    def means_by_way(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Average values of the draws: out and back, by chain and rung, (2, N_GROUPS, K).

        Zero where there are none: no chain is on its way back at zero.
        """
        shape = 2, N_GROUPS, len(self.betas)
        cells = np.ravel_multi_index((self.is_back.astype(int), self.groups, self.points), shape)
        counts = np.bincount(cells, minlength=np.prod(shape))
        sums = np.bincount(cells, values, np.prod(shape))
        return (sums / np.maximum(counts, 1)).reshape(shape)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many draws each rung has, shape (K,)."""
        return np.bincount(self.points, minlength=len(self.betas))


class Ladder(NamedTuple):
    """The rungs, and the order in which a tour visits them."""

    betas: NDArray[np.float64]  # shape (K,): away from zero, those above it first
    route: NDArray[np.int64]  # shape (V,)
    is_back: NDArray[np.bool_]  # shape (V,)

    @classmethod
    def from_zero(cls, up: NDArray[np.float64], down: NDArray[np.float64]) -> Self:
        """Go from zero along the rungs above it and back, then along those below it and back."""
        above, below = 1 + np.arange(len(up)), 1 + len(up) + np.arange(len(down))
        lengths = [1 + len(up), len(up), 1 + len(down), len(down)]
        return cls(
            np.concatenate([[0.0], up, down]),
            np.concatenate([[0], above, above[::-1], [0], below, below[::-1]]),
            np.repeat([False, True, False, True], lengths),
        )

    @classmethod
    def from_top(cls, betas: NDArray[np.float64]) -> Self:
        """Go from the last of ascending betas to the first and back."""
        down = np.arange(len(betas))[::-1]
        return cls(betas, np.concatenate([down, down[::-1]]), np.repeat([True, False], len(betas)))


@dataclass
class TouringChains:
    """Chains on their tours; they go on from where they are."""

    stack: FieldStack
    ladder: Ladder
    labels: NDArray[np.int8]  # shape (N_GROUPS, n)
    is_tied: NDArray[np.bool_]  # shape (K,): where ties are drawn too
    bounds: tuple[float, float] = (-np.inf, np.inf)  # of agreements
    n_ahead: int = 0  # visits that every other chain is ahead
    n_starting: int = _N_STARTING

    @classmethod
    def start(cls, rng: np.random.Generator, field: LabelField, low: float, high: float) -> Self:
        """Place rungs between two betas, low <= 0 <= high, and chains at both ends.

        Half of them start in disorder at zero, half in order at the high beta.
        """
        stack = stack_fields([field, _field_of_common_neighbours(field)])
        up, down = (_rungs_to(rng, field, stack, end) for end in (high, low))
        labels = labels_at_zero(rng, field, N_GROUPS)
        if len(up) > 0:
            labels[1::2] = labels[1::2, :1]
        ladder = Ladder.from_zero(up, down)
        return cls(stack, ladder, labels, ladder.betas > 0.0, n_ahead=1 + len(up))

    def tour(self, rng: np.random.Generator, n_draws: int | NDArray[np.int64]) -> Tours:
        """Go round once, with so many draws at each visit of a rung; shape (K,) if not the same."""
        betas, route, is_back = self.ladder
        n_draws = np.broadcast_to(n_draws, len(betas))
        parts, drawn = [], []
        for group, labels in enumerate(self.labels):
            turned = np.roll(np.arange(len(route)), -self.n_ahead * (group % 2))
            visits = np.repeat(turned, n_draws[route[turned]])
            points = route[visits]
            n_sweeps = _N_SWEEPS + _N_SETTLING * (np.diff(visits, prepend=-1) != 0)
            n_sweeps[0] += self.n_starting
            walk = Walk(betas[points], np.zeros_like(points), n_sweeps)
            labelings, agreements, drifts = walk_chains(
                self.stack, walk, labels[None], np.array([draw_key(rng)]), self.bounds
            )
            group_of = np.full(len(points), group)
            parts.append((agreements[0], drifts[0], points, group_of, is_back[visits]))
            drawn.append(labelings[0])
        self.n_starting = 0
        agreements, drifts, points, *others = (
            np.concatenate(arrays) for arrays in zip(*parts, strict=True)
        )
        labelings = np.concatenate(drawn)
        for bound in self.bounds:
            reflect_drifts(self.stack, betas[points], labelings, agreements, bound, drifts)
        return Tours(
            betas, agreements, drifts, points, *others, *self._ties(rng, points, labelings)
        )

    def _ties(self, rng, points, labelings):
        tied, free = np.full((2, len(points)), np.nan)
        for point in np.flatnonzero(self.is_tied):
            here = np.flatnonzero(points == point)
            beta, keys = float(self.ladder.betas[point]), (draw_key(rng), draw_key(rng))
            tied[here], free[here] = tied_and_free(self.stack, 0, beta, labelings[here], keys)
        return tied, free


def _field_of_common_neighbours(field: LabelField) -> LabelField:
    """Couple points by the neighbours that they have in common.

    How the agreement of this field drifts tells most of what the drift of S leaves open of S.
    """
    coupling = field.to_dense().coupling
    common = coupling @ coupling
    np.fill_diagonal(common, 0.0)
    return LabelField(common, field.n_classes, field.external_field)


def _rungs_to(rng, field: LabelField, stack: FieldStack, end: float) -> NDArray[np.float64]:
    """Place rungs from zero, which is not one of them, to an end."""
    if end == 0.0:
        return np.empty(0)
    betas, _, means = np.array(sorted(annealed(rng, field, stack, end))).T
    rungs = rungs_between(betas, means, min(end, 0.0), max(end, 0.0))
    return rungs[1:] if end > 0.0 else rungs[-2::-1]


def rungs_between(
    betas: NDArray[np.float64], means: NDArray[np.float64], low: float, high: float
) -> NDArray[np.float64]:
    """Place rungs where the mean agreement is known, roughly, at some ascending betas."""
    return LogPartition(betas, np.zeros_like(means), means).evenly(low, high, _SPACING)
