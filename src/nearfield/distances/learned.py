"""Learned metrics: maps, fitted to labelled points, after which plain distances are better.

A learned metric is a scikit-learn transformer, ``fit(X, labels)`` and ``transform(X)``; the
Euclidean distances (or any other) between transformed points are the learned distances.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._fitting import all_or_nothing

_CONSTANT = 1e-9  # a standard deviation of less, relative to the largest value, is noise


class LearnedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A metric that is the Euclidean one after a map, which begins with a linear one.

    Attributes
    ----------
    map_ : ndarray, shape (n_axes, n_features), or (n_features,) if it is diagonal
        The linear map.
    mean_ : ndarray, shape (n_features,)
        What it maps to the origin.
    """

    map_: NDArray[np.float64]
    mean_: NDArray[np.float64]
    depends_on_axes = False  # or the same distances are learned after a rotation

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn the map from points, shape (n, n_features), and their labels, shape (n,)."""
        points, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        labels = np.unique(y, return_inverse=True)[1].astype(np.int64)
        standardized = standardize(points)
        self.learn(standardized.points, labels)
        # Divided by an infinite scale, a constant feature carries no distance.
        self.map_ = self.map_ / standardized.scale
        self.mean_ = standardized.mean
        return self

    def learn(self, points: NDArray[np.float64], labels: NDArray[np.int64]) -> Self:
        """Learn the map from standardised points, and labels of which none is left out.

        Parameters
        ----------
        points : ndarray, shape (n, n_features)
            Standardised, or on scales that count.
        labels : ndarray of int, shape (n,)
            0..G-1, all of them.
        """
        self.mean_ = points.mean(axis=0)
        self.map_ = self._learn(points - self.mean_, labels)
        self.n_features_in_ = points.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Map points, shape (m, n_features), to where plain distances are the learned ones."""
        check_is_fitted(self)
        return self.place(validate_data(self, X, dtype=np.float64, reset=False))

    def place(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map points that were checked."""
        centred = points - self.mean_
        return centred * self.map_ if self.map_.ndim == 1 else centred @ self.map_.T

    @property
    def n_components_(self) -> int:
        """The dimension of the space that points are mapped to."""
        return self.map_.shape[0]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @abstractmethod
    def _learn(self, points: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Learn the linear map of standardised points, shape (n_axes, n_features)."""


class LinearMetric(LearnedMetric):
    r"""A metric that is the Euclidean one after a linear map.

    .. math:: d(x, x') = \lVert A (x - x') \rVert

    Attributes
    ----------
    map_ : ndarray, shape (n_components_, n_features), or (n_features,) if A is diagonal
    mean_ : ndarray, shape (n_features,)
        What is mapped to the origin.
    """

    @property
    def components_(self) -> NDArray[np.float64]:
        """The map A, shape (n_components_, n_features)."""
        return np.diag(self.map_) if self.map_.ndim == 1 else self.map_


class Standardized(NamedTuple):
    """Points with mean zero and variance one in every feature, and how they became so."""

    points: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]


def standardize(points: NDArray[np.float64]) -> Standardized:
    """Centre every feature and divide it by its standard deviation; a constant one becomes zero.

    The scale of a constant feature is infinite. One is constant if it varies by less than 1e-9 of
    its largest value.
    """
    mean, scale = mean_and_deviation(points)
    # Rounding errors and noise of a constant feature must not be blown up.
    is_constant = scale <= _CONSTANT * np.abs(points).max(axis=0)
    scale = np.where(is_constant, np.inf, scale)
    return Standardized(in_units(points, mean, scale), mean, scale)


def mean_and_deviation(
    points: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the mean and the standard deviation of every feature, shape (n_features,) each.

    In units of a power of two, in which sums and squares of very large or small values are
    numbers; all others keep their digits.
    """
    exponent = np.frexp(np.abs(points).max(axis=0))[1]
    scaled = np.ldexp(points, -exponent)
    return np.ldexp(scaled.mean(axis=0), exponent), np.ldexp(scaled.std(axis=0), exponent)


def in_units(
    points: NDArray[np.float64], mean: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give (x - mean) / scale; by halves, of which no difference overflows."""
    return (0.5 * points - 0.5 * mean) / (0.5 * scale)


def class_means(points: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Average the points of each class, shape (G, n_features)."""
    is_class = labels[:, None] == np.arange(labels.max() + 1)
    return (is_class / is_class.sum(axis=0)).T @ points
