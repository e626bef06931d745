"""Log z of points above beta = 0, each by itself: relative to random ties, whose z is known."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_MIN_OVERLAP = 20.0  # effective draws that an anchor rests on; half of them if there are few
_MAX_PASSES = 20  # to where an anchor is best
_LEAST_MEAN = 1e-100


class Tied(Protocol):
    """Draws at some points, in independent groups, with the groups of points that ties make."""

    @property
    def points(self) -> NDArray[np.int64]:
        """The point of each draw, shape (M,)."""

    @property
    def groups(self) -> NDArray[np.int64]:
        """The group of each draw, shape (M,)."""

    @property
    def tied(self) -> NDArray[np.float64]:
        """Log weight of groups of tied points, shape (M,); nan where ties were not drawn."""

    @property
    def free(self) -> NDArray[np.float64]:
        """The same where ties do not hang on labels, shape (M,)."""


class Anchors(NamedTuple):
    """Log z of points, from draws there and from nothing else."""

    log_z: NDArray[np.float64]  # shape (1 + groups, K), of all draws and without each group
    variance: NDArray[np.float64]  # shape (K,), of one draw; infinite where log z is not known

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Where there is an anchor, shape (K,)."""
        return np.isfinite(self.variance)


def tie_anchors(drawn: Tied, n_groups: int, log_highest: NDArray[np.float64]) -> Anchors:
    r"""Estimate log z of points relative to random ties (Bennett, 1976).

    .. math:: z = e^{\beta S_{\max} + c}\,
              \frac{E_\text{free}[\sigma(u - c)]}{E_\text{field}[\sigma(c - u)]}

    with u the log weight of the groups that ties make (`nearfield.sampling.tied_groups`), and for
    any c; best is where this gives c.

    Parameters
    ----------
    drawn : Tied
    n_groups : int
    log_highest : ndarray, shape (K,)
        Beta S of labels that are all the same.
    """
    log_z = np.zeros((1 + n_groups, len(log_highest)))
    variance = np.full(len(log_highest), np.inf)
    is_tied = ~np.isnan(drawn.tied)
    for point in np.unique(drawn.points[is_tied]):
        here = np.flatnonzero(is_tied & (drawn.points == point))
        c, tied, free = _best_unit(drawn.tied[here], drawn.free[here])
        if min(_n_effective(tied), _n_effective(free)) < min(_MIN_OVERLAP, 0.5 * len(here)):
            continue
        is_left = (drawn.groups[here][:, None] != np.arange(-1, n_groups)).astype(float)
        log_z[:, point] = log_highest[point] + c + np.log((free @ is_left) / (tied @ is_left))
        seen = tied.var() / tied.mean() ** 2 + free.var() / free.mean() ** 2
        variance[point] = seen + 1.0 / len(here)  # something rarer may be unseen
    return Anchors(log_z, variance)


def _best_unit(tied: NDArray[np.float64], free: NDArray[np.float64]):
    """Find the c of the anchor, and the two terms there."""
    c = float(free.mean())
    for _ in range(_MAX_PASSES):
        terms = expit(c - tied), expit(free - c)
        # Far apart both means may be zero to the computer; c then comes closer in large steps.
        step = np.log(max(terms[1].mean(), _LEAST_MEAN) / max(terms[0].mean(), _LEAST_MEAN))
        if abs(step) < 0.01:
            break
        c += step
    return c, *terms


def _n_effective(terms: NDArray[np.float64]) -> float:
    return float(terms.sum() ** 2 / max((terms**2).sum(), 1e-300))
