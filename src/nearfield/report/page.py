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
