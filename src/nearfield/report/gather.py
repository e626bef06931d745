"""From predictions and a fitted model to the record that the page is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield.estimators import split_pipeline
from nearfield.report.describe import describe_data
from nearfield.report.measures import summarize_losses
from nearfield.report.results import (
    DataSummary,
    EstimatorSummary,
    Integers,
    Method,
    Neighbors,
    Report,
    SampleMap,
    Spectra,
)
from nearfield.report.sample_map import dense, leading_plane
from nearfield.report.validation import Predictions
from nearfield.spectra.axis import feature_axis

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
_LEAST_WEIGHT = 0.01
_N_POSITIONS = 240  # of a spectrum: what a figure can show


class Source(NamedTuple):
    """The samples that were predicted.

    Attributes
    ----------
    name : str
        Of the table.
    features : DataFrame, shape (n, n_features)
    classes : sequence
        Their names, as text or numbers.
    ids : sequence, length n
    labels : ndarray of int, shape (n,), or None
        Positions in `classes`, where the classes are known.
    target : str, optional
        The column that holds the class.
    folds : ndarray of int, shape (n,), or None
        In which fold each sample was tested; None for new data.
    training_ids : sequence of str, optional
        Names of the training points of a model of other data.
    seed : int, optional

    Examples
    --------
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import Source
    >>> iris = load_iris(as_frame=True)
    >>> Source("iris", iris.data, iris.target_names, range(150), iris.target.to_numpy()).name
    'iris'
    """

    name: str
    features: pd.DataFrame
    classes: Sequence[Any] | NDArray[Any]
    ids: Sequence[Any] | NDArray[Any]
    labels: Integers | None = None
    target: str | None = None
    folds: Integers | None = None
    training_ids: Sequence[Any] | None = None
    seed: int | None = None


def gather(source: Source, predictions: Mapping[str, Predictions], fitted: Any) -> Report:
    """Make the record of a report.

    Parameters
    ----------
    source : Source
    predictions : mapping of str to Predictions
        By the model first.
    fitted : classifier or pipeline
        Fitted to all samples (cross-validation), or to others (new data).

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield import KNeighborsClassifierCV
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import Source, cross_validate, gather
    >>> iris = load_iris(as_frame=True)
    >>> X, y, folds = iris.data, iris.target.to_numpy(), np.arange(150) % 5
    >>> model = KNeighborsClassifierCV()
    >>> predictions = cross_validate({"k-nn": model}, X, y, folds)
    >>> source = Source("iris", X, iris.target_names, range(150), y, folds=folds)
    >>> report = gather(source, predictions, model.fit(X, y))
    >>> report.methods[0].name, len(report.ids)
    ('k-nn', 150)
    """
    first = next(iter(predictions.values()))
    final, X = split_pipeline(fitted, source.features)
    n_training = 0 if source.folds is not None else len(getattr(final, "labels_", ()))
    sample_map = _sample_map(source, final, X, n_training)
    neighbors = None
    # Training points that are not on a map have no names.
    has_names = source.folds is not None or sample_map is not None
    if has_names and first.neighbors is not None and first.influence is not None:
        neighbors = Neighbors(first.neighbors, first.influence)
    return Report(
        source=source.name,
        target=source.target,
        classes=tuple(str(name) for name in source.classes),
        ids=tuple(str(name) for name in source.ids),
        labels=source.labels,
        folds=source.folds,
        data=_data_summary(source, final, X),
        methods=tuple(_method(name, each, source) for name, each in predictions.items()),
        p_values=first.p_values,
        neighbors=neighbors,
        sample_map=sample_map,
        estimators=_estimators(final),
        spectra=_spectra(source, first.probabilities.argmax(axis=1)),
        settings=_settings(final),
        seed=source.seed,
    )


def _data_summary(source: Source, final: Any, X: Any) -> DataSummary:
    """Describe the samples; new ones that the model was trained on are warned of."""
    summary = describe_data(source.features, source.labels, [str(c) for c in source.classes])
    n_known = 0 if source.folds is not None else _n_trained_on(final, X)
    if n_known == 0:
        return summary
    warning = (
        f"{n_known:,} of {len(source.ids):,} samples equal a training sample in every feature: "
        "their predictions are optimistic. Use nearfield evaluate for the training data."
    )
    return replace(summary, warnings=(warning, *summary.warnings))


def _n_trained_on(final: Any, X: Any) -> int:
    """Count the samples that are among the training points that the model keeps."""
    training = getattr(final, "calibration_points_", None)
    if training is None or final.encoder_ is not None:
        return 0
    known = {row.tobytes() for row in np.ascontiguousarray(training, dtype=np.float64)}
    return sum(row.tobytes() in known for row in dense(X))


def predictions_table(report: Report, id_name: str = "row") -> pd.DataFrame:
    """Give the predictions as a frame, a sample a row, for a csv file.

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import Source, gather, predict_new, predictions_table
    >>> iris = load_iris(as_frame=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood")
    >>> model = model.fit(iris.data[::2], iris.target_names[iris.target[::2]])
    >>> source = Source("new irises", iris.data[1::2], model.classes_, range(1, 150, 2))
    >>> report = gather(source, {"d-nn": predict_new(model, iris.data[1::2])}, model)
    >>> predictions_table(report, "iris")[["iris", "class", "probability_setosa"]].round(2).head(1)
      iris   class  probability_setosa
    0    1  setosa                 1.0
    """
    names, rows = np.array(report.classes, dtype=object), np.arange(len(report.ids))
    columns: dict[str, Any] = {id_name: list(report.ids)}
    if report.labels is not None:
        columns["true_class"] = names[report.labels]
    if report.folds is not None:
        columns["fold"] = report.folds + 1
    columns["class"] = names[report.predicted]
    frame = pd.DataFrame(columns, index=rows)
    parts = [("probability", report.probabilities)]
    if report.p_values is not None:
        parts.append(("p_value", report.p_values))
    for prefix, values in parts:
        headers = [f"{prefix}_{name}" for name in report.classes]
        frame = pd.concat([frame, pd.DataFrame(values, index=rows, columns=headers)], axis=1)
    return frame


def _method(name: str, predictions: Predictions, source: Source) -> Method:
    losses = {}
    if source.labels is not None:
        losses = summarize_losses(predictions.probabilities, source.labels, source.folds)
    return Method(name, predictions.probabilities, losses, predictions.seconds)


def _sample_map(source: Source, final: Any, X: Any, n_training: int) -> SampleMap | None:
    """Place the samples; new ones among the training points of the model."""
    plane = leading_plane(final, None if source.folds is not None else X)
    if plane is None:
        return None
    unknown = np.full(len(source.ids), -1)
    labels = unknown if source.labels is None else source.labels
    ids = tuple(str(name) for name in source.ids)
    if n_training == 0:
        return SampleMap(plane.training, labels, ids, 0, plane.explained)
    names = source.training_ids or [f"training {i}" for i in range(1, n_training + 1)]
    return SampleMap(
        np.concatenate([plane.training, plane.new]),
        np.concatenate([final.labels_, labels]),
        (*(str(name) for name in names), *ids),
        n_training,
        plane.explained,
    )


def _estimators(final: Any) -> tuple[EstimatorSummary, ...]:
    """Summarize the posteriors of the estimators of a model, the weightiest first."""
    if hasattr(final, "estimators_"):
        order = np.argsort(-final.weights_, kind="stable")
        return tuple(
            _estimator(final.estimators_[i], final.weights_[i], float(final.log_scores_[i]))
            for i in order
            if final.weights_[i] >= _LEAST_WEIGHT
        )
    return (_estimator(final, 1.0, None),) if hasattr(final, "posterior_") else ()


def _estimator(each: Any, weight: float, log_score: float | None) -> EstimatorSummary:
    metric = each.metric if isinstance(each.metric, str) else getattr(each.metric, "__name__", "?")
    kernel = getattr(each, "kernel", "uniform")
    quantiles = each.posterior_.quantile(LEVELS)
    by_parameter = {str(name): quantiles[name].to_numpy(dtype=float) for name in quantiles.columns}
    return EstimatorSummary(f"{kernel}, {metric}", float(weight), log_score, by_parameter)


def _spectra(source: Source, predicted: Integers) -> Spectra | None:
    """Thin features that lie on an axis, by means of neighbouring positions.

    Means are of the classes, or of the predicted ones where the classes are not known.
    """
    axis = feature_axis(source.features.columns)
    if axis is None:
        return None
    values = source.features.to_numpy(dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    starts = np.unique(np.linspace(0, len(axis), _N_POSITIONS + 1).astype(int)[:-1])
    sizes = np.diff(np.append(starts, len(axis)))
    thin = np.add.reduceat(values, starts, axis=1) / sizes
    means = np.full((len(source.classes), thin.shape[1]), np.nan)
    labels = predicted if source.labels is None else source.labels
    for g in np.unique(labels):
        means[g] = thin[labels == g].mean(axis=0)
    return Spectra(np.add.reduceat(axis, starts) / sizes, thin, means)


def _settings(final: Any) -> dict[str, Any]:
    """Give the settings of a classifier that differ from the defaults, as words or numbers."""
    settings = final.get_params(deep=False)
    defaults = type(final)().get_params(deep=False)
    return {"model": type(final).__name__} | {
        name: value
        for name, value in settings.items()
        if isinstance(value, (bool, int, float, str))
        and value != defaults[name]
        and name not in ("n_jobs", "verbose", "random_state")
    }
