"""The error of k-nn as k varies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nearfield.estimators import split_pipeline
from nearfield.plotting._style import LINE, OKABE_ITO, SECOND_LINE, Display, new_or_given_axes


@dataclass(eq=False)
class LeaveOneOutDisplay(Display):
    """The leave-one-out error of k-nn for every k, and the k that was chosen.

    With `test_errors` and `lines` it is figure 1 or 2 of Friel and Pettitt (2011).

    Parameters
    ----------
    errors : array-like, shape (n_k,)
        Leave-one-out error rates for k = 1, 2, ...
    n_neighbors : int
        The k that was chosen.
    test_errors : array-like, shape (n_k,), optional
        Error rates on other data for the same k.
    lines : mapping of str to float, optional
        Error rates that do not depend on k, to compare with.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from nearfield import KNeighborsClassifierCV
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.plotting import LeaveOneOutDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = LeaveOneOutDisplay.from_estimator(KNeighborsClassifierCV().fit(X, y))
    >>> display.ax_.get_xlabel()
    'number of neighbours k'
    """

    errors: ArrayLike = field(repr=False)
    n_neighbors: int
    test_errors: ArrayLike | None = field(default=None, repr=False)
    lines: Mapping[str, float] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        test_errors: ArrayLike | None = None,
        lines: Mapping[str, float] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted `KNeighborsClassifierCV`.

        Parameters
        ----------
        estimator : fitted KNeighborsClassifierCV, or a pipeline that ends in one
        test_errors : array-like, shape (n_k,), optional
        lines : mapping of str to float, optional
        ax : matplotlib axes, optional
        **kwargs
            Passed to `matplotlib.axes.Axes.plot` for the curve.
        """
        final, _ = split_pipeline(estimator)
        if not hasattr(final, "cv_errors_"):
            raise ValueError(
                f"Expected an estimator with cv_errors_; got {type(final).__name__}. "
                "Give a KNeighborsClassifierCV."
            )
        return cls(final.cv_errors_, final.n_neighbors_, test_errors, lines).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw, into `ax` if it is given; keywords go to the curve, a line of Matplotlib."""
        errors = np.asarray(self.errors, dtype=np.float64)
        ks = np.arange(1, len(errors) + 1)
        ax = new_or_given_axes(ax, figsize=(7.0, 4.5))
        ax.plot(ks, errors, **({"color": LINE, "label": "k-nn, leave-one-out"} | kwargs))
        if self.test_errors is not None:
            test = np.asarray(self.test_errors, dtype=np.float64)
            if test.shape != errors.shape:
                raise ValueError(
                    f"Expected {len(errors)} test errors, one for each k; got shape {test.shape}."
                )
            ax.plot(ks, test, color=SECOND_LINE, linestyle="--", label="k-nn, test set")
        chosen = self.n_neighbors
        ax.plot(
            chosen,
            errors[chosen - 1],
            "o",
            color=LINE,
            markeredgecolor="black",
            label=f"chosen: k = {chosen}",
            linestyle="none",
        )
        styles = ("-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
        for i, (name, error) in enumerate((self.lines or {}).items()):
            color = OKABE_ITO[(2 + i) % len(OKABE_ITO)]
            ax.axhline(error, color=color, linestyle=styles[i % len(styles)], label=name)
        ax.set(xlabel="number of neighbours k", ylabel="error rate", ylim=(0.0, None))
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="best")
        return self._keep(ax)
