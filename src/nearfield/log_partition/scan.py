r"""A rough curve of log z along beta at one scale, by annealing from beta = 0.

Chains anneal upwards in steps of about two standard deviations of the agreement. Where the field
has a first-order transition the mean agreement jumps, or chains that start from order stay there;
the agreements in between are then crossed by harmonically restrained states, along which

.. math:: d \log z = S \, d\beta

holds as everywhere else, with beta falling where the entropy is convex.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from nearfield.field import LabelField
from nearfield.log_partition.chains import FieldStack, Schedule, run_chains, stack_fields
from nearfield.log_partition.gaps import RoughCurve, ScanPoint, assemble

Floats = NDArray[np.float64]

IsEnough = Callable[[Floats, Floats], bool]

# Chosen on uniform fields of 30 to 300 points and on the six data sets of the benchmark. The curve
# only places states: an error of a nat in log z does not matter.
_N_CHAINS = 4
_N_SETTLING, _N_RECORDED = 1, 4  # sweeps at each beta before and while agreements are averaged
_STEP, _MAX_GROWTH = 2.0, 0.8  # between states, in sds of the agreement, and of 1 + abs(beta)
_JUMP = 4.0  # sds that a mean rises by at most in a step without a transition
_SMALLEST_GAP = 0.01  # of the largest agreement: closer phases are one
_NARROW_STEP = 0.02  # of 1 + beta: no step is halved further
_N_TEST = 12  # sweeps after which chains from order must have joined those from disorder
_MAX_CROSSINGS, _MAX_CROSSING_STATES = 6, 400  # after which a scan gives up and says so
_N_RESTRAINED_SETTLING, _N_RESTRAINED = 4, 8  # sweeps at a restrained state
_NARROWEST = 0.004  # width kappa**-0.5 of the first restraint, of the largest agreement
# Where kappa var(S) is below `_FLAT`, the width grows by `_WIDEN`; above `_CONVEX`, where the
# entropy is convex, it shrinks by `_NARROW`. Restrained states are one width apart.
_FLAT, _CONVEX, _WIDEN, _NARROW = 1.1, 1.4, 1.25, 0.7


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
    stack = stack_fields([field])
    up, down = (_Scan(rng, field, stack, is_enough) for _ in range(2))
    up.anneal(high)
    down.anneal(low)
    narrowest = _NARROWEST * up.largest
    curve = assemble(up.points, down.points, up.crossings, narrowest)
    return curve._replace(is_crossed=up.is_crossed)


class _Scan:
    """One side of a scan: chains, and the points that they have been through."""

    def __init__(
        self,
        rng: np.random.Generator,
        field: LabelField,
        stack: FieldStack,
        is_enough: IsEnough | None,
    ) -> None:
        self.rng, self.field, self.stack = rng, field, stack
        self.is_enough: IsEnough | None = is_enough
        self.points = [ScanPoint(0.0, *moments_at_zero(field), 0.0)]  # log z is known there
        self.crossings: list[tuple[int, int]] = []  # first point, and the one after the last
        self.is_crossed = True
        self.largest = stack.largest_agreements[0]

    def anneal(self, end: float) -> None:
        """Go from zero to an end; cross first-order transitions on the way up."""
        if end == 0.0:
            return
        labels = labels_at_zero(self.rng, self.field, _N_CHAINS)
        while True:
            last = self.points[-1]
            if last.beta == end or self._has_enough():
                if last.beta <= 0.0 or not self._crosses_to_order(labels, last):
                    return
                continue
            step = _STEP / max(last.spread, 1e-9)
            step = min(step, _MAX_GROWTH * (1.0 + abs(last.beta)))
            beta = float(np.sign(end)) * min(abs(last.beta) + step, abs(end))
            labels = self._advance(labels, last, beta)

    def _has_enough(self) -> bool:
        """Ask about the points since the last transition: those before may be metastable."""
        start = self.crossings[-1][1] - 1 if self.crossings else 0
        betas, log_z = np.array([point[:2] for point in self.points[start:]]).T
        return self.is_enough is not None and self.is_enough(betas, log_z)

    def _advance(
        self, labels: NDArray[np.integer], last: ScanPoint, beta: float
    ) -> NDArray[np.integer]:
        """Go on to beta, or to where a transition has been crossed; return the labels there.

        Where the mean agreement jumps the step is halved, until chains that come from below and
        from above agree, or do not: then they are in different phases.
        """
        trial, n_test = labels.copy(), _N_TEST // 2
        mean, spread, highest = self._moments(trial, beta)
        while beta > 0.0 and self._is_above(highest, last.mean, last.spread):
            middle, below, above = 0.5 * (last.beta + beta), labels.copy(), trial.copy()
            mean, spread, highest_below = self._moments(below, middle, n_settling=n_test)
            from_above, spread_above, _ = self._moments(above, middle, n_settling=n_test)
            is_narrow = beta - last.beta < _NARROW_STEP * (1.0 + beta)
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
        self.points.append(ScanPoint(beta, log_z, mean, spread, stiffness))

    def _crosses_to_order(self, labels: NDArray[np.integer], last: ScanPoint) -> bool:
        """Tell whether chains from order stay above those from disorder; cross if so."""
        classes = np.arange(len(labels))[:, None] % self.field.n_classes
        ordered = np.broadcast_to(classes, labels.shape).astype(labels.dtype)
        self._moments(ordered, last.beta, n_recorded=_N_TEST)
        mean, spread, _ = self._moments(ordered, last.beta)
        if not self._is_above(mean, last.mean, max(last.spread, spread)):
            return False
        return self._cross(labels, mean)

    def _is_above(self, agreement: float, other: float, spread: float) -> bool:
        """Tell whether two mean agreements are of different phases."""
        smallest = _SMALLEST_GAP * self.largest
        return agreement - other > max(_JUMP * spread, smallest)

    def _cross(self, labels: NDArray[np.integer], agreement: float) -> bool:
        """Follow restrained states towards an agreement of the ordered phase.

        They end past the middle of the way, where chains without a restraint stay. False, with
        `labels` and points as they were, if they do not get there.
        """
        if not self.is_crossed or len(self.crossings) == _MAX_CROSSINGS:
            self.is_crossed = False
            return False
        first, start = len(self.points), labels.copy()
        last = self.points[-1]
        width, slope = max(last.spread, _NARROWEST * self.largest), 0.0
        middle = 0.5 * (last.mean + agreement)
        for _ in range(_MAX_CROSSING_STATES):
            last = self.points[-1]
            stiffness, centre = width**-2.0, last.mean + width
            tilt = max(last.beta + slope * width, 1e-3)
            trial = labels.copy()
            agreements = self._agreements(
                trial,
                tilt,
                stiffness,
                centre,
                n_settling=_N_RESTRAINED_SETTLING,
                n_recorded=_N_RESTRAINED,
            )
            mean, spread = float(agreements.mean()), float(agreements.std())
            if mean - last.mean > 3.0 * width:
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
            if ratio < _FLAT:
                width *= _WIDEN
            elif ratio > _CONVEX:
                width *= _NARROW
        else:
            del self.points[first:]
            labels[:] = start
            self.is_crossed = False
            return False
        self.crossings.append((first, len(self.points)))
        return True

    def _stays(self, labels: NDArray[np.integer], point: ScanPoint) -> bool:
        """Tell whether all chains stay near a point without its restraint.

        At the top of a barrier they leave it, on both sides, so that their mean need not move.
        """
        agreements = self._agreements(
            labels.copy(), point.beta, n_settling=_N_TEST, n_recorded=_N_RESTRAINED
        )
        off = np.abs(agreements.mean(axis=1) - point.mean)
        return bool(off.max() < _JUMP * point.spread)

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
        is_apart = means.max() - others.max() > _JUMP * others.std()
        spread = others.std() if is_apart and others.std() > 0.0 else agreements.std()
        return float(agreements.mean()), float(spread), float(means.max())

    def _agreements(
        self,
        labels: NDArray[np.integer],
        beta: float,
        stiffness: float = 0.0,
        centre: float = 0.0,
        *,
        n_settling: int = _N_SETTLING,
        n_recorded: int = _N_RECORDED,
    ) -> Floats:
        """Run the chains at one state; give their agreements, shape (n_chains, n_recorded)."""
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


def labels_at_zero(
    rng: np.random.Generator, field: LabelField, n_labelings: int
) -> NDArray[np.integer]:
    """Draw labelings at beta = 0, where all labels are independent."""
    dtype = np.int8 if field.n_classes <= 127 else np.int16
    size = n_labelings, field.n_points
    return rng.choice(field.n_classes, size=size, p=class_probabilities(field)).astype(dtype)


def class_probabilities(field: LabelField) -> Floats:
    """Give the probability of each class at beta = 0."""
    p = np.exp(field.external_field - field.external_field.max())
    return p / p.sum()


def log_z_at_zero(n_points: int, external_field: Floats) -> float:
    """Log z at beta = 0, the same at every scale."""
    return n_points * float(logsumexp(external_field))


def moments_at_zero(field: LabelField) -> tuple[float, float, float]:
    """Log z, E[S] and about sd(S) at beta = 0."""
    agree = float((class_probabilities(field) ** 2).sum())
    squares = field.coupling.multiply(field.coupling) if field.is_sparse else field.coupling**2
    variance = 0.5 * float(squares.sum()) * agree * (1.0 - agree)
    log_z = log_z_at_zero(field.n_points, field.external_field)
    return log_z, 0.5 * float(field.total_coupling.sum()) * agree, float(np.sqrt(variance))
