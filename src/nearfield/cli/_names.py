"""Columns by name, and what may have happened where one is not there."""

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

from nearfield.cli._words import counted, listed, quoted

if TYPE_CHECKING:
    import pandas as pd

_N_SCALE = 5  # numbers that rise or fall by chance are fewer


def require_columns(frame: "pd.DataFrame", names: Sequence[str]) -> None:
    """Refuse a table that lacks columns; name all of them, and what may be wrong."""
    present = set(frame.columns)
    lacking = [name for name in names if name not in present]
    if not lacking:
        return
    columns = list(frame.columns)
    if _is_transposed(frame, lacking):
        raise ValueError(
            f"Expected one sample a row; the first column holds {quoted(lacking, 3)} as names of "
            "rows: each sample is a column. Transpose the table (in a spreadsheet: copy, paste "
            "special, transpose)."
        )
    if _is_headless(columns):
        raise ValueError(no_header(columns))
    is_one = len(lacking) == 1
    wanted = f"a column {lacking[0]!r}" if is_one else f"{len(names):,} columns"
    found = "" if is_one else f"{len(lacking):,} of these are missing ({quoted(lacking)}); "
    raise ValueError(f"Expected {wanted}; {found}{_instead(lacking, columns)}")


def same_numbers(frame: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Rename columns that are the same number as a name: 400.0 to 400, 1000,5 to 1000.5."""
    wanted = {as_number(name): name for name in names if is_number(name)}
    renamed = {
        column: wanted[as_number(column)]
        for column in frame.columns
        if column not in names and is_number(column) and as_number(column) in wanted
    }
    taken = set(frame.columns)
    return frame.rename(columns={old: new for old, new in renamed.items() if new not in taken})


def is_number(text: str) -> bool:
    """Tell whether a name is a number, such as a wavelength."""
    try:
        as_number(text)
    except ValueError:
        return False
    return True


def as_number(text: str) -> float:
    """Read a name as a number."""
    return float(text.replace(",", "."))


def no_header(names: Sequence[str]) -> str:
    """Say that the first row is data: it would be lost without a word."""
    return (
        "Expected a header with the names of the columns; the first row holds numbers "
        f"({listed(names)}). Add a row of names at the top."
    )


def _is_headless(columns: list[str]) -> bool:
    """Tell numbers that are data from wavelengths, which rise or fall."""
    numbers = [as_number(column) for column in columns if is_number(column)]
    if len(numbers) < max(1, len(columns) - 1):  # but for a class
        return False
    steps = [after - before for before, after in pairwise(numbers)]
    is_scale = len(numbers) >= _N_SCALE and (min(steps) > 0 or max(steps) < 0)
    return not is_scale


def _is_transposed(frame: "pd.DataFrame", lacking: list[str]) -> bool:
    first = {_plain(value) for value in [frame.columns[0], *frame.iloc[:, 0]]}
    return sum(_plain(name) in first for name in lacking) > len(lacking) / 2


def _plain(value: object) -> str:
    text = str(value)
    return f"{as_number(text):.15g}" if is_number(text) else text


def _instead(lacking: list[str], columns: list[str]) -> str:
    """Say what there is: of wavelengths the range, else a name that is much alike, or all."""
    numbers = [as_number(column) for column in columns if is_number(column)]
    if numbers and all(is_number(name) for name in lacking):
        wanted = [as_number(name) for name in lacking]
        reach = f", those missing are from {min(wanted):g} to {max(wanted):g}"
        return (
            f"the table has {counted(len(numbers), 'column')} named by numbers, from "
            f"{min(numbers):g} to {max(numbers):g}{reach if len(lacking) > 1 else ''}. Supply the "
            "missing ones, by interpolation if need be."
        )
    by_lower_case = {column.casefold(): column for column in columns}
    near = [get_close_matches(name.casefold(), by_lower_case, n=1) for name in lacking]
    if all(near):
        return f"did you mean {quoted(by_lower_case[match] for match, *_ in near)}?"
    return f"the columns are {quoted(columns)}. Check the name{'s' if len(lacking) > 1 else ''}."
