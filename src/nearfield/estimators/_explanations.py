"""Why a class was predicted, from the influence of training samples and the values of features."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_whole
from nearfield.estimators._metric import is_named
from nearfield.estimators._validation import check_new_points, missing_values
from nearfield.prediction.explanation import (
    ClassChange,
    Contrast,
    Explanation,
    FeatureAttribution,
    SampleInfluence,
    find_change,
    leading_samples,
    path_attributions,
)

Floats = NDArray[np.float64]

_N_OTHERS = 32  # samples of the second class whose values may change the answer


class ExplanationMixin:
    """Explanations of a classifier with influences and calibration points."""

    classes_: NDArray[Any]
    labels_: NDArray[np.int64]
    metric: Any
    encoder_: Any
    calibration_rows_: NDArray[np.int64]
    calibration_points_: Floats
    calibration_labels_: NDArray[np.int64]
    predict_proba: Callable[..., Floats]
    _proba_of: Callable[[Any], Floats]
    _influence_of: Callable[[Any], Floats]
    _distances_of: Callable[[Any], Floats]

    def explain(self, X: Any, *, n_samples: int = 10) -> list[Explanation]:
        """Tell why each point gets its class, and what would change it.

        The training samples that made the prediction, by their `influence`; what the value of
        each feature adds to the log odds of the most probable class against the next, beside the
        mean of the training samples;
        and the features in which the point would have to be like a training sample of the next
        class to be of another class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame, shape (n_samples, n_features)
            With ``metric="precomputed"`` the distances to the training points; there are no
            features then.
        n_samples : int
            The number of training samples to name; those without influence are left out.

        Returns
        -------
        explanations : list of Explanation
            One a row: see `nearfield.prediction.explanation.Explanation`.
        """
        check_is_fitted(self)
        n_samples = check_whole(n_samples, "n_samples", minimum=1)
        points = check_new_points(self, X)
        predicted = self.predict_proba(X)
        names = self._explained_names(X)
        gaps = _gaps_of(X, len(predicted), len(names))
        explanations = []
        for row in range(points.shape[0]):
            point = points[row : row + 1]
            probabilities = predicted[row]
            influence = self._influence_of(point)[0]
            contrast = Contrast.from_probabilities(probabilities)
            nearest = self._nearest_of(contrast.second, point)
            explanations.append(
                Explanation(
                    classes=tuple(self.classes_.tolist()),
                    probabilities=tuple(probabilities.tolist()),
                    first=_plain(self.classes_[contrast.first]),
                    second=_plain(self.classes_[contrast.second]),
                    samples=tuple(
                        self._sample(j, influence) for j in leading_samples(influence, n_samples)
                    ),
                    features=self._attributions(point, contrast, names, gaps[row]) if names else (),
                    nearest_other=self._sample(self.calibration_rows_[nearest[0]], influence),
                    change=self._change(point, contrast, names, nearest) if names else None,
                )
            )
        return explanations

    def _attributions(
        self, points: Any, contrast: Contrast, names: list[Any], gaps: NDArray[np.bool_]
    ) -> tuple[FeatureAttribution, ...]:
        """Attribute the log odds of one checked point to the features."""
        point, groups = _dense(points)[0], self._feature_groups()
        mean = _column_means(self.calibration_points_)
        effects = path_attributions(self._proba_of, point, mean, groups, contrast)
        parts = zip(names, self._values(point), gaps, effects.tolist(), strict=True)
        return tuple(
            FeatureAttribution(name, None if is_gap else value, effect)
            for name, value, is_gap, effect in parts
        )

    def _change(
        self, points: Any, contrast: Contrast, names: list[Any], nearest: NDArray[np.int64]
    ) -> ClassChange | None:
        """Find the values of a sample of the second class that change the class of one point."""
        others = self.calibration_points_[nearest[:_N_OTHERS]]
        is_other = self._proba_of(others).argmax(axis=1) != contrast.first
        if not is_other.any():
            return None
        place = int(is_other.argmax())
        found = find_change(
            self._proba_of, _dense(points)[0], others[place], self._feature_groups(), contrast
        )
        if found is None:
            return None
        features, new_class = found
        values = self._values(others[place])
        return ClassChange(
            _plain(self.classes_[new_class]),
            int(self.calibration_rows_[nearest[place]]),
            tuple((names[feature], values[feature]) for feature in features),
        )

    def _sample(self, row: int, influence: Floats) -> SampleInfluence:
        label = _plain(self.classes_[self.labels_[row]])
        return SampleInfluence(int(row), label, float(influence[row]))

    def _nearest_of(self, label: int, points: Any) -> NDArray[np.int64]:
        """Give the places of the calibration points of a class, the nearest first."""
        places = np.flatnonzero(self.calibration_labels_ == label)
        distances = self._distances_of(points)[0, self.calibration_rows_[places]]
        return places[np.argsort(distances, kind="stable")]

    def _feature_groups(self) -> list[NDArray[np.int64]]:
        """Give the columns of checked points that each feature of X became."""
        if self.encoder_ is None:
            return list(np.arange(self.calibration_points_.shape[1])[:, None])
        ends = np.cumsum([code.width for code in self.encoder_.codes_])
        return np.split(np.arange(ends[-1]), ends[:-1])

    def _gaps_to_fill(self, is_gap: NDArray[np.bool_]) -> NDArray[np.bool_]:
        if self.encoder_ is None:
            return is_gap & (getattr(self, "_fill", None) is not None)
        is_filled = np.zeros((len(is_gap), self.calibration_points_.shape[1]), dtype=bool)
        parts = zip(self.encoder_.codes_, self._feature_groups(), is_gap.T, strict=True)
        for code, columns, is_gap_there in parts:
            is_filled[:, columns] = is_gap_there[:, None] & (not code.has_gaps)
        return is_filled

    def _values(self, point: Floats) -> list[Any]:
        """Give the values of the features of a checked point, as the table has them."""
        if self.encoder_ is None:
            return [None if np.isnan(value) else float(value) for value in point]
        pairs = zip(self.encoder_.codes_, self._feature_groups(), strict=True)
        return [code.value(point[columns]) for code, columns in pairs]

    def _explained_names(self, X: Any) -> list[Any]:
        """Give the names of the features: those of training, else of X, else positions."""
        if is_named(self.metric, "precomputed"):
            return []
        if self.encoder_ is not None:
            return [_plain(code.name) for code in self.encoder_.codes_]
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_.tolist()
        positions = range(self.calibration_points_.shape[1])
        return [_plain(name) for name in getattr(X, "columns", positions)]


def _gaps_of(X: Any, n_samples: int, n_features: int) -> NDArray[np.bool_]:
    """Tell which values of new points are missing, shape (n_samples, n_features)."""
    is_gap = missing_values(X) if n_features else None
    return np.zeros((n_samples, n_features), dtype=bool) if is_gap is None else is_gap


def _dense(points: Any) -> Floats:
    return points.toarray() if sp.issparse(points) else points


def _column_means(points: Floats) -> Floats:
    """Average the columns over the values that are there."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a column of gaps
        # In units of a power of two: the sum of very large values overflows.
        exponent = np.frexp(np.nanmax(np.abs(points), axis=0))[1]
        return np.ldexp(np.nanmean(np.ldexp(points, -exponent), axis=0), exponent)


def _plain(value: Any) -> Any:
    """Turn a scalar of NumPy into one of Python."""
    return value.item() if isinstance(value, np.generic) else value
