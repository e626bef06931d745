"""The report: every part as Markdown, csv, JSON and PNG, and all parts together as one page.

A part is written as soon as it is known, and again when it is known better. The whole is made of
the parts that lie in the folder, whichever run they are of.
"""

import json
import platform
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from nearfield.reproduction.figures import to_png
from nearfield.reproduction.page import render_page
from nearfield.reproduction.sections import Figure, Section, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import write_bytes, write_text

TITLE = "Classification using distance nearest neighbours, reproduced"
INTRODUCTION = (
    "N. Friel and A. N. Pettitt, *Classification using distance nearest neighbours*, Statistics "
    "and Computing (2011): its tables, its figures and its claims, computed anew by `nearfield "
    "reproduce`. Each part says how it was run; the numbers behind every table are in the csv "
    "files beside this report."
)
_LIBRARIES = ("nearfield", "numpy", "scipy", "numba", "scikit-learn", "pandas", "joblib")


def write_part(out: Path, section: Section, settings: Settings, timings: dict[str, Any]) -> None:
    """Write a part: its figures and tables, its Markdown, and its JSON with all that decided it."""
    for figure in section.figures:
        write_bytes(out / "figures" / f"{figure.name}.png", to_png(figure.draw()))
    for table in section.tables:
        write_text(out / "tables" / f"{table.name}.csv", table.data.to_csv(index=False))
    record = {
        "part": section.name,
        "settings": settings.record(),
        "versions": versions(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "timings": timings,
        "tables": {
            table.name: json.loads(table.data.to_json(orient="records")) for table in section.tables
        },
    }
    write_text(out / f"{section.name}.md", to_markdown(section, record))
    write_text(out / f"{section.name}.json", json.dumps(record, indent=1, ensure_ascii=False))


def to_markdown(section: Section, record: dict[str, Any]) -> str:
    """Write a part in Markdown."""
    blocks = [f"## {section.title}", *(_block(block) for block in section.blocks), _how(record)]
    return "\n\n".join(blocks) + "\n"


def write_report(out: Path, parts: Sequence[str]) -> Path:
    """Put the parts that are there together, as report.md and report.html; return the page."""
    text = whole(out, parts)
    write_text(out / "report.md", text)
    page = out / "report.html"
    write_text(page, render_page(text, TITLE, out))
    return page


def write_document(path: Path, out: Path, parts: Sequence[str]) -> None:
    """Write the parts as a document that stands elsewhere, with the account of what agrees.

    The figures are copied into a folder ``figures`` beside it.
    """
    account = files("nearfield.reproduction").joinpath("account.md").read_text(encoding="utf-8")
    text = whole(out, parts, account)
    for source in sorted((out / "figures").glob("*.png")):
        if f"figures/{source.name}" in text:
            (path.parent / "figures").mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path.parent / "figures" / source.name)
    write_text(path, text)


def whole(out: Path, parts: Sequence[str], account: str = "") -> str:
    """Join the parts that lie in a folder, in their order."""
    found = [out / f"{part}.md" for part in parts]
    texts = [path.read_text(encoding="utf-8").strip() for path in found if path.exists()]
    head = [f"# {TITLE}", INTRODUCTION, *([account.strip()] if account else [])]
    return "\n\n".join([*head, *texts]) + "\n"


def versions() -> dict[str, str]:
    """List the versions that results can depend on."""
    return {
        "python": platform.python_version(),
        **{library: version(library) for library in _LIBRARIES},
    }


def _block(block: str | Table | Figure) -> str:
    if isinstance(block, Table):
        return block.to_markdown()
    if isinstance(block, Figure):
        return f"![{block.caption}](figures/{block.name}.png)\n\n*{block.caption}.*"
    return block


def _how(record: dict[str, Any]) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in record["settings"].items())
    libraries = ", ".join(f"{name} {value}" for name, value in record["versions"].items())
    seconds = record["timings"].get("cpu_seconds")
    time = "" if seconds is None else f" {seconds:.0f} s of processor time."
    return f"*How: {settings}.{time} {libraries}. Written {record['written'][:10]}.*"
