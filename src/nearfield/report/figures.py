"""The figures of the page."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.report.measures import reliability, roc_curve
from nearfield.report.results import EstimatorSummary, Method, Report, SampleMap, Spectra
from nearfield.report.svg import Axes, class_color, class_shape, figure, padded_range, text

_DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2")
_CIVIDIS = ((0, 34, 78), (53, 69, 108), (102, 105, 112), (148, 142, 119), (200, 184, 102))
_CIVIDIS_END = (253, 231, 55)


def reliability_figure(report: Report) -> str:
    """Draw how often the predicted class is right against its probability."""
    assert report.labels is not None
    axes = Axes(52, 10, 330, 300, (0.0, 1.0), (0.0, 1.0))
    marks = [axes.line((0, 1), (0, 1), 'stroke="#999" stroke-dasharray="4 4"')]
    bins = reliability(report.probabilities, report.labels)
    for each in bins:
        x, rate = axes.x(each.mean_probability), each.correct
        low, middle, high = (axes.y(share) for share in (rate.lower, rate.share, rate.upper))
        hint = (
            f"mean probability {each.mean_probability:.3f}: {rate.n} of {rate.total} right "
            f"({rate.lower:.2f} to {rate.upper:.2f})"
        )
        marks.append(
            f'<g class="hint" tabindex="0"><title>{hint}</title>'
            f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
            f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="{_radius(rate.total):.1f}"/></g>'
        )
    frame = axes.frame("probability of the predicted class", "share that is right")
    label = "Reliability diagram: points on the diagonal are calibrated probabilities."
    return figure(400, 360, frame + "".join(marks), label)


def _radius(n_samples: int) -> float:
    return float(np.clip(2.0 + np.sqrt(n_samples) / 3.0, 2.5, 9.0))


def roc_figure(report: Report) -> str:
    """Draw the ROC curve of each method, for two classes; the second one is positive."""
    assert report.labels is not None
    axes = Axes(52, 10, 330, 300, (0.0, 1.0), (0.0, 1.0))
    marks, entries = [axes.line((0, 1), (0, 1), 'stroke="#999" stroke-dasharray="4 4"')], []
    for m, method in enumerate(report.methods):
        false_rate, true_rate, area = roc_curve(method.probabilities[:, 1], report.labels == 1)
        style = f'stroke="{class_color(m)}" stroke-dasharray="{_DASHES[m % len(_DASHES)]}"'
        marks.append(axes.line(false_rate, true_rate, style))
        entries.append(
            f'<li><svg class="mark wide" viewBox="0 0 24 8" aria-hidden="true">'
            f'<path class="line" d="M0 4H24" {style}/></svg>'
            f"{escape(method.name)}: area {area:.3f}</li>"
        )
    frame = axes.frame("false positive rate", "true positive rate")
    label = "Receiver operating characteristic of each method."
    drawing = figure(400, 360, frame + "".join(marks), label)
    return f'{drawing}<ul class="legend">{"".join(entries)}</ul>'


def comparison_figure(methods: Sequence[Method]) -> str:
    """Draw the log loss of each method with its standard error."""
    rows = []
    for method in methods:
        loss, error = method.losses["log_loss"], method.losses.get("log_loss_se", 0.0)
        hint = f"{method.name}: {loss:.3f} ± {error:.3f}"
        rows.append(_Interval(hint, (loss - error, loss, loss, loss, loss + error)))
    return _interval_rows(rows, "log loss, with its standard error")


def map_figure(
    sample_map: SampleMap, points: NDArray[np.int64], uncertainty: NDArray[np.float64]
) -> str:
    """Draw samples in the plane; `uncertainty` is between 0 and 1, NaN for training points."""
    positions = sample_map.positions[points]
    width, height = 640.0, 480.0
    axes = Axes(
        30, 8, width - 38, height - 38, padded_range(positions[:, 0]), padded_range(positions[:, 1])
    )
    marks = []
    for i, point in enumerate(points):
        x, y = axes.x(positions[i, 0]), axes.y(positions[i, 1])
        g, is_training = int(sample_map.labels[point]), np.isnan(uncertainty[i])
        kind = "point training" if is_training else "point"
        shade = "#ddd" if is_training else sequential_color(float(uncertainty[i]))
        marks.append(
            f'<path class="{kind}" id="p{i}" transform="translate({x:.1f} {y:.1f})" '
            f'd="{class_shape(g)}" style="--c:{class_color(g)};--u:{shade}"/>'
        )
    frame = axes.frame("first direction", "second direction", ticks_on="")
    content = f'{frame}<g class="links"></g><g class="points">{"".join(marks)}</g>'
    label = "Map of the samples. Arrow keys move between samples, Enter selects one."
    return (
        f'<svg id="map" class="by-class" viewBox="0 0 {width:g} {height:g}" tabindex="0" '
        f'role="application" aria-label="{label}">{content}</svg>'
    )


def sequential_color(share: float) -> str:
    """Give the colour of a number between 0 and 1, from dark blue to yellow."""
    stops = np.array([*_CIVIDIS, _CIVIDIS_END], dtype=float)
    place = np.clip(share, 0.0, 1.0) * (len(stops) - 1)
    red, green, blue = (np.interp(place, range(len(stops)), stops[:, c]) for c in range(3))
    return f"#{round(float(red)):02x}{round(float(green)):02x}{round(float(blue)):02x}"


def posterior_figure(estimators: Sequence[EstimatorSummary], parameter: str) -> str:
    """Draw the median, the 50% and the 95% interval of a parameter of each estimator."""
    rows = []
    for each in estimators:
        values = tuple(float(v) for v in each.quantiles[parameter])
        low, _, median, _, high = values
        hint = f"{each.name}: {median:.3g} ({low:.3g} to {high:.3g})"
        rows.append(_Interval(hint, values))
    return _interval_rows(rows, f"{parameter}: median, 50% and 95% interval")


class _Interval(NamedTuple):
    """A row of a figure: the ends of a whisker, of a box, and the middle, in their order."""

    hint: str
    values: tuple[float, ...]


def _interval_rows(rows: Sequence[_Interval], label: str) -> str:
    """Draw intervals below each other, numbered as the rows of the table beside them."""
    height = 26.0 * len(rows)
    values = np.array([row.values for row in rows])
    axes = Axes(26, 6, 356, height, padded_range(values), (0.0, float(len(rows))))
    marks = []
    for i, row in enumerate(rows):
        y = axes.y(len(rows) - i - 0.5)
        low, box_low, middle, box_high, high = (axes.x(value) for value in row.values)
        marks.append(
            f'<g class="hint" tabindex="0"><title>{escape(row.hint)}</title>'
            f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}"/>'
            f'<path class="box" d="M{box_low:.1f} {y:.1f}H{box_high:.1f}"/>'
            f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="4"/></g>{text(6, y + 4, str(i + 1))}'
        )
    content = axes.frame(label, ticks_on="x") + "".join(marks)
    return figure(400, height + 46, content, label)


def spectra_figure(spectra: Spectra) -> str:
    """Draw the mean spectrum of each class; a selected sample is added by the script."""
    low, high = padded_range(spectra.values, 0.03)
    first, last = float(spectra.axis[0]), float(spectra.axis[-1])
    axes = Axes(62, 8, 560, 250, (min(first, last), max(first, last)), (low, high))
    marks = [
        axes.line(
            spectra.axis,
            mean,
            f'stroke="{class_color(g)}" stroke-dasharray="{_DASHES[g // 8 % len(_DASHES)]}"',
        )
        for g, mean in enumerate(spectra.means)
        if np.isfinite(mean).all()
    ]
    scale = ",".join(f"{value:g}" for value in (*axes[:4], *axes.x_range, *axes.y_range))
    content = f'{axes.frame("position", "value")}{"".join(marks)}<g class="selected"></g>'
    label = "Mean spectrum of each class."
    return figure(640, 310, content, label, f'id="spectra" data-scale="{scale}"')
