"""What a report holds: arrays and names, with nothing left to compute but the drawing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DataSummary:
    """A table in numbers, and what is unusual about it.

    Attributes
    ----------
    n_rows, n_features, n_missing : int
    class_counts : ndarray of int, shape (n_classes,)
        All zero where the classes are not known.
    warnings : tuple of str
    """

    n_rows: int
    n_features: int
    n_missing: int
    class_counts: Integers
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Method:
    """Class probabilities by one method, each sample predicted by a model that has not seen it.

    Attributes
    ----------
    name : str
    probabilities : ndarray, shape (n, n_classes)
    losses : dict of str to float
        Empty where the classes are not known.
    seconds : float
    """

    name: str
    probabilities: Floats
    losses: dict[str, float]
    seconds: float


@dataclass(frozen=True, eq=False)
class SampleMap:
    """Samples in the plane of the two leading directions of the metric.

    Attributes
    ----------
    positions : ndarray, shape (n_points, 2)
    labels : ndarray of int, shape (n_points,)
        -1 where the class is not known.
    ids : tuple of str
    n_training : int
        The first points, which were trained on and are not predicted; 0 in cross-validation.
    explained : float
        The share of the variance in the plane.
    """

    positions: Floats
    labels: Integers
    ids: tuple[str, ...]
    n_training: int
    explained: float


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The training points that made each prediction.

    Attributes
    ----------
    rows : ndarray of int, shape (n, n_neighbors)
        Points of the map, the most influential first; -1 where there are fewer.
    influence : ndarray, shape (n, n_neighbors)
        What each adds to the log odds of its class.
    """

    rows: Integers
    influence: Floats


@dataclass(frozen=True, eq=False)
class EstimatorSummary:
    """The posterior of one estimator of the model.

    Attributes
    ----------
    name : str
    weight : float
    log_score : float or None
        The mean log density of held-out labels.
    quantiles : dict of str to ndarray, shape (5,)
        Of each parameter at 2.5, 25, 50, 75 and 97.5%.
    """

    name: str
    weight: float
    log_score: float | None
    quantiles: dict[str, Floats]


@dataclass(frozen=True, eq=False)
class Spectra:
    """Features that lie on an axis, thinned for drawing.

    Attributes
    ----------
    axis : ndarray, shape (n_positions,)
    values : ndarray, shape (n, n_positions)
    means : ndarray, shape (n_classes, n_positions)
        Of the predicted classes where the classes are not known; NaN for one without samples.
    """

    axis: Floats
    values: Floats
    means: Floats


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that the page shows.

    Attributes
    ----------
    source : str
        The name of the table.
    target : str or None
        The column that holds the class.
    classes : tuple of str
    ids : tuple of str
        Of the predicted samples, n of them.
    labels : ndarray of int, shape (n,), or None
    folds : ndarray of int, shape (n,), or None
        Which fold each sample was tested in.
    data : DataSummary
    methods : tuple of Method
        The model, then those it is compared with.
    p_values : ndarray, shape (n, n_classes), or None
        Of membership in each class.
    neighbors : Neighbors or None
    sample_map : SampleMap or None
    estimators : tuple of EstimatorSummary
    spectra : Spectra or None
    settings : dict
        Of the model.
    seed : int or None
    """

    source: str
    target: str | None
    classes: tuple[str, ...]
    ids: tuple[str, ...]
    labels: Integers | None
    folds: Integers | None
    data: DataSummary
    methods: tuple[Method, ...]
    p_values: Floats | None
    neighbors: Neighbors | None
    sample_map: SampleMap | None
    estimators: tuple[EstimatorSummary, ...]
    spectra: Spectra | None
    settings: dict[str, Any]
    seed: int | None

    @property
    def probabilities(self) -> Floats:
        """The class probabilities by the model, shape (n, n_classes)."""
        return self.methods[0].probabilities

    @property
    def predicted(self) -> Integers:
        """The most probable class of each sample, shape (n,)."""
        return self.probabilities.argmax(axis=1)
