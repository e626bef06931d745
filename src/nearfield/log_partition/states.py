"""Thermodynamic states to sample: along beta from zero, at one scale or several."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.log_partition.gaps import RoughCurve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEGLIGIBLE = -14.0  # log probability of agreements that no beta of a range needs


class Placed(NamedTuple):
    """States at one scale, from low to high agreement."""

    betas: Floats
    stiffness: Floats
    centres: Floats

    def part(self, index: slice | Ints | NDArray[np.bool_]) -> "Placed":
        """Take some of the states."""
        return Placed(*(values[index] for values in self))


class States(NamedTuple):
    """States to sample, and schedules through them, each from beta = 0 and back.

    The first state is beta = 0, where log z is known.
    """

    betas: Floats  # shape (K,)
    rows: Ints  # shape (K,): the scale
    stiffness: Floats  # shape (K,): kappa of the restraint; zero for none
    centres: Floats  # shape (K,)
    is_rung: NDArray[np.bool_]  # shape (K,): on the way to the betas of interest
    schedules: list[Ints]  # states in the order of visits, forward and then back


def place_states(
    curve: RoughCurve, low: float, high: float, spacing: float, n_least: int = 2
) -> Placed:
    """Place states for the betas from low to high, evenly in thermodynamic length.

    Across a first-order transition that matters there, restrained states take the place of
    betas at which two phases are stable.
    """
    log_partition, gap = curve.log_partition, curve.gap
    if gap is None or gap.high < low or gap.low > high:
        return _free(log_partition.evenly(low, high, spacing, n_least=n_least))
    betas = np.unique(np.concatenate([[low, high], log_partition.betas]))
    betas = betas[(betas >= low) & (betas <= high)]
    needed = np.flatnonzero(gap.log_shares(betas) > _NEGLIGIBLE)
    inside = slice(needed[0], needed[-1] + 1)
    parts = [Placed(gap.betas[inside], gap.stiffness[inside], gap.agreements[inside])]
    if low < gap.low:
        parts.insert(0, _free(log_partition.evenly(low, gap.low, spacing)[:-1]))
    if gap.high < high:
        parts.append(_free(log_partition.evenly(gap.high, high, spacing)[1:]))
    return Placed(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _free(betas: Floats) -> Placed:
    """States without a restraint."""
    return Placed(betas, np.zeros(len(betas)), np.zeros(len(betas)))


class StateBuilder:
    """Collects states, in the order in which a chain first visits them, and schedules."""

    def __init__(self) -> None:
        self.placed = [Placed(np.zeros(1), np.zeros(1), np.zeros(1))]
        self.rows, self.is_rung = [0], [True]
        self.schedules: list[Ints] = []

    def add(self, row: int, placed: Placed, is_rung: bool = False) -> list[int]:
        """Add states of one scale; return their numbers."""
        n_states = len(placed.betas)
        added = list(range(len(self.rows), len(self.rows) + n_states))
        self.placed.append(placed)
        self.rows += [row] * n_states
        self.is_rung += [is_rung] * n_states
        return added

    def schedule(self, states: list[int]) -> None:
        """Visit states one after the other, and again on the way back.

        The labels that a chain brings to a state differ between the two visits, so that a
        difference of the two shows hysteresis.
        """
        self.schedules.append(np.array(states + states[::-1]))

    def finish(self) -> States:
        """Return all that was collected."""
        betas, stiffness, centres = (np.concatenate(v) for v in zip(*self.placed, strict=True))
        return States(
            betas,
            np.array(self.rows),
            stiffness,
            centres,
            np.array(self.is_rung),
            self.schedules,
        )


def add_ladder(
    builder: StateBuilder, row: int, curve: RoughCurve, foot: float, spacing: float
) -> list[int]:
    """Add the states between beta = 0 and those for betas from a foot on; return all up to there.

    Inside a gap the latter begin with the least agreement that the foot needs.
    """
    if foot <= 0.0:
        placed = place_states(curve, foot, 0.0, spacing).part(slice(None, None, -1))
        inner = (placed.betas != 0.0) & (placed.betas != foot)
    else:
        placed = place_states(curve, 0.0, foot, spacing)
        first = place_states(curve, foot, foot, spacing).part(slice(1))
        agreements = _agreements(placed, curve)
        inner = (agreements < _agreements(first, curve)) & (placed.betas != 0.0)
    return [0, *builder.add(row, placed.part(inner), is_rung=True)]


def phases_of(placed: Placed, curve: RoughCurve) -> Ints:
    """Tell the phase of each state: -1 for disorder, 1 for order, 0 if there is no transition."""
    if curve.gap is None:
        return np.zeros(len(placed.betas), dtype=np.int64)
    middle = 0.5 * (curve.gap.agreements[0] + curve.gap.agreements[-1])
    return np.where(_agreements(placed, curve) > middle, 1, -1)


def _agreements(placed: Placed, curve: RoughCurve) -> Floats:
    """About the mean agreement of each state."""
    slopes = np.interp(placed.betas, curve.log_partition.betas, curve.log_partition.slopes)
    return np.where(placed.stiffness > 0.0, placed.centres, slopes)
