r"""Log z of a state by itself: random bonds (Fortuin and Kasteleyn, 1972) and BAR (Bennett, 1976).

With every pair of points bonded with probability :math:`1 - \exp(-\beta c_{ij})`, b the bonds and
C(b) the clusters that they make,

.. math:: z(\beta) = e^{\beta S_{\max}} E_b\big[e^{u(b)}\big], \qquad
          u(b) = \sum_{C \in C(b)} \log \sum_g e^{\alpha_g |C|}

so that z is known relative to independent bonds. Given labels drawn from the field, the bonds of
pairs that agree have the density of the independent ones times exp(u), up to z. Where beta is
large the two overlap, and log z is known without a path from beta = 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from nearfield._compile import compiled
from nearfield.log_partition.chains import FieldStack, pairs_row
from nearfield.sampling.swendsen_wang import SortedPairs, bonds_at, find_root, open_bonds

Floats = NDArray[np.float64]

_MIN_OVERLAP = 20.0  # effective draws that a BAR estimate rests on; half of them if there are few
_MAX_ITERATIONS = 20
_LEAST_MEAN = 1e-100


class BarEstimates(NamedTuple):
    """Log z of states, each from the bonds drawn there and from nothing else."""

    log_z: Floats  # shape (1 + groups, K), of all draws and without each group
    variance: Floats  # shape (K,), of one draw; infinite where log z is not known

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Where there is an estimate, shape (K,)."""
        return np.isfinite(self.variance)

    def repeated(self, n: int) -> "BarEstimates":
        """Append the estimate from all draws n times, for other parts of the draws."""
        return self._replace(log_z=np.concatenate([self.log_z, *[self.log_z[:1]] * n]))


def cluster_log_weights(
    stack: FieldStack, row: int, beta: float, labelings: NDArray[np.integer], key: np.uint64
) -> Floats:
    """Draw the bonds of points that agree and return u, for each labeling; beta > 0.

    Parameters
    ----------
    stack : FieldStack
    row : int
        Of the stack.
    labelings : ndarray, shape (M, n)
        All labels the same for independent bonds.
    """
    external_field = stack.external_field
    sizes = np.arange(1.0, labelings.shape[1] + 1.0)[:, None]
    largest = external_field.max()
    log_sums = np.log(np.exp(sizes * (external_field - largest)).sum(axis=1))
    log_weights = np.empty(len(labelings))
    fill_cluster_log_weights(
        pairs_row(stack.sorted_pairs, row),
        log_sums + sizes[:, 0] * largest,
        beta,
        labelings,
        key,
        log_weights,
    )
    return log_weights


@compiled
def fill_cluster_log_weights(
    sorted_pairs: SortedPairs,
    by_size: Floats,
    beta: float,
    labelings: NDArray[np.integer],
    key: np.uint64,
    log_weights: Floats,
) -> None:
    """Fill in u for each labeling; `by_size` is the log weight of a cluster of 1..n points."""
    n_labelings, n_points = labelings.shape
    bonds = bonds_at(sorted_pairs, beta)
    parents = np.empty(n_points, dtype=np.uint32)
    labels, sizes = np.empty(n_points, dtype=np.int64), np.empty(n_points, dtype=np.int64)
    position = np.uint64(0)
    for m in range(n_labelings):
        for i in range(n_points):
            labels[i] = labelings[m, i]
            sizes[i] = 0
        position = open_bonds(bonds, labels, parents, key, position)
        for i in range(n_points):
            sizes[find_root(parents, i)] += 1
        total = 0.0
        for i in range(n_points):
            if sizes[i] > 0:
                total += by_size[sizes[i] - 1]
        log_weights[m] = total


def bar_estimates(
    states: NDArray[np.int64],
    groups: NDArray[np.int64],
    conditional: Floats,
    free: Floats,
    log_highest: Floats,
    n_groups: int,
) -> BarEstimates:
    r"""Estimate log z of states relative to independent bonds.

    .. math:: z = e^{\beta S_{\max} + c}\,
              \frac{E_\text{free}[\sigma(u - c)]}{E_\text{field}[\sigma(c - u)]}

    for any c; the variance is least where this gives c.

    Parameters
    ----------
    states, groups : ndarrays, shape (M,)
        The state and the independent group of each draw.
    conditional, free : ndarrays, shape (M,)
        u of bonds given the labels, nan where none were drawn, and of independent bonds.
    log_highest : ndarray, shape (K,)
        Beta S of labels that are all the same.
    """
    log_z = np.zeros((1 + n_groups, len(log_highest)))
    variance = np.full(len(log_highest), np.inf)
    has_bonds = ~np.isnan(conditional)
    for state in np.unique(states[has_bonds]):
        here = np.flatnonzero(has_bonds & (states == state))
        c, given, independent = _best_constant(conditional[here], free[here])
        overlap = min(_n_effective(given), _n_effective(independent))
        if overlap < min(_MIN_OVERLAP, 0.5 * len(here)):
            continue
        is_left = (groups[here][:, None] != np.arange(-1, n_groups)).astype(float)
        log_z[:, state] = (
            log_highest[state] + c + np.log((independent @ is_left) / (given @ is_left))
        )
        squared = given.var() / given.mean() ** 2 + independent.var() / independent.mean() ** 2
        variance[state] = squared + 1.0 / len(here)  # rarer values may not have been drawn
    return BarEstimates(log_z, variance)


def _best_constant(conditional: Floats, free: Floats) -> tuple[float, Floats, Floats]:
    """Find c, and the two terms there."""
    c = float(free.mean())
    for _ in range(_MAX_ITERATIONS):
        terms = expit(c - conditional), expit(free - c)
        # Far apart both means may underflow; c then approaches in large steps.
        step = np.log(max(terms[1].mean(), _LEAST_MEAN) / max(terms[0].mean(), _LEAST_MEAN))
        if abs(step) < 0.01:
            break
        c += step
    return c, *terms


def _n_effective(terms: Floats) -> float:
    return float(terms.sum() ** 2 / max((terms**2).sum(), 1e-300))
