"""Words and tables for people."""

import io
import shutil
from collections.abc import Iterable, Sequence
from typing import Any


def listed(names: Iterable[Any], n_shown: int = 8) -> str:
    """List the first few, and say how many more there are."""
    names = [str(name) for name in names]
    more = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return ", ".join(names[:n_shown]) + more


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Give a count with its noun."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table for the terminal; its first column is text, the others are numbers."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    laid_out = Table(box=box.SIMPLE)
    for i, name in enumerate(header):
        laid_out.add_column(name, justify="right" if i else "left", overflow="fold", no_wrap=i == 0)
    for row in rows:
        laid_out.add_row(*row)
    stream = io.StringIO()
    width = shutil.get_terminal_size((100, 24)).columns
    Console(file=stream, width=width, highlight=False, markup=False).print(laid_out)
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(line for line in lines if line)
