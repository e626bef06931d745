r"""A rough curve of log z along beta at one scale, by annealing from beta = 0.

Chains anneal upwards in steps of about two standard deviations of the agreement. Where the field
has a first-order transition the mean agreement jumps, or chains that start from order stay there;
the agreements in between are then crossed by harmonically restrained states, along which

.. math:: d \log z = S \, d\beta

holds as everywhere else, with beta falling where the entropy is convex.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.log_partition.chains import Schedule, run_chains, stack_fields
from nearfield.log_partition.interpolant import (
    LogPartition,
    equal_weights,
    merge_branches,
    strictly_ascending,
)

_N_CHAINS = 4
_N_SETTLING = 1  # sweeps at each beta
_N_RECORDED = 4  # sweeps whose agreements are averaged
_STEP = 2.0  # between states, in standard deviations of the agreement
_MAX_GROWTH = 0.8  # a step is at most this part of (1 + |beta|)
_JUMP = 4.0  # standard deviations that a mean rises by at most in a step without a transition
_NARROWEST = 0.004  # kappa**-0.5 at first, of the largest agreement
_SMALLEST_GAP = 0.01  # of the largest agreement, between two phases
_NARROW_STEP = 0.02  # of (1 + beta): no step is halved further
_N_TEST = 12  # sweeps after which chains from order must have joined those from disorder
_LOWEST_BARRIER = 0.45  # nats; chains cross lower ones by themselves (0.2 to 0.8 tried)
_FEW_POINTS = 3  # between two crossings that belong to one transition
_MAX_CROSSINGS = 6
_MAX_CROSSING_STATES = 400
_RESTRAINED_STEP = 1.0  # between centres, in units of kappa**-0.5
_N_RESTRAINED_SETTLING, _N_RESTRAINED = 4, 8  # sweeps at a restrained state
_WIDEN, _NARROW = 1.25, 0.7  # factors of kappa**-0.5 from one state to the next
_FLAT, _CONVEX = 1.1, 1.4  # kappa var(S): below, widen; above, the entropy is convex: narrow

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

    def log_shares(self, curve: LogPartition, betas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log probability of the agreement of each state, roughly, where it is largest, (J,)."""
        log_states = self.log_z - self.betas * self.agreements
        log_shares = betas[:, None] * self.agreements + log_states - curve(betas)[:, None]
        return log_shares.max(axis=0)


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
) -> RoughCurve:
    """Anneal from zero to both ends.

    Parameters
    ----------
    low, high : float
        At most and at least zero.
    is_enough : callable, optional
        Of the betas and log z of the last phase so far: True ends a side before its end.
    """
    scan = _Scan(rng, field, is_enough)
    up = scan.anneal(high) if high > 0.0 else scan.start()
    down = _Scan(rng, field, is_enough).anneal(low) if low < 0.0 else scan.start()
    narrowest = _NARROWEST * scan.stack.largest_agreements[0]
    return _assemble(up, down, scan.crossings, scan.is_crossed, narrowest)


