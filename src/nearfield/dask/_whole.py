"""A training set small enough for one machine, fitted on one of the workers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._kept import Kept
from nearfield.dask._training import TrainingRows

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
        One estimator of `nearfield`.
    """

    estimator: Kept

    @classmethod
    def from_training(cls, settings: Any, training: TrainingRows) -> "WholeModel":
        """Prepare to fit on all rows, in their order; nothing is computed yet."""
        fitted = delayed(_fit)(settings, *training.recipes, training.classes)
        return cls(Kept.from_recipes([fitted]))

    def fitted(self, describe: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Fetch a description of the estimator, which does not grow with its points."""
        return delayed(describe)(self.estimator.value).compute()

    def to_local(self, estimator: Any) -> Any:
        """Fetch the fitted estimator with its training points; it has the settings of another."""
        return self.estimator.value.compute()

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Predict a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        points : Delayed ndarray, shape (m, n_features)
        """
        name = _METHODS[method]
        return delayed(_apply)(self.estimator.value, name, points, *arguments)


def _fit(
    settings: Any,
    points: list[NDArray[np.float64]],
    labels: list[NDArray[np.int64]],
    classes: NDArray[Any],
) -> Any:
    return settings.fit(np.concatenate(points), classes[np.concatenate(labels)])


def _apply(estimator: Any, method: str, points: NDArray[np.float64], *arguments: Any) -> Any:
    return getattr(estimator, method)(points, *arguments)
