"""Tables as people keep them: text, Parquet or a workbook, compressed or not, a file or a stream.

pandas is imported when a table is read: the command line starts without it.
"""

import io
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from nearfield._extras import import_extra
from nearfield.cli._compression import check_size, decompress, read_at_most
from nearfield.cli._names import is_number, no_header
from nearfield.cli._numbers import read_numbers
from nearfield.cli._text import read_text
from nearfield.cli._words import note, quoted
from nearfield.cli._workbooks import ZIP_MAGIC, read_workbook

if TYPE_CHECKING:
    import pandas as pd

STREAM = "-"
MAX_BYTES = 2_000_000_000
_ANY_DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError)  # metadata are JSON
_PARQUET_MAGIC = b"PAR1"
_OTHER_KINDS = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls)",
    b"%PDF": "a PDF",
    b"RDX": "data of R (.RData)",
    b"X\n\x00": "data of R (.rds)",
    b"\x89HDF": "an HDF5 file",
    b"MATLAB": "a MATLAB file",
}


def source_name(path: str) -> str:
    """Name a table in a message."""
    return "standard input" if path == STREAM else path


def read_bytes(path: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, a named pipe, or standard input for ``-``."""
    if path == STREAM:
        content = read_at_most(sys.stdin.buffer, max_bytes)
    else:
        with open(path, "rb") as file:
            content = read_at_most(file, max_bytes)
    check_size(len(content), source_name(path), max_bytes)
    return content


def read_table(
    path: str, *, sheet: str | None = None, max_bytes: int = MAX_BYTES
) -> "pd.DataFrame":
    """Read a table with a header; ``-`` is standard input.

    What the bytes are decides, not the name. The index holds the number of each row, from 1 for
    the first below the header; empty rows, and empty columns without a name, are left out.
    """
    source = source_name(path)
    content = decompress(read_bytes(path, max_bytes), source, max_bytes)
    separator, decimal = ",", "."
    if content.startswith(_PARQUET_MAGIC):
        names, body = _read_parquet(content, source, max_bytes)
    elif content.startswith(ZIP_MAGIC):
        names, body = read_workbook(content, source, sheet, max_bytes)
        body = body.infer_objects()
    else:
        _refuse_other_kinds(content, source)
        names, body, separator, decimal = read_text(content, source)
    body.index = range(1, len(body) + 1)
    is_filled = [bool(name) or body.iloc[:, i].notna().any() for i, name in enumerate(names)]
    frame = body.loc[:, is_filled]
    frame.columns = _checked_names(
        [n for n, kept in zip(names, is_filled, strict=True) if kept], source
    )
    frame = frame[frame.notna().any(axis=1)]
    if len(frame) == 0:
        raise ValueError(f"Expected at least one row below the header of {source}; got none.")
    frame, has_decimal_commas = read_numbers(frame, is_comma_decimal=separator == ";")
    if has_decimal_commas or decimal == ",":
        note(f"{source} has decimal commas: 1,5 was read as 1.5.")
    return frame


def _read_parquet(content: bytes, source: str, max_bytes: int) -> tuple[list[str], "pd.DataFrame"]:
    parquet = require_pyarrow()
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        shape = file.metadata.num_rows, file.metadata.num_columns
    except _ANY_DAMAGE as error:
        raise _damaged_parquet(error, source) from error
    check_size(8 * shape[0] * shape[1], source, max_bytes)  # as numbers in memory
    try:
        frame = file.read().to_pandas().reset_index(drop=True)
    except _ANY_DAMAGE as error:
        raise _damaged_parquet(error, source) from error
    return [str(name).strip() for name in frame.columns], frame


def _damaged_parquet(error: Exception, source: str) -> ValueError:
    return ValueError(
        f"Expected a whole Parquet file in {source}; got one that is damaged ({error}). "
        "Make it anew."
    )


def require_pyarrow() -> Any:
    """Import what reads and writes Parquet files, or say what to install."""
    return import_extra("pyarrow.parquet", ", or use csv.")


def _refuse_other_kinds(content: bytes, source: str) -> None:
    for magic, kind in _OTHER_KINDS.items():
        if content.startswith(magic):
            raise ValueError(
                f"Expected a table (csv, tsv, .xlsx, .ods or Parquet) in {source}; got {kind}. "
                "Export the table as csv or .xlsx."
            )


def _checked_names(names: list[str], source: str) -> list[str]:
    """Name the columns that have no name; refuse names that come twice."""
    repeated = [name for name, n in Counter(names).items() if name and n > 1]
    if repeated and all(is_number(name) for name in names):
        raise ValueError(no_header(names))
    if repeated:
        raise ValueError(
            f"Expected columns of different names in {source}; {quoted(repeated)} "
            f"{'comes' if len(repeated) == 1 else 'come'} more than once. Rename them, or, if each "
            "column is a sample, transpose the table: one row a sample."
        )
    return [name or f"column {i + 1}" for i, name in enumerate(names)]
