"""Labels of all new points together: draws from the field of training and new points."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_generator, check_whole
from nearfield.field import FieldFamily, LabelField, check_labels
from nearfield.inference import Posterior, Priors
from nearfield.inference._draws import draw_from_random_start
from nearfield.inference._target import Point, Target, check_target, indicators, log_potential
from nearfield.inference._walk import Walk, learn
from nearfield.inference.exchange import ExchangeSampler, ExchangeState
from nearfield.sampling.free import draw_free_labels

Labels = NDArray[np.int64]


def draw_joint_labels(
    rng: np.random.Generator,
    posterior: Posterior,
    family: FieldFamily,
    labels: ArrayLike,
    n_draws: int = 1_000,
    *,
    n_sweeps: int = 20,
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
    rng : numpy.random.Generator
    posterior : Posterior
        Of the training labels alone.
    family : FieldFamily
        Of all n + m points, the training points first.
    labels : array-like of int, shape (n,)
        Of the training points.
    n_draws : int
    n_sweeps : int
        Cluster moves and Gibbs sweeps over the new points from one draw to the next.
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
    check_generator(rng)
    known = _check_known(labels, family)
    n_draws = check_whole(n_draws, "n_draws", minimum=1)
    n_sweeps = check_whole(n_sweeps, "n_sweeps", minimum=1)
    if not update_parameters:
        return _draw_given_parameters(rng, posterior, family, known, n_draws, n_sweeps)
    n_burn = check_whole(n_burn, "n_burn", minimum=0)
    n_auxiliary_sweeps = check_whole(n_auxiliary_sweeps, "n_auxiliary_sweeps", minimum=1)
    labels = np.concatenate([known, rng.choice(known, size=family.n_points - len(known))])
    sampler = ExchangeSampler(
        check_target(family, labels, priors),
        partial(draw_from_random_start, n_sweeps=n_auxiliary_sweeps),
    )
    walk = _walk_over(posterior, sampler.target)
    state = ExchangeState(_starting_point(rng, posterior, sampler.target))
    draws = np.empty((n_draws, family.n_points - len(known)), dtype=np.int64)
    for move in range(-n_burn, n_draws):
        labels[len(known) :] = _sweep(
            rng, state.point.field, state.point.beta, known, labels[len(known) :], n_sweeps
        )
        sampler, state = _with_labels(sampler, state, labels)
        state, info = sampler.step(rng, state, walk)
        if move < 0:
            walk = learn(walk, state.point, info.acceptance)
        else:
            draws[move] = labels[len(known) :]
    return draws


def _draw_given_parameters(
    rng: np.random.Generator,
    posterior: Posterior,
    family: FieldFamily,
    known: Labels,
    n_draws: int,
    n_sweeps: int,
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
        labels = _sweep(rng, field, betas[draw], known, labels, n_sweeps)
        draws[draw] = labels
    return draws


def _with_labels(
    sampler: ExchangeSampler, state: ExchangeState, labels: Labels
) -> tuple[ExchangeSampler, ExchangeState]:
    """Let an exchange move see other labels."""
    target = replace(sampler.target, labels=labels.copy())
    potential = log_potential(state.point.field, state.point.beta, target.is_class)
    point = state.point._replace(log_potential=potential)
    return replace(sampler, target=target), ExchangeState(point)


def _starting_point(rng: np.random.Generator, posterior: Posterior, target: Target) -> Point:
    betas, scales = posterior.sample_nodes(1, rng)
    point = target.at(tuple(target.position_of(betas[0], scales[0]).tolist()))
    if point is None:
        raise ValueError(
            f"Expected priors with a density where the posterior is; got none at beta="
            f"{betas[0]:g}, scale={scales[0]:g}. Give the priors that it was inferred with."
        )
    return point


def _walk_over(posterior: Posterior, target: Target) -> Walk:
    """Make a random walk of the size and shape of a posterior."""
    weights = posterior.weight.ravel()
    positions = target.position_of(posterior.beta.ravel(), posterior.scale.ravel())
    mean = positions @ weights
    deviations = positions - mean[:, None]
    return Walk(mean, (weights * deviations) @ deviations.T, 0.0, 0)


def _sweep(
    rng: np.random.Generator,
    field: LabelField,
    beta: float,
    known: Labels,
    labels: Labels,
    n_sweeps: int,
) -> Labels:
    """Move the labels of the new points, given those of the training points."""
    n_known = len(known)
    is_class = indicators(known, field.n_classes)
    site_fields = field.external_field + beta * (field.coupling[n_known:, :n_known] @ is_class)
    coupling = field.coupling[n_known:, n_known:]
    if field.is_sparse:
        coupling = coupling.toarray()
    return draw_free_labels(rng, coupling, site_fields, beta, labels, n_sweeps)


def _check_known(labels: ArrayLike, family: FieldFamily) -> Labels:
    known = np.asarray(labels)
    if known.ndim != 1 or not 0 < len(known) < family.n_points:
        raise ValueError(
            f"Expected labels of some of the {family.n_points} points of the family, the training "
            f"points, which come first; got shape {known.shape}. Build the family over the "
            "training and the new points."
        )
    return check_labels(known, len(known), family.n_classes)
