"""Results in files: tables as their name says, whole or not at all, and nothing else lost."""

import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nearfield._files import replace_file
from nearfield.cli._compression import compress, without_compression_suffix
from nearfield.cli._tables import STREAM, require_pyarrow
from nearfield.cli._words import listed
from nearfield.cli._workbooks import write_workbook

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = {".csv": ",", ".txt": ",", ".dat": ",", ".tsv": "\t", ".tab": "\t"}
_SUFFIXES = (*_SEPARATORS, ".parquet", ".pq", ".xlsx", ".ods")
# What a spreadsheet takes for a formula; a sign alone ("+", "-") is a class.
_FORMULA = re.compile(r"[=+\-@].|[\t\r]", re.DOTALL)


def check_output(
    path: str, inputs: Sequence[str], is_ours: Callable[[str], bool], kind: str, *, force: bool
) -> None:
    """Refuse, before any work, to write over an input or a file of another kind.

    `is_ours` tells whether an existing file is of the kind that is to be written.
    """
    if path == STREAM or not Path(path).is_file():
        return
    for other in [] if force else inputs:
        if other != STREAM and os.path.exists(other) and os.path.samefile(path, other):
            raise ValueError(
                f"Expected another file to write than {path!r}, which is read. Choose another "
                "name, or pass --force to replace it."
            )
    if not force and os.path.getsize(path) > 0 and not is_ours(path):
        raise ValueError(
            f"Expected {kind}, or no file yet, at {path!r}; there is a file of another kind. "
            "Choose another name, or pass --force to replace it."
        )


def write_file(path: str, content: bytes) -> None:
    """Write a file in one piece: at any moment it is the old one or the new one, never half of it.

    A place that is not a plain file, such as ``/dev/null``, is written to directly.
    """
    place = Path(path)
    try:
        if place.exists() and not place.is_file():
            place.write_bytes(content)
        else:
            replace_file(place, content)
    except OSError as error:
        if error.errno is None:
            raise
        # Name the file that was asked for, not the one on the way to it.
        raise OSError(error.errno, error.strerror, path) from error


def table_suffix(path: str) -> str:
    """Give the ending that says how to write a table; refuse one that says something else."""
    suffix = Path(without_compression_suffix(path)).suffix.lower()
    if suffix and suffix not in _SUFFIXES:
        raise ValueError(
            f"Expected a name that ends in {listed(_SUFFIXES, len(_SUFFIXES))}; got {path!r}. "
            "Choose one of these."
        )
    return suffix


def write_table(frame: "pd.DataFrame", path: str) -> bytes:
    """Give the content of a file of that name, compressed as the name says."""
    suffix = table_suffix(path)
    if suffix in (".parquet", ".pq"):
        require_pyarrow()
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    elif suffix in (".xlsx", ".ods"):
        content = write_workbook(frame, suffix)
    else:
        separator = _SEPARATORS.get(suffix, ",")
        safe = _without_formulas(frame)
        content = safe.to_csv(index=False, sep=separator, lineterminator="\n").encode()
    return compress(content, path)


def _without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    safe = frame.rename(columns=_escaped)
    for i, dtype in enumerate(safe.dtypes):
        if dtype.kind not in "biufcmM":  # numbers and dates are no text
            safe.isetitem(i, safe.iloc[:, i].map(_escaped, na_action="ignore"))
    return safe


def _escaped(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
