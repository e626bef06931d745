"""The parts of the page, each a function of the report; one that does not apply is empty."""

from html import escape

import numpy as np

from nearfield.report.figures import (
    comparison_figure,
    map_figure,
    posterior_figure,
    reliability_figure,
    roc_figure,
    sequential_color,
    spectra_figure,
)
from nearfield.report.html import Cell, Row, captioned, number, paragraph, table
from nearfield.report.measures import Rate, class_rates, confusion_matrix, wilson
from nearfield.report.payload import Shown, least_certain_first
from nearfield.report.results import Report
from nearfield.report.svg import legend

DOUBTFUL = 0.8  # a class of a lower probability is worth a second look
LEVEL = 0.05  # at which samples are refused
_N_LISTED = 500
_MAP_CONTROLS = (
    '<fieldset class="choose filter"><legend>Colour by</legend>'
    '<label><input type="radio" name="shade" value="by-class" checked> class</label>'
    '<label><input type="radio" name="shade" value="by-uncertainty"> uncertainty</label>'
    "</fieldset>"
)


def tiles(report: Report) -> str:
    """Show the figures that a reader looks for first."""
    items = [(f"{len(report.ids):,}", "samples"), (str(len(report.classes)), "classes")]
    if report.labels is not None:
        n_right = int((report.predicted == report.labels).sum())
        rate = wilson(n_right, len(report.labels))
        interval = f"predicted right (95% interval {rate.lower:.1%} to {rate.upper:.1%})"
        items.append((f"{rate.share:.1%}", interval))
        items.append((f"{report.methods[0].losses['log_loss']:.3f}", "log loss"))
    n_doubtful = int((report.probabilities.max(axis=1) < DOUBTFUL).sum())
    items.append((f"{n_doubtful:,}", f"doubtful: no class above a probability of {DOUBTFUL}"))
    if report.p_values is not None:
        n_refused = int(is_refused(report).sum())
        items.append((f"{n_refused:,}", f"refused: no class with a p-value above {LEVEL}"))
    content = "".join(f"<li><b>{escape(a)}</b><span>{escape(b)}</span></li>" for a, b in items)
    return f'<ul class="tiles">{content}</ul>'


def is_refused(report: Report) -> np.ndarray:
    """Tell which samples are unusual in every class, shape (n,)."""
    if report.p_values is None:
        return np.zeros(len(report.ids), dtype=bool)
    return report.p_values.max(axis=1) <= LEVEL


def data(report: Report) -> str:
    """Describe the table and what is unusual about it."""
    summary = report.data
    words = f"{summary.n_rows:,} samples, {summary.n_features:,} features"
    if report.target is not None:
        words += f", class in column “{report.target}”"
    words += f"; {summary.n_missing:,} missing values." if summary.n_missing else "."
    parts = [paragraph(words)]
    if summary.warnings:
        items = "".join(f"<li>{escape(text)}</li>" for text in summary.warnings)
        parts.append(f'<ul class="warnings">{items}</ul>')
    else:
        looked_for = "No duplicate rows, constant columns or columns that count rows"
        looked_for += ", and no tiny classes." if report.labels is not None else "."
        parts.append(paragraph(looked_for, "muted"))
    if report.labels is not None:
        rows = [
            Row([name, number(int(n), ",d"), number(100.0 * n / summary.n_rows, ".1f", "%")])
            for name, n in zip(report.classes, summary.class_counts, strict=True)
        ]
        parts.append(table(("class", "samples", "share"), rows))
    return "".join(parts)


def comparison(report: Report) -> str:
    """Compare the losses of the methods."""
    if report.labels is None:
        return ""
    rows = []
    for i, method in enumerate(report.methods):
        losses = method.losses
        cells: list[Cell | str] = [number(i + 1, "d"), method.name]
        for name in ("error", "log_loss"):
            error = losses.get(f"{name}_se")
            shown = f"{losses[name]:.3f}" + ("" if error is None else f" ± {error:.3f}")
            cells.append(Cell(shown, losses[name]))
        cells += [number(losses["brier"]), number(losses["ece"])]
        cells.append(number(method.seconds, ".1f", " s"))
        rows.append(Row(cells))
    header = ("#", "method", "error", "log loss", "Brier score", "calibration error", "time")
    over = "folds" if report.folds is not None else "samples"
    note = f"Lower is better; ± is the standard error over the {over}."
    parts = [table(header, rows), paragraph(note, "muted")]
    if len(report.methods) > 1:
        parts.append(f"<figure>{comparison_figure(report.methods)}</figure>")
    return "".join(parts)


