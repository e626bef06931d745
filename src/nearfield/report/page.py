"""One HTML file that needs nothing else: style, script, figures and data are inside."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from nearfield.report import sections
from nearfield.report.methods_text import methods_paragraph
from nearfield.report.payload import choose_shown, make_payload, to_script_json
from nearfield.report.results import Report
from nearfield.report.svg import COLORS

_GENERATOR = '<meta name="generator" content="nearfield report">'


def render_page(report: Report) -> str:
    """Render a report as a page.

    Names of classes, samples, columns and files are escaped; the page loads nothing.

    Examples
    --------
    >>> from nearfield import DistanceNeighborsClassifier
    >>> from nearfield.datasets import load_iris
    >>> from nearfield.report import Source, gather, predict_new, render_page
    >>> iris = load_iris(as_frame=True)
    >>> model = DistanceNeighborsClassifier(inference="pseudolikelihood")
    >>> model = model.fit(iris.data[::2], iris.target_names[iris.target[::2]])
    >>> source = Source("new irises", iris.data[1::2], model.classes_, range(1, 150, 2))
    >>> report = gather(source, {"d-nn": predict_new(model, iris.data[1::2])}, model)
    >>> render_page(report)[:15]
    '<!DOCTYPE html>'
    """
    shown = choose_shown(report)
    parts = {
        "Data": sections.data(report),
        "Comparison": sections.comparison(report),
        "Confusions": sections.confusions(report),
        "Calibration": sections.calibration(report),
        "Map": sections.sample_map(report, shown),
        "Samples": sections.samples(report, shown),
        "Spectra": sections.spectra(report),
        "Posterior": sections.posterior(report),
        "Methods": f"<blockquote>{escape(methods_paragraph(report))}</blockquote>",
    }
    parts = {title: content for title, content in parts.items() if content}
    body = "\n".join(
        f'<section id="part-{title.lower()}"><h2>{title}</h2>{content}</section>'
        for title, content in parts.items()
    )
    links = "".join(f'<a href="#part-{title.lower()}">{title}</a>' for title in parts)
    payload = make_payload(report, shown) | {"colors": COLORS, "level": sections.LEVEL}
    return Template(_read("page.html")).substitute(
        title=escape(f"{report.methods[0].name} on {report.source}"),
        style=_read("page.css"),
        script=_read("page.js"),
        summary=_subtitle(report) + sections.tiles(report),
        navigation=f'<nav aria-label="Sections">{links}</nav>',
        body=body,
        data=to_script_json(payload),
    )


def is_report(path: str) -> bool:
    """Tell whether a file is a page of this kind."""
    with Path(path).open("rb") as file:
        return _GENERATOR.encode() in file.read(4_096)


def _subtitle(report: Report) -> str:
    if report.folds is not None:
        n_folds = int(report.folds.max()) + 1
        words = f"{n_folds}-fold cross-validation: every sample is predicted by a model that has "
        words += "not seen it."
    else:
        words = "Predictions of a fitted model for new samples."
    return f'<p class="muted">{escape(words)}</p>'


def _read(name: str) -> str:
    return files("nearfield.report").joinpath(name).read_text(encoding="utf-8")
