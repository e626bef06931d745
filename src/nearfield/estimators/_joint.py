"""The family of fields over training and new points together."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from nearfield.distances import check_distances
from nearfield.estimators._metric import is_named
from nearfield.estimators._settings import check_dense
from nearfield.estimators._validation import check_new_points
from nearfield.neighbors import NeighborGraph


def joint_family(estimator: Any, X: Any) -> Any:
    """Make the family of training and new points together, the training points first."""
    space, family = estimator.metric_space_, estimator.family_
    if is_named(space.metric, "precomputed") or not family.has_graph:
        distances = _joint_distances(estimator, X)
        multiplicities = _joint_multiplicities(family, len(distances))
        if not family.has_graph:
            return family.with_distances(distances, multiplicities)
        graph = NeighborGraph.from_distances(distances, family.n_neighbors)
        return replace(family, graph=graph, multiplicities=multiplicities)
    space = space.extended(check_new_points(estimator, X))
    index = space.make_index(estimator.search)
    return replace(
        family,
        graph=NeighborGraph.from_index(
            index, space.points, family.n_neighbors, n_jobs=estimator.n_jobs
        ),
        multiplicities=_joint_multiplicities(family, space.n_points),
    )


def _joint_multiplicities(family: Any, n_points: int) -> NDArray[np.float64] | None:
    """Give the weights of the training points, and a one for each new point."""
    known = family.multiplicities
    if known is None:
        return None
    return np.concatenate([known, np.ones(n_points - len(known))])


def _joint_distances(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Measure all points against each other, shape (n+m, n+m)."""
    space = estimator.metric_space_
    if is_named(space.metric, "precomputed"):
        to_training, among = _split_precomputed(X, space.n_points)
    else:
        X = check_new_points(estimator, X)
        check_dense(space.n_points + X.shape[0])
        to_training, among = space.distances_to(X), space.distances_among(X, estimator.n_jobs)
    return np.block([[all_training_distances(estimator), to_training.T], [to_training, among]])


def all_training_distances(estimator: Any) -> NDArray[np.float64]:
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


def _split_precomputed(X: Any, n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
