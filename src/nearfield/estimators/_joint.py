"""The distances of training and new points together, for the field of all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from nearfield.distances import check_distances
from nearfield.estimators._metric import is_named
from nearfield.estimators._settings import check_dense
from nearfield.estimators._validation import check_new_points


def joint_distances(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Measure all points against each other, the training points first, shape (n+m, n+m)."""
    space = estimator.metric_space_
    if is_named(space.metric, "precomputed"):
        to_training, among = _split_precomputed(X, space.n_points)
    else:
        X = check_new_points(estimator, X)
        check_dense(None, space.n_points + X.shape[0])
        to_training, among = space.distances_to(X), space.distances_among(X, estimator.n_jobs)
    return np.block([[estimator.family_.distances, to_training.T], [to_training, among]])


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
