"""Chains that tour a ladder of betas, drawing at each by cluster moves and sweeps.

Half of the chains start in disorder at beta = 0, half in order at the last beta; each goes to the
other end and back, again and again.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._interpolant import LogPartition
from nearfield.inference._scan import annealed, labels_at_zero
from nearfield.sampling._random import draw_key
from nearfield.sampling.canonical import FieldStack, Walk, stack_fields, walk_chains
from nearfield.sampling.tied_groups import group_log_weights

N_GROUPS = 16
"""Chains, each left out in turn to see the error."""

_SPACING = 0.8  # of rungs, in what one draw can tell apart
_N_SWEEPS = 1  # between two draws
_N_SETTLING = 3  # sweeps more when a chain has come to another rung
_N_STARTING = 20  # and before its first draw


class Tours(NamedTuple):
    """All draws so far, and the rungs that they were drawn at: zero first."""

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

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many draws each rung has, shape (K,)."""
        return np.bincount(self.points, minlength=len(self.betas))


@dataclass
class TouringChains:
    """Chains on their tours; they go on from where they are."""

    stack: FieldStack
    betas: NDArray[np.float64]  # shape (K,): zero, the rungs above it, then those below
    route: NDArray[np.int64]  # shape (V,): the rungs in the order of a tour
    is_back: NDArray[np.bool_]  # shape (V,)
    labels: NDArray[np.int8]  # shape (N_GROUPS, n)
    n_starting: int
    is_tied: NDArray[np.bool_]  # shape (K,): where ties are drawn too

    @classmethod
    def start(cls, rng: np.random.Generator, field: LabelField, low: float, high: float) -> Self:
        """Place rungs between two betas, low <= 0 <= high, and chains at zero and at the high."""
        stack = stack_fields([field, _field_of_common_neighbours(field)])
        up, down = (_rungs_to(rng, field, stack, end) for end in (high, low))
        above, below = 1 + np.arange(len(up)), 1 + len(up) + np.arange(len(down))
        labels = labels_at_zero(rng, field, N_GROUPS)
        if len(up) > 0:
            labels[1::2] = labels[1::2, :1]
        betas = np.concatenate([[0.0], up, down])
        lengths = [1 + len(up), len(up), 1 + len(down), len(down)]
        return cls(
            stack,
            betas,
            np.concatenate([[0], above, above[::-1], [0], below, below[::-1]]),
            np.repeat([False, True, False, True], lengths),
            labels,
            _N_STARTING,
            betas > 0.0,
        )

    def tour(self, rng: np.random.Generator, n_draws: NDArray[np.int64]) -> Tours:
        """Go round once, with so many draws at each visit of a rung, shape (K,)."""
        n_above = np.count_nonzero(self.betas > 0.0)
        parts, drawn = [], []
        for group, labels in enumerate(self.labels):
            # Chains that started in order are half a tour ahead.
            turned = np.roll(np.arange(len(self.route)), -(1 + n_above) * (group % 2))
            visits = np.repeat(turned, n_draws[self.route[turned]])
            points = self.route[visits]
            n_sweeps = _N_SWEEPS + _N_SETTLING * (np.diff(visits, prepend=-1) != 0)
            n_sweeps[0] += self.n_starting
            walk = Walk(self.betas[points], np.zeros_like(points), n_sweeps)
            labelings, agreements, drifts = walk_chains(
                self.stack, walk, labels[None], np.array([draw_key(rng)])
            )
            group_of = np.full(len(points), group)
            parts.append((agreements[0], drifts[0], points, group_of, self.is_back[visits]))
            drawn.append(labelings[0])
        self.n_starting = 0
        columns = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        ties = self._ties(rng, columns[2], np.concatenate(drawn))
        return Tours(self.betas, *columns, *ties)

    def _ties(self, rng, points, labelings):
        tied, free = np.full((2, len(points)), np.nan)
        for point in np.flatnonzero(self.is_tied):
            here = np.flatnonzero(points == point)
            drawn = labelings[here]
            for values, labels in ((tied, drawn), (free, np.zeros_like(drawn))):
                beta, key = float(self.betas[point]), draw_key(rng)
                values[here] = group_log_weights(self.stack, beta, labels, key)
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
    rungs = np.array(sorted(annealed(rng, field, stack, end)))
    betas = LogPartition(*rungs.T).evenly(min(end, 0.0), max(end, 0.0), _SPACING)
    return betas[1:] if end > 0.0 else betas[-2::-1]
