"""Run the parts of a reproduction, writing results and report as they arrive."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from nearfield.reproduction import claims, tables
from nearfield.reproduction.paper import SPECTRA
from nearfield.reproduction.report import Section, write_report, write_section
from nearfield.reproduction.settings import Settings
from nearfield.runs import Results, Store, Unit, run_units, watched

_SECONDS_BETWEEN = 20.0  # between two versions of an unfinished section


class Part(NamedTuple):
    """The work of a part, and how its section is made from the results."""

    make_units: Callable[[Settings], list[Unit]]
    build: Callable[[Results, Settings], Section]


_PARTS = {
    "table1": Part(lambda settings: [], lambda _, settings: tables.table1(settings.data_home)),
    "table2": Part(tables.table2_units, tables.table2),
    **{
        name: Part(partial(tables.spectra_units, name), partial(tables.spectra, name))
        for name in SPECTRA
    },
    "claims": Part(claims.make_units, claims.build),
}
PARTS = tuple(_PARTS)


def reproduce(parts: Sequence[str], settings: Settings) -> Iterator[Section]:
    """Reproduce parts of the paper and write the report to the folder of the settings.

    Results of an earlier run with the same settings are used again. The report is updated whenever
    all units of a data set, or of a claim, are done.

    Parameters
    ----------
    parts : sequence of str
        Of `PARTS`.
    settings : Settings

    Yields
    ------
    section : Section
        Each part, when it is written.
    """
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"Expected parts among {PARTS}; got {unknown}. Choose some of them.")
    for name in parts:
        yield _run(name, settings)


def _run(name: str, settings: Settings) -> Section:
    """Do the work of a part; write the groups that are done from time to time and when stopped."""
    part = _PARTS[name]
    units = part.make_units(settings)
    store = Store(settings.out / "units", settings.is_fresh)
    waiting = Counter(unit.group for unit in units)
    results: Results = []
    written_at = -_SECONDS_BETWEEN

    def done() -> Results:
        return [pair for pair in results if waiting[pair[0].group] == 0]

    def write() -> Section:
        section = part.build(done(), settings)
        write_section(section, settings, done())
        write_report(settings.out, PARTS)
        return section

    try:
        for unit, result in watched(run_units(units, store, settings.n_jobs), units, name):
            results.append((unit, result))
            waiting[unit.group] -= 1
            is_due = time.monotonic() - written_at >= _SECONDS_BETWEEN
            if waiting[unit.group] == 0 and is_due and len(results) < len(units):
                write()
                written_at = time.monotonic()
    except BaseException:  # most likely Ctrl-C
        if done():
            write()
        raise
    return write()
