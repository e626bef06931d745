"""Labels of all new points together: draws from the field of training and new points."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import Rng, check_generator, check_whole
from nearfield.field import FieldFamily, LabelField, check_labels
from nearfield.inference import ParameterChain, Posterior, Priors
from nearfield.sampling import draw_free_labels

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]

_TINY = np.finfo(np.float64).tiny  # the odds of a class that is not expected


def draw_joint_labels(
    rng: Rng,
    posterior: Posterior,
    family: FieldFamily,
    labels: ArrayLike,
    n_draws: int = 1_000,
    *,
    n_sweeps: int = 20,
    odds: Floats | None = None,
    update_parameters: bool = False,
    priors: Priors | None = None,
    n_burn: int = 200,
    n_auxiliary_sweeps: int = 100,
) -> Labels:
    r"""Draw the labels of all new points together, so that they inform each other.

    .. math:: \pi(y^* \mid y) = \mathrm{E}\,\pi(y^* \mid y, \beta, \sigma)

    over the posterior, with the field of all n + m points; the first display of section 4 in
    Friel and Pettitt (2011), which they call impractical. Each draw has parameters of its own.

    Parameters
    ----------
    rng : Generator, seed or None, as `numpy.random.default_rng` takes it
    posterior : Posterior
        Of the training labels alone.
    family : FieldFamily
        Of all n + m points, the training points first.
    labels : array-like of int, shape (n,)
        Of the training points.
    n_draws : int
    n_sweeps : int
        Cluster moves and Gibbs sweeps over the new points from one draw to the next.
    odds : ndarray, shape (G,), optional
        Factors of the odds of the new points' classes: see `class_odds`.
    update_parameters : bool
        Whether the new points inform the parameters too: a chain that alternates between the
        labels and exchange moves of (beta, scale) on the whole field, started from `posterior`.
        Without it they do not, and the draws are independent but for what the sweeps leave.
    priors : Priors, optional
        For `update_parameters`: those that `posterior` was inferred with; the default ones if not
        given.
    n_burn : int
        For `update_parameters`: moves before the first draw, which adapt the proposals.
    n_auxiliary_sweeps : int
        For `update_parameters`: Gibbs sweeps to an auxiliary draw.

    Returns
    -------
    draws : ndarray of int, shape (n_draws, m)
    """
    rng = check_generator(rng)
    known = _check_known(labels, family)
    n_draws = check_whole(n_draws, "n_draws", minimum=1)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=1)
    log_odds = np.zeros(family.n_classes) if odds is None else np.log(np.maximum(odds, _TINY))
    sweep = partial(_sweep, rng, known=known, log_odds=log_odds, n_sweeps=n_sweeps)
    if not update_parameters:
        return _draw_given_parameters(rng, posterior, family, known, n_draws, sweep)
    n_burn = check_whole(n_burn, "n_burn", minimum=0)
    n_auxiliary_sweeps = check_whole(n_auxiliary_sweeps, "n_auxiliary_sweeps", minimum=1)
    labels = np.concatenate([known, rng.choice(known, size=family.n_points - len(known))])
    chain = ParameterChain(rng, posterior, family, labels, priors, n_auxiliary_sweeps)
    draws = np.empty((n_draws, family.n_points - len(known)), dtype=np.int64)
    for move in range(-n_burn, n_draws):
        labels[len(known) :] = sweep(chain.field, chain.beta, labels[len(known) :])
        chain.move(rng, labels, is_burn_in=move < 0)
        if move >= 0:
            draws[move] = labels[len(known) :]
    return draws


def _draw_given_parameters(
    rng: np.random.Generator,
    posterior: Posterior,
    family: FieldFamily,
    known: Labels,
    n_draws: int,
    sweep: Callable[[LabelField, float, Labels], Labels],
) -> Labels:
    betas, scales = posterior.sample_nodes(n_draws, rng)
    draws = np.empty((n_draws, family.n_points - len(known)), dtype=np.int64)
    labels = rng.choice(known, size=draws.shape[1])
    scale = None
    # By scale, so that a field is built once, and each draw starts from one like it.
    for draw in np.lexsort((betas, scales)):
        if scales[draw] != scale:
            scale = scales[draw]
            field = family.at(scale)
        labels = sweep(field, betas[draw], labels)
        draws[draw] = labels
    return draws


def _sweep(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    labels: Labels,
    *,
    known: Labels,
    log_odds: Floats,
    n_sweeps: int,
) -> Labels:
    """Move the labels of the new points, given those of the training points."""
    tilted = replace(field, external_field=field.external_field + log_odds)
    return draw_free_labels(rng, tilted, beta, known, labels, n_sweeps)


def _check_known(labels: ArrayLike, family: FieldFamily) -> Labels:
    known = np.asarray(labels)
    if known.ndim != 1 or not 0 < len(known) < family.n_points:
        raise ValueError(
            f"Expected labels of some of the {family.n_points} points of the family, the training "
            f"points, which come first; got shape {known.shape}. Build the family over the "
            "training and the new points."
        )
    return check_labels(known, len(known), family.n_classes)
