"""Rough curves of log z with the states through their first-order transitions.

`assemble` makes a curve from the points of a scan, `curve_between` one between two scales.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.log_partition.interpolant import (
    LogPartition,
    equal_weights,
    merge_branches,
    strictly_ascending,
)

Floats = NDArray[np.float64]

_LOWEST_BARRIER = 0.45  # in nats: chains cross lower ones; from 0.2 to 0.8 errors are the same
_FEW_POINTS = 3  # between two crossings that belong to one transition


class Gap(NamedTuple):
    """States through first-order transitions, from disorder at `low` to order at `high`.

    Each state is restrained to its mean agreement, which rises from state to state.
    """

    betas: Floats  # shape (J,): d log g / dS, not monotone
    log_z: Floats  # shape (J,): of the branch
    agreements: Floats  # shape (J,)
    stiffness: Floats  # shape (J,)
    low: float  # the betas between which both phases are stable or metastable
    high: float

    def log_shares(self, betas: Floats) -> Floats:
        """Log probability of the agreement of each state, roughly, where it is largest, (J,).

        Relative to that of the most probable state at each beta, so that one counts at each.
        """
        log_states = self.log_z - self.betas * self.agreements
        log_shares = betas[:, None] * self.agreements + log_states
        return (log_shares - log_shares.max(axis=1, keepdims=True)).max(axis=0)


class RoughCurve(NamedTuple):
    """Log z along beta, and the states through first-order transitions, if there are any."""

    log_partition: LogPartition
    gap: Gap | None = None
    is_crossed: bool = True  # False if a transition was found that no chain could cross


class ScanPoint(NamedTuple):
    """What the chains of a scan found at one state."""

    beta: float
    log_z: float
    mean: float
    spread: float
    stiffness: float  # zero where no restraint was needed


def assemble(
    up: list[ScanPoint], down: list[ScanPoint], crossings: list[tuple[int, int]], narrowest: float
) -> RoughCurve:
    """Make the curve and its gaps from the points of both sides.

    Parameters
    ----------
    up, down : list of ScanPoint
        From beta = 0 to both ends.
    crossings : list of (int, int)
        Of `up`: the first point through a transition, and the one after the last.
    narrowest : float
        The least width of a restraint.
    """
    betas, _, means, spreads, stiffness = np.array(up).T
    means = np.maximum.accumulate(means)
    turns = [_backbend(betas, first - 1, after) for first, after in _joined(crossings)]
    log_z = up[0].log_z + np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(betas) * (means[1:] + means[:-1]))]
    )
    starts = [0, *(lowest for _, lowest in turns)]
    ends = [*(highest + 1 for highest, _ in turns), len(betas)]
    branches = [
        LogPartition(betas[start:end], log_z[start:end], means[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]
    below = np.array(down[:0:-1]).reshape(-1, 5)[:, :3].T
    branches[0] = LogPartition(*np.concatenate([below, np.array(branches[0])], axis=1))
    branches = [strictly_ascending(branch) for branch in branches]
    part = _metastable_part(betas, means, turns, branches)
    gap = None
    if part is not None:
        widths = _widths(stiffness[part], np.maximum(spreads[part], narrowest))
        gap = _evenly_restrained(betas[part], log_z[part], means[part], widths)
    return RoughCurve(merge_branches(branches), gap)


def _widths(stiffness: Floats, spreads: Floats) -> Floats:
    """Return kappa**-0.5 of the points of a gap: of those without a restraint their spread.

    Chains that jumped half-way have a spread that is none of a phase, and labels that are all the
    same have none; such a width is within a factor of two of that of the nearest restrained point.
    """
    restrained = np.flatnonzero(stiffness > 0.0)
    nearest = restrained[np.abs(np.arange(len(spreads))[:, None] - restrained).argmin(axis=1)]
    widths = stiffness[nearest] ** -0.5
    return np.where(stiffness > 0.0, widths, np.clip(spreads, 0.5 * widths, 2.0 * widths))


def _evenly_restrained(betas: Floats, log_z: Floats, means: Floats, widths: Floats) -> Gap:
    """Place restrained states through a gap, about one width apart."""
    means = means + 1e-9 * np.arange(len(means))  # ascending, for the interpolation
    steps = 2.0 * np.diff(means) / (widths[1:] + widths[:-1])
    lengths = np.concatenate([[0.0], np.cumsum(steps)])
    n_states = int(np.ceil(lengths[-1])) + 1
    centres = np.interp(np.linspace(0.0, lengths[-1], n_states), lengths, means)
    values = (np.interp(centres, means, v) for v in (betas, log_z, widths))
    at_betas, at_log_z, at_widths = values
    low, high = betas[1:-1].min(), betas[1:-1].max()
    return Gap(at_betas, at_log_z, centres, at_widths**-2.0, low, high)


def _metastable_part(
    betas: Floats, means: Floats, turns: list[tuple[int, int]], branches: list[LogPartition]
) -> slice | None:
    """Return the points between the lowest beta of order and the highest of disorder, or None."""
    barriers = []
    for (highest, lowest), pair in zip(turns, pairwise(branches), strict=True):
        excess = betas[highest : lowest + 1] - equal_weights(*pair)
        steps = 0.5 * np.diff(means[highest : lowest + 1]) * (excess[1:] + excess[:-1])
        if np.cumsum(steps).max(initial=0.0) > _LOWEST_BARRIER:
            barriers.append((highest, lowest))
    if not barriers:
        return None
    (first, _), (_, last) = barriers[0], barriers[-1]
    low, high = betas[first : last + 1].min(), betas[first : last + 1].max()
    before = np.flatnonzero(betas[:first] < low)
    after = last + np.flatnonzero(betas[last:] > high)
    return slice(before[-1] if len(before) else 0, after[0] + 1 if len(after) else len(betas))


def _joined(crossings: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join crossings that follow each other with a few points between them."""
    joined: list[tuple[int, int]] = []
    for first, after in crossings:
        if joined and first <= joined[-1][1] + _FEW_POINTS:
            first, _ = joined.pop()
        joined.append((first, after))
    return joined


