"""Progress on standard error, shown only where a person watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show that work is being done and for how long; with a `total`, how much of it is done.

    Yields a function to call after each of the `total` parts.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    parts = () if total is None else (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *parts,
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda: bar.advance(task)
