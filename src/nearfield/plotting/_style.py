"""What all pictures share: colours that everyone can tell apart, and a place to draw."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield._extras import import_extra

# Okabe and Ito (2008), their yellow last: it is hard to see on white.
OKABE_ITO = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#000000",
    "#F0E442",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE, SECOND_LINE, MUTED = "#0072B2", "#D55E00", "#767676"


def class_colors(n_classes: int) -> list[str]:
    """Give each class a colour; beyond eight they repeat, with another marker."""
    return [OKABE_ITO[g % len(OKABE_ITO)] for g in range(n_classes)]


def class_markers(n_classes: int) -> list[str]:
    """Give each class a marker, so that no picture depends on colour alone."""
    return [MARKERS[(g + g // len(OKABE_ITO)) % len(MARKERS)] for g in range(n_classes)]


def as_rgb(colors: list[str]) -> NDArray[np.float64]:
    """Turn colours into numbers, shape (n, 3)."""
    to_rgb = import_extra("matplotlib.colors").to_rgb
    return np.array([to_rgb(color) for color in colors])


def new_or_given_axes(ax: Any, **figure_options: Any) -> Any:
    """Return the axes to draw into: the given ones, or new ones whose text is never clipped."""
    if ax is not None:
        return ax
    return new_axes(**figure_options)


def new_axes(*shape: int, **figure_options: Any) -> Any:
    """Make a figure whose text is never clipped; return its axes."""
    plt = import_extra("matplotlib.pyplot")
    _, axes = plt.subplots(*shape, layout="constrained", **figure_options)
    return axes


def check_axes_count(ax: Any, n_axes: int) -> NDArray[Any]:
    """Accept as many axes as a picture of several panels needs, in any arrangement."""
    axes = np.asarray(ax, dtype=object)
    if axes.size != n_axes:
        raise ValueError(
            f"Expected {n_axes} axes as ax; got {axes.size}. "
            f"Make them with matplotlib.pyplot.subplots, or leave ax out."
        )
    return axes
