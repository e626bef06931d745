"""Log z as a smooth function of beta, from its values and slopes at some betas."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_AROUND = np.linspace(-6.0, 6.0, 13)  # betas around a transition, in units of 1 / its jump


class LogPartition(NamedTuple):
    """Cubic pieces through log z and its slope E[S] at ascending betas; straight beyond them.

    Log z is convex, so that a straight continuation is never above it.
    """

    betas: Floats
    log_z: Floats
    slopes: Floats

    def __call__(self, betas: Floats) -> Floats:
        """Evaluate log z."""
        knots = self.betas
        inside = np.minimum(np.maximum(betas, knots[0]), knots[-1])  # clip() takes thrice as long
        left = knots[1:-1].searchsorted(inside, side="right")
        right = left + 1
        start = knots[left]
        step = knots[right] - start
        values = cubic(
            (inside - start) / step,
            step,
            (self.log_z[left], self.log_z[right]),
            (self.slopes[left], self.slopes[right]),
        )
        slope = np.where(betas < knots[0], self.slopes[0], self.slopes[-1])
        return values + slope * (betas - inside)

    def continued(self, other: "LogPartition") -> "LogPartition":
        """Go on beyond both ends as another curve does."""
        parts = [self]
        first, last = self.betas[0], self.betas[-1]
        for is_part, end, value in (
            (other.betas < first, first, self.log_z[0]),
            (other.betas > last, last, self.log_z[-1]),
        ):
            if is_part.any():
                shift = value - other(np.array([end]))[0]
                part = LogPartition(
                    other.betas[is_part], other.log_z[is_part] + shift, other.slopes[is_part]
                )
                parts = [part, *parts] if end == first else [*parts, part]
        return LogPartition(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def evenly(
        self, low: float, high: float, spacing: float, *, frozen: float = 0.3, n_least: int = 2
    ) -> Floats:
        r"""Place betas from one to another, about so far apart in what one draw can tell.

        .. math:: \int \mathrm{sd}(S) \, d\beta \approx \sum \sqrt{\Delta E[S]\, \Delta\beta}

        and `frozen` for every factor e in beta, so that something is placed where the field is
        frozen too.
        """
        is_inside = (self.betas > low) & (self.betas < high)
        grid = np.concatenate([[low], self.betas[is_inside], [high]])
        means = np.interp(grid, self.betas, np.maximum.accumulate(self.slopes))
        steps = np.sqrt(np.diff(means) * np.diff(grid)) + frozen * np.diff(np.arcsinh(grid))
        lengths = np.concatenate([[0.0], np.cumsum(steps)])
        n = max(int(np.ceil(lengths[-1] / spacing)) + 1, n_least)
        return np.interp(np.linspace(0.0, lengths[-1], n), lengths, grid)


def merge_branches(branches: list[LogPartition]) -> LogPartition:
    """Add up z of the phases on either side of first-order transitions.

    Parameters
    ----------
    branches : list of LogPartition
        From disorder to order; each is continued beyond its betas, where it has no weight.
    """
    if len(branches) == 1:
        return branches[0]
    grids = [branch.betas for branch in branches]
    for below, above in pairwise(branches):
        middle = equal_weights(below, above)
        jump = np.interp(middle, above.betas, above.slopes)
        jump -= np.interp(middle, below.betas, below.slopes)
        grids.append(middle + _AROUND / max(jump, 1e-9))
    betas = np.unique(np.concatenate(grids))
    betas = betas[(betas >= branches[0].betas[0]) & (betas <= branches[-1].betas[-1])]
    values = np.stack([branch(betas) for branch in branches])
    slopes = np.stack([np.interp(betas, b.betas, b.slopes) for b in branches])
    log_z = np.logaddexp.reduce(values)
    return LogPartition(betas, log_z, (np.exp(values - log_z) * slopes).sum(axis=0))


def equal_weights(below: LogPartition, above: LogPartition) -> float:
    """Find the beta at which two phases have the same z, by bisection where both have betas."""
    low, high = above.betas[0], max(below.betas[-1], above.betas[0] + 1e-9)
    for _ in range(60):
        middle = 0.5 * (low + high)
        at = np.array([middle])
        low, high = (low, middle) if above(at)[0] > below(at)[0] else (middle, high)
    return 0.5 * (low + high)


def strictly_ascending(branch: LogPartition) -> LogPartition:
    """Drop betas that repeat; of a single one make a short line."""
    keep = np.concatenate([[True], np.diff(branch.betas) > 1e-9])
    kept = LogPartition(*(values[keep] for values in branch))
    if len(kept.betas) > 1:
        return kept
    beta, log_z, slope = (values[0] for values in kept)
    return LogPartition(
        np.array([beta, beta + 1e-6]), np.array([log_z, log_z + 1e-6 * slope]), np.full(2, slope)
    )


def cubic(
    t: Floats, step: Floats, values: tuple[Floats, Floats], slopes: tuple[Floats, Floats]
) -> Floats:
    """Evaluate the cubic with given values and slopes at both ends of a step, at its part t."""
    return (
        values[0] * ((1.0 + 2.0 * t) * (1.0 - t) ** 2)
        + values[1] * (t**2 * (3.0 - 2.0 * t))
        + step * (t * (1.0 - t)) * (slopes[0] * (1.0 - t) - slopes[1] * t)
    )
