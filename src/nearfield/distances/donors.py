"""Values for gaps: those of the training points that are nearest in what is known."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_N_DONORS = 10
"""On iris and wine, with a quarter to three quarters of the values of held-out rows missing, 10
donors had log losses of 0.08 to 0.61, and 30 of 0.12 to 0.58; column means had 0.16 to 1.81."""


def fill_from_donors(points: Floats, is_gap: NDArray[np.bool_], donors: Floats) -> Floats:
    """Copy each point, its gaps filled with the values of one of its nearest donors each time.

    Near in the features that a point has, in units of the standard deviations of the donors. The
    average of a prediction over the copies stands for that over the missing values, given those
    that are known.

    Parameters
    ----------
    points : ndarray, shape (m, n_features)
    is_gap : ndarray of bool, shape (m, n_features)
        At least one a row, and not all.
    donors : ndarray, shape (n, n_features)

    Returns
    -------
    filled : ndarray, shape (m, n_copies, n_features)
    """
    filled = np.repeat(points[:, None], min(_N_DONORS, len(donors)), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):  # such a feature counts for nothing, or far
        sds = donors.std(axis=0)
        factors = np.where(sds > 0.0, 1.0 / np.where(sds > 0.0, sds, 1.0), 0.0)
        for copies, point, gap in zip(filled, points, is_gap, strict=True):
            differences = (donors[:, ~gap] - point[~gap]) * factors[~gap]
            order = np.argsort((differences**2).sum(axis=1), kind="stable")
            copies[:, gap] = donors[order[: len(copies)]][:, gap]
    return filled
