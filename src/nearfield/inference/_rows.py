"""Rows of a quadrature rule: log z along beta at one scale, and the observed labels there."""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.inference._problem import Problem
from nearfield.log_partition import RoughCurve, curve_between, scan_curve

Floats = NDArray[np.float64]


class ScaleRow(NamedTuple):
    """Log z along beta at one scale, and the agreement of the observed labels there."""

    curve: RoughCurve
    agreement: float

    def log_likelihood(self, betas: Floats) -> Floats:
        """Evaluate the log likelihood, but for the external field."""
        return betas * self.agreement - self.curve.log_partition(betas)


def scan_scales(
    rng: np.random.Generator, problem: Problem, scales: Floats, n_jobs: int | None
) -> list[ScaleRow]:
    """Anneal at each scale; a stream each, so that the answer does not depend on `n_jobs`."""
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        return parallel(
            delayed(_scan_scale)(stream, problem, scale)
            for stream, scale in zip(rng.spawn(len(scales)), scales, strict=True)
        )


def _scan_scale(rng: np.random.Generator, problem: Problem, scale: float) -> ScaleRow:
    """Anneal at one scale, up and down from beta = 0 as far as the posterior goes."""
    field = problem.family.at(scale)
    agreement = field.agreement(problem.labels)
    low, high = problem.beta_support

    def is_enough(betas: Floats, log_z: Floats) -> bool:
        log_density = betas * agreement - log_z + problem.priors.log_beta(betas)
        return bool(log_density[-1] < log_density.max() - problem.settings.scan_drop)

    curve = scan_curve(rng, field, min(low, 0.0), max(high, 0.0), is_enough)
    return ScaleRow(curve, agreement)


def row_between(scales: Floats, rows: list[ScaleRow], scale: float) -> ScaleRow:
    """Interpolate the two rows next to a scale, linearly in its logarithm."""
    position = np.interp(np.log(scale), np.log(scales), np.arange(len(scales)))
    below = min(int(position), max(len(scales) - 2, 0))
    if below == position:
        return rows[below]
    share = float(position - below)
    first, second = rows[below : below + 2]
    agreement = (1.0 - share) * first.agreement + share * second.agreement
    return ScaleRow(curve_between((first.curve, second.curve), share), agreement)
