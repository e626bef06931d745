"""The figures of the report: matplotlib figures of their own, never shown.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; methods differ in
their marker as well.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from nearfield._extras import import_extra
from nearfield.reproduction.paper import METHODS, TITLES

COLOURS = {"k-nn": "#000000", "d-nn1": "#0072B2", "d-nn2": "#E69F00", "d-nn3": "#009E73"}
MARKERS = {"k-nn": "s", "d-nn1": "o", "d-nn2": "^", "d-nn3": "D"}
PAPER_COLOUR = "#D55E00"
ACCENTS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Any, Any]:
    """Make a figure and its axes without touching the state of pyplot."""
    figure = import_extra("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(**subplots)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


class Series(NamedTuple):
    """Values with an interval around each, and how they are drawn."""

    value: ArrayLike
    low: ArrayLike
    high: ArrayLike
    marker: str
    colour: str


def draw_rows(names: Sequence[str], series: Mapping[str, Series], xlabel: str) -> tuple[Any, Any]:
    """Draw a row for each name, the series below each other in it; return figure and axes."""
    figure, ax = new_figure(8.0, 1.6 + 0.17 * len(names) * (len(series) + 0.5))
    step = 0.76 / len(series)
    for place, (label, (value, low, high, marker, colour)) in enumerate(series.items()):
        y = np.arange(len(names)) + step * (place - (len(series) - 1) / 2)
        value, low, high = (np.asarray(values, dtype=np.float64) for values in (value, low, high))
        style = {"fmt": marker, "color": colour, "ms": 5, "lw": 1.5, "label": label}
        ax.errorbar(value, y, xerr=[value - low, high - value], **style)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(xlabel)
    ax.grid(axis="x", which="both", alpha=0.3)
    return figure, ax


def legend_above(figure: Any) -> None:
    """Put one legend of all that is labelled above the axes."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def draw_errors(summary: pd.DataFrame) -> Any:
    """Draw mean and range of the error of each method on each data set, and the paper's."""
    wide = summary.astype({"name": str, "method": str}).pivot(index="name", columns="method")
    wide = wide.loc[list(dict.fromkeys(summary["name"]))]
    series = {
        method: Series(
            wide["mean", method],
            wide["min", method],
            wide["max", method],
            MARKERS[method],
            COLOURS[method],
        )
        for method in METHODS
    }
    names = [TITLES[name] for name in wide.index]
    figure, ax = draw_rows(names, series, "test error (per cent)")
    for place, method in enumerate(METHODS):
        y = np.arange(len(names)) + 0.19 * (place - 1.5)
        label = "paper" if place == 0 else None
        ax.plot(wide["paper", method], y, "x", color=PAPER_COLOUR, ms=6, mew=1.6, label=label)
    ax.set_xlim(left=0)
    legend_above(figure)
    return figure


def draw_curves(
    leave_one_out: np.ndarray, test: np.ndarray, means: Mapping[str, float], title: str
) -> Any:
    """Draw the errors of k-nn as k varies, split by split, with those of d-nn as lines."""
    figure, axes = new_figure(9.0, 4.0, ncols=2, sharey=True)
    ks = np.arange(1, leave_one_out.shape[1] + 1)
    panels = (
        (axes[0], leave_one_out, "(a) leave-one-out, training set"),
        (axes[1], test, "(b) test set"),
    )
    for ax, curves, heading in panels:
        ax.plot(ks, 100.0 * curves.T, color="0.8", lw=0.7)
        ax.plot(ks, 100.0 * curves[0], color="0.45", lw=1.2, label="k-nn, first split")
        ax.plot(ks, 100.0 * curves.mean(axis=0), color="black", lw=2.0, label="k-nn, mean")
        ax.set_title(f"{title}: {heading}", fontsize=10)
        ax.set_xlabel("k")
    styles = {"d-nn1": "--", "d-nn2": "-.", "d-nn3": ":"}
    for method, style in styles.items():
        if method in means:
            axes[1].axhline(
                means[method], color=COLOURS[method], ls=style, lw=2.0, label=f"{method}, mean"
            )
    axes[0].set_ylabel("error (per cent)")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure
