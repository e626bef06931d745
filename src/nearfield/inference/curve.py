"""Log z of one field along beta, from its known value at zero."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from nearfield._checks import check_generator, check_positive
from nearfield._threads import one_blas_thread
from nearfield.field import LabelField
from nearfield.inference._flat import (
    FROZEN,
    MIN_DRAWS,
    FlatChain,
    Ladder,
    LogPartition,
    anneal,
    first_weight,
    joined,
    largest_agreement,
    learn_weight,
    reweighted_log_partition,
)
from nearfield.inference._tour_curve import touring_log_partition

_PILOT_SWEEPS = 1_000
_MAX_SWEEPS = 1_000_000
_LEARNING = 5  # sweeps to learn a weight, a squared number of rungs


def log_partition_curve(
    rng: np.random.Generator,
    field: LabelField,
    betas: ArrayLike,
    *,
    target_error: float = 0.03,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Estimate log z at each beta, with a standard error.

    .. math:: \log z(\beta) = \log z(0) + \log E_0[\exp(\beta S)]

    by chains that go from beta = 0 to the last beta and back by cluster moves, anchored at zero
    and, where beta is large, at independent ties (`nearfield.inference._branch`). Where they lag
    behind beta, as in a field that jumps from disorder to order, z is added up from two branches,
    which no chain has to cross between (`nearfield.inference._cut`). Where that does not help, by
    one chain that wanders over all agreements (`nearfield.inference._flat`), which takes seconds.
    The standard error is a jackknife over chains, or over blocks of the one.

    Parameters
    ----------
    rng : numpy.random.Generator
    field : LabelField
    betas : array-like, shape (m,)
        Any real numbers, in any order.
    target_error : float
        The standard error aimed at; a run ends at that, or after a million sweeps.

    Returns
    -------
    log_z, standard_error : ndarrays, shape (m,)

    Warns
    -----
    ConvergenceWarning
        Where no chain came to the agreements of some beta.
    """
    check_generator(rng)
    betas = np.asarray(betas, dtype=np.float64)
    if betas.ndim != 1 or betas.size == 0 or not np.isfinite(betas).all():
        raise ValueError(
            f"Expected finite betas of shape (m,) with m >= 1; got {betas!r}. Give a list of betas."
        )
    check_positive(target_error, "target_error")
    with one_blas_thread():
        estimate = touring_log_partition(rng, field, betas, target_error, _MAX_SWEEPS)
        if estimate is None:
            estimate = _flat_log_partition(rng, field, betas, target_error)
    _warn_if_short(field, betas, estimate)
    return estimate.log_z, estimate.error


def _flat_log_partition(rng, field, betas, target_error) -> LogPartition:
    """Estimate log z by one chain that wanders over all agreements, long enough."""
    chain = flat_chain(rng, field, float(betas.min()), float(betas.max()))
    run = chain.run(rng, 2 * _PILOT_SWEEPS)
    while True:
        estimate = reweighted_log_partition(field, chain.weight, run, betas)
        n_done, worst = len(run.agreements), estimate.error.max()
        if estimate.is_good(target_error) or n_done >= _MAX_SWEEPS:
            return estimate
        n_wanted = n_done * np.clip((1.1 * worst / target_error) ** 2, 2.0, 8.0)
        n_more = int(min(n_wanted, _MAX_SWEEPS)) - n_done
        run = run + chain.run(rng, n_more)


def _warn_if_short(field: LabelField, betas: NDArray[np.float64], estimate: LogPartition) -> None:
    """Say so where the chain has not been where a beta is: the error is then no guide.

    It shows in few effective draws, or in a z below what labels all the same contribute alone.
    """
    log_same = logsumexp(field.n_points * field.external_field)
    least = log_same + betas * largest_agreement(field)
    is_short = (estimate.n_draws < MIN_DRAWS) | (estimate.log_z + 3.0 * estimate.error < least)
    if is_short.any():
        warnings.warn(
            f"The chain did not reach the agreements of beta={betas[is_short][0]:g}: log z there "
            f"is {estimate.log_z[is_short][0]:g} from {estimate.n_draws[is_short][0]:.0f} "
            f"effective draws, and cannot be below {least[is_short][0]:g}. Its standard error "
            "cannot be trusted; ask for betas closer to zero.",
            ConvergenceWarning,
            stacklevel=3,
        )


def flat_chain(
    rng: np.random.Generator, field: LabelField, beta_low: float, beta_high: float
) -> FlatChain:
    """Make a chain that wanders over the agreements of all betas in a range around zero."""
    labels = rng.integers(field.n_classes, size=field.n_points)
    ladder = beta_ladder(rng, field, labels, beta_low, beta_high)
    chain = FlatChain.start(field, first_weight(ladder, largest_agreement(field)), labels)
    learn_weight(rng, chain, _LEARNING * len(ladder.betas) ** 2)
    return chain


def beta_ladder(
    rng: np.random.Generator,
    field: LabelField,
    labels: NDArray[np.int64],
    beta_low: float,
    beta_high: float,
) -> Ladder:
    """Anneal from zero to both ends of a range, or to where the field is frozen."""

    def is_high_enough(beta: float, mean: float, spread: float) -> bool:
        return beta >= beta_high or spread < FROZEN

    def is_low_enough(beta: float, mean: float, spread: float) -> bool:
        return beta <= beta_low or spread < FROZEN

    ladder = anneal(rng, field, labels, is_high_enough)
    if beta_low < 0.0:
        ladder = joined(anneal(rng, field, labels, is_low_enough, sign=-1), ladder)
    return ladder
