"""A progress bar with rate and time left, shown only where a person watches."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearfield._extras import import_extra

Advance = Callable[..., None]


@contextmanager
def progress(total: int, description: str, verbose: int) -> Iterator[Advance]:
    """Show the progress of some work on a terminal; show nothing anywhere else.

    Parameters
    ----------
    total : int
        How many units of work there are.
    description : str
    verbose : int
        Nothing is shown below 1, nor unless standard error is a terminal.

    Yields
    ------
    advance : callable
        ``advance(n=1)`` tells that n more units are done; any thread may call it.
    """
    if verbose < 1 or not sys.stderr.isatty() or not _has_rich():
        yield _advance_silently
        return

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            rate = task.finished_speed or task.speed
            return Text("" if rate is None else f"{rate:,.0f}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        yield lambda n=1: bar.advance(task, n)  # rich holds a lock of its own


def _has_rich() -> bool:
    """Tell whether bars can be drawn; work that can be done without them is not refused."""
    try:
        import_extra("rich.progress")
    except ImportError as error:
        warnings.warn(f"No progress is shown. {error}", stacklevel=2)
        return False
    return True


def _advance_silently(n: int = 1) -> None:
    pass
