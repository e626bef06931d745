"""Which features made a prediction what it is."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from nearfield.plotting._fitted import one_point
from nearfield.plotting._style import LINE, MUTED, SECOND_LINE, Display, new_or_given_axes
from nearfield.prediction.explanation import Explanation
from nearfield.spectra.axis import feature_axis

KINDS = ("auto", "bars", "spectrum")


@dataclass(eq=False)
class ExplanationDisplay(Display):
    """What the value of each feature adds to the log odds of the predicted class against the next.

    Features whose names are positions in order, such as wavelengths, are drawn as a spectrum with
    a colour for the attribution; others as bars, the most important first.

    Parameters
    ----------
    explanation : nearfield.prediction.explanation.Explanation

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import ExplanationDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[::2], y[::2])
    >>> display = ExplanationDisplay.from_estimator(model, X[71:72])
    >>> len(display.ax_.patches)
    4
    """

    explanation: Explanation

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        kind: Literal["auto", "bars", "spectrum"] = "auto",
        n_features: int = 12,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Explain and draw the prediction of one point.

        Parameters
        ----------
        estimator : fitted classifier with `explain`, or a pipeline that ends in one
            In a pipeline, features are those that the last step takes.
        X : array-like or DataFrame, shape (1, n_features)
        kind, n_features, ax, **kwargs
            As in `plot`.
        """
        final, features = one_point(estimator, X)
        if not hasattr(final, "explain"):
            raise ValueError(
                f"Expected an estimator with explain; got {type(final).__name__}. Give a "
                "DistanceNeighborsClassifier, a ProbabilisticKNeighborsClassifier or a "
                "NearfieldClassifier."
            )
        display = cls(final.explain(features)[0])
        return display.plot(kind=kind, n_features=n_features, ax=ax, **kwargs)

    def plot(
        self,
        *,
        kind: Literal["auto", "bars", "spectrum"] = "auto",
        n_features: int = 12,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw, into `ax` if it is given.

        Parameters
        ----------
        kind : {"auto", "bars", "spectrum"}
            A spectrum by default where the names of the features are numbers in order. Without
            names, ``"spectrum"`` takes positions.
        n_features : int
            How many bars to show.
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.barh`, or `scatter` for a spectrum.
        """
        if kind not in KINDS:
            raise ValueError(f"Expected kind among {KINDS}; got {kind!r}. Choose one of them.")
        if n_features < 1:
            raise ValueError(f"Expected n_features >= 1; got n_features={n_features}. Try 12.")
        if not self.explanation.features:
            raise ValueError(
                "Expected features to draw; got a model of precomputed distances. Use "
                "InfluenceDisplay."
            )
        axis = None if kind == "bars" else self._axis(is_asked=kind == "spectrum")
        if axis is None:
            ax = new_or_given_axes(ax, figsize=(7.0, 4.5))
            self._draw_bars(ax, n_features, kwargs)
        else:
            ax = new_or_given_axes(ax, figsize=(8.0, 4.0))
            self._draw_spectrum(ax, axis, kwargs)
        first, second = self.explanation.first, self.explanation.second
        ax.set_title(f"Prediction: {first} rather than {second}")
        return self._keep(ax)

    def _axis(self, *, is_asked: bool) -> NDArray[np.float64] | None:
        """Give the positions of the features, if they are numbers whose names are in order."""
        features = self.explanation.features
        names = [feature.feature for feature in features]
        is_number = all(isinstance(f.value, float) for f in features)
        is_named = names != list(range(len(names)))
        axis = feature_axis(names) if is_number and is_named else None
        if axis is None and is_asked:
            if not is_number:
                raise ValueError(
                    'Expected numbers for kind="spectrum"; got categories or missing values. '
                    'Use kind="bars".'
                )
            return np.arange(len(names), dtype=np.float64)
        return axis

    def _draw_bars(self, ax: Any, n_features: int, kwargs: dict[str, Any]) -> None:
        frame = self.explanation.to_frame("features").head(n_features)
        sizes = frame["attribution"].to_numpy()
        rows = np.arange(len(frame))
        colors = [LINE if size >= 0.0 else SECOND_LINE for size in sizes]
        ax.barh(rows, sizes, **({"color": colors, "edgecolor": "black", "linewidth": 0.5} | kwargs))
        pairs = zip(frame["feature"], frame["value"], strict=True)
        ax.set_yticks(rows, [f"{name} = {_shown(value)}" for name, value in pairs])
        ax.invert_yaxis()
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(self._quantity())

    def _draw_spectrum(self, ax: Any, axis: NDArray[np.float64], kwargs: dict[str, Any]) -> None:
        features = self.explanation.features
        values = [feature.value for feature in features]
        sizes = np.array([feature.attribution for feature in features])
        largest = max(float(np.abs(sizes).max()), np.finfo(float).tiny)
        style: dict[str, Any] = {
            "c": sizes,
            "cmap": "PuOr_r",
            "vmin": -largest,
            "vmax": largest,
            "s": 12.0,
            "zorder": 3,
        }
        ax.plot(axis, values, color=MUTED, linewidth=0.6)
        points = ax.scatter(axis, values, **(style | kwargs))
        ax.figure.colorbar(points, ax=ax, label=self._quantity())
        ax.set(xlabel="feature", ylabel="value")

    def _quantity(self) -> str:
        first, second = self.explanation.first, self.explanation.second
        return f"share of the log odds\nof {first} against {second}"


def _shown(value: Any) -> str:
    return "?" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