def _backbend(betas: Floats, first: int, after: int) -> tuple[int, int]:
    """Find where beta is largest before it falls most, and where it is smallest after that.

    Smooths `betas` there, in place: rising, falling, rising.
    """
    part = betas[first:after]
    drop = np.maximum.accumulate(part) - part
    lowest = int(drop.argmax())
    highest = int(part[: lowest + 1].argmax())
    part[: highest + 1] = np.maximum.accumulate(part[: highest + 1])
    part[highest : lowest + 1] = np.minimum.accumulate(part[highest : lowest + 1])
    part[lowest:] = np.maximum.accumulate(part[lowest:])
    return first + highest, first + max(lowest, highest + 1 if highest + 1 < len(part) else highest)


def curve_between(curves: tuple[RoughCurve, RoughCurve], share: float) -> RoughCurve:
    """Interpolate between the curves of two scales; `share` is that of the second."""
    first, second = (curve.log_partition for curve in curves)
    betas = np.union1d(first.betas, second.betas)
    slopes = [np.interp(betas, curve.betas, curve.slopes) for curve in (first, second)]
    log_partition = LogPartition(
        betas,
        (1.0 - share) * first(betas) + share * second(betas),
        (1.0 - share) * slopes[0] + share * slopes[1],
    )
    gaps = [curve.gap for curve in curves if curve.gap is not None]
    gap = _gap_between(gaps[0], gaps[1], share) if len(gaps) == 2 else gaps[0] if gaps else None
    return RoughCurve(log_partition, gap, all(curve.is_crossed for curve in curves))


def _gap_between(first: Gap, second: Gap, share: float) -> Gap:
    """Interpolate two gaps at the same part of the way between their agreements."""
    nearest = (first, second)[int(share > 0.5)]
    part = _part_of_way(nearest)
    shares = 1.0 - share, share

    def mixed(column: int) -> Floats:
        values = (np.interp(part, _part_of_way(gap), gap[column]) for gap in (first, second))
        return np.asarray(sum(s * v for s, v in zip(shares, values, strict=True)))

    betas, log_z, agreements = (mixed(column) for column in range(3))
    inner = betas[1:-1]
    return Gap(betas, log_z, agreements, nearest.stiffness, inner.min(), inner.max())


def _part_of_way(gap: Gap) -> Floats:
    start, end = gap.agreements[[0, -1]]
    return (gap.agreements - start) / (end - start)
