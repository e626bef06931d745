"""The auxiliary variable method of Moller et al. (2006), as Cucala et al. (2009) use it.

The comparator that Friel and Pettitt (2011), section 4.2, argue against: it mixes worse than
exchange, because a lucky auxiliary draw stays in the ratio for as long as the chain stays put.
"""

import math
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._chain import Move
from nearfield.inference._chains import check_run, run_chains
from nearfield.inference._engine import Engine
from nearfield.inference._hysteresis import warn_of_hysteresis
from nearfield.inference._posterior import Posterior
from nearfield.inference._target import Point, Target, indicators, log_potential
from nearfield.inference._walk import Walk, propose
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate
from nearfield.sampling import draw_after_clusters


class AuxiliaryState(NamedTuple):
    """Where the chain is, with its auxiliary labels and the weight they give to the place."""

    point: Point
    auxiliary: NDArray[np.int64]  # x
    log_weight: float


@dataclass(frozen=True, eq=False)
class AuxiliarySampler:
    """Moves the parameters together with auxiliary labels, drawn at the proposal."""

    target: Target
    fixed_field: LabelField  # at the fixed parameters
    fixed_beta: float
    n_sweeps: int

    def init(self, rng: np.random.Generator, point: Point) -> AuxiliaryState:
        """Start at a point, with auxiliary labels from its field."""
        auxiliary = draw_after_clusters(rng, point.field, point.beta, self.n_sweeps)
        return AuxiliaryState(point, auxiliary, self.log_weight(point, auxiliary))

    def step(
        self, rng: np.random.Generator, state: AuxiliaryState, walk: Walk
    ) -> tuple[AuxiliaryState, Move]:
        """Propose parameters, draw auxiliary labels from their field, and weigh the two."""
        target = self.target
        point = target.at(propose(rng, walk, target, state.point))
        if point is None:
            return state, Move(0.0, is_accepted=False)
        proposal = self.init(rng, point)
        acceptance = math.exp(min(proposal.log_weight - state.log_weight, 0.0))
        is_accepted = rng.random() < acceptance
        return (proposal if is_accepted else state), Move(acceptance, is_accepted)

    def log_weight(self, point: Point, auxiliary: NDArray[np.int64]) -> float:
        r"""Evaluate the joint density of parameters and x over that of drawing x, up to z.

        .. math:: \frac{f(x)\, q(y \mid \theta)\, \pi(\theta)}{q(x \mid \theta)}, \qquad
                  f(x) \propto q(x \mid \hat\theta)

        Its expectation over x is the posterior density, because that of f/q is 1/z. The
        acceptance ratio is that of two such weights. The Jacobian is in the prior of the point.
        """
        is_class = indicators(auxiliary, self.target.family.n_classes)
        return (
            point.log_potential
            + point.log_prior
            + log_potential(self.fixed_field, self.fixed_beta, is_class)
            - log_potential(point.field, point.beta, is_class)
        )

    def pack(self, state: AuxiliaryState) -> NDArray[np.float64]:
        """Write down the position and the auxiliary labels; all else follows from them."""
        return np.concatenate([state.point.position, state.auxiliary])

    def unpack(self, packed: NDArray[np.float64]) -> AuxiliaryState:
        """Go back to a position with its auxiliary labels."""
        point = self.target.at((float(packed[0]), float(packed[1])))
        family, auxiliary = self.target.family, packed[2:].astype(np.int64)
        is_label = (auxiliary == packed[2:]) & (auxiliary >= 0) & (auxiliary < family.n_classes)
        if point is None or len(auxiliary) != family.n_points or not is_label.all():
            raise ValueError("no point and labels of this model")
        return AuxiliaryState(point, auxiliary, self.log_weight(point, auxiliary))


@dataclass(frozen=True)
class AuxiliaryVariable(Engine):
    """Settings of the auxiliary variable method.

    The density of the auxiliary labels is the field at fixed parameters, the estimate by
    pseudolikelihood. The walk is that of `Exchange`, and so are the parameters.

    Parameters
    ----------
    n_draws : int
        Iterations to keep, a chain.
    n_burn : int
        Iterations before these.
    n_sweeps : int
        Gibbs sweeps over all points to an auxiliary draw.
    n_chains : int
        Chains from dispersed starts.
    checkpoint : str or path, optional
        File that the run is saved to at intervals, and resumed from if it exists.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import AuxiliaryVariable, Priors
    >>> points = np.random.default_rng(0).normal(size=(8, 2))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> priors = Priors(stats.gamma(4.0, scale=0.2), stats.lognorm(0.2, scale=0.5))
    >>> engine = AuxiliaryVariable(n_draws=2_000, n_burn=500, n_sweeps=20)
    >>> posterior = engine.infer(np.random.default_rng(1), family, labels, priors)
    >>> posterior.beta.shape  # chains, draws
    (4, 2000)
    """

    n_draws: int = 10_000
    n_burn: int = 10_000
    n_sweeps: int = 1_000
    n_chains: int = 4
    checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_run(self)

    def _infer(
        self, rng: np.random.Generator, target: Target, n_jobs: int | None, verbose: int
    ) -> Posterior:
        beta, scale = pseudolikelihood_estimate(target.family, target.labels, target.priors)
        sampler = AuxiliarySampler(target, target.family.at(scale), float(beta), self.n_sweeps)
        posterior = run_chains(rng, sampler, self, n_jobs=n_jobs, verbose=verbose)
        (stream,) = rng.spawn(1)
        warn_of_hysteresis(stream, target, posterior, self.n_sweeps, "random")
        return posterior
