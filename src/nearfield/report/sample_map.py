"""Samples in the plane: principal components of the points where the model takes distances."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from nearfield.report.results import Floats


class Plane(NamedTuple):
    """Two leading directions.

    Attributes
    ----------
    training, new : ndarray, shape (n, 2), (m, 2)
    explained : float
        The share of the variance of the training points.
    """

    training: Floats
    new: Floats
    explained: float


def leading_plane(final: Any, X: Any = None) -> Plane | None:
    r"""Place training points, and new ones, by the two leading directions of the metric.

    A model of several estimators has several metrics. The coordinates of each, scaled to one mean
    square and multiplied by the root of its weight, stand side by side, so that squared distances
    are the weighted mean of those of the estimators. None where only distances are known.

    Parameters
    ----------
    final : fitted classifier
    X : array-like, shape (m, n_features), optional
        New points, as the classifier takes them.
    """
    training_parts, new_parts = [], []
    for weight, space in _spaces(final):
        points = dense(space.points)
        if points.shape[1] == 0:
            return None
        mean = np.nanmean(points, axis=0)
        centred = np.nan_to_num(points - mean)  # a missing value counts as the mean
        scale = np.sqrt((centred**2).sum(axis=1).mean())
        factor = np.sqrt(weight) / (scale if scale > 0.0 else 1.0)
        training_parts.append(centred * factor)
        new = points[:0] if X is None else dense(space.place(_transformed(final, X)))
        new_parts.append(np.nan_to_num(new - mean) * factor)
    if not training_parts:
        return None
    training, new = np.hstack(training_parts), np.hstack(new_parts)
    directions, explained = _principal_directions(training)
    return Plane(training @ directions, new @ directions, explained)


def _principal_directions(points: Floats) -> tuple[Floats, float]:
    """Give the two leading directions of centred points, each with its largest entry positive."""
    n_points, n_features = points.shape
    if n_features <= n_points:
        values, vectors = np.linalg.eigh(points.T @ points)
        directions = vectors[:, ::-1][:, :2]
    else:
        values, vectors = np.linalg.eigh(points @ points.T)
        lengths = np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))
        directions = (points.T @ (vectors / lengths))[:, ::-1][:, :2]
    if directions.shape[1] < 2:
        directions = np.hstack([directions, np.zeros_like(directions)])
    largest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[largest, [0, 1]] < 0.0, -1.0, 1.0)
    total = max(float(values.sum()), np.finfo(np.float64).tiny)
    return directions * signs, float(values[::-1][:2].sum() / total)


def _spaces(final: Any) -> list[tuple[float, Any]]:
    """Give the metric spaces of a model with their weights."""
    if hasattr(final, "estimators_"):
        pairs = zip(final.weights_, final.estimators_, strict=True)
        return [(float(weight), each.metric_space_) for weight, each in pairs]
    return [(1.0, final.metric_space_)] if hasattr(final, "metric_space_") else []


def _transformed(final: Any, X: Any) -> Any:
    """Take features to where the estimators of a model are."""
    encoder = getattr(final, "encoder_", None)
    values = dense(X) if encoder is None else encoder.transform(X)
    for name in ("preprocess_", "power_transform_"):  # at most one of them
        transform = getattr(final, name, None)
        values = values if transform is None else transform.transform(values)
    return values


def dense(points: Any) -> Floats:
    """Give points, sparse or not, as an array."""
    return np.asarray(points.toarray() if sp.issparse(points) else points, dtype=np.float64)
