"""Settings of path sampling that no user needs to change, with where each comes from.

Two kinds: truncations, which leave out a share of the posterior that is far below the Monte Carlo
error, and densities of states, scales and knots, chosen on the six data sets of the benchmark and
on uniform fields. Doubling all densities moves posterior means by at most 5% of an sd.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Spacing(NamedTuple):
    """How densely states are placed."""

    n_rows: int
    drop: float  # betas go to where the log density of a row has fallen by so much
    spacing: float  # of betas, in what one draw can tell apart
    rung_spacing: float


_ROUGH = Spacing(n_rows=8, drop=7.0, spacing=1.8, rung_spacing=1.8)


@dataclass(frozen=True)
class PathSettings:
    """Truncations, densities, and when to go on.

    Attributes
    ----------
    prior_tail : float
        Mass of the prior of beta beyond which no beta is looked at: rounding.
    longest_tail, cut_at, cut_tail : float
        A prior that reaches below `longest_tail` (the paper's does not) is cut at `cut_at`, or
        further below with the share `cut_tail` left out, which is bounded and reported.
    lowest_beta : float
        A prior that ends below even so is refused.
    scan_drop : float
        A scan ends where the log posterior density has fallen by so much: exp(-25) is nothing,
        and a scan is off by a few nats.
    n_scan, n_rough_scales : int
        Scales of the scan and of the first draws.
    n_smooth_scales, n_step_scales : int
        Scales of the last quadrature, for smooth families and for the radius kernel.
    rough_scale_drop, scale_drop : float
        Scales go to where the log density has fallen by so much; the first is only roughly known.
    row_drop : float
        Draws are made at scales whose largest log density is within so much of the largest.
    n_smooth_rows, n_step_rows : int
        Scales at which draws are made.
    n_gap_rows, most_gaps : int, float
        The same where more than this share of the scales has a first-order transition, which
        takes many states a scale and then hardly varies with it.
    rough : Spacing
        Of the first draws.
    beta_drop, spacing : float
        Of the last draws: exp(-5) of the largest density, and 1.2 in thermodynamic length, which
        is close to the optimum of 1 to 2 of MBAR along a path.
    knot_drop, knot_spacing, gap_knot_spacing : float
        Knots of log z, from which cubics go; closer where log z has a kink. With 0.8 at a kink
        the sd of beta was off by 12% in one of the uniform fields (300 points, ten classes).
    few_rows : int
        With fewer scales nodes stand closer: quantiles are read between nodes of all rows.
    flattened, lowest : float
        Scales follow this power of the density, down to exp(-lowest) of the largest: tails need
        some too.
    nodes_a_panel, n_fine : int
        Of Gauss-Legendre over log sigma; points between two scales to find the edges of panels.
    max_cells, widest_cell : int, float
        Cells of the radius kernel: half as many steps of the field are kept, all of them up to 45
        points, and in log sigma no cell is wider. With 250 cells log evidences of the reference
        posteriors were off by up to 0.2.
    min_effective : float
        Effective draws that log z must rest on wherever the log mass of a node is within `heavy`
        of the largest: the jackknife is of no use with fewer.
    few_effective : float
        With fewer effective draws, log z of the scan is taken where it is larger.
    max_rounds : int
        Of draws.
    most_at_first, most_draws : int
        Times `n_draws`, for the tolerance.
    largest_error, most_of_all : float, int
        While a mean is known to no better than this part of its sd, hysteresis included, up to
        `most_of_all` times `n_draws` are made: weak transitions, which chains cross now and then,
        need them (30 points, ten classes: 0.05 sd with 4 times as many draws).
    many_points : int
        From which on tolerances grow as sqrt(n), as posterior sds fall: a sweep costs n, and
        draws that are ever more precise relative to the sd would cost ever more of them.
    worth_a_warning : float
        An error of a mean, in sds, that is left in the end.
    worth_a_round : float
        More draws than this share of those that there are; fewer are not worth solving again.
    held_back : float
        Errors of few draws are smaller than those of many times this square root: bond estimates
        of few draws count for less than those of many will.
    most_outside : float
        Posterior mass outside of what was sampled that is worth a warning.
    impossible : float
        A log likelihood that is not below zero by chance alone.
    """

    prior_tail: float = 1e-13
    longest_tail: float = -400.0
    cut_at: float = -200.0
    cut_tail: float = 1e-2
    lowest_beta: float = -1e4
    scan_drop: float = 25.0
    n_scan: int = 12
    n_rough_scales: int = 24
    n_smooth_scales: int = 40
    n_step_scales: int = 80
    rough_scale_drop: float = 20.0
    scale_drop: float = 12.0
    row_drop: float = 9.0
    n_smooth_rows: int = 10
    n_step_rows: int = 16
    n_gap_rows: int = 3
    most_gaps: float = 0.75
    rough: Spacing = _ROUGH
    beta_drop: float = 5.0
    spacing: float = 1.2
    knot_drop: float = 14.0
    knot_spacing: float = 0.8
    gap_knot_spacing: float = 0.4
    few_rows: int = 16
    flattened: float = 0.25
    lowest: float = 30.0
    nodes_a_panel: int = 4
    n_fine: int = 40
    max_cells: int = 2_000
    widest_cell: float = 0.1
    min_effective: float = 40.0
    heavy: float = 4.0
    few_effective: float = 10.0
    max_rounds: int = 6
    most_at_first: int = 2
    most_draws: int = 4
    largest_error: float = 0.03
    most_of_all: int = 32
    many_points: int = 1_000
    worth_a_warning: float = 0.1
    worth_a_round: float = 0.4
    held_back: float = 0.65
    most_outside: float = 0.01
    impossible: float = 0.5


DEFAULTS = PathSettings()
