"""What path sampling works on: the target with the settings, and what follows from both."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import check_external_field
from nearfield.inference._target import Target
from nearfield.log_partition import log_z_at_zero


class Spacing(NamedTuple):
    """How densely states are placed."""

    n_rows: int
    drop: float  # betas go to where the log density of a row has fallen by so much
    spacing: float  # of betas, in what one draw can tell apart


_ROUGH = Spacing(n_rows=8, drop=7.0, spacing=1.8)


@dataclass(frozen=True)
class PathSettings:
    """Settings of path sampling that no user needs to change, with where each comes from.

    Two kinds: truncations, which leave out a share of the posterior that is far below the Monte
    Carlo error, and densities of states, scales and knots, chosen on the six data sets of the
    benchmark and on uniform fields. Doubling all densities moves posterior means by at most 5% of
    an sd.
    """

    # A prior that reaches below `longest_tail` (the paper's does not) is cut at `cut_at`, or
    # further below with the share `cut_tail` left out, which is bounded and reported.
    longest_tail: float = -400.0
    cut_at: float = -200.0
    cut_tail: float = 1e-2
    lowest_beta: float = -1e4  # a prior that ends below even so is refused

    n_scan: int = 12  # scales of the scan
    # A scan ends where the log posterior density has fallen by so much: exp(-25) is nothing, and
    # a scan is off by a few nats.
    scan_drop: float = 25.0
    n_rough_scales: int = 24  # of the first draws
    n_smooth_scales: int = 40  # of the last quadrature
    n_step_scales: int = 80  # the same for the radius kernel
    rough_scale_drop: float = 20.0  # scales go to where the log density has fallen by so much,
    scale_drop: float = 12.0  # which is only roughly known at first
    flattened: float = 0.25  # scales follow this power of the density,
    lowest: float = 30.0  # down to exp(-30) of the largest: tails need some too
    nodes_a_panel: int = 4  # of Gauss-Legendre over log sigma
    n_fine: int = 40  # points between two scales to find the edges of panels
    # Cells of the radius kernel: half as many steps of the field are kept, all of them up to 45
    # points, and in log sigma no cell is wider. With 250 cells log evidences of the reference
    # posteriors were off by up to 0.2.
    max_cells: int = 2_000
    widest_cell: float = 0.1

    row_drop: float = 9.0  # draws are made at scales whose largest log density is within so much
    n_smooth_rows: int = 10  # scales at which draws are made
    n_step_rows: int = 16  # the same for the radius kernel
    # The same where more than this share of the scales has a first-order transition, which takes
    # many states a scale and then hardly varies with it.
    n_gap_rows: int = 3
    most_gaps: float = 0.75
    rough: Spacing = _ROUGH  # of the first draws
    beta_drop: float = 5.0  # of the last draws: exp(-5) of the largest density
    spacing: float = 1.2  # in thermodynamic length; the optimum of MBAR along a path is 1 to 2
    # Knots of log z, from which cubics go; closer where log z has a kink. With 0.8 at a kink the
    # sd of beta was off by 12% in one of the uniform fields (300 points, ten classes).
    knot_drop: float = 14.0
    knot_spacing: float = 0.8
    gap_knot_spacing: float = 0.4
    few_rows: int = 16  # with fewer, nodes stand closer: quantiles are read between them

    # Effective draws that log z must rest on wherever the log mass of a node is within `heavy` of
    # the largest: the jackknife is of no use with fewer.
    min_effective: float = 40.0
    heavy: float = 4.0
    few_effective: float = 10.0  # with fewer, log z of the scan is taken where it is larger
    max_rounds: int = 6  # of draws
    most_at_first: int = 2  # times `n_draws`, for the tolerance
    most_draws: int = 4
    # While a mean is known to no better than this part of its sd, hysteresis included, up to
    # `most_of_all` times `n_draws` are made: weak transitions, which chains cross now and then,
    # need them (30 points, ten classes: 0.05 sd with 4 times as many draws).
    largest_error: float = 0.03
    most_of_all: int = 32
    # From here on tolerances grow as sqrt(n), as posterior sds fall: a sweep costs n, and draws
    # that are ever more precise relative to the sd would cost ever more of them.
    many_points: int = 1_000
    worth_a_round: float = 0.4  # more draws than this share of those that there are
    # Errors of few draws are smaller than those of many times this square root: bond estimates of
    # few draws count for less than those of many will.
    held_back: float = 0.65
    worth_a_warning: float = 0.1  # an error of a mean, in sds, that is left in the end
    most_outside: float = 0.01  # posterior mass outside of what was sampled
    impossible: float = 0.5  # a log likelihood that is not below zero by chance alone


@dataclass(frozen=True, eq=False)
class Problem(Target):
    """The posterior that path sampling computes, and the settings that it does so with."""

    settings: PathSettings = PathSettings()

    @cached_property
    def beta_support(self) -> tuple[float, float]:
        """The betas to look at: where the prior is, but for a long tail far below zero.

        Chains freeze there, and only labels that agree hardly at all are likely.
        """
        (low, high), settings = self.priors.beta_range, self.settings
        if low < settings.longest_tail:
            low = min(float(self.priors.beta.ppf(settings.cut_tail)), settings.cut_at)
        return low, high

    @cached_property
    def mass_below(self) -> float:
        """How much of the prior of beta was cut off below; zero if none."""
        low = self.beta_support[0]
        return float(self.priors.beta.cdf(low)) if low > self.priors.beta_range[0] else 0.0

    @cached_property
    def log_external(self) -> float:
        """What the external field adds to the log potential of the observed labels."""
        return float(self._alpha[self.labels].sum())

    @cached_property
    def log_z_at_zero(self) -> float:
        """Log z at beta = 0, known exactly at every scale."""
        return log_z_at_zero(self.family.n_points, self._alpha)

    @cached_property
    def _alpha(self) -> NDArray[np.float64]:
        return check_external_field(self.family.external_field, self.family.n_classes)

    def log_beta(self, parts: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Evaluate the log prior of several arrays of betas at once: a call is what costs."""
        values = self.priors.log_beta(np.concatenate(parts))
        return np.split(values, np.cumsum([len(part) for part in parts])[:-1])
