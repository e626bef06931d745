r"""Conformal p-values and prediction sets from scores of held-out points.

The p-value of "this point is of class g" is the share of points whose score is as unusual,

.. math:: p_g = \frac{1 + \#\{i : s_i \ge s\}}{n + 1}

over the points of class g (class-conditional) or over all points (marginal). If the scores of
these and of the new point are exchangeable, the probability of a p-value of at most alpha is at
most alpha. Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield.prediction.membership import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Swept on wine and the meat spectra, a class left out in turn: with 0, 0.5 and 1 the mean share
# that is refused at 5% is 0.68, 0.70 and 0.69 (five splits).
_OWN_SHARE = 0.5


def membership_p_values(scores: Scores, points: Floats, *, class_conditional: bool) -> Floats:
    """Give the p-value that each new point belongs to each class, shape (m, G).

    Parameters
    ----------
    scores : WithinClassDistance or NearestInClass
    points : ndarray
        As the scores take them: features, or distances to the training points.
    class_conditional : bool
        Whether a class is compared with its own points alone. If not, the scores of all points
        are compared, each less the level of its class.
    """
    labels, levels = scores.labels, class_levels(scores)
    is_usable = np.isfinite(scores.training_scores)  # not the only point of its class
    columns = []
    for g, (training, new) in enumerate(scores.conform(points)):
        if class_conditional:
            columns.append(_tail_share(training[labels == g], new))
        else:
            relative = training[is_usable] - levels[labels[is_usable], None]
            columns.append(_tail_share(relative, new - levels[g]))
    return np.column_stack(columns)


def held_out_membership(scores: Scores, *, class_conditional: bool) -> Floats:
    """Give the p-value of each training point, left out, in its own class, shape (n,)."""
    own = scores.training_scores
    if not class_conditional:
        own = own - class_levels(scores)[scores.labels]
    return _p_values_among(own, scores.labels, class_conditional)


def set_p_values(
    membership: Floats,
    held_out_membership: Floats,
    probabilities: Floats,
    held_out_probabilities: Floats,
    labels: Labels,
    *,
    class_conditional: bool,
) -> Floats:
    """Give the p-values that prediction sets are made of, shape (m, G).

    A class is out of the set if the point is unusual among its members, or if the class is
    improbable beside the others: of the two p-values the smaller counts, and is itself conformed
    to those of held-out points.

    Parameters
    ----------
    membership : ndarray, shape (m, G)
        p-values of membership.
    held_out_membership : ndarray, shape (n,)
    probabilities : ndarray, shape (m, G)
        Class probabilities.
    held_out_probabilities : ndarray, shape (n, G)
        Of training points that were held out.
    labels : ndarray of int, shape (n,)
    class_conditional : bool
    """
    own = -held_out_probabilities[np.arange(len(labels)), labels]
    held_out = np.minimum(held_out_membership, _p_values_among(own, labels, class_conditional))
    new = np.minimum(membership, _p_values(own, -probabilities, labels, class_conditional))
    return _p_values(-held_out, -new, labels, class_conditional)


def class_levels(scores: Scores) -> Floats:
    """Give the level of the scores of each class, shape (G,).

    The median of the class, shrunk halfway to that of all points: a class of few points tells its
    own level badly, and where one class is much wider than the others, its level would let any
    stranger in. A class of one point has the median of all.
    """
    training = scores.training_scores
    is_usable = np.isfinite(training)
    overall = np.median(training[is_usable]) if is_usable.any() else 0.0
    medians = np.full(scores.n_classes, overall)
    for g in np.unique(scores.labels[is_usable]):
        medians[g] = np.median(training[is_usable & (scores.labels == g)])
    return overall + _OWN_SHARE * (medians - overall)


def _p_values(training: Floats, new: Floats, labels: Labels, class_conditional: bool) -> Floats:
    """Give p-values of new scores, shape (m, G), among those of training points, shape (n,)."""
    groups = [training[labels == g] if class_conditional else training for g in range(new.shape[1])]
    return np.column_stack([_tail_share(own[:, None], new[:, g]) for g, own in enumerate(groups)])


def _p_values_among(scores: Floats, labels: Labels, class_conditional: bool) -> Floats:
    """Give the p-value of each training score among the others, shape (n,)."""
    groups = labels if class_conditional else np.zeros_like(labels)
    p_values = np.empty(len(scores))
    for g in np.unique(groups):
        own = scores[groups == g]
        n_below = np.searchsorted(np.sort(own), own, side="left")
        p_values[groups == g] = 1.0 - n_below / len(own)
    return p_values


def _tail_share(training: Floats, new: Floats) -> Floats:
    """Give the share of scores, (n, m) or (n, 1), at least as large as each new one, (m,)."""
    n_points = len(training)
    if training.shape[1] == 1:
        n_below = np.searchsorted(np.sort(training[:, 0]), new, side="left")
    else:
        n_below = (training < new).sum(axis=0)
    return np.asarray((1.0 + n_points - n_below) / (n_points + 1.0), dtype=np.float64)
