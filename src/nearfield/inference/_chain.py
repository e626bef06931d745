"""One chain, for any way to move: a value that holds everything its future depends on.

`advance` makes a new value and leaves the old one alone, so the work can stop at any moment,
even with Ctrl-C, and what was done before stays good.
"""

import copy
import time
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nearfield.inference._target import Point, Target
from nearfield.inference._walk import Walk, dispersed_start, init_walk, learn


class Move(NamedTuple):
    """What came of a step."""

    acceptance: float  # its probability
    is_accepted: bool


class Sampler(Protocol):
    """A way to move, such as the exchange algorithm."""

    @property
    def target(self) -> Target:
        """What it moves in."""

    def init(self, rng: np.random.Generator, point: Point) -> Any:
        """Make the state at the start of a chain."""

    def step(self, rng: np.random.Generator, state: Any, walk: Walk) -> tuple[Any, Move]:
        """Move once; return the state and what came of it."""

    def pack(self, state: Any) -> NDArray[np.float64]:
        """Write down all that `unpack` needs to make the state again."""

    def unpack(self, packed: NDArray[np.float64]) -> Any:
        """Make the state that was packed, to the last bit."""


class RunLength(NamedTuple):
    """How many moves a chain makes."""

    n_burn: int
    n_draws: int

    @property
    def total(self) -> int:
        """All moves of a chain."""
        return self.n_burn + self.n_draws


class Chain(NamedTuple):
    """Everything that the future of a chain depends on, and what it has drawn."""

    rng: np.random.Generator
    state: Any
    walk: Walk
    n_done: int
    n_accepted: int  # after burn-in
    draws: NDArray[np.float64]  # shape (n_draws, 2): beta and the scale, as far as done


def start_chain(rng: np.random.Generator, sampler: Sampler, length: RunLength) -> Chain:
    """Begin a chain at a place of its own."""
    point = dispersed_start(rng, sampler.target)
    state = sampler.init(rng, point)
    walk = init_walk(sampler.target, point)
    return Chain(rng, state, walk, 0, 0, np.full((length.n_draws, 2), np.nan))


def advance(chain: Chain, sampler: Sampler, length: RunLength, seconds: float) -> Chain:
    """Move a chain until its end or for some time; where it pauses makes no difference to it."""
    deadline = time.perf_counter() + seconds
    rng, state, walk, n_done, n_accepted, draws = copy.deepcopy(chain._replace(state=None))
    state = chain.state  # never changed in place, and large
    while n_done < length.total:
        state, move = sampler.step(rng, state, walk)
        if n_done < length.n_burn:
            walk = learn(walk, state.point, move.acceptance)
        else:
            draws[n_done - length.n_burn] = state.point.beta, state.point.scale
            n_accepted += move.is_accepted
        n_done += 1
        if time.perf_counter() > deadline:
            break
    return Chain(rng, state, walk, n_done, n_accepted, draws)
