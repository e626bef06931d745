r"""A rough curve of log z along beta at one scale, by annealing from beta = 0.

Chains anneal upwards in steps of about two standard deviations of the agreement. Where the field
has a first-order transition the mean agreement jumps, or chains that start from order stay there;
the agreements in between are then crossed by harmonically restrained states, along which

.. math:: d \log z = S \, d\beta

holds as everywhere else, with beta falling where the entropy is convex.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.log_partition.chains import FieldStack, Schedule, run_chains, stack_fields
from nearfield.log_partition.interpolant import (
    LogPartition,
    equal_weights,
    merge_branches,
    strictly_ascending,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ScanSettings:
    """How a scan goes on, and what it takes for a transition.

    Lengths are in standard deviations of the agreement, sizes in its largest value. They were
    chosen on uniform fields of 30 to 300 points and on the six data sets of the benchmark.

    Attributes
    ----------
    n_chains, n_settling, n_recorded : int
        Chains, and sweeps at each beta before and while agreements are averaged. The curve only
        places states: an error of a nat in log z does not matter.
    step, max_growth : float
        Between states, in standard deviations, and at most this part of 1 + abs(beta).
    jump : float
        A mean rises by at most so much in a step without a transition.
    smallest_gap : float
        Between two phases. Closer ones are one.
    narrow_step : float
        Of 1 + beta: no step is halved further.
    n_test : int
        Sweeps after which chains from order must have joined those from disorder.
    lowest_barrier : float
        In nats: chains cross lower ones by themselves. From 0.2 to 0.8 the errors are the same.
    few_points : int
        Between two crossings that belong to one transition.
    max_crossings, max_crossing_states : int
        After which a scan gives up and says so.
    n_restrained_settling, n_restrained : int
        Sweeps at a restrained state.
    narrowest : float
        The width kappa**-0.5 of the first restraint. Restrained states are one width apart.
    flat, convex, widen, narrow : float
        Where kappa var(S) is below `flat`, the width grows by `widen`; above `convex`, where the
        entropy is convex, it shrinks by `narrow`.
    """

    n_chains: int = 4
    n_settling: int = 1
    n_recorded: int = 4
    step: float = 2.0
    max_growth: float = 0.8
    jump: float = 4.0
    smallest_gap: float = 0.01
    narrow_step: float = 0.02
    n_test: int = 12
    lowest_barrier: float = 0.45
    few_points: int = 3
    max_crossings: int = 6
    max_crossing_states: int = 400
    n_restrained_settling: int = 4
    n_restrained: int = 8
    narrowest: float = 0.004
    flat: float = 1.1
    convex: float = 1.4
    widen: float = 1.25
    narrow: float = 0.7


DEFAULTS = ScanSettings()

IsEnough = Callable[[NDArray[np.float64], NDArray[np.float64]], bool]


class Gap(NamedTuple):
    """States through first-order transitions, from disorder at `low` to order at `high`.

    Each state is restrained to its mean agreement, which rises from state to state.
    """

    betas: NDArray[np.float64]  # shape (J,): d log g / dS, not monotone
    log_z: NDArray[np.float64]  # shape (J,): of the branch
    agreements: NDArray[np.float64]  # shape (J,)
    stiffness: NDArray[np.float64]  # shape (J,)
    low: float  # the betas between which both phases are stable or metastable
    high: float

    def log_shares(self, betas: NDArray[np.float64]) -> NDArray[np.float64]:
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


class _Point(NamedTuple):
    beta: float
    log_z: float
    mean: float
    spread: float
    stiffness: float  # zero where no restraint was needed


def scan_curve(
    rng: np.random.Generator,
    field: LabelField,
    low: float,
    high: float,
    is_enough: IsEnough | None = None,
    settings: ScanSettings = DEFAULTS,
) -> RoughCurve:
    """Anneal from zero to both ends.

    Parameters
    ----------
    low, high : float
        At most and at least zero.
    is_enough : callable, optional
        Of the betas and log z of the last phase so far: True ends a side before its end.
    settings : ScanSettings
    """
    stack = stack_fields([field])
    up, down = (_Scan(rng, field, stack, is_enough, settings) for _ in range(2))
    up.anneal(high)
    down.anneal(low)
    return _assemble(up, down.points, settings)


class _Scan:
    """One side of a scan: chains, and the points that they have been through."""

    def __init__(
        self,
        rng: np.random.Generator,
        field: LabelField,
        stack: FieldStack,
        is_enough: IsEnough | None,
        settings: ScanSettings,
    ) -> None:
        self.rng, self.field, self.stack = rng, field, stack
        self.is_enough: IsEnough | None = is_enough
        self.settings: ScanSettings = settings
        self.points = [_Point(0.0, *moments_at_zero(field), 0.0)]  # log z is known there
        self.crossings: list[tuple[int, int]] = []  # first point, and the one after the last
        self.is_crossed = True
        self.largest = stack.largest_agreements[0]

    def anneal(self, end: float) -> None:
        """Go from zero to an end; cross first-order transitions on the way up."""
        if end == 0.0:
            return
        settings = self.settings
        labels = labels_at_zero(self.rng, self.field, settings.n_chains)
        while True:
            last = self.points[-1]
            if last.beta == end or self._has_enough():
                if last.beta <= 0.0 or not self._crosses_to_order(labels, last):
                    return
                continue
            step = settings.step / max(last.spread, 1e-9)
            step = min(step, settings.max_growth * (1.0 + abs(last.beta)))
            beta = float(np.sign(end)) * min(abs(last.beta) + step, abs(end))
            labels = self._advance(labels, last, beta)

    def _has_enough(self) -> bool:
        """Ask about the points since the last transition: those before may be metastable."""
        start = self.crossings[-1][1] - 1 if self.crossings else 0
        betas, log_z = np.array([point[:2] for point in self.points[start:]]).T
        return self.is_enough is not None and self.is_enough(betas, log_z)

    def _advance(
        self, labels: NDArray[np.integer], last: _Point, beta: float
    ) -> NDArray[np.integer]:
        """Go on to beta, or to where a transition has been crossed; return the labels there.

        Where the mean agreement jumps the step is halved, until chains that come from below and
        from above agree, or do not: then they are in different phases.
        """
        trial, n_test = labels.copy(), self.settings.n_test // 2
        mean, spread, highest = self._moments(trial, beta)
        while beta > 0.0 and self._is_above(highest, last.mean, last.spread):
            middle, below, above = 0.5 * (last.beta + beta), labels.copy(), trial.copy()
            mean, spread, highest_below = self._moments(below, middle, n_settling=n_test)
            from_above, spread_above, _ = self._moments(above, middle, n_settling=n_test)
            is_narrow = beta - last.beta < self.settings.narrow_step * (1.0 + beta)
            if self._is_above(from_above, mean, max(spread, spread_above)) or is_narrow:
                if self._cross(labels, highest):
                    return labels
                break
            trial, beta, highest = below, middle, highest_below
        self._add(beta, mean, spread)
        return trial

    def _add(self, beta: float, mean: float, spread: float, stiffness: float = 0.0) -> None:
        last = self.points[-1]
        log_z = last.log_z + 0.5 * (beta - last.beta) * (mean + last.mean)
        self.points.append(_Point(beta, log_z, mean, spread, stiffness))

    def _crosses_to_order(self, labels: NDArray[np.integer], last: _Point) -> bool:
        """Tell whether chains from order stay above those from disorder; cross if so."""
        classes = np.arange(len(labels))[:, None] % self.field.n_classes
        ordered = np.broadcast_to(classes, labels.shape).astype(labels.dtype)
        self._moments(ordered, last.beta, n_recorded=self.settings.n_test)
        mean, spread, _ = self._moments(ordered, last.beta)
        if not self._is_above(mean, last.mean, max(last.spread, spread)):
            return False
        return self._cross(labels, mean)

    def _is_above(self, agreement: float, other: float, spread: float) -> bool:
        """Tell whether two mean agreements are of different phases."""
        smallest = self.settings.smallest_gap * self.largest
        return agreement - other > max(self.settings.jump * spread, smallest)

    def _cross(self, labels: NDArray[np.integer], agreement: float) -> bool:
        """Follow restrained states towards an agreement of the ordered phase.

        They end past the middle of the way, where chains without a restraint stay. False, with
        `labels` and points as they were, if they do not get there.
        """
        settings = self.settings
        if not self.is_crossed or len(self.crossings) == settings.max_crossings:
            self.is_crossed = False
            return False
        first, start = len(self.points), labels.copy()
        last = self.points[-1]
        width, slope = max(last.spread, settings.narrowest * self.largest), 0.0
        middle = 0.5 * (last.mean + agreement)
        for _ in range(settings.max_crossing_states):
            last = self.points[-1]
            stiffness, centre = width**-2.0, last.mean + width
            tilt = max(last.beta + slope * width, 1e-3)
            trial = labels.copy()
            agreements = self._agreements(
                trial,
                tilt,
                stiffness,
                centre,
                n_settling=settings.n_restrained_settling,
                n_recorded=settings.n_restrained,
            )
            mean, spread = float(agreements.mean()), float(agreements.std())
            if mean - last.mean > 3.0 * width:
                width *= settings.narrow  # the restraint is too weak to hold the chains
                continue
            labels[:] = trial
            found = tilt - stiffness * (mean - centre)
            slope = (found - last.beta) / max(mean - last.mean, 0.2 * width)
            slope = float(np.clip(slope, -0.5 * stiffness, stiffness))
            self._add(found, mean, spread, stiffness)
            if mean > middle and found > last.beta and self._stays(labels, self.points[-1]):
                break
            ratio = stiffness * spread**2
            if ratio < settings.flat:
                width *= settings.widen
            elif ratio > settings.convex:
                width *= settings.narrow
        else:
            del self.points[first:]
            labels[:] = start
            self.is_crossed = False
            return False
        self.crossings.append((first, len(self.points)))
        return True

    def _stays(self, labels: NDArray[np.integer], point: _Point) -> bool:
        """Tell whether all chains stay near a point without its restraint.

        At the top of a barrier they leave it, on both sides, so that their mean need not move.
        """
        settings = self.settings
        agreements = self._agreements(
            labels.copy(), point.beta, n_settling=settings.n_test, n_recorded=settings.n_restrained
        )
        off = np.abs(agreements.mean(axis=1) - point.mean)
        return bool(off.max() < settings.jump * point.spread)

    def _moments(
        self, labels: NDArray[np.integer], beta: float, **counts: int
    ) -> tuple[float, float, float]:
        """Mean, spread and, of chain means, the largest of the agreement.

        The spread is the standard deviation, without the highest chain where that is above all
        others: it is in another phase, and must not widen this one. `labels` are left where the
        chains end; see `_agreements`.
        """
        agreements = self._agreements(labels, beta, **counts)
        means = agreements.mean(axis=1)
        others = np.delete(agreements, means.argmax(), axis=0)
        is_apart = means.max() - others.max() > self.settings.jump * others.std()
        spread = others.std() if is_apart and others.std() > 0.0 else agreements.std()
        return float(agreements.mean()), float(spread), float(means.max())

    def _agreements(
        self,
        labels: NDArray[np.integer],
        beta: float,
        stiffness: float = 0.0,
        centre: float = 0.0,
        *,
        n_settling: int | None = None,
        n_recorded: int | None = None,
    ) -> NDArray[np.float64]:
        """Run the chains at one state; give their agreements, shape (n_chains, n_recorded)."""
        n_settling = self.settings.n_settling if n_settling is None else n_settling
        n_recorded = self.settings.n_recorded if n_recorded is None else n_recorded
        n_sweeps = np.ones(n_recorded, dtype=np.int64)
        n_sweeps[0] += n_settling
        schedule = Schedule(
            np.full(n_recorded, beta),
            np.zeros(n_recorded, dtype=np.int64),
            np.full(n_recorded, stiffness),
            np.full(n_recorded, centre),
            n_sweeps,
        )
        keys = self.rng.integers(0, 2**64, dtype=np.uint64, size=len(labels))
        return run_chains(self.stack, schedule, labels, keys).agreements


def _assemble(scan: _Scan, down: list[_Point], settings: ScanSettings) -> RoughCurve:
    """Make the curve and its gaps from the points of both sides."""
    up = scan.points
    betas, _, means, spreads, stiffness = np.array(up).T
    means = np.maximum.accumulate(means)
    turns = [
        _backbend(betas, first - 1, after) for first, after in _joined(scan.crossings, settings)
    ]
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
    part = _metastable_part(betas, means, turns, branches, settings)
    gap = None
    if part is not None:
        narrowest = settings.narrowest * scan.largest
        widths = _widths(stiffness[part], np.maximum(spreads[part], narrowest))
        gap = _evenly_restrained(betas[part], log_z[part], means[part], widths)
    return RoughCurve(merge_branches(branches), gap, scan.is_crossed)


def _widths(stiffness: NDArray[np.float64], spreads: NDArray[np.float64]) -> NDArray[np.float64]:
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
    betas: Floats,
    means: Floats,
    turns: list[tuple[int, int]],
    branches: list[LogPartition],
    settings: ScanSettings,
) -> slice | None:
    """Return the points between the lowest beta of order and the highest of disorder, or None."""
    barriers = []
    for (highest, lowest), pair in zip(turns, pairwise(branches), strict=True):
        excess = betas[highest : lowest + 1] - equal_weights(*pair)
        steps = 0.5 * np.diff(means[highest : lowest + 1]) * (excess[1:] + excess[:-1])
        if np.cumsum(steps).max(initial=0.0) > settings.lowest_barrier:
            barriers.append((highest, lowest))
    if not barriers:
        return None
    (first, _), (_, last) = barriers[0], barriers[-1]
    low, high = betas[first : last + 1].min(), betas[first : last + 1].max()
    before = np.flatnonzero(betas[:first] < low)
    after = last + np.flatnonzero(betas[last:] > high)
    return slice(before[-1] if len(before) else 0, after[0] + 1 if len(after) else len(betas))


def _joined(crossings: list[tuple[int, int]], settings: ScanSettings) -> list[tuple[int, int]]:
    """Join crossings that follow each other with a few points between them."""
    joined: list[tuple[int, int]] = []
    for first, after in crossings:
        if joined and first <= joined[-1][1] + settings.few_points:
            first, _ = joined.pop()
        joined.append((first, after))
    return joined


def _backbend(betas: NDArray[np.float64], first: int, after: int) -> tuple[int, int]:
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


def labels_at_zero(
    rng: np.random.Generator, field: LabelField, n_labelings: int
) -> NDArray[np.integer]:
    """Draw labelings at beta = 0, where all labels are independent."""
    dtype = np.int8 if field.n_classes <= 127 else np.int16
    size = n_labelings, field.n_points
    return rng.choice(field.n_classes, size=size, p=class_probabilities(field)).astype(dtype)


def class_probabilities(field: LabelField) -> NDArray[np.float64]:
    """Give the probability of each class at beta = 0."""
    p = np.exp(field.external_field - field.external_field.max())
    return p / p.sum()


def log_z_at_zero(n_points: int, external_field: NDArray[np.float64]) -> float:
    """Log z at beta = 0, the same at every scale."""
    return n_points * float(logsumexp(external_field))


def moments_at_zero(field: LabelField) -> tuple[float, float, float]:
    """Log z, E[S] and about sd(S) at beta = 0."""
    agree = float((class_probabilities(field) ** 2).sum())
    squares = field.coupling.multiply(field.coupling) if field.is_sparse else field.coupling**2
    variance = 0.5 * float(squares.sum()) * agree * (1.0 - agree)
    log_z = log_z_at_zero(field.n_points, field.external_field)
    return log_z, 0.5 * float(field.total_coupling.sum()) * agree, float(np.sqrt(variance))


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


def _part_of_way(gap: Gap) -> NDArray[np.float64]:
    start, end = gap.agreements[[0, -1]]
    return (gap.agreements - start) / (end - start)
