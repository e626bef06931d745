"""Settings of the scan that no user needs to change."""

from dataclasses import dataclass


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
