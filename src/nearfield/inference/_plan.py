"""States to sample: (beta, scale) over the posterior as far as it is known, and rungs to zero."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.inference._problem import Problem, Spacing
from nearfield.inference._rows import BetaRange, ScaleRow, density_ranges
from nearfield.inference._scale_rules import ScaleRule, tilt
from nearfield.log_partition import StateBuilder, States, add_ladder, phases_of, place_states


def plan_draws(
    problem: Problem,
    rule: ScaleRule,
    rows: list[ScaleRow],
    spacing: Spacing,
    row_needs: NDArray[np.float64] | None = None,
) -> States:
    """Place states and schedules, on both sides of beta = 0 if the posterior is there.

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
    sides = {sign: _side_ranges(problem, rows, sign, spacing.drop) for sign in (1, -1)}
    heights = {
        sign: np.array([part.log_height for part in ranges]) + log_scale
        for sign, ranges in sides.items()
    }
    widths = np.gradient(np.log(rule.scales)) if len(rows) > 1 else np.ones(1)
    far = tilt(rule.scales, np.logaddexp(*heights.values()) + np.log(widths))
    heights = {sign: height + far for sign, height in heights.items()}
    highest = max(height.max() for height in heights.values())
    needs = {
        sign: np.where(
            height > highest - problem.settings.row_drop, np.exp(0.25 * (height - highest)), 0.0
        )
        * widths
        * (1.0 if row_needs is None else row_needs)
        for sign, height in heights.items()
    }
    total = sum(need.sum() for need in needs.values())
    builder = StateBuilder()
    for sign, need in needs.items():
        if need.any():
            # Fields with a transition at most scales vary little, and need many states.
            has_gap = np.array([row.curve.gap is not None for row in rows])
            is_alike = need[has_gap].sum() > problem.settings.most_gaps * need.sum()
            n_most = problem.settings.n_gap_rows if is_alike else spacing.n_rows
            n_rows = max(round(n_most * need.sum() / total), 2)
            chosen = _spread_rows(need, n_rows)
            ladder_row = chosen[np.argmax(heights[sign][chosen])]
            _add_side(builder, sign, rows, chosen, ladder_row, sides[sign], spacing)
    return builder.finish()


def _side_ranges(problem: Problem, rows: list[ScaleRow], sign: int, drop: float) -> list[BetaRange]:
    support = problem.beta_support
    low, high = (max(support[0], 0.0), support[1]) if sign > 0 else (support[0], min(support[1], 0))
    if low >= high:
        return [BetaRange(0.0, 0.0, -np.inf)] * len(rows)
    return density_ranges(problem, rows, low, high, drop)


def _spread_rows(need: NDArray[np.float64], n_rows: int) -> NDArray[np.int64]:
    """Choose rows to draw at: as dense as the need is."""
    candidates = np.flatnonzero(need)
    if len(candidates) <= n_rows:
        return candidates
    density = need[candidates]
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    levels = np.linspace(0.0, cumulative[-1], n_rows)
    return candidates[np.unique(np.abs(cumulative - levels[:, None]).argmin(axis=1))]


def _add_side(
    builder: StateBuilder,
    sign: int,
    rows: list[ScaleRow],
    chosen: NDArray[np.int64],
    ladder_row: int,
    ranges: list[BetaRange],
    spacing: Spacing,
) -> None:
    """Add a ladder on one side of zero, and schedules from its end, up and down the scales."""
    found = ranges[ladder_row]
    foot = found.low if sign > 0 else found.high
    ladder = [0]
    if foot != 0.0:
        curve = rows[ladder_row].curve
        ladder = add_ladder(builder, ladder_row, curve, foot, spacing.spacing)
    to_order = _Block([], 0)  # the first block of states, which may lead from phase to phase
    for part in (chosen[chosen >= ladder_row], chosen[chosen < ladder_row][::-1]):
        visited, last = list(ladder), to_order
        phase = to_order.first_phase
        for turn, row in enumerate(part):
            low, high, _ = ranges[row]
            placed = place_states(rows[row].curve, low, high, spacing.spacing, n_least=3)
            placed = placed.part((placed.betas != 0.0) | (placed.stiffness > 0.0))
            # Turn by turn away from zero and back towards it.
            step = sign if turn % 2 == 0 else -sign
            phases = [phases_of(placed, rows[row].curve)[end] for end in (0, -1)][::step]
            if phase * phases[0] < 0 and phase * phases[1] >= 0:
                step, phases = -step, phases[::-1]
            elif phase * phases[0] < 0:
                visited += last.states if turn == 0 else last.states[::-1]
            states = builder.add(row, placed.part(slice(None, None, step)))
            visited += states
            last, phase = _Block(states, phases[0]), phases[1]
            to_order = last if not to_order.states else to_order
        if len(part):
            builder.schedule(visited)


class _Block(NamedTuple):
    """States of one scale in the order of visits, and the phase that they begin in."""

    states: list[int]
    first_phase: int
