"""A map of the predicted classes, or of their entropy, over two features."""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from nearfield.plotting._fitted import class_codes
from nearfield.plotting._style import (
    Display,
    as_rgb,
    class_colors,
    class_markers,
    new_or_given_axes,
)

RESPONSES = ("probability", "entropy")


@dataclass(eq=False)
class ClassMapDisplay(Display):
    r"""Class probabilities, or their entropy, over two features.

    ``"probability"`` shows the most probable class by its colour, the paler the less sure;
    ``"entropy"`` shows :math:`-\sum_g p_g \log p_g` in units of log G: 0 where the class is
    certain, 1 where nothing is known.

    Parameters
    ----------
    x, y : ndarray, shape (n_x,) and (n_y,)
        The values of the two features.
    probabilities : ndarray, shape (n_y, n_x, G)
    classes : ndarray, shape (G,)
    feature_names : tuple of two str

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import ClassMapDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[:, :2], y)
    >>> display = ClassMapDisplay.from_estimator(model, X[:, :2], y, grid_resolution=20)
    >>> display.probabilities.shape
    (20, 20, 3)
    """

    x: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.float64] = field(repr=False)
    probabilities: NDArray[np.float64] = field(repr=False)
    classes: NDArray[Any]
    feature_names: tuple[str, str] = ("feature 0", "feature 1")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        features: tuple[Any, Any] = (0, 1),
        response: Literal["probability", "entropy"] = "probability",
        grid_resolution: int = 100,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the map of a fitted classifier over the region of some points.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like or DataFrame, shape (n_samples, n_features)
            They set the region, and are drawn if `y` is given. Features that are not on the map
            are held at their medians: with more than two it is a slice.
        y : array-like, shape (n_samples,), optional
        features : pair of int or str
            The two features, by position or by name.
        response : {"probability", "entropy"}
        grid_resolution : int
            Values of each feature.
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.pcolormesh`.
        """
        check_is_fitted(estimator)
        values = np.asarray(X, dtype=np.float64)
        names = [str(name) for name in getattr(X, "columns", [])]
        columns = [_position(feature, names, values.shape[1]) for feature in features]
        axes = [_range(values[:, column], grid_resolution) for column in columns]
        grid = np.tile(np.median(values, axis=0), (grid_resolution**2, 1))
        mesh = np.meshgrid(*axes)
        for column, axis in zip(columns, mesh, strict=True):
            grid[:, column] = axis.ravel()
        probabilities = estimator.predict_proba(_like(X, grid))
        labels = [names[c] if names else f"feature {c}" for c in columns]
        display = cls.from_predictions(
            axes[0],
            axes[1],
            probabilities.reshape(grid_resolution, grid_resolution, -1),
            classes=estimator.classes_,
            feature_names=(labels[0], labels[1]),
            response=response,
            ax=ax,
            **kwargs,
        )
        if y is not None:
            display.add_points(values[:, columns], y)
        return display

    @classmethod
    def from_predictions(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        feature_names: tuple[str, str] = ("feature 0", "feature 1"),
        response: Literal["probability", "entropy"] = "probability",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the map of class probabilities over a grid.

        Parameters
        ----------
        x, y : array-like, shape (n_x,) and (n_y,)
            The values of the two features.
        y_prob : array-like, shape (n_y, n_x, n_classes)
        classes : array-like, shape (n_classes,), optional
            0, 1, ... by default.
        feature_names : tuple of two str
        response, ax, **kwargs
            As in `from_estimator`.
        """
        x, y, grid = (np.asarray(values, dtype=np.float64) for values in (x, y, y_prob))
        if grid.ndim != 3 or grid.shape[:2] != (len(y), len(x)):
            raise ValueError(
                f"Expected y_prob of shape (n_y, n_x, n_classes) = ({len(y)}, {len(x)}, ...); got "
                f"shape {grid.shape}. Give one row of probabilities for each place of the grid."
            )
        names = np.arange(grid.shape[2]) if classes is None else np.asarray(classes)
        return cls(x, y, grid, names, feature_names).plot(response=response, ax=ax, **kwargs)

    @property
    def entropy(self) -> NDArray[np.float64]:
        """The entropy of the class probabilities in units of log G, shape (n_y, n_x)."""
        return entr(self.probabilities).sum(axis=2) / np.log(len(self.classes))

    def plot(
        self,
        *,
        response: Literal["probability", "entropy"] = "probability",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw, into `ax` if it is given; keywords go to `matplotlib.axes.Axes.pcolormesh`."""
        if response not in RESPONSES:
            raise ValueError(
                f"Expected response among {RESPONSES}; got response={response!r}. "
                "Choose one of them."
            )
        ax = new_or_given_axes(ax, figsize=(6.5, 5.0))
        if response == "entropy":
            style = {"cmap": "cividis", "vmin": 0.0, "vmax": 1.0} | kwargs
            mesh = ax.pcolormesh(self.x, self.y, self.entropy, **style)
            ax.figure.colorbar(mesh, ax=ax, label="entropy of the prediction / log G")
            ax.set_title("Where the class is uncertain")
        else:
            self._draw_classes(ax, kwargs)
            ax.set_title("Most probable class, paler where less sure")
        ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        self.response_ = response
        return self._keep(ax)

    def add_points(self, points: ArrayLike, y: ArrayLike) -> Self:
        """Draw points, shape (n, 2), each with the marker and colour of its class."""
        points, codes = np.asarray(points), class_codes(self.classes, y)
        n_classes = len(self.classes)
        styles = zip(class_colors(n_classes), class_markers(n_classes), strict=True)
        drawn = [
            self.ax_.scatter(
                *points[codes == g].T,
                s=28,
                color=color,
                marker=marker,
                edgecolor="white" if self.response_ == "entropy" else "black",
                linewidth=0.6,
                label=str(self.classes[g]),
            )
            for g, (color, marker) in enumerate(styles)
        ]
        self.ax_.legend(handles=drawn, title="class", loc="best", framealpha=0.9)
        return self

    def _draw_classes(self, ax: Any, style: dict[str, Any]) -> None:
        """Blend the colour of the top class with white as its probability falls to 1/G."""
        n_classes = len(self.classes)
        top = self.probabilities.argmax(axis=2)
        certainty = (self.probabilities.max(axis=2) - 1.0 / n_classes) / (1.0 - 1.0 / n_classes)
        strength = 0.75 * np.clip(certainty, 0.0, 1.0)[..., None]
        colors = class_colors(n_classes)
        image = 1.0 - strength * (1.0 - as_rgb(colors)[top])
        ax.pcolormesh(self.x, self.y, image, **style)
        for g in np.unique(top):
            lead = self.probabilities[..., g] - np.delete(self.probabilities, g, axis=2).max(axis=2)
            if lead.min() < 0.0 < lead.max():
                ax.contour(self.x, self.y, lead, levels=[0.0], colors="black", linewidths=0.8)
            ax.fill_between([], [], color=colors[g], alpha=0.75, label=str(self.classes[g]))
        ax.legend(title="class", loc="best", framealpha=0.9)


def _position(feature: Any, names: list[str], n_features: int) -> int:
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(
                f"Expected a feature among {names}; got {feature!r}. "
                "Give its position, or X as a DataFrame with that column."
            )
        return names.index(feature)
    if not 0 <= feature < n_features:
        raise ValueError(
            f"Expected a feature from 0 to {n_features - 1}; got {feature!r}. "
            "Count features from 0."
        )
    return int(feature)


def _range(values: NDArray[np.float64], n_values: int) -> NDArray[np.float64]:
    low, high = values.min(), values.max()
    margin = 0.08 * ((high - low) or 1.0)
    return np.linspace(low - margin, high + margin, n_values)


def _like(X: Any, grid: NDArray[np.float64]) -> Any:
    """Give the grid the column names of X, if it has any."""
    return pd.DataFrame(grid, columns=list(X.columns)) if hasattr(X, "columns") else grid
