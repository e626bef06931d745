"""All parts in their order: run what is not there yet, write as it goes."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from nearfield.reproduction import claims, spectra, table1, table2
from nearfield.reproduction.paper import SPECTRA
from nearfield.reproduction.report import write_part, write_report
from nearfield.reproduction.sections import Section
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Store, Unit, run_units
from nearfield.reproduction.watch import progress

PARTS = ("table1", "table2", "meat", "olive-oil", "claims")

Results = list[tuple[Unit, Result]]

_SECONDS_BETWEEN = 20.0  # between two versions of a part that is not done


class _Part(NamedTuple):
    """A part: its work, and what makes a section of what came of it."""

    make_units: Callable[[Settings], list[Unit]]
    build: Callable[[Results, Settings], Section]


_WORK = {
    "table1": _Part(lambda settings: [], lambda _, settings: table1.build(settings.data_home)),
    "table2": _Part(table2.make_units, table2.build),
    "claims": _Part(claims.make_units, claims.build),
    **{
        name: _Part(partial(spectra.make_units, name), partial(spectra.build, name))
        for name in SPECTRA
    },
}


def reproduce(parts: Sequence[str], settings: Settings) -> Iterator[Section]:
    """Reproduce parts of the paper, writing each to the folder of the settings.

    What an earlier run with the same settings has found is not done again. The report is written
    anew whenever a data set, or a claim, is done.

    Parameters
    ----------
    parts : sequence of str
        Of `PARTS`.
    settings : Settings

    Yields
    ------
    section : Section
        Each part, when it is done and written.
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"Expected parts among {PARTS}; got {unknown}. Choose some of them.")
    for part in parts:
        try:
            units = _WORK[part].make_units(settings)
        except FileNotFoundError as error:
            if part not in SPECTRA:
                raise
            section = spectra.missing(part, error)
            _write(section, settings, [])
        else:
            section = _run(part, units, settings)
        yield section


def _run(part: str, units: list[Unit], settings: Settings) -> Section:
    """Do the work of a part; write it whenever a group is done, but not all the time."""
    store = Store(settings.out / "units", settings.is_fresh)
    waiting = Counter(unit.group for unit in units)
    results: Results = []
    n_written, written_at = 0, -_SECONDS_BETWEEN

    def done() -> Results:
        return [pair for pair in results if waiting[pair[0].group] == 0]

    try:
        with progress(units, part) as on_done:
            for unit, result in run_units(units, store, settings.n_jobs, on_done):
                results.append((unit, result))
                waiting[unit.group] -= 1
                is_due = time.monotonic() - written_at >= _SECONDS_BETWEEN
                if waiting[unit.group] == 0 and is_due and len(results) < len(units):
                    _build(part, done(), settings)
                    n_written, written_at = len(done()), time.monotonic()
    except BaseException:  # a stop, most likely: write what is known
        if len(done()) > n_written:
            _build(part, done(), settings)
        raise
    return _build(part, results, settings)


def _build(part: str, results: Results, settings: Settings) -> Section:
    section = _WORK[part].build(results, settings)
    _write(section, settings, results)
    return section


def _write(section: Section, settings: Settings, results: Results) -> None:
    seconds = {unit.file_name: result["cpu_seconds"] for unit, result in results}
    timings = {"cpu_seconds": sum(seconds.values()) if seconds else None, "units": seconds}
    write_part(settings.out, section, settings, timings)
    write_report(settings.out, PARTS)
