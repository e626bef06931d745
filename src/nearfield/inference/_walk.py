"""The random walk of the chains, which learns its size and shape during burn-in."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from nearfield.inference._target import Point, Target

# Of all steps, large ones among them. Best for a Gaussian walk in two dimensions is 0.35 when the
# ratio is exact, less when it is itself random, as here.
_TARGET_ACCEPTANCE = 0.25
_SHARE_OF_LARGE, _LARGE = 0.12, 5.0  # of the steps, and times as far: for tails and second modes
_FAR = 3.0  # a visit more sds away teaches the shape no more than one there
_SMALLEST_SD = 1e-3  # so that a chain that did not move at first can still learn to
_SMALLEST_SD_OF_K = 0.7  # so that rounding leaves half of the proposals another k
# Quantiles of the priors between which a chain starts; wide below, where a flat prior of sigma has
# little mass at the small scales that matter.
_BULK = 1e-4, 0.95
_N_CANDIDATES = 20  # for a start; the best of many more would always be at the same place
_START_BETAS = 0.0, 3.0  # below the transition of most fields


class Walk(NamedTuple):
    """A Gaussian random walk on positions, with covariance exp(2 log_size) x covariance."""

    mean: NDArray[np.float64]  # shape (2,): where the chain has been
    covariance: NDArray[np.float64]  # shape (2, 2): how it spread there
    log_size: float
    n_learned: int


def init_walk(target: Target, point: Point) -> Walk:
    """Start with steps that are small beside the whole range of the parameters."""
    spread = target.scale_spread / 20.0
    return Walk(np.array(point.position), np.diag([0.2**2, spread**2]), 0.0, 0)


def propose(
    rng: np.random.Generator, walk: Walk, target: Target, point: Point
) -> tuple[float, float]:
    """Step away from a point; the way back is as likely (a rounded step is, too).

    Now and then the step is a large one, spread over all scales, and half of these go far in beta
    too: the posterior of sigma can have a thin tail far from where most of it is, or a second mode.
    """
    is_discrete = target.family.is_discrete
    (variance_beta, cross), (_, variance_scale) = walk.covariance.tolist()
    kind = rng.random()
    is_large = kind < _SHARE_OF_LARGE
    is_far = kind < 0.5 * _SHARE_OF_LARGE
    size = math.exp(walk.log_size) * (_LARGE if is_far else 1.0)
    floor = _SMALLEST_SD_OF_K if is_discrete else _SMALLEST_SD
    # The Cholesky factor of size^2 covariance, its variances no less than their floors.
    sd_beta = max(size * math.sqrt(variance_beta), _SMALLEST_SD)
    slope = size**2 * cross / sd_beta
    sd_scale = max(math.sqrt(max(size**2 * variance_scale - slope**2, 0.0)), floor)
    if is_large:
        sd_scale = math.hypot(sd_scale, target.scale_spread / 4.0)
    normal_beta, normal_scale = rng.standard_normal(2).tolist()
    step = slope * normal_beta + sd_scale * normal_scale
    first, second = point.position
    return first + sd_beta * normal_beta, second + (round(step) if is_discrete else step)


def learn(walk: Walk, point: Point, acceptance: float) -> Walk:
    """Learn from one step: Haario et al. (2001) for the shape, Robbins and Monro for the size.

    The shape is that of the last third of the steps so far: fewer are worth too few draws.
    """
    shape_gain = 3.0 / (walk.n_learned + 30.0)
    size_gain = (walk.n_learned + 10.0) ** -0.6
    deviation = np.array(point.position) - walk.mean
    deviation *= min(1.0, _FAR / max(_distance(deviation, walk.covariance), 1e-300))
    return Walk(
        walk.mean + shape_gain * deviation,
        walk.covariance + shape_gain * (np.outer(deviation, deviation) - walk.covariance),
        walk.log_size + size_gain * (acceptance - _TARGET_ACCEPTANCE),
        walk.n_learned + 1,
    )


def _distance(deviation: NDArray[np.float64], covariance: NDArray[np.float64]) -> float:
    """Measure a deviation in sds (Mahalanobis), those no less than the smallest."""
    (first, cross), (_, second) = covariance.tolist()
    first, second = first + _SMALLEST_SD**2, second + _SMALLEST_SD**2
    d_beta, d_scale = deviation.tolist()
    determinant = max(first * second - cross**2, 1e-6 * first * second)
    square = second * d_beta**2 - 2.0 * cross * d_beta * d_scale + first * d_scale**2
    return math.sqrt(max(square, 0.0) / determinant)


def dispersed_start(rng: np.random.Generator, target: Target) -> Point:
    """Draw where a chain starts: spread out, and no place from which it would not come back.

    The best of a few random points by pseudolikelihood. They lie within the bulk of the priors,
    at all scales between which the field changes, and below its transition in beta.
    """
    betas = _overlap(_START_BETAS, target.priors.beta.ppf(_BULK))
    positions = [
        (math.asinh(rng.uniform(*betas)), _start_of_scale(rng, target))
        for _ in range(_N_CANDIDATES)
    ]
    points = [point for point in map(target.at, positions) if point is not None]
    if not points:
        raise ValueError(
            f"Expected priors with a density between their quantiles {_BULK}; got none at "
            f"{_N_CANDIDATES} random places there. Choose priors without wide gaps."
        )
    return max(points, key=lambda point: _log_pseudolikelihood(point, target.labels))


def _log_pseudolikelihood(point: Point, labels: NDArray[np.int64]) -> float:
    log_conditionals = log_softmax(
        point.field.external_field + point.beta * point.field.support(labels), axis=1
    )
    return float(log_conditionals[np.arange(len(labels)), labels].sum())


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
    return float(rng.uniform(lower, upper))


def _overlap(wanted: tuple[float, float], allowed: tuple[float, float]) -> tuple[float, float]:
    """Cut a range to the allowed one; where they do not meet, the allowed one."""
    lower, upper = max(wanted[0], allowed[0]), min(wanted[1], allowed[1])
    return (lower, upper) if lower < upper else (float(allowed[0]), float(allowed[1]))
