"""Path sampling: log z along beta from its known value at zero."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from nearfield._checks import check_positive
from nearfield.field import LabelField
from nearfield.inference._flat import (
    FlatChain,
    Ladder,
    Reweighting,
    anneal,
    first_weight,
    flattened,
    joined,
)

_PILOT_SWEEPS = 1_000
_MAX_SWEEPS = 1_000_000
_N_ROUNDS = 4
_N_BLOCKS = 20


def log_partition_curve(
    rng: np.random.Generator,
    field: LabelField,
    betas: ArrayLike,
    *,
    target_error: float = 0.04,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Estimate log z at each beta, with a standard error.

    .. math:: \log z(\beta) = \log z(0) + \log E_0[\exp(\beta S)]

    by one chain that wanders over all agreements from beta = 0 to the last beta, reweighted
    (`nearfield.inference._flat` says why). The standard error is a jackknife over blocks of
    the run, each many crossings long.

    Parameters
    ----------
    rng : numpy.random.Generator
    field : LabelField
    betas : array-like, shape (m,)
        Any real numbers, in any order.
    target_error : float
        The standard error aimed at; the run ends at that, or after a million sweeps.

    Returns
    -------
    log_z, standard_error : ndarrays, shape (m,)
    """
    betas = np.asarray(betas, dtype=np.float64)
    if betas.ndim != 1 or betas.size == 0 or not np.isfinite(betas).all():
        raise ValueError(
            f"Expected finite betas of shape (m,) with m >= 1; got {betas!r}. Give a list of betas."
        )
    check_positive(target_error, "target_error")
    chain = flat_chain(rng, field, float(betas.min()), float(betas.max()))
    agreements = chain.run(rng, 2 * _PILOT_SWEEPS)[0]
    while True:
        run = Reweighting(agreements, chain.weight)
        errors = jackknife_error(run, betas)
        n_done, worst = len(agreements), errors.max()
        if worst <= target_error or n_done >= _MAX_SWEEPS:
            return log_partition_at_zero(field) + run.log_ratio(betas), errors
        n_wanted = n_done * np.clip((1.1 * worst / target_error) ** 2, 2.0, 8.0)
        n_more = int(min(n_wanted, _MAX_SWEEPS)) - n_done
        agreements = np.concatenate([agreements, chain.run(rng, n_more)[0]])


def flat_chain(
    rng: np.random.Generator, field: LabelField, beta_low: float, beta_high: float
) -> FlatChain:
    """Make a chain that wanders over the agreements of all betas in a range around zero."""
    labels = rng.integers(field.n_classes, size=field.n_points)
    ladder = anneal(rng, field, labels, lambda beta, *_: beta >= beta_high)
    if beta_low < 0.0:
        below = anneal(rng, field, labels, lambda beta, *_: beta <= beta_low, sign=-1)
        ladder = joined(below, ladder)
    return flat_chain_on(rng, field, ladder, labels)


def flat_chain_on(
    rng: np.random.Generator, field: LabelField, ladder: Ladder, labels: NDArray[np.int64]
) -> FlatChain:
    """Learn the weight in a few rounds, each longer than the last."""
    chain = FlatChain.start(field, first_weight(ladder), labels)
    for k in range(_N_ROUNDS):
        agreements = chain.run(rng, _PILOT_SWEEPS * (k + 1))[0]
        chain.weight = flattened(chain.weight, ladder, agreements)
    chain.run(rng, _PILOT_SWEEPS)
    return chain


def jackknife_error(run: Reweighting, betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard error of the log ratios: the larger of 20 blocks and 10, which sees slow chains."""
    return np.maximum(*(_jackknife(run, betas, n) for n in (_N_BLOCKS, _N_BLOCKS // 2)))


def _jackknife(run, betas, n_blocks):
    length = len(run.agreements) // n_blocks
    parts = np.arange(length * n_blocks).reshape(n_blocks, length)
    log_top = np.array(
        [
            [logsumexp(beta * run.agreements[part] + run.log_weights[part]) for beta in betas]
            for part in parts
        ]
    )
    log_bottom = np.array([[logsumexp(run.log_weights[part])] for part in parts])
    leave_out = np.where(np.eye(n_blocks, dtype=bool), -np.inf, 0.0)[:, :, None]
    ratios = logsumexp(leave_out + log_top, axis=1) - logsumexp(leave_out + log_bottom, axis=1)
    return np.sqrt((n_blocks - 1.0) * ratios.var(axis=0))


def log_partition_at_zero(field: LabelField) -> float:
    """Return log z at beta = 0, known exactly."""
    return field.n_points * float(logsumexp(field.external_field))
