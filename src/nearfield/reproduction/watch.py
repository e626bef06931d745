"""Progress bars, one for all data sets and one a data set, where a person watches."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nearfield.reproduction.units import Unit


@contextmanager
def progress(units: Sequence[Unit], title: str) -> Iterator[Callable[[Unit], None]]:
    """Show how much of each group is done, on a terminal; show nothing anywhere else.

    Yields a function to call with each unit that is done.
    """
    if not sys.stderr.isatty():
        yield lambda unit: None
        return

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        whole = bars.add_task(f"[bold]{title}", total=len(units))
        sizes = Counter(unit.group for unit in units)
        tasks = {group: bars.add_task(f"  {group}", total=n) for group, n in sizes.items()}

        def on_done(unit: Unit) -> None:
            bars.advance(tasks[unit.group])
            bars.advance(whole)

        yield on_done