def confusions(report: Report) -> str:
    """Show which classes are taken for which, and the rates of each class."""
    if report.labels is None:
        return ""
    counts = confusion_matrix(report.predicted, report.labels, len(report.classes))
    rows = []
    for name, rates in zip(report.classes, class_rates(counts), strict=True):
        rows.append(Row([name, *(_rate_cell(rate) for rate in rates)]))
    header = ("class", "sensitivity", "specificity", "precision")
    note = "With 95% score intervals. Sensitivity: share of the class that is predicted as it. "
    note += "Specificity: share of the others that is not. Precision: share of the samples "
    note += "predicted as the class that belong to it."
    matrix = _confusion_table(report, counts)
    return (
        f'<div class="columns tables"><div><h3>Confusion matrix</h3>{matrix}'
        f"{paragraph('Rows: true class. Columns: predicted class.', 'muted')}</div>"
        f"<div><h3>Rates of each class</h3>{table(header, rows)}{paragraph(note, 'muted')}</div>"
        "</div>"
    )


def _rate_cell(rate: Rate) -> Cell:
    if rate.total == 0:
        return number(rate.share)
    return Cell(f"{rate.share:.3f} ({rate.lower:.2f} to {rate.upper:.2f})", rate.share)


def _confusion_table(report: Report, counts: np.ndarray) -> str:
    heads = "".join(
        f'<th scope="col" title="{escape(name)}">{escape(shortened(name))}</th>'
        for name in report.classes
    )
    body = []
    for g, name in enumerate(report.classes):
        total = max(int(counts[g].sum()), 1)
        cells = "".join(
            _confusion_cell(int(n), n / total, is_right=g == h) for h, n in enumerate(counts[g])
        )
        body.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0"><table class="confusion"><thead><tr><td></td>{heads}'
        f"</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def shortened(name: str, n_most: int = 24) -> str:
    """Cut a name that is too long for the head of a narrow column."""
    return name if len(name) <= n_most else f"{name[: n_most - 1]}…"


def _confusion_cell(n: int, share: float, *, is_right: bool) -> str:
    base = (0, 114, 178) if is_right else (213, 94, 0)
    color = ",".join(str(round(255 - share * (255 - channel))) for channel in base)
    ink = "#fff" if share > 0.55 else "#1b1f24"
    return f'<td style="background:rgb({color});color:{ink}">{n or "·"}</td>'


def calibration(report: Report) -> str:
    """Show calibration, and ROC where there are two classes."""
    if report.labels is None:
        return ""
    caption = (
        "Samples in ten ranges of the probability of their predicted class, with 95% score "
        "intervals; the larger the mark, the more samples. Calibrated probabilities lie on the "
        "diagonal."
    )
    parts = [captioned(reliability_figure(report), caption)]
    if len(report.classes) == 2 and len(np.unique(report.labels)) == 2:
        caption = f"Receiver operating characteristic; positive is “{report.classes[1]}”."
        parts.append(captioned(roc_figure(report), caption))
    return f'<div class="columns">{"".join(parts)}</div>'


def sample_map(report: Report, shown: Shown) -> str:
    """Show the samples in the plane, with a panel for the one that is selected."""
    if report.sample_map is None:
        drawing = paragraph("The model has distances alone: there is no map.", "muted")
    else:
        uncertainty = np.full(len(shown.points), np.nan)
        top = report.probabilities[shown.samples].max(axis=1)
        uncertainty[: len(top)] = (1.0 - top) / (1.0 - 1.0 / len(report.classes))
        drawing = _MAP_CONTROLS + map_figure(report.sample_map, shown.points, uncertainty)
        drawing += _map_legends(report) + _map_caption(report, shown)
    hint = "Select a sample on the map or in the table to see its probabilities and neighbours."
    panel = f'<div id="detail" aria-live="polite"><p class="muted hint-text">{hint}</p></div>'
    return f'<div class="map-columns"><div>{drawing}</div>{panel}</div>'


def _map_legends(report: Report) -> str:
    stops = ",".join(sequential_color(share) for share in np.linspace(0.0, 1.0, 6))
    return (
        f'<div data-shade="by-class">{legend(report.classes)}</div>'
        f'<p class="muted" data-shade="by-uncertainty" hidden>certain <span class="gradient" '
        f'style="background:linear-gradient(to right,{stops})"></span> all classes alike</p>'
    )


