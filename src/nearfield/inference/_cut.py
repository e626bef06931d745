"""Two branches, the labelings below a cut in the agreement and those above it.

Where a field jumps from disorder to order, chains lag behind beta: those on the way out stay in
disorder, those on the way back in order. Then z is the sum over two branches, and chains that do
not leave theirs draw from each: the lower one is known at zero, the upper one by its ties.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field import LabelField
from nearfield.inference._scan import labels_at_zero
from nearfield.inference._touring import (
    N_GROUPS,
    Ladder,
    TouringChains,
    Tours,
    rungs_between,
)

_N_BINS = 60  # of agreements, to see where there are few
_SMOOTHED = 5  # bins
_MIN_DRAWS = 32  # of a rung, to know a mean
_MIN_SHARE = 0.9  # of the lower branch, at zero
_NEGLIGIBLE = 0.02  # of z
_SURE = 3.0  # standard errors


class Cut(NamedTuple):
    """Where the branches part, and where each of them is alone as far as chains could see."""

    agreement: float
    log_share_at_zero: float  # of the lower branch
    last_below: float  # beta; up to here all draws were below
    first_above: float  # beta; from here on all were above


def find_cut(tours: Tours) -> Cut | None:
    """Part draws at zero and above where there are fewest; None if not all are above somewhere."""
    cut = fewest_between(tours.agreements)
    shares = np.bincount(tours.points, tours.agreements >= cut) / tours.counts
    last_mixed = np.flatnonzero(shares < 1.0)[-1]
    if last_mixed == len(shares) - 1 or 1.0 - shares[0] < _MIN_SHARE:
        return None
    first_mixed = np.flatnonzero(shares > 0.0)[0]
    return Cut(
        cut,
        float(np.log1p(-shares[0])),
        float(tours.betas[max(first_mixed - 1, 0)]),
        float(tours.betas[last_mixed + 1]),
    )


def fewest_between(agreements: NDArray[np.float64]) -> float:
    """Find the middle of where draws are few, beside the most on either side."""
    counts, edges = np.histogram(agreements, _N_BINS)
    around = np.convolve(counts, np.ones(_SMOOTHED), "same")
    most = np.maximum.accumulate
    depths = np.minimum(most(around), most(around[::-1])[::-1]) / (1.0 + around)
    deep = np.flatnonzero(depths > 0.5 * depths.max())
    middle = deep[len(deep) // 2]
    return float(edges[middle : middle + 2].mean())


def parted(
    rng: np.random.Generator, field: LabelField, chains: TouringChains, tours: Tours, cut: Cut
) -> list[TouringChains]:
    """Start chains on either side of a cut, the lower ones at zero, the upper ones in order."""
    is_above = tours.agreements >= cut.agreement
    below = _rungs_of(tours, ~is_above, 0.0, cut.first_above)
    above = _rungs_of(tours, is_above, cut.last_below, tours.betas[-1])
    labels = labels_at_zero(rng, field, N_GROUPS)
    while (is_out := _agreements(field, labels) >= cut.agreement).any():
        labels[is_out] = labels_at_zero(rng, field, int(is_out.sum()))
    return [
        TouringChains(
            chains.stack,
            Ladder.from_zero(below[1:], np.empty(0)),
            labels,
            (below > 0.0) & (below <= cut.last_below),
            (-np.inf, cut.agreement),
        ),
        TouringChains(
            chains.stack,
            Ladder.from_top(above),
            np.repeat(labels[:, :1], field.n_points, axis=1),
            above >= cut.first_above,
            (cut.agreement, np.inf),
        ),
    ]


def _agreements(field: LabelField, labelings: NDArray[np.int8]) -> NDArray[np.float64]:
    return np.array([field.agreement(labels.astype(np.int64)) for labels in labelings])


def _rungs_of(tours: Tours, is_inside, low: float, high: float) -> NDArray[np.float64]:
    """Place rungs by the mean agreements of one branch."""
    counts = np.bincount(tours.points, is_inside, len(tours.betas))
    sums = np.bincount(tours.points, is_inside * tours.agreements, len(tours.betas))
    known = np.flatnonzero(counts >= _MIN_DRAWS)
    return rungs_between(tours.betas[known], sums[known] / counts[known], low, high)


def contradicts(tours: Tours, cut: Cut, shares: NDArray[np.float64]) -> bool:
    """Tell whether the share of the upper branch is surely not between those on the two ways.

    Chains that were free to cross lag behind on either way.

    Parameters
    ----------
    tours : Tours
        Of these chains.
    shares : ndarray, shape (K,)
        At the rungs.
    """
    seen = tours.means_by_way(tours.agreements >= cut.agreement)
    off = _SURE * seen.std(axis=1, ddof=1) / np.sqrt(N_GROUPS) + _NEGLIGIBLE
    out, back = seen.mean(axis=1)
    is_off = (shares < out - off[0]) | (shares > back + off[1])
    return bool(is_off[tours.betas > 0.0].any())
