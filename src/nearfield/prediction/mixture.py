"""Class probabilities under several models at once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.prediction._predictor import FieldPredictor
from nearfield.prediction.class_prior import multiply_odds

Floats = NDArray[np.float64]

_VALUES_AT_ONCE = 2**21


class Mixture(NamedTuple):
    """Predictors and their weights, which sum to one."""

    predictors: Sequence[FieldPredictor]
    weights: Floats

    def probabilities(self, points: Sequence[Any]) -> Floats:
        """Average the class probabilities over models and their parameters, shape (m, G).

        Parameters
        ----------
        points : sequence
            The new points as each predictor takes them.
        """
        parts = zip(self.weights, self.predictors, points, strict=True)
        return np.sum([weight * each.probabilities(some) for weight, each, some in parts], axis=0)

    def quantiles(
        self, points: Sequence[Any], levels: ArrayLike, odds: Floats | None = None
    ) -> Floats:
        """Give quantiles of the class probabilities, over models and their parameters.

        Returns
        -------
        quantiles : ndarray, shape (n_levels, m, G)
        """
        supports = [each.support(some) for each, some in zip(self.predictors, points, strict=True)]
        return mixture_quantiles(self.weights, self.predictors, supports, levels, odds)


def mixture_quantiles(
    weights: Floats,
    models: Sequence[Any],
    supports: Sequence[Floats],
    levels: ArrayLike,
    odds: Floats | None = None,
) -> Floats:
    """Give quantiles of the class probabilities over several models, shape (n_levels, m, G).

    Parameters
    ----------
    weights : ndarray, shape (n_models,)
    models : sequence
        Each with `nodes` and `external_field`.
    supports : sequence of ndarray, shape (m, n_scales, G)
    levels : array-like
    odds : ndarray, shape (G,), optional
        Factors of the classes' odds: see `class_odds`.
    """
    pairs = zip(weights, models, strict=True)
    masses = np.concatenate([weight * each.nodes.sample.weights for weight, each in pairs])
    n_points, _, n_classes = supports[0].shape
    quantiles = np.empty((np.size(levels), n_points, n_classes))
    n_rows = max(1, _VALUES_AT_ONCE // (len(masses) * n_classes))
    for start in range(0, n_points, n_rows):
        rows = slice(start, start + n_rows)
        values = [
            each.nodes.sample_probabilities(support[rows], each.external_field)
            for each, support in zip(models, supports, strict=True)
        ]
        reweighted = multiply_odds(np.concatenate(values, axis=2), odds)
        quantiles[:, rows] = weighted_quantiles(reweighted, masses, levels)
    return quantiles


def weighted_quantiles(values: Floats, weights: Floats, levels: ArrayLike) -> Floats:
    """Give quantiles over the last axis: the least value with so much weight at or below it.

    Returns
    -------
    quantiles : ndarray, shape (n_levels, ...)
    """
    order = np.argsort(values, axis=-1)
    in_order = np.take_along_axis(values, order, axis=-1)
    cumulative = np.cumsum(weights[order], axis=-1) / weights.sum()
    firsts = [np.argmax(cumulative >= level - 1e-12, axis=-1) for level in np.atleast_1d(levels)]
    return np.array(
        [np.take_along_axis(in_order, first[..., None], axis=-1)[..., 0] for first in firsts]
    )