class _Scan:
    """One side of a scan: chains, and the points that they have been through."""

    def __init__(self, rng, field: LabelField, is_enough: IsEnough | None) -> None:
        self.rng, self.field, self.is_enough = rng, field, is_enough
        self.stack = stack_fields([field])
        self.points: list[_Point] = []
        self.crossings: list[tuple[int, int]] = []  # first point, and the one after the last
        self.is_crossed = True

    def start(self) -> list[_Point]:
        """Return the point at beta = 0, where log z is known."""
        log_z, mean, spread = moments_at_zero(self.field)
        return [_Point(0.0, log_z, mean, spread, 0.0)]

    def anneal(self, end: float) -> list[_Point]:
        """Go from zero to an end; cross first-order transitions on the way up."""
        self.points = self.start()
        labels = labels_at_zero(self.rng, self.field, _N_CHAINS)
        while True:
            last = self.points[-1]
            if last.beta == end or self._has_enough():
                if last.beta <= 0.0 or not self._crosses_to_order(labels, last):
                    return self.points
                continue
            step = min(_STEP / max(last.spread, 1e-9), _MAX_GROWTH * (1.0 + abs(last.beta)))
            beta = float(np.sign(end)) * min(abs(last.beta) + step, abs(end))
            labels = self._advance(labels, last, beta)

    def _has_enough(self) -> bool:
        """Ask about the points since the last transition: those before may be metastable."""
        start = self.crossings[-1][1] - 1 if self.crossings else 0
        betas, log_z = np.array([point[:2] for point in self.points[start:]]).T
        return self.is_enough is not None and self.is_enough(betas, log_z)

    def _advance(self, labels, last: _Point, beta: float):
        """Go on to beta, or to where a transition has been crossed; return the labels there.

        Where the mean agreement jumps the step is halved, until chains that come from below and
        from above agree, or do not: then they are in different phases.
        """
        trial = labels.copy()
        mean, spread, highest = self._moments(trial, beta)
        while beta > 0.0 and self._is_above(highest, last.mean, last.spread):
            middle, below, above = 0.5 * (last.beta + beta), labels.copy(), trial.copy()
            mean, spread, _ = self._moments(below, middle, n_settling=_N_TEST // 2)
            from_above, spread_above, _ = self._moments(above, middle, n_settling=_N_TEST // 2)
            is_narrow = beta - last.beta < _NARROW_STEP * (1.0 + beta)
            if self._is_above(from_above, mean, max(spread, spread_above)) or is_narrow:
                if self._cross(labels, highest):
                    return labels
                break
            trial, beta, highest = below, middle, mean
        self._add(beta, mean, spread)
        return trial

    def _add(self, beta, mean, spread, stiffness=0.0) -> None:
        last = self.points[-1]
        log_z = last.log_z + 0.5 * (beta - last.beta) * (mean + last.mean)
        self.points.append(_Point(beta, log_z, mean, spread, stiffness))

    def _crosses_to_order(self, labels, last: _Point) -> bool:
        """Tell whether chains from order stay above those from disorder; cross if so."""
        ordered = np.broadcast_to(
            np.arange(_N_CHAINS)[:, None] % self.field.n_classes, labels.shape
        )
        ordered = ordered.astype(labels.dtype)
        self._moments(ordered, last.beta, n_recorded=_N_TEST)
        mean, spread, _ = self._moments(ordered, last.beta)
        if not self._is_above(mean, last.mean, max(last.spread, spread)):
            return False
        return self._cross(labels, mean)

    def _is_above(self, agreement: float, other: float, spread: float) -> bool:
        """Tell whether two mean agreements are of different phases."""
        smallest = _SMALLEST_GAP * self.stack.largest_agreements[0]
        return agreement - other > max(_JUMP * spread, smallest)

    def _cross(self, labels, agreement: float) -> bool:
        """Follow restrained states towards an agreement of the ordered phase.

        They end past the middle of the way, where chains without a restraint stay. False, with
        `labels` and points as they were, if they do not get there.
        """
        if not self.is_crossed or len(self.crossings) == _MAX_CROSSINGS:
            self.is_crossed = False
            return False
        first, start = len(self.points), labels.copy()
        last = self.points[-1]
        narrowest = _NARROWEST * self.stack.largest_agreements[0]
        width, slope = max(last.spread, narrowest), 0.0
        middle = 0.5 * (last.mean + agreement)
        for _ in range(_MAX_CROSSING_STATES):
            last = self.points[-1]
            stiffness, centre = width**-2.0, last.mean + _RESTRAINED_STEP * width
            tilt = max(last.beta + slope * _RESTRAINED_STEP * width, 1e-3)
            trial = labels.copy()
            mean, spread, _ = self._moments(
                trial,
                tilt,
                stiffness,
                centre,
                n_settling=_N_RESTRAINED_SETTLING,
                n_recorded=_N_RESTRAINED,
            )
            if mean - last.mean > 3.0 * _RESTRAINED_STEP * width:
                width *= _NARROW  # the restraint is too weak to hold the chains
                continue
            labels[:] = trial
            found = tilt - stiffness * (mean - centre)
            slope = (found - last.beta) / max(mean - last.mean, 0.2 * width)
            slope = float(np.clip(slope, -0.5 * stiffness, stiffness))
            self._add(found, mean, spread, stiffness)
            if mean > middle and found > last.beta and self._stays(labels, self.points[-1]):
                break
            ratio = stiffness * spread**2
            width *= _WIDEN if ratio < _FLAT else _NARROW if ratio > _CONVEX else 1.0
        else:
            del self.points[first:]
            labels[:] = start
            self.is_crossed = False
            return False
        self.crossings.append((first, len(self.points)))
        return True

    def _stays(self, labels, point: _Point) -> bool:
        """Tell whether chains stay near a point without its restraint."""
        mean, spread, _ = self._moments(labels.copy(), point.beta, n_recorded=_N_RESTRAINED)
        return abs(mean - point.mean) < 2.0 * max(spread, point.spread)

    def _moments(
        self,
        labels,
        beta,
        stiffness=0.0,
        centre=0.0,
        *,
        n_settling=_N_SETTLING,
        n_recorded=_N_RECORDED,
    ):
        """Mean, standard deviation and, of chain means, the largest of the agreement.

        `labels` are left where the chains end.
        """
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
        agreements = run_chains(self.stack, schedule, labels, keys).agreements
        largest = agreements.mean(axis=1).max()
        return float(agreements.mean()), float(agreements.std()), float(largest)


def _assemble(up, down, crossings, is_crossed, narrowest) -> RoughCurve:
    """Make the curve and its gaps from the points of both sides."""
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
    return RoughCurve(merge_branches(branches), gap, is_crossed)


def _widths(stiffness: NDArray[np.float64], spreads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return kappa**-0.5 of the points of a gap: of those without a restraint their spread.

    Chains that jumped half-way have a spread that is none of a phase; no such width is more than
    twice that of the nearest restrained point.
    """
    restrained = np.flatnonzero(stiffness > 0.0)
    nearest = restrained[np.abs(np.arange(len(spreads))[:, None] - restrained).argmin(axis=1)]
    widths = stiffness[nearest] ** -0.5
    return np.where(stiffness > 0.0, widths, np.minimum(spreads, 2.0 * widths))


def _evenly_restrained(betas, log_z, means, widths) -> Gap:
    """Place restrained states through a gap, about one width apart."""
    means = means + 1e-9 * np.arange(len(means))  # ascending, for the interpolation
    steps = 2.0 * np.diff(means) / (widths[1:] + widths[:-1])
    lengths = np.concatenate([[0.0], np.cumsum(steps)])
    n_states = int(np.ceil(lengths[-1] / _RESTRAINED_STEP)) + 1
    centres = np.interp(np.linspace(0.0, lengths[-1], n_states), lengths, means)
    values = (np.interp(centres, means, v) for v in (betas, log_z, widths))
    at_betas, at_log_z, at_widths = values
    low, high = betas[1:-1].min(), betas[1:-1].max()
    return Gap(at_betas, at_log_z, centres, at_widths**-2.0, low, high)


def _metastable_part(betas, means, turns, branches) -> slice | None:
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


def labels_at_zero(rng, field: LabelField, n_labelings: int) -> NDArray[np.integer]:
    """Draw labelings at beta = 0, where all labels are independent."""
    dtype = np.int8 if field.n_classes <= 127 else np.int16
    size = n_labelings, field.n_points
    return rng.choice(field.n_classes, size=size, p=class_probabilities(field)).astype(dtype)


def class_probabilities(field: LabelField) -> NDArray[np.float64]:
    """Give the probability of each class at beta = 0."""
    p = np.exp(field.external_field - field.external_field.max())
    return p / p.sum()


def moments_at_zero(field: LabelField) -> tuple[float, float, float]:
    """Log z, E[S] and about sd(S) at beta = 0."""
    agree = float((class_probabilities(field) ** 2).sum())
    squares = field.coupling.multiply(field.coupling) if field.is_sparse else field.coupling**2
    variance = 0.5 * float(squares.sum()) * agree * (1.0 - agree)
    log_z = field.n_points * float(logsumexp(field.external_field))
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

    def mixed(values_of):
        values = (np.interp(part, _part_of_way(gap), values_of(gap)) for gap in (first, second))
        return sum(s * v for s, v in zip(shares, values, strict=True))

    betas, log_z, agreements = (mixed(lambda gap, c=c: gap[c]) for c in range(3))
    inner = betas[1:-1]
    return Gap(betas, log_z, agreements, nearest.stiffness, inner.min(), inner.max())


def _part_of_way(gap: Gap) -> NDArray[np.float64]:
    start, end = gap.agreements[[0, -1]]
    return (gap.agreements - start) / (end - start)
