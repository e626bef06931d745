"""Resumable runs: units of work, each with its result in a file.

A run that was stopped at any moment, by Ctrl-C or by ``kill -9``, loses the units under way and
continues from the files of the others.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nearfield
from nearfield._files import replace_file

Result = dict[str, Any]
Results = list[tuple["Unit", Result]]


@dataclass(frozen=True)
class Unit:
    """A piece of work whose result is a dict that JSON can hold.

    Parameters
    ----------
    group : str
        Units are counted by group in the progress bars.
    function : callable
        At the top of a module, so that another process can call it.
    arguments : mapping
        All that decides the result; JSON must hold it.
    context : mapping
        Further arguments that do not decide the result, such as the folder of the data.
    """

    group: str
    function: Callable[..., Result]
    arguments: Mapping[str, Any]
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The function and its arguments, as the path of a file without its ending."""
        values = "-".join(str(value) for value in self.arguments.values())
        return f"{self.function.__name__.strip('_')}/{re.sub('[^0-9A-Za-z.]+', '-', values)}"

    @property
    def identity(self) -> str:
        """The function, its arguments and the version of nearfield, as JSON."""
        what = {
            "function": f"{self.function.__module__}.{self.function.__qualname__}",
            "arguments": dict(self.arguments),
            "version": nearfield.__version__,
        }
        return json.dumps(what, sort_keys=True)


@dataclass(frozen=True)
class Store:
    """A folder of results; with `is_fresh`, results that are already there are not used."""

    folder: Path
    is_fresh: bool = False

    def path(self, unit: Unit) -> Path:
        """Return the file of a unit's result."""
        return self.folder / f"{unit.name}.json"

    def read(self, unit: Unit) -> Result | None:
        """Return the result of a unit, or None if it is missing, damaged or of other work."""
        identity, result = (None, None) if self.is_fresh else _read(self.path(unit))
        return result if identity == unit.identity else None

    def read_all(self) -> list[Result]:
        """Return every result in the folder, in the order of the file names."""
        found = [_read(path)[1] for path in sorted(self.folder.rglob("*.json"))]
        return [result for result in found if result is not None]

    def write(self, unit: Unit, result: Result) -> None:
        """Keep the result of a unit, all of it or nothing."""
        content = {"identity": unit.identity, "result": result}
        write_file(self.path(unit), json.dumps(content, indent=1))


def _read(path: Path) -> tuple[str | None, Result | None]:
    """Return identity and result; None for a file that is missing, damaged or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content["identity"], content["result"]
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file in one piece, and make its folder; readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content.encode("utf-8") if isinstance(content, str) else content)


def run_units(
    units: Sequence[Unit], store: Store, n_jobs: int | None
) -> Iterator[tuple[Unit, Result]]:
    """Yield the result of every unit: first those in the store, then the others as they finish."""
    from joblib import Parallel, delayed

    missing = []
    for unit in units:
        result = store.read(unit)
        if result is None:
            missing.append(unit)
        else:
            yield unit, result
    if missing:
        tasks = (delayed(_run_unit)(unit, store, place) for place, unit in enumerate(missing))
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        for place, result in parallel(tasks):
            yield missing[place], result


def _run_unit(unit: Unit, store: Store, place: int) -> tuple[int, Result]:
    started = time.process_time()
    result = unit.function(**unit.arguments, **unit.context)
    result = {**result, "cpu_seconds": time.process_time() - started}
    store.write(unit, result)
    return place, result


def watched(
    results: Iterable[tuple[Unit, Result]], units: Sequence[Unit], title: str
) -> Iterator[tuple[Unit, Result]]:
    """Pass results on and show progress: bars on a terminal, else a line for each group done."""
    waiting = Counter(unit.group for unit in units)
    with _progress(waiting, title) as advance:
        for unit, result in results:
            waiting[unit.group] -= 1
            advance(unit.group)
            yield unit, result


@contextmanager
def _progress(waiting: Counter[str], title: str) -> Iterator[Callable[[str], None]]:
    if not sys.stderr.isatty():

        def report(group: str) -> None:
            if waiting[group] == 0:
                print(f"{title}: {group} done", file=sys.stderr, flush=True)

        yield report
        return

    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bars:
        whole = bars.add_task(f"[bold]{title}", total=waiting.total())
        tasks = {group: bars.add_task(f"  {group}", total=n) for group, n in waiting.items()}

        def advance(group: str) -> None:
            bars.advance(tasks[group])
            bars.advance(whole)

        yield advance
