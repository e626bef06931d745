"""What all pictures share: colours that everyone can tell apart, and a place to draw."""

from typing import Any, Self

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


class Display:
    """What all pictures keep: the axes they were drawn into, and the figure of these."""

    ax_: Any
    figure_: Any

    def _keep(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, np.ravel(ax)[0].figure
        return self


def new_or_given_axes(ax: Any, *shape: int, **figure_options: Any) -> Any:
    """Return the axes to draw into: the given ones, or new ones whose text is never clipped.

    With a shape, an array of as many axes, which may be given in any arrangement.
    """
    if ax is None:
        plt = import_extra("matplotlib.pyplot")
        options = {"layout": "constrained", "squeeze": not shape} | figure_options
        return plt.subplots(*shape, **options)[1]
    if not shape:
        return ax
    axes, n_axes = np.asarray(ax, dtype=object), int(np.prod(shape))
    if axes.size != n_axes:
        raise ValueError(
            f"Expected {n_axes} axes as ax; got {axes.size}. "
            f"Make them with matplotlib.pyplot.subplots, or leave ax out."
        )
    return axes.reshape(shape)
