"""Class intercepts: an external field that fits classes of unequal size.

With alpha = 0 the field favours no class before neighbours are counted. Where the classes have very
different sizes, intercepts fitted by pseudolikelihood make up for that.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.field import FieldFamily
from nearfield.inference._priors import Priors
from nearfield.inference._target import check_target
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate

Floats = NDArray[np.float64]

_MAX_STEPS = 30
_LONGEST_STEP = 6.0  # of any logit
_TOLERANCE = 1e-3  # of a step, whose error is about its square
_ROUNDING = 1e-9  # of beta, beside an end of its range


def fit_external_field(
    family: FieldFamily,
    labels: ArrayLike,
    priors: Priors | None = None,
    *,
    prior_sd: float = 1.0,
    n_rounds: int = 3,
) -> NDArray[np.float64]:
    r"""Fit the external field by pseudolikelihood, together with beta and the scale.

    Takes turns: the most probable scale given alpha, and at that scale, where the log
    pseudolikelihood is concave, alpha and beta together,

    .. math:: \max_{\alpha, \beta} \sum_i \log p(y_i \mid y_{-i}, \alpha, \beta)
              - \sum_g \frac{\alpha_g^2}{2 s^2} - \frac{(\beta - m)^2}{2 t^2}

    with m and t the median and the spread of the prior of beta, which is cut to beta > 0 where it
    allows that. The intercepts then sum to zero.

    Parameters
    ----------
    family : FieldFamily
        Its own external field is left aside.
    labels : array-like of int, shape (n,)
    priors : Priors, optional
        Of beta and the scale; those of `nearfield.inference` by default.
    prior_sd : float
        The sd s of the normal prior of each intercept.
    n_rounds : int
        Turns to take; three are plenty.

    Returns
    -------
    alpha : ndarray, shape (G,)
        Sums to zero.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.distances import distance_matrix
    >>> from nearfield.field import DistanceFamily
    >>> from nearfield.inference.intercepts import fit_external_field
    >>> points = np.random.default_rng(0).normal(size=(40, 2))
    >>> family = DistanceFamily(distance_matrix(points), "gaussian", n_classes=2)
    >>> alpha = fit_external_field(family, [0] * 30 + [1] * 10)
    >>> bool(alpha[0] > alpha[1])
    True
    """
    target = check_target(family, labels, priors, needs_joint=False)
    checked, priors = target.labels, target.priors
    prior_sd = check_positive(prior_sd, "prior_sd")
    below, middle, above = priors.beta.ppf([0.16, 0.5, 0.84])
    lower, upper = priors.beta_range
    beta_range = (max(lower, 0.0) if upper > 0.0 else lower), upper
    alpha = np.zeros(family.n_classes)
    for _ in range(check_whole(n_rounds, "n_rounds", minimum=1)):
        beta, scale = pseudolikelihood_estimate(family, checked, priors, alpha)
        alpha = maximize_intercepts(
            family.support(scale, checked),
            checked,
            prior_sd,
            (middle, 0.5 * (above - below)),
            beta_range,
            (alpha, beta),
            family.multiplicities,
        ).alpha
    return alpha


class InterceptFit(NamedTuple):
    """The most probable intercepts, which sum to zero, and beta; and the log mass around them.

    With Laplace's approximation, and up to a constant: to compare supports by.
    """

    alpha: Floats
    beta: Floats
    log_mass: Floats


def maximize_intercepts(
    support: Floats,
    labels: NDArray[np.int64],
    prior_sd: float,
    prior_beta: tuple[float, float],
    beta_range: tuple[float, float],
    start: tuple[Floats, float],
    multiplicities: Floats | None = None,
) -> InterceptFit:
    r"""Find the most probable intercepts and beta, given the support, by Newton's method.

    .. math:: \max_{\alpha, \beta} \sum_i s_i \log p(y_i \mid \alpha, \beta)
              - \sum_g \frac{\alpha_g^2}{2 s^2} - \frac{(\beta - m)^2}{2 t^2}, \qquad
              p(g) \propto \exp(\alpha_g + \beta h_{ig})

    Concave. The likelihood does not change if all intercepts move alike, so that the prior makes
    them sum to zero.

    Parameters
    ----------
    support : ndarray, shape (..., n, G)
        One, or several, each with its own intercepts and beta.
    labels : ndarray of int, shape (n,)
    prior_sd : float
        s.
    prior_beta : (float, float)
        m and t.
    beta_range : (float, float)
    start : (ndarray, float)
        Intercepts and beta to start from.
    multiplicities : ndarray, shape (n,), optional
        s_i, how often each label counts; once by default.
    """
    n_points, n_classes = support.shape[-2:]
    counts = np.ones(n_points) if multiplicities is None else multiplicities
    means = np.append(np.zeros(n_classes), prior_beta[0])
    precisions = np.append(np.full(n_classes, prior_sd**-2), prior_beta[1] ** -2)
    observed = np.empty((*support.shape[:-2], n_classes + 1))
    observed[..., :-1] = np.bincount(labels, counts, n_classes)
    observed[..., -1] = support[..., np.arange(n_points), labels] @ counts
    trial = np.empty_like(observed)
    trial[..., :-1], trial[..., -1] = start[0], np.clip(start[1], *beta_range)
    units = np.ones_like(observed)  # what a step of one adds to a logit at most
    units[..., -1] = np.ptp(support, axis=-1).max(axis=-1)
    nowhere, flat = np.full(trial.shape[:-1], -np.inf), np.diag(precisions)
    best = _Iterate(trial, nowhere, flat, np.zeros_like(trial))
    for _ in range(_MAX_STEPS):
        expected, curvature, log_normalizers = _moments(support, counts, trial)
        curvature += flat
        away = precisions * (trial - means)
        value = (observed * trial - 0.5 * away * (trial - means)).sum(axis=-1) - log_normalizers
        slope = observed - expected - away
        step = _newton_step(slope, curvature, trial[..., -1], beta_range)
        step /= np.maximum(np.abs(units * step).max(axis=-1, keepdims=True) / _LONGEST_STEP, 1.0)
        best = best.or_better(_Iterate(trial, value, curvature, step))
        if np.abs(units * best.step).max() < _TOLERANCE:
            break
        trial = best.parameters + best.step
        for end in beta_range:
            trial[np.abs(trial[..., -1] - end) < _ROUNDING, -1] = end
    alpha = best.parameters[..., :-1]
    return InterceptFit(
        alpha - alpha.mean(axis=-1, keepdims=True),
        best.parameters[..., -1],
        best.value - 0.5 * np.linalg.slogdet(best.curvature)[1],
    )


class _Iterate(NamedTuple):
    """Where Newton's method is: value and curvature there, and the step from there."""

    parameters: Floats
    value: Floats
    curvature: Floats
    step: Floats

    def or_better(self, trial: "_Iterate") -> "_Iterate":
        """Take a trial where it is no worse; elsewhere stay, and step a quarter as far."""
        is_better = trial.value >= self.value
        wide = is_better[..., None]
        return _Iterate(
            np.where(wide, trial.parameters, self.parameters),
            np.where(is_better, trial.value, self.value),
            np.where(wide[..., None], trial.curvature, self.curvature),
            np.where(wide, trial.step, 0.25 * self.step),
        )


