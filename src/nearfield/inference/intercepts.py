"""Class intercepts: an external field that fits classes of unequal size.

With alpha = 0 the field favours no class before neighbours are counted. Where the classes have very
different sizes, intercepts fitted by pseudolikelihood make up for that.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield._checks import check_positive, check_whole
from nearfield.field import FieldFamily
from nearfield.inference._priors import Priors
from nearfield.inference._target import check_target
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate

Floats = NDArray[np.float64]

_MAX_STEPS = 20
_LONGEST_STEP = 3.0  # of any parameter
_TOLERANCE = 1e-3  # of the last step, whose error is about its square


def fit_external_field(
    family: FieldFamily,
    labels: ArrayLike,
    priors: Priors | None = None,
    *,
    prior_sd: float = 1.0,
    n_rounds: int = 3,
) -> Floats:
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
        alpha, _ = maximize_intercepts(
            family.support(scale, checked),
            checked,
            prior_sd,
            (middle, 0.5 * (above - below)),
            beta_range,
            (alpha, beta),
            family.multiplicities,
        )
    return alpha


def maximize_intercepts(
    support: Floats,
    labels: NDArray[np.int64],
    prior_sd: float,
    prior_beta: tuple[float, float],
    beta_range: tuple[float, float],
    start: tuple[Floats, float],
    multiplicities: Floats | None = None,
) -> tuple[Floats, float]:
    r"""Find the most probable intercepts and beta, given the support, by Newton's method.

    .. math:: \max_{\alpha, \beta} \sum_i s_i \log p(y_i \mid \alpha, \beta)
              - \sum_g \frac{\alpha_g^2}{2 s^2} - \frac{(\beta - m)^2}{2 t^2}, \qquad
              p(g) \propto \exp(\alpha_g + \beta h_{ig})

    Concave. The likelihood does not change if all intercepts move alike, so that the prior makes
    them sum to zero.

    Parameters
    ----------
    support : ndarray, shape (n, G)
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
    n_points, n_classes = support.shape
    counts = np.ones(n_points) if multiplicities is None else multiplicities
    means = np.append(np.zeros(n_classes), prior_beta[0])
    precisions = np.append(np.full(n_classes, prior_sd**-2), prior_beta[1] ** -2)
    own_support = counts @ support[np.arange(n_points), labels]
    observed = np.append(np.bincount(labels, counts, n_classes), own_support)
    parameters = np.append(start[0], np.clip(start[1], *beta_range))
    for _ in range(_MAX_STEPS):
        expected, curvature = _moments(support, counts, parameters)
        slope = observed - expected - precisions * (parameters - means)
        curvature.flat[:: n_classes + 2] += precisions
        bound = beta_range[int(slope[-1] > 0.0)]
        n_free = n_classes + int(parameters[-1] != bound)  # beta stays where it may not go on
        step = np.linalg.solve(curvature[:n_free, :n_free], slope[:n_free])
        longest = max(float(np.abs(step).max()), 1e-300)
        parameters[:n_free] += min(1.0, _LONGEST_STEP / longest) * step
        parameters[-1] = np.clip(parameters[-1], *beta_range)
        if longest < _TOLERANCE:
            break
    return parameters[:-1] - parameters[:-1].mean(), float(parameters[-1])


def _moments(support: Floats, counts: Floats, parameters: Floats) -> tuple[Floats, Floats]:
    r"""Sum over the points the mean and the covariance of :math:`(1[y = g]_g, h_y)`.

    These are minus the slope of the log normalising constants in (alpha, beta), and their
    curvature.
    """
    logits = parameters[:-1] + parameters[-1] * support
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    means = np.einsum("ig,ig->i", p, support)
    counted = p * counts[:, None]
    weighted = counted * support
    n_classes = support.shape[1]
    expected, curvature = np.empty(n_classes + 1), np.empty((n_classes + 1, n_classes + 1))
    expected[:-1], expected[-1] = counted.sum(axis=0), counts @ means
    curvature[:-1, :-1] = np.diag(expected[:-1]) - p.T @ counted
    curvature[-1, :-1] = curvature[:-1, -1] = weighted.sum(axis=0) - means @ counted
    curvature[-1, -1] = np.vdot(weighted, support) - counts @ means**2
    return expected, curvature
