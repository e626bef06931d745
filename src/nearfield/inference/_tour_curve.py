"""Log z along beta by touring chains, with as many draws as it takes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._branch import branch_of
from nearfield.inference._cut import contradicts, find_cut, parted
from nearfield.inference._flat import LogPartition, largest_agreement, log_partition_at_zero
from nearfield.inference._mbar import left_out_error
from nearfield.inference._touring import N_GROUPS, TouringChains, Tours

_N_FIRST = 12  # draws a visit on the first tour
_N_FIRST_CUT = 24  # and on that of each branch: few draws hide how much they miss near the cut
_MOST_A_VISIT = 48
_MAX_SLOWNESS = 20.0
_MAX_DOUBTED = 40_000  # draws on both sides of a cut: longer visits lag less
_MAX_POINTS = 1_000  # their pairs are sorted
_MAX_CLASSES = 127  # labels of chains are of one byte
_FARTHEST = 1e4  # beta; beyond it every field is frozen
_NEGLIGIBLE = 0.02  # of z


def touring_log_partition(
    rng: np.random.Generator,
    field: LabelField,
    betas: NDArray[np.float64],
    target_error: float,
    max_draws: int,
) -> LogPartition | None:
    """Estimate log z at betas; None where chains do not follow beta well enough for that.

    None too for fields and betas that are too large to try, and where nothing is coupled.
    """
    if (
        field.n_points > _MAX_POINTS
        or field.n_classes > _MAX_CLASSES
        or np.abs(betas).max() > _FARTHEST
        or largest_agreement(field) == 0.0
    ):
        return None
    chains = TouringChains.start(rng, field, min(betas.min(), 0.0), max(betas.max(), 0.0))
    at_zero = log_partition_at_zero(field)
    whole = _Part(chains, chains.tour(rng, _N_FIRST), at_zero)
    found = _with_enough_draws(rng, field, [whole], betas, target_error, max_draws)
    # Below zero chains may freeze, which no cut helps: there is no order there to jump to.
    cut = find_cut(whole.tours) if found is None and betas.min() >= 0.0 else None
    if cut is None:
        return found
    below, above = parted(rng, field, chains, whole.tours, cut)
    parts = [
        _Part(below, below.tour(rng, _N_FIRST_CUT), at_zero + cut.log_share_at_zero),
        _Part(above, above.tour(rng, _N_FIRST_CUT), None),
    ]
    found = _with_enough_draws(rng, field, parts, betas, target_error, max_draws)
    if found is None:
        return None
    stage = evaluate(field, parts, whole.tours.betas)
    return None if stage is None or contradicts(whole.tours, cut, stage.shares[1]) else found


@dataclass
class _Part:
    """Chains and what they have drawn so far, of all labelings or of one branch."""

    chains: TouringChains
    tours: Tours
    at_zero: float | None  # log z at zero; None if it is not known

    def draw(self, rng: np.random.Generator, a_visit: NDArray[np.float64]) -> None:
        """Draw more, so many at each visit of a rung."""
        n_tours = int(np.ceil(a_visit.max() / _MOST_A_VISIT))
        for _ in range(n_tours):
            self.tours = self.tours + self.chains.tour(rng, np.ceil(a_visit / n_tours).astype(int))


def _with_enough_draws(
    rng, field, parts: list[_Part], betas, target_error, max_draws
) -> LogPartition | None:
    """Draw until errors are as small as wanted; None once they cannot be trusted."""
    while True:
        stage = evaluate(field, parts, betas)
        if stage is None:
            return None
        found, n_done = stage.log_partition, sum(len(part.tours.points) for part in parts)
        if stage.slowness <= _MAX_SLOWNESS and found.is_good(target_error):
            return found
        if not stage.is_trusted() and (len(parts) == 1 or n_done > _MAX_DOUBTED):
            return None
        if n_done >= max_draws:
            return found
        growth = np.clip((1.1 * found.error.max() / target_error) ** 2, 1.5, 2.5)
        n_more = min(n_done * growth, max_draws) - n_done
        for part, needs, is_anchored in zip(parts, stage.needs, stage.is_anchored, strict=True):
            part.chains.is_tied = is_anchored
            part.draw(rng, needs * n_more / (2 * N_GROUPS))


class Stage(NamedTuple):
    """What the draws so far tell."""

    log_partition: LogPartition
    shares: NDArray[np.float64]  # shape (parts, B): of z
    doubt: float  # how far apart two ways to log z are at least, where they are most
    noise: float  # the largest standard error but for doubt
    slowness: float  # the variance between chains over that of independent draws
    needs: list[NDArray[np.float64]]  # shape (K,) for each part: of more draws, adding up to one
    is_anchored: list[NDArray[np.bool_]]

    def is_trusted(self) -> bool:
        """Tell whether the errors can be taken for what they say."""
        return self.doubt <= self.noise and self.slowness <= _MAX_SLOWNESS


def evaluate(field: LabelField, parts: list[_Part], betas: NDArray[np.float64]) -> Stage | None:
    """Estimate log z at betas, with its error, and see how well the chains do.

    None where a part has no anchor.
    """
    rungs = [part.tours.betas for part in parts]
    all_betas = np.concatenate([betas, *rungs])
    branches = []
    for part in parts:
        branch = branch_of(part.tours, all_betas, part.at_zero, largest_agreement(field))
        if branch is None:
            return None
        branches.append(branch)
    log_z = np.logaddexp.reduce([branch.log_z for branch in branches])
    shares = np.exp([branch.log_z[0] - log_z[0] for branch in branches])
    n_draws = 1.0 / (shares**2 / [branch.n_draws for branch in branches]).sum(axis=0)
    doubts, slowness, needs = np.zeros(len(betas)), 0.0, []
    begin = len(betas)
    for part, branch, share in zip(parts, branches, shares, strict=True):
        at_rungs = share[begin : begin + len(part.tours.betas)]
        begin += len(at_rungs)
        order = np.argsort(part.tours.betas)
        doubt = np.interp(betas, part.tours.betas[order], (at_rungs * branch.doubts)[order])
        doubts = np.maximum(doubts, doubt)
        slowness = max(slowness, branch.slownesses[at_rungs > _NEGLIGIBLE].max(initial=0.0))
        needs.append(branch.needs(at_rungs))
    total = max(sum(map(np.sum, needs)), 1e-300)
    at_betas = log_z[:, : len(betas)]
    noise = left_out_error(at_betas[1:])
    return Stage(
        LogPartition(at_betas[0], np.hypot(noise, doubts), n_draws[: len(betas)]),
        shares[:, : len(betas)],
        float(doubts.max()),
        float(noise.max()),
        float(slowness),
        [need / total for need in needs],
        [branch.is_anchored for branch in branches],
    )