def _newton_step(
    slope: Floats, curvature: Floats, beta: Floats, beta_range: tuple[float, float]
) -> Floats:
    """Solve for Newton's step; beta goes no further than its range, and the others with it."""
    bound = np.where(slope[..., -1] > 0.0, beta_range[1], beta_range[0])
    is_held = beta == bound
    curvature, slope = curvature.copy(), slope.copy()
    curvature[is_held, -1, :-1] = curvature[is_held, :-1, -1] = slope[is_held, -1] = 0.0
    step = np.linalg.solve(curvature, slope[..., None])[..., 0]
    end = np.where(step[..., -1] > 0.0, beta_range[1], beta_range[0])
    room = np.abs(end - beta) / np.maximum(np.abs(step[..., -1]), 1e-300)
    return np.asarray(step * np.where(is_held | (room > 1.0), 1.0, room)[..., None])


def _moments(support: Floats, counts: Floats, parameters: Floats) -> tuple[Floats, Floats, Floats]:
    r"""Sum over the points the mean and the covariance of :math:`(1[y = g]_g, h_y)`.

    These are minus the slope of the log normalising constants in (alpha, beta), and their
    curvature. The sum of the constants comes last.
    """
    p = parameters[..., None, :-1] + parameters[..., None, -1:] * support
    top = p.max(axis=-1, keepdims=True)
    np.exp(np.subtract(p, top, out=p), out=p)
    total = p.sum(axis=-1, keepdims=True)
    log_normalizers = (top + np.log(total))[..., 0] @ counts
    p /= total
    means = np.einsum("...ig,...ig->...i", p, support)
    counted = p * counts[:, None]
    weighted = counted * support
    n_classes = support.shape[-1]
    expected = np.empty_like(parameters)
    expected[..., :-1], expected[..., -1] = counted.sum(axis=-2), means @ counts
    curvature = np.empty((*expected.shape, n_classes + 1))
    curvature[..., :-1, :-1] = -p.swapaxes(-1, -2) @ counted
    curvature[..., range(n_classes), range(n_classes)] += expected[..., :-1]
    across = weighted.sum(axis=-2) - (means[..., None, :] @ counted)[..., 0, :]
    curvature[..., -1, :-1] = curvature[..., :-1, -1] = across
    second = np.einsum("...ig,...ig->...", weighted, support)
    curvature[..., -1, -1] = second - means**2 @ counts
    return expected, curvature, log_normalizers
