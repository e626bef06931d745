"""How good class probabilities are: error, log loss, Brier score and calibration error."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.plotting import expected_calibration_error

LOSSES = ("error", "log_loss", "brier", "ece")
SMALLEST = float(np.finfo(np.float64).eps)
"""A probability below this counts as this in the log loss: k-nn gives zeros."""


def point_losses(probabilities: ArrayLike, labels: ArrayLike) -> dict[str, float]:
    r"""Average four losses of predicted class probabilities over the points.

    .. math:: \frac1m \sum_i 1[\hat y_i \ne y_i], \quad
              -\frac1m \sum_i \log p_{i y_i}, \quad
              \frac1m \sum_{ig} (p_{ig} - 1[y_i = g])^2

    and the expected calibration error of the top class over ten bins of equal width.

    Parameters
    ----------
    probabilities : array-like, shape (m, G)
        Rows sum to one; classes in the order of their codes.
    labels : array-like of int, shape (m,)
        Codes 0..G-1.

    Returns
    -------
    losses : dict
        With ``error``, ``log_loss``, ``brier`` and ``ece``. A probability below the machine
        epsilon counts as the machine epsilon in the log loss.

    Examples
    --------
    >>> from nearfield.reproduction import point_losses
    >>> losses = point_losses([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    >>> losses["error"], round(losses["brier"], 2)
    (0.5, 0.37)
    """
    losses = sample_losses(probabilities, labels)
    return {
        **{name: float(values.mean()) for name, values in losses.items()},
        "ece": expected_calibration_error(labels, probabilities),
    }


def sample_losses(probabilities: ArrayLike, labels: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """Return the error, log loss and Brier score of each point, shape (m,)."""
    p, y = _checked(probabilities, labels)
    points = np.arange(len(y))
    residuals = p.copy()
    residuals[points, y] -= 1.0
    return {
        "error": (p.argmax(axis=1) != y).astype(np.float64),
        "log_loss": -np.log(np.maximum(p[points, y], SMALLEST)),
        "brier": (residuals**2).sum(axis=1),
    }


def predictive_entropy(probabilities: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`-\sum_g p_g \log p_g` of each row, in nats."""
    p = np.asarray(probabilities, dtype=np.float64)
    return -(p * np.log(np.maximum(p, SMALLEST))).sum(axis=1)


def _checked(
    probabilities: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    p = np.asarray(probabilities, dtype=np.float64)
    y = np.asarray(labels)
    if p.ndim != 2 or y.shape != p.shape[:1] or len(y) == 0:
        raise ValueError(
            f"Expected probabilities of shape (m, G) and labels of shape (m,), m >= 1; got shapes "
            f"{p.shape} and {y.shape}. Give one row for each label."
        )
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(
            f"Expected labels as codes 0..{p.shape[1] - 1}; got {np.unique(y)[:5].tolist()}. "
            "Give the column of each label's class."
        )
    return p, y.astype(np.int64)
