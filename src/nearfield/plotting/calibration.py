"""How well probabilities keep their promise: bins of confidence, and the error over them.

Numbers only; the picture is `nearfield.plotting.ReliabilityDisplay`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class CalibrationBins(NamedTuple):
    """Predictions grouped by their probability; empty groups are left out.

    Attributes
    ----------
    n_points : ndarray, shape (n_bins,)
        How many predictions are in each bin.
    confidence : ndarray, shape (n_bins,)
        Their mean probability.
    n_true : ndarray, shape (n_bins,)
        How many of them came true.
    """

    n_points: NDArray[np.int64]
    confidence: NDArray[np.float64]
    n_true: NDArray[np.int64]

    @property
    def frequency(self) -> NDArray[np.float64]:
        """The share that came true, shape (n_bins,)."""
        return self.n_true / self.n_points

    @property
    def expected_error(self) -> float:
        r"""The mean gap between promise and frequency.

        .. math:: \sum_b \frac{n_b}{n} \, |\text{frequency}_b - \text{confidence}_b|
        """
        gap = np.abs(self.frequency - self.confidence)
        return float(np.average(gap, weights=self.n_points))


def calibration_bins(
    is_true: ArrayLike, probabilities: ArrayLike, n_bins: int = 10
) -> CalibrationBins:
    """Group events by their probability, in bins of equal width.

    Parameters
    ----------
    is_true : array-like of bool, shape (n,)
        Whether each event happened.
    probabilities : array-like, shape (n,)
        The probability that each had been given.
    n_bins : int
    """
    happened, promised = np.asarray(is_true, dtype=bool), np.asarray(probabilities, dtype=float)
    if happened.ndim != 1 or happened.shape != promised.shape or happened.size == 0:
        raise ValueError(
            "Expected is_true and probabilities of one shape (n,), n >= 1; got shapes "
            f"{happened.shape} and {promised.shape}. Give one probability an event."
        )
    if n_bins < 1:
        raise ValueError(f"Expected n_bins >= 1; got n_bins={n_bins}. Try 10.")
    index = np.minimum((promised * n_bins).astype(int), n_bins - 1)
    count = np.bincount(index, minlength=n_bins)
    is_used = count > 0
    total = np.bincount(index, weights=promised, minlength=n_bins)
    n_true = np.bincount(index[happened], minlength=n_bins)
    return CalibrationBins(count[is_used], total[is_used] / count[is_used], n_true[is_used])


def top_label_bins(
    labels: ArrayLike, probabilities: ArrayLike, n_bins: int = 10
) -> CalibrationBins:
    """Group predictions by the probability of the class that each holds most likely.

    Parameters
    ----------
    labels : array-like of int, shape (n,)
        The true classes, 0..G-1: the index of a column of `probabilities`.
    probabilities : array-like, shape (n, G)
    n_bins : int
    """
    predicted = np.asarray(probabilities, dtype=float)
    truth = np.asarray(labels)
    if predicted.ndim != 2 or truth.shape != predicted.shape[:1]:
        raise ValueError(
            "Expected labels of shape (n,) and probabilities of shape (n, G); got shapes "
            f"{truth.shape} and {predicted.shape}. Give one row of probabilities a label."
        )
    return calibration_bins(predicted.argmax(axis=1) == truth, predicted.max(axis=1), n_bins)


def expected_calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, n_bins: int = 10
) -> float:
    r"""Average how far confidence is from accuracy, over bins of confidence.

    .. math:: \sum_b \frac{n_b}{n} \, |\text{accuracy}_b - \text{confidence}_b|

    Confidence is the probability of the most likely class; the bins are of equal width. It is
    biased upwards when a bin holds few points: compare it between methods on the same points.

    Parameters
    ----------
    labels : array-like of int, shape (n,)
        The true classes, 0..G-1: the index of a column of `probabilities`.
    probabilities : array-like, shape (n, G)
    n_bins : int

    Examples
    --------
    >>> from nearfield.plotting import expected_calibration_error
    >>> expected_calibration_error([0, 0, 0, 1], [[0.75, 0.25]] * 4)
    0.0
    """
    return top_label_bins(labels, probabilities, n_bins).expected_error
