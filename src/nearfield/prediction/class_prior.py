"""Class probabilities where the classes have other proportions than in training."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def check_class_prior(class_prior: ArrayLike | None, n_classes: int) -> Floats | None:
    """Accept class proportions that sum to one, one a class, or None."""
    if class_prior is None:
        return None
    try:
        checked = np.asarray(class_prior, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        checked = np.empty(0)
    is_valid = checked.shape == (n_classes,) and (checked >= 0.0).all()
    if not is_valid or abs(checked.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"Expected class_prior of {n_classes} proportions that sum to one, in the order of "
            f"classes_; got {class_prior!r}. Give one for each class."
        )
    return checked


def class_odds(class_prior: ArrayLike | None, class_counts: NDArray[Any]) -> Floats | None:
    r"""Give the factor of each class's odds, shape (G,); None leaves all as they are.

    .. math:: \pi'_g / \pi_g

    with the proportions :math:`\pi` of the training labels, by their weights.
    """
    expected = check_class_prior(class_prior, len(class_counts))
    return None if expected is None else expected / (class_counts / class_counts.sum())


def multiply_odds(probabilities: Floats, odds: Floats | None) -> Floats:
    r"""Multiply the odds of the classes, and normalise.

    .. math:: p'_g \propto p_g \, \pi'_g / \pi_g

    Parameters
    ----------
    probabilities : ndarray, shape (m, G, ...)
    odds : ndarray, shape (G,), or None
        See `class_odds`.
    """
    if odds is None:
        return probabilities
    by_class = odds.reshape(-1, *[1] * (probabilities.ndim - 2))
    weighted = probabilities * by_class
    total = weighted.sum(axis=1, keepdims=True)
    # All probability may be on classes that are not expected at all: then these alone are left.
    fallback = by_class / odds.sum()
    return np.where(total > 0.0, weighted / np.where(total > 0.0, total, 1.0), fallback)
