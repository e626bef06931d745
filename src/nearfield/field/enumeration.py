"""Exact answers for fields small enough to enumerate, and for the uniform field of any size.

The oracle of the tests: nothing here is random, approximate or clever.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, softmax

from nearfield._checks import check_beta, check_whole
from nearfield.field.label_field import LabelField, check_external_field, check_field

MAX_CONFIGURATIONS = 2**22
"""The largest number of labelings, G^n, that is enumerated: about a second of work."""


def log_partition(field: LabelField, beta: ArrayLike) -> NDArray[np.float64] | float:
    r"""Compute the log normalizing constant of a tiny field, exactly.

    .. math:: \log z(\beta) = \log \sum_y \exp\Big(\sum_i \alpha_{y_i} + \beta S(y)\Big)

    Parameters
    ----------
    field : LabelField
        With at most `MAX_CONFIGURATIONS` labelings.
    beta : float or array-like

    Returns
    -------
    log_partition : float, or ndarray of the shape of `beta`

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import LabelField, enumeration
    >>> field = LabelField.from_weights((1.0 - np.eye(3)) / 2.0, n_classes=2)
    >>> enumeration.log_partition(field, [0.0, 1.0]).round(3)
    array([2.079, 4.034])
    """
    agreements, external = _all_statistics(field)
    return _for_each_beta(lambda b: logsumexp(external + b * agreements), beta)


def mean_agreement(field: LabelField, beta: ArrayLike) -> NDArray[np.float64] | float:
    r"""Compute the expected agreement of a tiny field, exactly.

    .. math:: E[S] = d \log z / d \beta

    Parameters and shapes are those of `log_partition`.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import LabelField, enumeration
    >>> field = LabelField.from_weights((1.0 - np.eye(3)) / 2.0, n_classes=2)
    >>> enumeration.mean_agreement(field, [0.0, 1.0]).round(3)
    array([1.5  , 2.422])
    """
    agreements, external = _all_statistics(field)
    return _for_each_beta(lambda b: softmax(external + b * agreements) @ agreements, beta)


def label_distribution(
    field: LabelField, beta: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """List every labeling of a tiny field with its probability.

    Returns
    -------
    labelings : ndarray, shape (G^n, n)
        In the order of `numpy.ndindex`: the last label runs fastest.
    probabilities : ndarray, shape (G^n,)

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.field import LabelField, enumeration
    >>> field = LabelField.from_weights((1.0 - np.eye(3)) / 2.0, n_classes=2)
    >>> labelings, probabilities = enumeration.label_distribution(field, 1.0)
    >>> labelings[0], probabilities[0].round(2)
    (array([0, 0, 0]), np.float64(0.36))
    """
    beta = check_beta(beta)
    agreements, external = _all_statistics(field)
    shape = (field.n_classes,) * field.n_points
    labelings = np.stack(np.unravel_index(np.arange(agreements.size), shape), axis=1)
    return labelings, softmax(external + beta * agreements)


def uniform_log_partition(
    n_points: int, n_classes: int, beta: ArrayLike, external_field: ArrayLike | None = None
) -> NDArray[np.float64] | float:
    r"""Compute log z of the uniform field, all weights 1/(n-1), exactly for hundreds of points.

    There the agreement depends on the class counts alone, so z is a convolution over classes:

    .. math:: S = \sum_g \frac{n_g (n_g - 1)}{n - 1}, \qquad
              z = n!\,[x^n] \prod_g \sum_m \frac{e^{\alpha_g m + \beta m(m-1)/(n-1)}}{m!} x^m

    With three or more classes this field has a first-order transition in beta, which makes it
    the hard case of path sampling.

    Examples
    --------
    >>> from nearfield.field.enumeration import uniform_log_partition
    >>> uniform_log_partition(100, 3, [0.0, 1.0, 2.0]).round(2)
    array([109.86, 143.63, 205.2 ])
    """
    return _for_each_beta(
        lambda b: _uniform_statistics(n_points, n_classes, b, external_field)[0], beta
    )


def uniform_mean_agreement(
    n_points: int, n_classes: int, beta: ArrayLike, external_field: ArrayLike | None = None
) -> NDArray[np.float64] | float:
    """Compute the expected agreement of the uniform field; see `uniform_log_partition`.

    Examples
    --------
    >>> from nearfield.field.enumeration import uniform_mean_agreement
    >>> uniform_mean_agreement(100, 3, [0.0, 1.0, 2.0]).round(1)  # of 100: a jump between 1 and 2
    array([33.3, 34.7, 91. ])
    """
    return _for_each_beta(
        lambda b: _uniform_statistics(n_points, n_classes, b, external_field)[1], beta
    )


def _for_each_beta(
    function: Callable[[float], float], beta: ArrayLike
) -> NDArray[np.float64] | float:
    betas = np.asarray(beta, dtype=np.float64)
    if not np.isfinite(betas).all():
        raise ValueError(f"Expected finite betas; got {beta!r}. Leave out what is not a number.")
    values = np.array([function(b) for b in betas.ravel()]).reshape(betas.shape)
    return values if betas.ndim else float(values)


def _all_statistics(field: LabelField) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Agreement and external sum of all G^n labelings, one site added at a time."""
    _check_enumerable(field)
    coupling = field.to_dense().coupling
    agreements, external = np.zeros(1), np.zeros(1)
    for site in range(field.n_points):
        support = _support_of_next(coupling[site, :site], field.n_classes)
        agreements = (agreements[:, None] + support).ravel()
        external = (external[:, None] + field.external_field).ravel()
    return agreements, external


def _support_of_next(couplings: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Support for each class of a site, over all labelings of those before it: (G^sites, G)."""
    support = np.zeros((1, n_classes))
    for coupling in couplings:
        support = (support[:, None, :] + coupling * np.eye(n_classes)).reshape(-1, n_classes)
    return support


def _check_enumerable(field: LabelField) -> None:
    check_field(field)
    if field.n_points * np.log(field.n_classes) > np.log(MAX_CONFIGURATIONS) + 1e-9:
        raise ValueError(
            f"Expected n_classes ** n_points <= {MAX_CONFIGURATIONS}; got "
            f"{field.n_classes} ** {field.n_points} labelings, too many to enumerate. "
            "Use nearfield.log_partition.log_partition_curve for larger fields."
        )


def _uniform_statistics(
    n_points: int, n_classes: int, beta: float, external_field: ArrayLike | None
) -> tuple[float, float]:
    """Log z and mean agreement of the uniform field, adding one class at a time."""
    n_points = check_whole(n_points, "n_points", minimum=2)
    n_classes = check_whole(n_classes, "n_classes", minimum=1)
    alphas = check_external_field(external_field, n_classes)
    counts = np.arange(n_points + 1)
    class_agreement = counts * (counts - 1) / (n_points - 1)
    log_z, mean = np.where(counts == 0, 0.0, -np.inf), np.zeros(n_points + 1)
    first = counts[:, None] - counts[None, :]  # how many points the classes before hold
    is_possible = first >= 0
    for alpha in alphas:
        log_terms = alpha * counts + beta * class_agreement - gammaln(counts + 1)
        log_joint = np.where(is_possible, log_z[first] + log_terms, -np.inf)
        mean = (softmax(log_joint, axis=1) * (mean[first] + class_agreement)).sum(axis=1)
        log_z = logsumexp(log_joint, axis=1)
    return log_z[-1] + gammaln(n_points + 1), mean[-1]
