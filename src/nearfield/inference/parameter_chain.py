"""Exchange moves of the parameters while the labels change too: one block of a Gibbs sampler."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nearfield.field import FieldFamily, LabelField
from nearfield.inference._posterior import Posterior
from nearfield.inference._priors import Priors
from nearfield.inference._target import Point, Target, check_target, log_potential
from nearfield.inference._walk import Walk, learn
from nearfield.inference.exchange import ExchangeSampler, ExchangeState
from nearfield.sampling import draw_after_clusters


class ParameterChain:
    """A chain over (beta, scale) that is told the labels before each move.

    Parameters
    ----------
    rng : numpy.random.Generator
    posterior : Posterior
        Where the chain starts, and what its proposals look like at first.
    family : FieldFamily
    labels : ndarray of int, shape (n,)
    priors : Priors or None
        Those that `posterior` was inferred with; the default ones if None.
    n_sweeps : int
        Gibbs sweeps to an auxiliary draw.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        posterior: Posterior,
        family: FieldFamily,
        labels: NDArray[np.int64],
        priors: Priors | None,
        n_sweeps: int,
    ) -> None:
        target = check_target(family, labels, priors)
        draw = partial(draw_after_clusters, n_sweeps=n_sweeps)
        self._sampler = ExchangeSampler(target, draw)
        self._walk = _walk_over(posterior, target)
        self._point = _starting_point(rng, posterior, target)

    @property
    def field(self) -> LabelField:
        """The field at the scale of the chain."""
        return self._point.field

    @property
    def beta(self) -> float:
        """The beta of the chain."""
        return self._point.beta

    def move(
        self, rng: np.random.Generator, labels: NDArray[np.int64], *, is_burn_in: bool
    ) -> None:
        """Move once given labels; the proposals adapt during burn-in."""
        target = replace(self._sampler.target, labels=labels.copy())
        self._sampler = replace(self._sampler, target=target)
        potential = log_potential(self.field, self.beta, target.is_class)
        state = ExchangeState(self._point._replace(log_potential=potential))
        state, info = self._sampler.step(rng, state, self._walk)
        self._point = state.point
        if is_burn_in:
            self._walk = learn(self._walk, self._point, info.acceptance)


def _starting_point(rng: np.random.Generator, posterior: Posterior, target: Target) -> Point:
    betas, scales = posterior.sample_nodes(1, rng)
    point = target.at(tuple(target.position_of(betas[0], scales[0]).tolist()))
    if point is None:
        raise ValueError(
            f"Expected priors with a density where the posterior is; got none at beta="
            f"{betas[0]:g}, scale={scales[0]:g}. Give the priors that it was inferred with."
        )
    return point


def _walk_over(posterior: Posterior, target: Target) -> Walk:
    """Make a random walk of the size and shape of a posterior."""
    weights = posterior.weight.ravel()
    positions = target.position_of(posterior.beta.ravel(), posterior.scale.ravel())
    mean = positions @ weights
    deviations = positions - mean[:, None]
    return Walk(mean, (weights * deviations) @ deviations.T, 0.0, 0)
