"""The figures of the report: matplotlib figures of their own, never shown.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; methods differ in
their marker as well.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction.paper import METHODS, TITLES

COLOURS = {"k-nn": "#000000", "d-nn1": "#0072B2", "d-nn2": "#E69F00", "d-nn3": "#009E73"}
MARKERS = {"k-nn": "s", "d-nn1": "o", "d-nn2": "^", "d-nn3": "D"}
PAPER_COLOUR = "#D55E00"
ACCENTS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Any, Any]:
    """Make a figure and its axes without touching the state of pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(**subplots)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_errors(summary: pd.DataFrame) -> Any:
    """Draw mean and range of the error of each method on each data set, and the paper's."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(summary["name"]))
    figure, ax = new_figure(8.0, 0.75 * len(names) + 1.6)
    for row, name in enumerate(names):
        for place, method in enumerate(METHODS):
            cells = summary[(summary["name"] == name) & (summary["method"] == method)]
            for _, cell in cells.iterrows():
                y = row + 0.19 * (place - 1.5)
                ax.plot([cell["min"], cell["max"]], [y, y], color=COLOURS[method], lw=1.5)
                ax.plot(cell["mean"], y, MARKERS[method], color=COLOURS[method], ms=5)
                ax.plot(cell["paper"], y, "x", color=PAPER_COLOUR, ms=6, mew=1.6)
    ax.set_yticks(range(len(names)), [TITLES[name] for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("test error (per cent)")
    ax.grid(axis="x", alpha=0.3)
    handles = [
        Line2D([], [], color=COLOURS[method], marker=MARKERS[method], ms=5, label=method)
        for method in METHODS
    ]
    handles.append(Line2D([], [], color=PAPER_COLOUR, marker="x", ls="", mew=1.6, label="paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
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
