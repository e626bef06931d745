"""The exchange algorithm of Murray, Ghahramani and MacKay (2006), as the paper uses it.

Friel and Pettitt (2011), section 4.2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal, NamedTuple

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
from nearfield.sampling import draw_after_clusters, draw_labels, draw_labels_perfect

AUXILIARIES = ("gibbs", "perfect")
STARTS = ("random", "data")

Draw = Callable[[np.random.Generator, LabelField, float], NDArray[np.int64]]


class ExchangeState(NamedTuple):
    """What the next move needs: where the chain is."""

    point: Point


@dataclass(frozen=True, eq=False)
class ExchangeSampler:
    """Moves (beta, sigma) or (beta, k) together; the intractable constants cancel.

    `draw_auxiliary(rng, field, beta)` draws labels from a field.
    """

    target: Target
    draw_auxiliary: Draw

    def init(self, rng: np.random.Generator, point: Point) -> ExchangeState:
        """Start at a point."""
        return ExchangeState(point)

    def step(
        self, rng: np.random.Generator, state: ExchangeState, walk: Walk
    ) -> tuple[ExchangeState, Move]:
        """Propose parameters, draw labels from their field, and offer to swap the two pairs."""
        target, point = self.target, state.point
        proposal = target.at(propose(rng, walk, target, point))
        if proposal is None:
            return state, Move(0.0, is_accepted=False)
        drawn = self.draw_auxiliary(rng, proposal.field, proposal.beta)
        auxiliary = indicators(drawn, target.family.n_classes)
        acceptance = math.exp(min(log_ratio(point, proposal, auxiliary), 0.0))
        is_accepted = rng.random() < acceptance
        return (ExchangeState(proposal) if is_accepted else state), Move(acceptance, is_accepted)

    def pack(self, state: ExchangeState) -> NDArray[np.float64]:
        """Write down the position; all else follows from it."""
        return np.array(state.point.position)

    def unpack(self, packed: NDArray[np.float64]) -> ExchangeState:
        """Go back to a position."""
        beta, coordinate = packed.tolist()
        point = self.target.at((beta, coordinate))
        if point is None:
            raise ValueError(f"no point of this model: {packed}")
        return ExchangeState(point)


def log_ratio(point: Point, proposal: Point, auxiliary: NDArray[np.float64]) -> float:
    r"""Evaluate the log acceptance ratio, of parameters and labels that change partners.

    .. math:: \frac{q(y \mid \theta')\, q(y' \mid \theta)\, \pi(\theta')}
                   {q(y \mid \theta)\, q(y' \mid \theta')\, \pi(\theta)}

    The Jacobian is in the priors of the points. `auxiliary` is y' as indicators.
    """
    observed = proposal.log_potential - point.log_potential
    swapped = log_potential(point.field, point.beta, auxiliary) - log_potential(
        proposal.field, proposal.beta, auxiliary
    )
    return observed + swapped + proposal.log_prior - point.log_prior


@dataclass(frozen=True)
class Exchange(Engine):
    """Settings of the exchange algorithm; the defaults are the paper's.

    A Gaussian random walk on (arsinh beta, log sigma), or on (arsinh beta, k) with k rounded. Its
    size and shape adapt during burn-in and are fixed after it; one step in eight is a large one,
    for thin tails and second modes. The draws are exact when the auxiliary labels are; Gibbs
    sampling makes them as close as `n_sweeps` is large.

    Parameters
    ----------
    n_draws : int
        Iterations to keep, a chain.
    n_burn : int
        Iterations before these.
    n_sweeps : int
        Gibbs sweeps over all points to an auxiliary draw.
    auxiliary : {"gibbs", "perfect"}
        How to draw the auxiliary labels. Perfect draws are exact, but need two classes and a
        prior of beta without mass below zero, and can take very long where beta is large.
    start : {"random", "data"}
        Where Gibbs sampling starts: at random labels (with cluster moves on them if beta > 0,
        without which it freezes), or at the observed ones, which makes a good short run.
    n_chains : int
        Chains from dispersed starts.
    checkpoint : str or path, optional
        File that the run is saved to at intervals, and resumed from if it exists.

    Warns
    -----
    ConvergenceWarning
        If R-hat or an effective sample size shows that the chains have not mixed, or if the
        auxiliary labels depend on their start, as at a first-order transition.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference import Exchange, Priors
    >>> points = np.random.default_rng(0).normal(size=(8, 2))
    >>> labels = (points[:, 0] > 0).astype(int)
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", 2)
    >>> priors = Priors(stats.gamma(4.0, scale=0.2), stats.lognorm(0.2, scale=0.5))
    >>> engine = Exchange(n_draws=2_000, n_burn=500, n_sweeps=20)
    >>> posterior = engine.infer(np.random.default_rng(1), family, labels, priors)
    >>> posterior.beta.shape  # chains, draws
    (4, 2000)
    """

    n_draws: int = 10_000
    n_burn: int = 10_000
    n_sweeps: int = 1_000
    auxiliary: Literal["gibbs", "perfect"] = "gibbs"
    start: Literal["random", "data"] = "random"
    n_chains: int = 4
    checkpoint: str | PathLike[str] | None = None

    def __post_init__(self) -> None:
        check_run(self)
        _check_choice(self.auxiliary, "auxiliary", AUXILIARIES)
        _check_choice(self.start, "start", STARTS)

    def _infer(
        self, rng: np.random.Generator, target: Target, n_jobs: int | None, verbose: int
    ) -> Posterior:
        sampler = ExchangeSampler(target, self._auxiliary_draw(target))
        posterior = run_chains(rng, sampler, self, n_jobs=n_jobs, verbose=verbose)
        if self.auxiliary == "gibbs":
            (stream,) = rng.spawn(1)
            warn_of_hysteresis(stream, target, posterior, self.n_sweeps, self.start)
        return posterior

    def _auxiliary_draw(self, target: Target) -> Draw:
        if self.auxiliary == "perfect":
            _check_perfect(target)
            return _draw_perfect
        if self.start == "data":
            return partial(draw_labels, n_sweeps=self.n_sweeps, initial=target.labels)
        return partial(draw_after_clusters, n_sweeps=self.n_sweeps)


def _draw_perfect(rng: np.random.Generator, field: LabelField, beta: float) -> NDArray[np.int64]:
    try:
        return draw_labels_perfect(rng, field, beta)
    except RuntimeError as error:
        raise RuntimeError(
            f"Expected a perfect draw to end; it did not at beta={beta:g}. Use "
            'auxiliary="gibbs", or a prior with smaller beta.'
        ) from error


def _check_perfect(target: Target) -> None:
    if target.family.n_classes != 2:
        raise ValueError(
            f'Expected two classes with auxiliary="perfect"; got {target.family.n_classes}, for '
            'which no perfect sampler is known. Use auxiliary="gibbs".'
        )
    mass_below_zero = float(target.priors.beta.cdf(0.0))
    if mass_below_zero > 0.0:
        raise ValueError(
            'Expected a prior of beta without mass below 0 with auxiliary="perfect", which draws '
            f"only where neighbours attract; got {mass_below_zero:.2g} of it there. Use a prior "
            'such as scipy.stats.halfnorm(scale=50), or auxiliary="gibbs".'
        )


def _check_choice(value: Any, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"Expected {name} among {choices}; got {name}={value!r}. Choose one of them."
        )
