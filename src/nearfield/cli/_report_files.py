"""The folder of a report: a page and the predictions beside it."""

from pathlib import Path
from typing import TYPE_CHECKING

from nearfield.cli._tables import read_table
from nearfield.cli._writing import check_output, write_file, write_table

if TYPE_CHECKING:
    from nearfield.report import Report

PAGE, PREDICTIONS = "report.html", "predictions.csv"


def check_report_folder(folder: str, *, force: bool) -> None:
    """Refuse, before any work, a place that is no folder or that holds files of another kind."""
    from nearfield.report import is_report

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise ValueError(
            f"Expected a folder to write the report to; {folder!r} is a file. Choose another name."
        )
    check_output(str(place / PAGE), [], is_report, "a report", force=force)
    check_output(str(place / PREDICTIONS), [], is_predictions, "predictions", force=force)


def write_report(folder: str, report: "Report", id_name: str) -> list[str]:
    """Write the page and the predictions; give their paths."""
    from nearfield.report import predictions_table, render_page

    page = render_page(report).encode(errors="replace")
    predictions = write_table(predictions_table(report, id_name), PREDICTIONS)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [str(place / PAGE), str(place / PREDICTIONS)]
    for path, content in zip(paths, (page, predictions), strict=True):
        write_file(path, content)
    return paths


def is_predictions(path: str) -> bool:
    """Tell whether a file holds predictions, of whatever model."""
    try:
        columns = list(read_table(path).columns)
    except (ValueError, ImportError):
        return False
    return "class" in columns and any(name.startswith("probability_") for name in columns)
