"""Class intercepts: an external field that fits classes of unequal size.

With alpha = 0 the field favours no class before neighbours are counted. Where the classes have very
different sizes, intercepts fitted by pseudolikelihood make up for that.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from nearfield._checks import check_positive, check_whole
from nearfield.field import FieldFamily
from nearfield.inference._engine import check_problem
from nearfield.inference._priors import Priors
from nearfield.inference.pseudolikelihood import pseudolikelihood_estimate


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
    checked, priors = check_problem(family, labels, priors, needs_joint=False)
    prior_sd = check_positive(prior_sd, "prior_sd")
    alpha = np.zeros(family.n_classes)
    for _ in range(check_whole(n_rounds, "n_rounds", minimum=1)):
        beta, scale = pseudolikelihood_estimate(family, checked, priors, alpha)
        support = family.support(scale, checked)
        alpha, _ = _fit_at_scale(
            support, checked, priors, prior_sd, (alpha, beta), family.multiplicities
        )
    return alpha


def _fit_at_scale(
    support: NDArray[np.float64],
    labels: NDArray[np.int64],
    priors: Priors,
    prior_sd: float,
    start: tuple[NDArray[np.float64], float],
    multiplicities: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Fit alpha and beta where the support is known."""
    below, middle, above = priors.beta.ppf([0.16, 0.5, 0.84])
    lower, upper = priors.beta_range
    lower = max(lower, 0.0) if upper > 0.0 else lower
    prior_beta = middle, 0.5 * (above - below)
    return maximize_intercepts(
        support, labels, prior_sd, prior_beta, (lower, upper), start, multiplicities
    )


def maximize_intercepts(
    support: NDArray[np.float64],
    labels: NDArray[np.int64],
    prior_sd: float,
    prior_beta: tuple[float, float],
    beta_range: tuple[float, float],
    start: tuple[NDArray[np.float64], float],
    multiplicities: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Find the most probable intercepts and beta, given the support, shape (n, G).

    Parameters
    ----------
    support, labels, prior_sd, prior_beta, multiplicities
        As for `minus_log_posterior`.
    beta_range : (float, float)
    start : (ndarray, float)
        Intercepts and beta to start from.
    """
    alpha, beta = start
    found = minimize(
        minus_log_posterior,
        np.append(alpha, np.clip(beta, *beta_range)),
        args=(support, labels, prior_sd, prior_beta, multiplicities),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * len(alpha) + [beta_range],
        options={"gtol": 1e-6, "ftol": 1e-13},
    )
    return found.x[:-1] - found.x[:-1].mean(), float(found.x[-1])


def minus_log_posterior(
    parameters: NDArray[np.float64],
    support: NDArray[np.float64],
    labels: NDArray[np.int64],
    prior_sd: float,
    prior_beta: tuple[float, float],
    multiplicities: NDArray[np.float64] | None = None,
) -> tuple[float, NDArray[np.float64]]:
    r"""Evaluate what the intercepts and beta, in this order, minimise, and its gradient.

    With :math:`r_{ig} = p(y_i = g \mid y_{-i}) - 1[y_i = g]` it is

    .. math:: \sum_i r_{ig} + \frac{\alpha_g}{s^2}, \qquad
              \sum_{ig} r_{ig} h_{ig} + \frac{\beta - m}{t^2}

    The likelihood does not change if all intercepts move alike, so that the prior makes them sum
    to zero. `prior_beta` is (m, t). With multiplicities, the term of each label counts as often.
    """
    alpha, beta = parameters[:-1], parameters[-1]
    middle, spread = prior_beta
    totals = alpha + beta * support
    log_conditionals = totals - logsumexp(totals, axis=1, keepdims=True)
    sites = np.arange(len(labels))
    surplus = np.exp(log_conditionals)
    surplus[sites, labels] -= 1.0
    log_own = log_conditionals[sites, labels]
    if multiplicities is not None:
        surplus, log_own = surplus * multiplicities[:, None], log_own * multiplicities
    penalty = 0.5 * np.sum((alpha / prior_sd) ** 2) + 0.5 * ((beta - middle) / spread) ** 2
    gradient = np.append(
        surplus.sum(axis=0) + alpha / prior_sd**2,
        np.vdot(surplus, support) + (beta - middle) / spread**2,
    )
    return float(penalty - log_own.sum()), gradient
