"""Where to draw: points (beta, scale) over what is known of the posterior, and rungs to zero."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.inference._panels import tilt
from nearfield.inference._problem import Problem
from nearfield.inference._quadrature import ScaleRule
from nearfield.inference._scan import ScaleRow

_NEGLIGIBLE = 9.0  # rows are drawn at where the log density comes within so much of the largest
_N_EXTENSION = 16
_QUARTERS = np.arange(4) / 4.0


class Spread(NamedTuple):
    """How densely points are placed."""

    n_rows: int
    drop: float  # betas go to where the log density of a row has fallen by so much
    spacing: float  # of betas, in what one draw can tell apart
    rung_spacing: float


class Plan(NamedTuple):
    """The points to draw at, and walks through them, each from beta = 0 and back.

    The first point is beta = 0, where log z is known.
    """

    betas: NDArray[np.float64]  # shape (K,)
    rows: NDArray[np.int64]  # shape (K,), of the rule
    parents: NDArray[np.int64]  # shape (K,): a point before each, and close to it
    is_rung: NDArray[np.bool_]  # shape (K,): on the way to the posterior, not of it
    walks: list[NDArray[np.int64]]


def plan_draws(
    problem: Problem,
    rule: ScaleRule,
    rows: list[ScaleRow],
    spread: Spread,
    row_needs: NDArray[np.float64] | None = None,
) -> Plan:
    """Place points and walks, on both sides of beta = 0 if the posterior is there.

    Parameters
    ----------
    rows : list of ScaleRow
        What is known of log z at the scales of the rule.
    row_needs : ndarray, shape (R,), optional
        How much more than others each row needs draws.
    """
    log_scale = rule.log_priors - rule.log_weights
    if not problem.family.is_discrete:
        log_scale = log_scale + np.log(rule.scales)
    sides = {sign: _side_ranges(problem, rows, sign, spread.drop) for sign in (1, -1)}
    heights = {
        sign: np.array([part.log_height for part in ranges]) + log_scale
        for sign, ranges in sides.items()
    }
    widths = np.gradient(np.log(rule.scales)) if len(rows) > 1 else np.ones(1)
    far = tilt(rule.scales, np.logaddexp(*heights.values()) + np.log(widths))
    heights = {sign: height + far for sign, height in heights.items()}
    highest = max(height.max() for height in heights.values())
    needs = {
        sign: np.where(height > highest - _NEGLIGIBLE, np.exp(0.25 * (height - highest)), 0.0)
        * widths
        * (1.0 if row_needs is None else row_needs)
        for sign, height in heights.items()
    }
    total = sum(need.sum() for need in needs.values())
    builder = _Builder(rows, spread)
    for sign, need in needs.items():
        if need.any():
            n_rows = max(round(spread.n_rows * need.sum() / total), 2)
            chosen = _spread_rows(need, n_rows)
            builder.add_side(sign, chosen, chosen[np.argmax(heights[sign][chosen])], sides[sign])
    return builder.finish()


class _SideRange(NamedTuple):
    """Where the density of a row is, on one side of beta = 0."""

    low: float
    high: float
    log_height: float


def _side_ranges(problem: Problem, rows, sign: int, drop: float) -> list[_SideRange]:
    support = problem.beta_support
    low, high = (max(support[0], 0.0), support[1]) if sign > 0 else (support[0], min(support[1], 0))
    if low >= high:
        return [_SideRange(0.0, 0.0, -np.inf)] * len(rows)
    return [_SideRange(*found) for found in density_ranges(problem, rows, low, high, drop)]


def density_ranges(
    problem: Problem, rows: list[ScaleRow], low: float, high: float, drop: float
) -> list[tuple[float, float, float]]:
    """Find, for each row, betas where the log density is within `drop` of its largest there.

    Returns the first, the last and the largest log density, between two betas.
    """
    grids = [_search_grid(row, low, high) for row in rows]
    found = []
    for row, grid, log_prior in zip(rows, grids, problem.log_beta(grids), strict=True):
        log_density = row.log_likelihood(grid) + log_prior
        inside = np.flatnonzero(log_density > log_density.max() - drop)
        found.append((grid[inside[0]], grid[inside[-1]], float(log_density.max())))
    return found


def _search_grid(row: ScaleRow, low: float, high: float) -> NDArray[np.float64]:
    """Make a fine grid of betas: as the row knows them, and beyond out to both ends."""
    known = row.log_partition.betas
    parts = [(known[:-1, None] + np.diff(known)[:, None] * _QUARTERS).ravel(), known[-1:]]
    for end, start in ((low, known[0]), (high, known[-1])):
        if not known[0] <= end <= known[-1]:
            parts.append(np.sinh(np.linspace(np.arcsinh(start), np.arcsinh(end), _N_EXTENSION)))
    grid = np.concatenate([*parts, [low, high]])
    return np.unique(grid[(grid >= low) & (grid <= high)])


def _spread_rows(need, n_rows):
    """Choose rows to draw at: as dense as the need is."""
    candidates = np.flatnonzero(need)
    if len(candidates) <= n_rows:
        return candidates
    density = need[candidates]
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    levels = np.linspace(0.0, cumulative[-1], n_rows)
    return candidates[np.unique(np.abs(cumulative - levels[:, None]).argmin(axis=1))]


class _Builder:
    """Collects points, in the order in which a chain first comes to them, and walks."""

    def __init__(self, rows: list[ScaleRow], spread: Spread) -> None:
        self.rows, self.spread = rows, spread
        self.betas, self.row_of, self.parents, self.is_rung = [0.0], [0], [0], [True]
        self.walks: list[NDArray[np.int64]] = []

    def add_side(self, sign, chosen, ladder_row, ranges) -> None:
        """Add a ladder on one side of zero, and two walks from its end, up and down the scales."""
        found = ranges[ladder_row]
        foot = found.low if sign > 0 else found.high
        ladder = [0]
        if foot != 0.0:
            curve = self.rows[ladder_row].log_partition
            rungs = curve.evenly(*sorted([0.0, foot]), spacing=self.spread.rung_spacing)
            ladder += self._add(ladder_row, rungs[1:-1][::sign], 0, is_rung=True)
        for part in (chosen[chosen < ladder_row][::-1], chosen[chosen >= ladder_row]):
            there = list(ladder)
            for turn, row in enumerate(part):
                low, high, _ = ranges[row]
                curve = self.rows[row].log_partition
                betas = curve.evenly(low, high, spacing=self.spread.spacing, n_least=3)
                # Turn by turn away from zero and back towards it.
                step = sign if turn % 2 == 0 else -sign
                there += self._add(row, betas[betas != 0.0][::step], there[-1])
            if len(part):
                # All the way back too: what a chain remembers differs between the two visits.
                self.walks.append(np.array(there + there[::-1]))

    def _add(
        self, row: int, betas: NDArray[np.float64], parent: int, is_rung: bool = False
    ) -> list[int]:
        first = len(self.betas)
        added = list(range(first, first + len(betas)))
        self.betas.extend(betas)
        self.row_of.extend([row] * len(betas))
        self.is_rung.extend([is_rung] * len(betas))
        self.parents.extend([parent, *added[:-1]][: len(betas)])
        return added

    def finish(self) -> Plan:
        """Give all that was collected."""
        return Plan(
            np.array(self.betas),
            np.array(self.row_of),
            np.array(self.parents),
            np.array(self.is_rung),
            self.walks,
        )
