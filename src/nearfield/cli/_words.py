"""Words and tables for people."""

import shutil
from collections.abc import Iterable, Sequence
from typing import Any

import typer

_WIDTH = 100  # columns where no terminal says how many there are


def note(text: str) -> None:
    """Say what was decided about the data, on standard error."""
    typer.echo(f"Note: {text}", err=True)


def listed(names: Iterable[Any], n_shown: int = 8) -> str:
    """List the first few, and say how many more there are."""
    names = [str(name) for name in names]
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return ", ".join(names[:n_shown]) + more


def quoted(names: Iterable[Any], n_shown: int = 8) -> str:
    """List the first few in quotation marks."""
    return listed((repr(str(name)) for name in names), n_shown)


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Give a count with its noun."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def numbered(rows: Iterable[Any], n_shown: int = 5) -> str:
    """Name rows by their numbers: ``row 3``, ``rows 3, 9``."""
    rows = list(rows)
    return f"row{'s' if len(rows) != 1 else ''} {listed(rows, n_shown)}"


def gigabytes(n_bytes: int) -> str:
    """Give a size in GB."""
    return f"{n_bytes / 1e9:g} GB"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table for the terminal; its first column is text, the others are numbers.

    Where the terminal is too narrow, every row becomes a few lines of its own.
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) > shutil.get_terminal_size((_WIDTH, 24)).columns:
        return "\n".join(_upright(header, row) for row in rows)
    lines = [header, ["─" * width for width in widths], *rows]
    return "\n".join(
        "  "
        + "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _upright(header: Sequence[str], row: Sequence[str]) -> str:
    cells = [f"  {name}: {cell}" for name, cell in zip(header[1:], row[1:], strict=True)]
    return "\n".join([row[0], *cells])
