"""Small figures as SVG: axes with ticks, and marks that differ in shape and in colour."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

# Okabe and Ito's colours, which people with colour-blindness can tell apart.
COLORS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#4d4d4d",
)
# Drawn around the origin; coprime with the number of colours, so that 40 classes differ.
SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-4.8L4.5 3.4H-4.5Z",
    "M0-5L5 0L0 5L-5 0Z",
    "M-1.6-4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z",
)
_TRAINING_GREY = "#bbb"


class Axes(NamedTuple):
    """A rectangle of a figure, and the data that it shows."""

    left: float
    top: float
    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        """Give the horizontal position of a value."""
        low, high = self.x_range
        return self.left + self.width * (value - low) / (high - low)

    def y(self, value: float) -> float:
        """Give the vertical position of a value."""
        low, high = self.y_range
        return self.top + self.height * (high - value) / (high - low)

    def frame(self, x_label: str, y_label: str = "", ticks_on: str = "xy") -> str:
        """Draw the border, ticks with numbers on some axes, and names of the axes."""
        bottom, right = self.top + self.height, self.left + self.width
        parts = [
            f'<rect class="frame" x="{self.left:g}" y="{self.top:g}" width="{self.width:g}" '
            f'height="{self.height:g}"/>'
        ]
        for value in ticks(*self.x_range) if "x" in ticks_on else ():
            x = self.x(value)
            parts.append(f'<path class="tick" d="M{x:.1f} {bottom:g}v4"/>')
            parts.append(text(x, bottom + 16, f"{value:g}", "middle"))
        for value in ticks(*self.y_range) if "y" in ticks_on else ():
            y = self.y(value)
            parts.append(f'<path class="tick" d="M{self.left:g} {y:.1f}h-4"/>')
            parts.append(text(self.left - 7, y + 4, f"{value:g}", "end"))
        gap = 34 if "x" in ticks_on else 18
        parts.append(text((self.left + right) / 2, bottom + gap, x_label, "middle"))
        middle, side = (self.top + bottom) / 2, self.left - (40 if "y" in ticks_on else 10)
        parts.append(
            f'<text transform="translate({side:g} {middle:g}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_label)}</text>'
        )
        return "".join(parts)

    def line(self, xs: Iterable[float], ys: Iterable[float], style: str = "") -> str:
        """Draw a line through points; values that are no numbers are left out."""
        points = [
            f"{self.x(x):.1f},{self.y(y):.1f}"
            for x, y in zip(xs, ys, strict=True)
            if np.isfinite(y)
        ]
        return f'<polyline class="line" points="{" ".join(points)}" {style}/>'


def ticks(low: float, high: float, n_most: int = 6) -> list[float]:
    """Choose round numbers in a range."""
    low, high = min(low, high), max(low, high)
    raw = (high - low) / max(n_most - 1, 1)
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min(factor for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw * 0.999)
    first = int(np.ceil(low / step - 1e-9))
    last = int(np.floor(high / step + 1e-9))
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def padded_range(values: Sequence[float] | np.ndarray, share: float = 0.05) -> tuple[float, float]:
    """Give the range of values with some room on both sides."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    room = share * (high - low) or max(abs(high), 1.0) * share
    return low - room, high + room


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Write words."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def figure(width: float, height: float, content: str, label: str, attributes: str = "") -> str:
    """Wrap the content of a figure; `label` tells those who do not see it what it shows."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        f"{attributes}>{content}</svg>"
    )


def class_color(g: int) -> str:
    """Give the colour of a class, or that of points without one."""
    return COLORS[g % len(COLORS)] if g >= 0 else _TRAINING_GREY


def class_shape(g: int) -> str:
    """Give the outline of the mark of a class."""
    return SHAPES[g % len(SHAPES)] if g >= 0 else SHAPES[0]


def legend(names: Sequence[str]) -> str:
    """List the classes with their marks."""
    items = "".join(
        f'<li><svg class="mark" viewBox="-6 -6 12 12" aria-hidden="true"><path '
        f'd="{class_shape(g)}" fill="{class_color(g)}"/></svg>{escape(name)}</li>'
        for g, name in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'
