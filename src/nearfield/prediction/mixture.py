"""Intervals of class probabilities under several models at once."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from nearfield.field import DistanceFamily, check_external_field
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._predictor import Predictor
from nearfield.prediction._rules import Measure
from nearfield.prediction._smooth import Nodes, TrainingSums
from nearfield.prediction.heldout import TrainingEnergies
from nearfield.sampling.mean_softmax import mean_softmax

_LEAST_WEIGHT = 1e-4  # of a node, in the whole mixture
_MAX_SCALES = 8


class QuickAverage:
    """Class probabilities under a posterior of few nodes, in float32: good to 1e-5.

    Parameters
    ----------
    predictor : Predictor
        With a smooth kernel.
    """

    def __init__(self, predictor: Predictor) -> None:
        posterior, family = predictor.posterior, cast(DistanceFamily, predictor.family)
        nodes = Nodes.of(Measure(posterior.beta, posterior.scale, posterior.weight))
        energies = TrainingEnergies(
            predictor.labels, family.distances, family.kernel, family.n_classes
        )
        self.nodes, self.sums = nodes, energies.at(nodes.scales)
        self.alpha = check_external_field(family.external_field, family.n_classes)

    @staticmethod
    def suits(predictor: Predictor) -> bool:
        """Tell whether a posterior has few enough scales."""
        return len(np.unique(predictor.posterior.scale)) <= _MAX_SCALES

    def probabilities(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average the class probabilities of new points, shape (m, G)."""
        probabilities = np.empty((len(distances), len(self.alpha)))
        mean_softmax(
            self.sums.support(distances),
            *Interpolation.none(len(self.nodes.scales)),
            self.nodes.starts,
            self.nodes.betas,
            self.nodes.weights,
            self.alpha,
            probabilities,
        )
        return probabilities


def mixture_interval(
    predictors: Sequence[Predictor],
    weights: NDArray[np.float64],
    distances: Sequence[NDArray[np.float64]],
    level: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give equal-tailed intervals of the class probabilities, over models and their parameters.

    Parameters
    ----------
    predictors : sequence of Predictor
    weights : ndarray, shape (n_models,)
        Sum to one.
    distances : sequence of ndarray, shape (m, n)
        Of the new points to the training points, as each model measures them.
    level : float

    Returns
    -------
    lower, upper : ndarray, shape (m, G)
    """
    parts = [
        _node_probabilities(predictor, weight, d)
        for predictor, weight, d in zip(predictors, weights, distances, strict=True)
    ]
    values = np.concatenate([part[0] for part in parts])
    masses = np.concatenate([part[1] for part in parts])
    tail = 0.5 * (1.0 - level)
    lower, upper = weighted_quantiles(values, masses, [tail, 1.0 - tail])
    return lower, upper


def weighted_quantiles(
    values: NDArray[np.float64], weights: NDArray[np.float64], levels: Sequence[float]
) -> list[NDArray[np.float64]]:
    """Give quantiles over the first axis: the least value with so much weight at or below it."""
    order = np.argsort(values, axis=0)
    in_order = np.take_along_axis(values, order, axis=0)
    cumulative = np.cumsum(weights[order], axis=0) / weights.sum()
    found = []
    for level in levels:
        first = np.argmax(cumulative >= level - 1e-12, axis=0)
        found.append(np.take_along_axis(in_order, first[None], axis=0)[0])
    return found


def _node_probabilities(predictor, model_weight, distances):
    """Class probabilities at the nodes of a posterior, (n_nodes, m, G), and their weights."""
    posterior, family = predictor.posterior, predictor.family
    betas, sigmas = posterior.beta.ravel(), posterior.scale.ravel()
    weights = model_weight * posterior.weight.ravel()
    is_kept = weights >= min(_LEAST_WEIGHT, weights.max())
    alpha = check_external_field(family.external_field, family.n_classes)
    scales = np.unique(sigmas[is_kept])
    support = TrainingSums.of(family, predictor.labels, scales, is_joint=True).support(distances)
    values, masses = [], []
    for q, sigma in enumerate(scales):
        is_here = is_kept & (sigmas == sigma)
        values.append(softmax(alpha + betas[is_here][:, None, None] * support[:, q], axis=2))
        masses.append(weights[is_here])
    return np.concatenate(values), np.concatenate(masses)
