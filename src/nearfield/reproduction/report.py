"""The report: sections of text, tables and figures, written as Markdown, csv, JSON, PNG and HTML.

A section is written as soon as some of its results are there, and again as more arrive. The whole
report joins the sections that are in the folder, whichever run they are from.
"""

import json
import platform
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from nearfield.reproduction.page import render_page
from nearfield.reproduction.paper import TITLES
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.texts import TEXTS
from nearfield.runs import Results, write_file

_LIBRARIES = ("nearfield", "numpy", "scipy", "numba", "scikit-learn", "pandas", "joblib")


@dataclass(frozen=True)
class Table:
    """Records in full precision, and how each column is printed.

    Parameters
    ----------
    name : str
        The csv file's name.
    caption : str
    data : DataFrame
    columns : mapping of str to str
        From a heading to a format string over the fields of a record, such as
        ``"{mean:.1f} ± {sd:.1f}"``; ``{title}`` is the title of the data set ``name``. Missing
        values print as nothing.
    shown : DataFrame, optional
        The records to print, if not those of `data`.
    """

    name: str
    caption: str
    data: pd.DataFrame
    columns: Mapping[str, str]
    shown: pd.DataFrame | None = None

    def rows(self) -> list[list[str]]:
        """Format the records."""
        records = self.data if self.shown is None else self.shown
        return [
            [_format(template, record) for template in self.columns.values()]
            for record in records.to_dict("records")
        ]

    def to_markdown(self) -> str:
        """Return the caption and the table, columns of numbers aligned to the right."""
        rows = [[cell.replace("|", "\\|") for cell in row] for row in self.rows()]
        rules = ["---:" if _is_numeric(column) else "---" for column in zip(*rows, strict=True)]
        lines = [list(self.columns), rules or ["---"] * len(self.columns), *rows]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Figure:
    """A figure, drawn when the report is written."""

    name: str
    caption: str
    draw: Callable[[], Any]

    def to_markdown(self) -> str:
        """Return the image with its caption."""
        return f"![{self.caption}](figures/{self.name}.png)\n\n*{self.caption}.*"

    def to_png(self) -> bytes:
        """Draw the figure; the same data gives the same bytes."""
        buffer = BytesIO()
        self.draw().savefig(buffer, format="png", dpi=130, metadata={"Software": None})
        return buffer.getvalue()


@dataclass(frozen=True)
class Section:
    """A section of the report: what leads it, which the terminal shows too, and the rest."""

    name: str
    title: str
    lead: list[str | Table]
    rest: list[str | Table | Figure] = field(default_factory=list)

    @property
    def blocks(self) -> list[str | Table | Figure]:
        """All of it, in reading order."""
        return [*self.lead, *self.rest]

    @property
    def tables(self) -> list[Table]:
        """The tables in it."""
        return [block for block in self.blocks if isinstance(block, Table)]

    def to_markdown(self, footer: str) -> str:
        """Return the section as Markdown."""
        texts = [b if isinstance(b, str) else b.to_markdown() for b in self.blocks]
        return "\n\n".join([f"## {self.title}", *texts, footer]) + "\n"


def write_section(section: Section, settings: Settings, results: Results) -> None:
    """Write a section with its tables and figures and a record of the run."""
    out = settings.out
    for block in section.blocks:
        if isinstance(block, Figure):
            write_file(out / "figures" / f"{block.name}.png", block.to_png())
        elif isinstance(block, Table):
            write_file(out / "tables" / f"{block.name}.csv", block.data.to_csv(index=False))
    seconds = {unit.name: result["cpu_seconds"] for unit, result in results}
    record = {
        "part": section.name,
        "settings": settings.record(),
        "versions": {
            "python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "timings": {"cpu_seconds": sum(seconds.values()), "units": seconds},
        "tables": {t.name: json.loads(t.data.to_json(orient="records")) for t in section.tables},
    }
    write_file(out / f"{section.name}.md", section.to_markdown(_footer(record)))
    write_file(out / f"{section.name}.json", json.dumps(record, indent=1, ensure_ascii=False))


def write_report(out: Path, parts: Sequence[str]) -> None:
    """Join the sections in the folder as report.md and report.html."""
    text = _join(out, parts)
    write_file(out / "report.md", text)
    write_file(out / "report.html", render_page(text, TEXTS["report"]["title"], out))


def write_document(path: Path, out: Path, parts: Sequence[str]) -> None:
    """Write the report to a file elsewhere, with a discussion; figures are copied beside it."""
    discussion = (
        files("nearfield.reproduction").joinpath("discussion.md").read_text(encoding="utf-8")
    )
    text = _join(out, parts, discussion)
    for source in sorted((out / "figures").glob("*.png")):
        if f"figures/{source.name}" in text:
            (path.parent / "figures").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path.parent / "figures" / source.name)
    write_file(path, text)


def _join(out: Path, parts: Sequence[str], discussion: str = "") -> str:
    found = [out / f"{part}.md" for part in parts]
    texts = [path.read_text(encoding="utf-8") for path in found if path.exists()]
    own = TEXTS["report"]
    texts = [f"# {own['title']}", own["introduction"], discussion, *texts]
    return "\n\n".join(text.strip() for text in texts if text) + "\n"


def _footer(record: dict[str, Any]) -> str:
    settings, seconds = record["settings"], record["timings"]["cpu_seconds"]
    libraries = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    time = f" {seconds:.0f} s of processor time." if seconds else ""
    return (
        f"*Settings: {settings['n_splits']} splits, seed {settings['seed']}, inference "
        f"{settings['inference']}, prior {settings['prior']}.{time} {libraries}. "
        f"{record['written'][:10]}.*"
    )


def _format(template: str, record: Mapping[Any, Any]) -> str:
    text = template.format(**{"title": TITLES.get(str(record.get("name"))), **record})
    return re.sub(r"( ± )?\+?\bnan\b%?", "", text).replace("\n", " ")


def _is_numeric(column: tuple[str, ...]) -> bool:
    return all(text[:1].isdigit() or text[:1] in "-+" or not text for text in column)
