"""Tables as people keep them: csv, tsv or Parquet, compressed or not, a file or a stream.

pandas is imported when a table is read: the command line starts without it.
"""

import csv
import io
import re
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from nearfield.cli._compression import compress, decompress, without_compression_suffix
from nearfield.cli._words import listed

if TYPE_CHECKING:
    import pandas as pd

STREAM = "-"
_PARQUET_MAGIC = b"PAR1"
_SEPARATORS = (",", "\t", ";")


def source_name(path: str) -> str:
    """Name a table in a message."""
    return "standard input" if path == STREAM else path


def read_bytes(path: str) -> bytes:
    """Read a file, or standard input for ``-``."""
    return sys.stdin.buffer.read() if path == STREAM else Path(path).read_bytes()


def read_table(path: str) -> "pd.DataFrame":
    """Read a table with a header; ``-`` is standard input.

    What the bytes are decides, not the name: compression and Parquet show in the first bytes,
    the separator in the header.
    """
    source = source_name(path)
    content = decompress(read_bytes(path), source)
    if content.startswith(_PARQUET_MAGIC):
        frame = _read_parquet(content, source)
    else:
        frame = _read_text(content, source)
    frame.columns = [str(name).strip() for name in frame.columns]
    _check_columns(list(frame.columns), source)
    if len(frame) == 0:
        raise ValueError(f"Expected at least one row below the header of {source}; got none.")
    return frame


def write_table(frame: "pd.DataFrame", path: str) -> bytes:
    """Give the content of a file of that name: Parquet, tsv or csv, compressed as the name says."""
    inner = without_compression_suffix(path).lower()
    if inner.endswith((".parquet", ".pq")):
        buffer = io.BytesIO()
        _require_pyarrow()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    else:
        separator = "\t" if inner.endswith((".tsv", ".tab")) else ","
        content = frame.to_csv(index=False, sep=separator, lineterminator="\n").encode()
    return compress(content, path)


def _read_parquet(content: bytes, source: str) -> "pd.DataFrame":
    import pandas as pd

    _require_pyarrow()
    try:
        return pd.read_parquet(io.BytesIO(content)).reset_index(drop=True)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"Expected a whole Parquet file in {source}; got one that is damaged ({error}). "
            "Make it anew."
        ) from error


def _require_pyarrow() -> None:
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError(
            "Expected the package pyarrow for a Parquet file; it is not installed. "
            "Install it (pip install 'nearfield[parquet]'), or use csv."
        ) from None


def _read_text(content: bytes, source: str) -> "pd.DataFrame":
    import pandas as pd

    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Expected text in UTF-8, or Parquet, in {source}; byte {error.start + 1} is neither. "
            "Save it as csv in UTF-8."
        ) from None
    header = next((line for line in text.splitlines() if line.strip()), None)
    if header is None:
        raise ValueError(f"Expected a table with a header in {source}; it is empty.")
    separator = _separator(header)
    _check_header(header, separator, source)
    try:
        with warnings.catch_warnings():
            # Rows longer than the header would lose their end with nothing but a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                sep=separator,
                index_col=False,
                skipinitialspace=True,
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"Expected rows as long as the header in {source}; got others ({error}). "
            "Mend those rows."
        ) from None


def _separator(header: str) -> str:
    """Take the separator that the header has most of, outside quotation marks."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(_SEPARATORS, key=bare.count)


def _check_header(header: str, separator: str, source: str) -> None:
    """Refuse a first row that is data: it would be lost without a word."""
    names = next(csv.reader([header], delimiter=separator))
    if all(_is_number(name) for name in names):
        raise ValueError(
            f"Expected a header with the names of the columns in {source}; its first row holds "
            f"numbers only ({listed(names)}). Add a row of names at the top."
        )
    _check_columns([name.strip() for name in names], source)


def _check_columns(names: list[str], source: str) -> None:
    nameless = [str(i + 1) for i, name in enumerate(names) if not name.strip()]
    if nameless:
        raise ValueError(
            f"Expected a name for every column of {source}; column {listed(nameless)} has none. "
            "Name it, or remove it if it only numbers the rows."
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"Expected columns of different names in {source}; {listed(repeated)} comes more than "
            "once. Rename one."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