def _map_caption(report: Report, shown: Shown) -> str:
    assert report.sample_map is not None
    words = (
        "The two leading principal components of the space in which the model takes distances "
        f"({report.sample_map.explained:.0%} of the variance)."
    )
    if report.folds is not None:
        words += (
            " A learned metric has seen the classes of these samples, so that classes may look "
            "further apart than they are; probabilities and neighbours are those of models that "
            "have not seen the sample."
        )
    if report.labels is not None:
        words += " A thick outline marks a sample that was predicted wrong."
    if len(shown.samples) < len(report.ids):
        words += f" {len(shown.samples):,} of {len(report.ids):,} samples are drawn."
    return paragraph(words, "muted")


def samples(report: Report, shown: Shown) -> str:
    """List samples, the least certain first."""
    place = {int(row): i for i, row in enumerate(shown.samples)}
    order = [int(row) for row in least_certain_first(report) if int(row) in place][:_N_LISTED]
    refused = is_refused(report)
    rows = [_sample_row(report, row, place[row], is_refused=bool(refused[row])) for row in order]
    header = ["sample"]
    header += ["class"] if report.labels is not None else []
    header += ["predicted", "probability", "runner-up", "its probability"]
    header += ["largest p-value"] if report.p_values is not None else []
    note = ""
    if len(order) < len(report.ids):
        note = f"The {len(order):,} least certain of {len(report.ids):,} samples. "
    note += "All predictions are in the csv file beside this page."
    listing = table(header, rows, id="samples").replace('class="scroll"', 'class="scroll samples"')
    return paragraph(note, "muted") + _filter(report) + listing


def _filter(report: Report) -> str:
    kinds = [("", "all"), ("doubtful", f"doubtful (below {DOUBTFUL})")]
    kinds += [("wrong", "predicted wrong")] if report.labels is not None else []
    kinds += [("refused", f"refused (p ≤ {LEVEL})")] if report.p_values is not None else []
    options = "".join(f'<option value="{value}">{words}</option>' for value, words in kinds)
    return (
        '<div class="filter"><label for="filter-text">Filter</label>'
        '<input id="filter-text" type="search" placeholder="id or class">'
        f'<select id="filter-kind" aria-label="Kind of samples">{options}</select>'
        '<span id="filter-count" class="muted" aria-live="polite"></span></div>'
    )


def _sample_row(report: Report, row: int, point: int, *, is_refused: bool) -> Row:
    probabilities = report.probabilities[row]
    first, second = np.argsort(-probabilities, kind="stable")[:2]
    button = (
        f'<button type="button" class="sample" data-point="{point}">'
        f"{escape(report.ids[row])}</button>"
    )
    cells: list[Cell | str] = [Cell(report.ids[row], html=button)]
    kinds = ["doubtful"] if probabilities[first] < DOUBTFUL else []
    kinds += ["refused"] if is_refused else []
    if report.labels is not None:
        cells.append(report.classes[report.labels[row]])
        kinds += ["wrong"] if report.labels[row] != first else []
    cells += [report.classes[first], number(probabilities[first])]
    cells += [report.classes[second], number(probabilities[second])]
    if report.p_values is not None:
        cells.append(number(report.p_values[row].max()))
    return Row(cells, " ".join(kinds))


def spectra(report: Report) -> str:
    """Show the mean spectrum of each class."""
    if report.spectra is None:
        return ""
    kind = "class" if report.labels is not None else "predicted class"
    caption = f"Mean of each {kind}. A selected sample is drawn in black."
    drawing = spectra_figure(report.spectra) + legend(report.classes)
    return (
        captioned(drawing, caption) + '<p id="spectrum-name" class="muted" aria-live="polite"></p>'
    )


def posterior(report: Report) -> str:
    """Show the estimators of the model and their posteriors."""
    if not report.estimators:
        return ""
    parameters = list(dict.fromkeys(p for each in report.estimators for p in each.quantiles))
    rows = []
    for i, each in enumerate(report.estimators):
        cells: list[Cell | str] = [number(i + 1, "d"), each.name, number(each.weight)]
        cells += [] if each.log_score is None else [number(each.log_score)]
        for parameter in parameters:
            low, _, median, _, high = each.quantiles[parameter]
            cells.append(Cell(f"{median:.3g} ({low:.3g} to {high:.3g})", float(median)))
        rows.append(Row(cells))
    scored = ["log score"] if report.estimators[0].log_score is not None else []
    header = ["#", "kernel, metric", "weight", *scored, *parameters]
    note = (
        "The model: its estimators by weight, with posterior medians and 95% "
        "intervals. beta is the strength with which neighbours agree"
    )
    note += ", sigma the scale of the kernel." if "sigma" in parameters else ", k their number."
    figures = "".join(
        f"<figure>{posterior_figure(report.estimators, p)}</figure>" for p in parameters
    )
    return f'{paragraph(note)}{table(header, rows)}<div class="columns">{figures}</div>'
