"""The random walk of the chains, which learns its size and shape during burn-in."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.inference._target import Point, Target

TARGET_ACCEPTANCE = 0.27
"""Best for a Gaussian walk in two dimensions is 0.35 when the ratio is exact, less when it is
itself random, as here."""

_SMALLEST_SD = 1e-3  # so that a chain that did not move at first can still learn to
_SMALLEST_SD_OF_K = 0.7  # so that rounding leaves half of the proposals another k
_BULK = (0.05, 0.95)  # the quantiles of a prior between which chains start
_MAX_TRIES = 100

# Chains start below the transition of the field: above it Gibbs sampling from random labels
# freezes in labelings that agree less than the data, which drives beta up and up. They start at
# scales well inside the range: where all points weigh alike, classes of equal size make a
# second mode at negative beta, from which no chain comes back.
_START_BETAS = (0.0, 1.5)
_START_SHARES = (0.3, 0.6)  # of the range of the scale, in logs


class Walk(NamedTuple):
    """A Gaussian random walk on positions, with covariance exp(2 log_size) x covariance."""

    mean: NDArray[np.float64]  # shape (2,): where the chain has been
    covariance: NDArray[np.float64]  # shape (2, 2): how it spread there
    log_size: float
    n_learned: int


def init_walk(target: Target, point: Point) -> Walk:
    """Start with steps that are small beside the whole range of the parameters."""
    lower, upper = target.family.scale_range
    spread = (upper - lower) / 20.0 if target.family.is_discrete else math.log(upper / lower) / 20.0
    return Walk(np.array(point.position), np.diag([0.2**2, spread**2]), 0.0, 0)


def propose(
    rng: np.random.Generator, walk: Walk, point: Point, is_discrete: bool
) -> tuple[float, float]:
    """Step away from a point; the way back is as likely (a rounded step is, too)."""
    (first, cross), (_, second) = walk.covariance.tolist()
    size = math.exp(walk.log_size)
    floor = _SMALLEST_SD_OF_K if is_discrete else _SMALLEST_SD
    # The Cholesky factor of size^2 covariance, its variances no less than their floors.
    sd_beta = max(size * math.sqrt(first), _SMALLEST_SD)
    slope = size**2 * cross / sd_beta
    sd_scale = max(math.sqrt(max(size**2 * second - slope**2, 0.0)), floor)
    normal_beta, normal_scale = rng.standard_normal(2).tolist()
    step = slope * normal_beta + sd_scale * normal_scale
    beta, coordinate = point.position
    return beta + sd_beta * normal_beta, coordinate + (round(step) if is_discrete else step)


def learn(walk: Walk, point: Point, acceptance: float) -> Walk:
    """Learn from one step: Haario et al. (2001) for the shape, Robbins and Monro for the size."""
    gain = (walk.n_learned + 10.0) ** -0.6
    deviation = np.array(point.position) - walk.mean
    return Walk(
        walk.mean + gain * deviation,
        walk.covariance + gain * (np.outer(deviation, deviation) - walk.covariance),
        walk.log_size + gain * (acceptance - TARGET_ACCEPTANCE),
        walk.n_learned + 1,
    )


def dispersed_start(rng: np.random.Generator, target: Target) -> Point:
    """Draw where a chain starts: spread out, and no place from which it would not come back.

    Each parameter starts within the bulk of its prior.
    """
    betas = _overlap(_START_BETAS, target.priors.beta.ppf(_BULK))
    for _ in range(_MAX_TRIES):
        point = target.at((rng.uniform(*betas), _start_of_scale(rng, target)))
        if point is not None:
            return point
    raise ValueError(
        f"Expected priors with a density between their quantiles {_BULK}; got none at "
        f"{_MAX_TRIES} random places there. Choose priors without wide gaps."
    )


def _start_of_scale(rng: np.random.Generator, target: Target) -> float:
    """Draw the second coordinate of a start: k, or log sigma."""
    family, prior = target.family, target.priors.scale
    if family.is_discrete:
        ks = np.arange(1, family.n_points)
        share = np.cumsum(prior.pmf(ks)) / prior.pmf(ks).sum()
        is_bulk = (share >= _BULK[0]) & (np.append(0.0, share[:-1]) < _BULK[1])
        return float(rng.choice(ks[is_bulk]))
    mass_below = prior.cdf(0.0)
    quantiles = prior.ppf(mass_below + (1.0 - mass_below) * np.array(_BULK))
    lower, upper = np.log(_overlap(family.scale_range, quantiles))
    start = rng.uniform(*_START_SHARES)
    return float(lower + start * (upper - lower))


def _overlap(wanted, allowed):
    """Cut a range to the allowed one; where they do not meet, the allowed one."""
    lower, upper = max(wanted[0], allowed[0]), min(wanted[1], allowed[1])
    return (lower, upper) if lower < upper else (float(allowed[0]), float(allowed[1]))
