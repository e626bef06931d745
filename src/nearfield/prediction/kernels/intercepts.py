"""The external field that labels make most probable, given the support of their classes.

Not compiled: a few Newton steps over small matrices take less than compilation would.
"""

import numpy as np

_MAX_STEPS = 20
_LONGEST_STEP = 3.0
_LEAST_BETA = 0.05
_TOLERANCE = 1e-3


def fit_intercepts(support, labels, precision, precision_beta, beta, alpha):
    r"""Maximise over the external field alpha and beta > 0 by Newton's method.

    .. math:: \sum_i \log p(y_i \mid \alpha, \beta) - \frac{\tau}{2} \sum_g \alpha_g^2
              - \frac{\tau_\beta}{2} \beta^2, \qquad
              p(g) \propto \exp(\alpha_g + \beta h_{ig})

    Concave. Fills in alpha, which comes to sum to zero, and returns beta.

    Parameters
    ----------
    support : ndarray, shape (n, G)
    labels : ndarray of int, shape (n,)
    precision, precision_beta : float
        tau and tau_beta.
    beta : float
        To start from.
    alpha : ndarray, shape (G,)
    """
    n_classes = support.shape[1]
    penalties = np.append(np.full(n_classes, precision), precision_beta)
    counts = np.bincount(labels, minlength=n_classes)
    own_support = support[np.arange(len(labels)), labels].sum()
    gradient_of_labels = np.append(counts, own_support)
    parameters = np.append(np.zeros(n_classes), beta)
    for _ in range(_MAX_STEPS):
        expected, curvature = _moments(support, parameters)
        slope = gradient_of_labels - expected - penalties * parameters
        curvature.flat[:: n_classes + 2] += penalties
        step = np.linalg.solve(curvature, slope)
        longest = max(float(np.abs(step).max()), 1e-300)
        parameters += min(1.0, _LONGEST_STEP / longest) * step
        parameters[-1] = max(parameters[-1], _LEAST_BETA)
        if longest < _TOLERANCE:
            break
    alpha[:] = parameters[:-1] - parameters[:-1].mean()
    return float(parameters[-1])


def _moments(support, parameters):
    r"""Sum over the points the mean and the covariance of :math:`(1[y = g]_g, h_y)`.

    These are minus the slope of the log normalising constants in (alpha, beta), and their
    curvature.
    """
    logits = parameters[:-1] + parameters[-1] * support
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    weighted = p * support
    means = weighted.sum(axis=1)
    n_classes = support.shape[1]
    expected, curvature = np.empty(n_classes + 1), np.empty((n_classes + 1, n_classes + 1))
    expected[:-1], expected[-1] = p.sum(axis=0), means.sum()
    curvature[:-1, :-1] = np.diag(expected[:-1]) - p.T @ p
    curvature[-1, :-1] = curvature[:-1, -1] = weighted.sum(axis=0) - means @ p
    curvature[-1, -1] = np.vdot(weighted, support) - means @ means
    return expected, curvature
