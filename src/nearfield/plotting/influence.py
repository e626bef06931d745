"""Whose labels made a prediction what it is."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nearfield.plotting._fitted import one_point
from nearfield.plotting._style import Display, class_colors, new_or_given_axes


@dataclass(eq=False)
class InfluenceDisplay(Display):
    r"""How much each training point adds to the score of its class in one prediction.

    .. math:: \operatorname{E}[\beta c^*_j \mid y], \qquad
              \log p(g) = \text{const} + \beta \sum_j c^*_j 1[y_j = g]

    Given the parameters, the log odds of two classes are the difference of their sums over the
    training points: what is drawn is the posterior mean of each point's share, of a mixture the
    weighted mean over its parts.

    Parameters
    ----------
    influence : ndarray, shape (n,)
        In units of log odds, one for each training point.
    labels : ndarray of int, shape (n,)
        The class of each training point, 0..G-1.
    classes : ndarray, shape (G,)
    probabilities : ndarray, shape (G,)
        The prediction.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import InfluenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[::2], y[::2])
    >>> display = InfluenceDisplay.from_estimator(model, X[1:2])
    >>> display.influence.shape
    (75,)
    """

    influence: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    classes: NDArray[Any]
    probabilities: NDArray[np.float64]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n_points: int = 12, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the influences on the prediction of one point.

        Parameters
        ----------
        estimator : fitted d-nn or pk-nn classifier, or a pipeline that ends in one
        X : array-like or DataFrame, shape (1, n_features)
        n_points : int
            How many training points to show; the others of each class are summed up.
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.barh`.
        """
        final, features = one_point(estimator, X)
        if not hasattr(final, "influence"):
            raise ValueError(
                f"Expected an estimator with a posterior_; got {type(final).__name__}. Give a "
                "DistanceNeighborsClassifier, another with a posterior, or a NearfieldClassifier."
            )
        influence, labels = final.influence(features)[0], final.labels_
        probabilities = estimator.predict_proba(X)[0]
        display = cls(influence, labels, estimator.classes_, probabilities)
        return display.plot(n_points=n_points, ax=ax, **kwargs)

    def plot(self, *, n_points: int = 12, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to `matplotlib.axes.Axes.barh`."""
        if n_points < 1:
            raise ValueError(f"Expected n_points >= 1; got n_points={n_points}. Try 12.")
        order = np.argsort(-np.abs(self.influence), kind="stable")
        shown, others = order[:n_points], order[n_points:]
        values = list(self.influence[shown])
        codes = list(self.labels[shown])
        names = [f"point {i}" for i in shown]
        for g in np.unique(self.labels[others]):
            rest = others[self.labels[others] == g]
            values.append(self.influence[rest].sum())
            codes.append(g)
            names.append(f"{len(rest)} others, together")
        ax = new_or_given_axes(ax, figsize=(7.0, 1.2 + 0.3 * len(names)))
        colors = class_colors(len(self.classes))
        rows = np.arange(len(names))
        style = {"color": [colors[g] for g in codes], "edgecolor": "black", "linewidth": 0.5}
        ax.barh(rows, values, **(style | kwargs))
        names = [f"{name} ({self.classes[g]})" for name, g in zip(names, codes, strict=True)]
        ax.set_yticks(rows, names)
        ax.invert_yaxis()
        ax.axvline(0.0, color="black", linewidth=0.8)
        if others.size:
            ax.axhline(len(shown) - 0.5, color="black", linewidth=0.8, linestyle=":")
        self._describe(ax, colors)
        return self._keep(ax)

    def _describe(self, ax: Any, colors: list[str]) -> None:
        totals = np.bincount(self.labels, weights=self.influence, minlength=len(self.classes))
        for g, name in enumerate(self.classes):
            label = f"{name}: sum {totals[g]:.2f}, probability {self.probabilities[g]:.2f}"
            ax.fill_between([], [], color=colors[g], label=label)
        top = self.classes[self.probabilities.argmax()]
        ax.set(
            xlabel="what the point adds to the log odds of its class",
            title=f"Prediction: {top}; the training points that decided it",
        )
        ax.legend(loc="best", framealpha=0.9)
