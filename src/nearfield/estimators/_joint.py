"""The fields of a fitted model over other points: of a fold, or training and new ones together."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from nearfield.distances import check_distances
from nearfield.estimators._metric import MetricSpace, is_named
from nearfield.estimators._settings import check_dense
from nearfield.estimators._validation import check_new_points
from nearfield.neighbors import Index, NeighborGraph

Floats = NDArray[np.float64]


def family_over(
    model: Any, space: MetricSpace, distances: Floats | None, multiplicities: Floats | None
) -> tuple[Any, Index | None]:
    """Make the family of a fitted model over other points, and the index where there is one.

    Parameters
    ----------
    model : FieldClassifier
    space : MetricSpace
        With these points.
    distances : ndarray, shape (n, n), or None
        Between them, where they are precomputed.
    multiplicities : ndarray, shape (n,), or None
    """
    family, index = model.family_, None
    if not family.has_graph:
        if distances is None:
            distances = space.training_distances(None, model.n_jobs)
        return family.with_distances(distances, multiplicities), None
    if distances is not None:
        n_neighbors = min(family.n_neighbors, len(distances) - 1)
        graph = NeighborGraph.from_distances(distances, n_neighbors)
    else:
        index = space.make_index(model.search)
        n_neighbors = min(family.n_neighbors, space.n_points - 1)
        graph = NeighborGraph.from_index(index, space.points, n_neighbors, n_jobs=model.n_jobs)
    return replace(family, graph=graph, multiplicities=multiplicities), index


def joint_family(model: Any, X: Any) -> Any:
    """Make the family of training and new points together, the training points first."""
    space, known, distances = model.metric_space_, model.family_.multiplicities, None
    if is_named(space.metric, "precomputed"):
        to_training, among = _split_precomputed(X, space.n_points)
        among_training = all_training_distances(model)
        distances = np.block([[among_training, to_training.T], [to_training, among]])
        n_points = len(distances)
    else:
        space = space.extended(check_new_points(model, X))
        n_points = space.n_points
        if not model.family_.has_graph:
            check_dense(n_points)
    if known is not None:
        known = np.concatenate([known, np.ones(n_points - len(known))])
    return family_over(model, space, distances, known)[0]


def all_training_distances(estimator: Any) -> Floats:
    """Take the distances between training points, if the family has them all."""
    family = estimator.family_
    if not family.has_graph:
        return family.distances
    graph = family.graph
    if graph.rows.shape[1] < graph.n_points - 1:
        raise ValueError(
            'Expected all distances between training points, which this needs with metric="'
            f'precomputed"; got the {graph.n_neighbors} nearest neighbours of each. '
            "Fit with n_neighbors=None, or give the features."
        )
    distances = np.zeros((graph.n_points, graph.n_points))
    np.put_along_axis(distances, graph.rows.astype(np.int64), graph.distances, axis=1)
    return distances


def _split_precomputed(X: Any, n_points: int) -> tuple[Floats, Floats]:
    checked = check_array(X, dtype=np.float64, input_name="X")
    n_new = checked.shape[0]
    if checked.shape[1] != n_points + n_new:
        raise ValueError(
            f"Expected precomputed distances to {n_points} training points and then to the "
            f"{n_new} new points themselves, shape ({n_new}, {n_points + n_new}); got shape "
            f"{checked.shape}. Append the distances between the new points."
        )
    if n_new == 1:
        return checked[:, :n_points], np.zeros((1, 1))
    return checked[:, :n_points], check_distances(checked[:, n_points:])
