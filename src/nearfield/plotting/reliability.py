"""Whether probabilities keep their promise, as a picture."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta as beta_distribution
from sklearn.utils.validation import check_is_fitted

from nearfield._checks import check_level
from nearfield.plotting._fitted import class_codes
from nearfield.plotting._style import LINE, MUTED, Display, new_or_given_axes
from nearfield.plotting.calibration import CalibrationBins, top_label_bins


@dataclass(eq=False)
class ReliabilityDisplay(Display):
    """How often predictions come true, against how probable they were said to be.

    A prediction is the most probable class of a point. On the diagonal confidence is what it says;
    below it the model is too sure. The intervals tell which gaps a bin of that size can show by
    chance.

    Parameters
    ----------
    bins : nearfield.plotting.calibration.CalibrationBins
    level : float
        The probability of the intervals.
    name : str, optional
        What the legend calls the model.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood").fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> display.ax_.get_xlabel()
    'probability of the predicted class'
    """

    bins: CalibrationBins
    level: float = 0.95
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int = 10,
        level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of a fitted classifier on data that it was not fitted to.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        n_bins : int
            Bins of equal width; empty ones are left out.
        level : float
            The probability of the intervals.
        name : str, optional
            What the legend calls the model; its class by default.
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.errorbar`.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            classes=estimator.classes_,
            n_bins=n_bins,
            level=level,
            name=name or type(estimator).__name__,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 10,
        level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the reliability of class probabilities.

        Parameters
        ----------
        y_true : array-like, shape (n_samples,)
        y_prob : array-like, shape (n_samples, n_classes)
        classes : array-like, shape (n_classes,), optional
            The class of each column, sorted; 0, 1, ... by default.
        n_bins, level, name, ax, **kwargs
            As in `from_estimator`.
        """
        probabilities = np.asarray(y_prob, dtype=np.float64)
        labels = y_true if classes is None else class_codes(np.asarray(classes), y_true)
        bins = top_label_bins(labels, probabilities, n_bins)
        return cls(bins, level, name).plot(ax=ax, **kwargs)

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Give the interval of the frequency in each bin, as (lower, upper), shape (n_bins,).

        Jeffreys' interval: quantiles of Beta(t + 1/2, n - t + 1/2) for t true of n, widened to
        the frequency itself where that is 0 or 1.
        """
        n_true, n_false = self.bins.n_true, self.bins.n_points - self.bins.n_true
        tail = 0.5 * (1.0 - self.level)
        lower = beta_distribution.ppf(tail, n_true + 0.5, n_false + 0.5)
        upper = beta_distribution.ppf(1.0 - tail, n_true + 0.5, n_false + 0.5)
        return np.where(n_true == 0, 0.0, lower), np.where(n_false == 0, 1.0, upper)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to `matplotlib.axes.Axes.errorbar`."""
        check_level(self.level)
        is_new = ax is None
        ax = new_or_given_axes(ax, figsize=(5.5, 5.0))
        if is_new or not ax.lines:
            ax.plot([0.0, 1.0], [0.0, 1.0], color=MUTED, linestyle="--", label="perfect")
        lower, upper = self.interval()
        frequency = self.bins.frequency
        label = f"{self.name}\n" if self.name else ""
        style = {
            "marker": "o",
            "linestyle": "-",
            "color": LINE,
            "capsize": 3,
            "linewidth": 1.2,
            "label": f"{label}calibration error {self.bins.expected_error:.3f}",
        } | kwargs
        bars = [frequency - lower, upper - frequency]
        ax.errorbar(self.bins.confidence, frequency, yerr=bars, **style)
        for x, y, count in zip(self.bins.confidence, lower, self.bins.n_points, strict=True):
            ax.annotate(
                f"{count}",
                (x, y),
                xytext=(0, -4),
                textcoords="offset points",
                ha="center",
                va="top",
                fontsize="small",
                color=style["color"],
            )
        ax.set(
            xlabel="probability of the predicted class",
            ylabel="share that is right",
            xlim=(0.0, 1.03),
            ylim=(-0.07, 1.03),
            title=f"Reliability ({self.level:.0%} intervals; numbers: points a bin)",
        )
        ax.legend(loc="upper left")
        return self._keep(ax)
