"""A training set small enough for one machine, fitted on one of the workers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept
from nearfield.dask._training import TrainingRows
from nearfield.estimators import DistanceNeighborsClassifier

_METHODS = {
    "probabilities": "predict_proba",
    "interval": "predict_proba_interval",
    "outlier_score": "outlier_score",
}


@dataclass(frozen=True, eq=False)
class WholeModel:
    """An estimator of one machine that was fitted on a worker and stays there.

    Attributes
    ----------
    estimator : Kept
        One `nearfield.DistanceNeighborsClassifier`.
    """

    estimator: Kept

    @classmethod
    def of(cls, settings: DistanceNeighborsClassifier, training: TrainingRows) -> "WholeModel":
        """Prepare to fit on all rows, in their order; nothing is computed yet."""
        fitted = delayed(_fit)(settings, *training.recipes, training.classes)
        return cls(Kept([fitted]))

    def fitted(self) -> dict[str, Any]:
        """Fetch what does not grow with the training points."""
        (estimator,) = self.estimator.values
        return delayed(_attributes)(estimator).compute()

    def to_local(self) -> DistanceNeighborsClassifier:
        """Fetch the estimator with its training points."""
        return self.estimator.values[0].compute()

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        points : Delayed ndarray, shape (m, n_features)
        """
        name = _METHODS[method]
        return delayed(_apply)(self.estimator.values[0], name, points, *arguments)


def _fit(
    settings: DistanceNeighborsClassifier,
    points: list[NDArray[np.float64]],
    labels: list[NDArray[np.int64]],
    classes: NDArray[Any],
) -> DistanceNeighborsClassifier:
    return settings.fit(np.concatenate(points), classes[np.concatenate(labels)])


def _attributes(estimator: DistanceNeighborsClassifier) -> dict[str, Any]:
    names = ("posterior_", "priors_", "inference_", "external_field_", "neighborhood_error_")
    space = replace(estimator.metric_space_, points=estimator.metric_space_.points[:0])
    return {name: getattr(estimator, name) for name in names} | {"metric_space_": space}


def _apply(estimator: Any, method: str, points: NDArray[np.float64], *arguments: Any) -> Any:
    return getattr(estimator, method)(points, *arguments)
