"""One result, one file: what a run has found it keeps, and a stopped run goes on from there."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nearfield
from nearfield._files import replace_file

Result = dict[str, Any]


@dataclass(frozen=True)
class Unit:
    """A piece of work whose result is a dict that JSON can hold.

    Parameters
    ----------
    group : str
        What the progress is counted by, such as a data set.
    name : str
        Readable, and the start of the file's name.
    function : callable
        At the top of a module, so that another process can call it.
    arguments : mapping
        Whatever decides the result; JSON must hold it.
    elsewhere : mapping
        Further arguments that do not decide the result, such as where data lies.
    """

    group: str
    name: str
    function: Callable[..., Result]
    arguments: Mapping[str, Any]
    elsewhere: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """All that decides the result, as JSON."""
        what = {
            "function": f"{self.function.__module__}.{self.function.__qualname__}",
            "arguments": dict(self.arguments),
            "version": nearfield.__version__,
        }
        return json.dumps(what, sort_keys=True)

    @property
    def file_name(self) -> str:
        """Tell units apart that differ in an argument alone."""
        return f"{self.name}-{hashlib.sha256(self.identity.encode()).hexdigest()[:10]}.json"


@dataclass(frozen=True)
class Store:
    """A folder of results; `is_fresh` leaves unread what was there before."""

    folder: Path
    is_fresh: bool = False

    def read(self, unit: Unit) -> Result | None:
        """Return the result of a unit if there is one, whole and of the same work."""
        if self.is_fresh:
            return None
        try:
            content = json.loads((self.folder / unit.file_name).read_text(encoding="utf-8"))
            return content["result"] if content["identity"] == unit.identity else None
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or damaged: the work is done again

    def write(self, unit: Unit, result: Result) -> None:
        """Keep the result of a unit, all of it or nothing."""
        content = {"identity": unit.identity, "result": result}
        write_text(self.folder / unit.file_name, json.dumps(content, indent=1))


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one piece, and the folder that it is in if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def run_units(
    units: Sequence[Unit], store: Store, n_jobs: int, on_done: Callable[[Unit], None]
) -> Iterator[tuple[Unit, Result]]:
    """Do what is not done yet, several at a time, and yield each result as it comes.

    Results come in any order. `on_done` is told of each unit, the ones found included.
    """
    from joblib import Parallel, delayed

    missing = []
    for unit in units:
        result = store.read(unit)
        if result is None:
            missing.append(unit)
        else:
            on_done(unit)
            yield unit, result
    if not missing:
        return
    tasks = (delayed(_run)(unit, store, place) for place, unit in enumerate(missing))
    parallel = Parallel(n_jobs=min(n_jobs, len(missing)), return_as="generator_unordered")
    for place, result in parallel(tasks):
        on_done(missing[place])
        yield missing[place], result


def _run(unit: Unit, store: Store, place: int) -> tuple[int, Result]:
    started = time.process_time()
    result = unit.function(**unit.arguments, **unit.elsewhere)
    result = {**result, "cpu_seconds": time.process_time() - started}
    store.write(unit, result)
    return place, result
