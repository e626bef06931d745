"""Tables in text: the encoding, the separator and the header are read off the content."""

import codecs
import csv
import io
import re
import warnings
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from nearfield.cli._words import listed, note

if TYPE_CHECKING:
    import pandas as pd

# The empty cell, and what R, Python and spreadsheets write for one. Not "None", which may be a
# class.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null")

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SEPARATORS = ("\t", ";", "|", ",", " ")  # a comma may be a decimal comma, a space part of a name
_COMMA = re.compile(r"(?![+-]?[1-9]\d{0,2},\d{3}$)[+-]?\d*,\d+")  # 1,234 may mean thousands
_POINT = re.compile(r"[+-]?\d*\.\d+")
_N_SAMPLED = 30


class TextTable(NamedTuple):
    """A table as it stands in a text.

    Attributes
    ----------
    names : list of str
        The header; a column without a name has an empty one.
    body : DataFrame
        The rows below, in columns 0, 1, ...
    separator, decimal : str
    """

    names: list[str]
    body: "pd.DataFrame"
    separator: str
    decimal: str


def read_text(content: bytes, source: str) -> TextTable:
    """Take a text apart into header and rows."""
    text = _decoded(content, source).replace("\r\n", "\n").replace("\r", "\n")
    stated = re.match(r"sep=(.)\n", text)  # a line that Excel understands
    if stated:
        text = text[stated.end() :]
    if not text.strip():
        raise ValueError(f"Expected a table with a header in {source}; it is empty.")
    separator = stated[1] if stated else _separator(text)
    records = _first_records(text, separator)
    names, decimal = _names(records, source), _decimal(records, separator)
    body = _body(text, separator, decimal, len(names), source)
    return TextTable(names, body, separator, decimal)


def _decoded(content: bytes, source: str) -> str:
    """Decode UTF-8, UTF-16 or UTF-32; anything else that is text is read as Windows-1252."""
    encoding = next((e for mark, e in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    encoding = encoding or _utf16_without_mark(content) or "utf-8"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            raise ValueError(
                f"Expected text in {encoding.upper()} in {source}, as its first bytes say; byte "
                f"{error.start + 1} is none. Save it as csv in UTF-8."
            ) from None
        encoding, text = "cp1252", content.decode("cp1252", errors="replace")
    control = _CONTROL.search(text)
    if control:
        raise ValueError(
            f"Expected a table in {source}; character {control.start() + 1} "
            f"(code {ord(control[0])}) is not text: the file is damaged or of another kind. "
            "Export it as csv or .xlsx."
        )
    if encoding == "cp1252":
        note(f"{source} is not in UTF-8; read as Latin-1 (Windows-1252).")
    return text


def _utf16_without_mark(content: bytes) -> str | None:
    """Tell UTF-16 by its zero bytes: in text, every other byte is mostly zero."""
    start = content[:4096]
    zeros = [start[parity::2].count(0) for parity in (0, 1)]
    if max(zeros) < 0.3 * len(start) or min(zeros) > 0.05 * len(start):
        return None
    return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"


def _separator(text: str) -> str:
    """Take the first separator that cuts all rows into equally many fields, at least two."""
    for separator in _SEPARATORS:
        header, *rows = (len(record) for record in _first_records(text, separator) or [[]])
        width = rows[0] if rows else header
        # Of rows with row names, R leaves the name of the first column out.
        if width >= 2 and width - header in (0, 1) and all(n == width for n in rows):
            return separator
    first_line = re.sub(r'"[^"]*"', "", text.lstrip().split("\n", 1)[0])
    return max((",", "\t", ";"), key=first_line.count)


def _first_records(text: str, separator: str) -> list[list[str]]:
    """Give the fields of the first few rows that are not blank."""
    lines = (line for line in io.StringIO(text) if line.strip())
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        return list(islice(reader, _N_SAMPLED))
    except csv.Error:  # a field without end
        return []


def _names(records: list[list[str]], source: str) -> list[str]:
    """Take the header, with a name for each field of the rows below."""
    if not records:
        raise ValueError(
            f"Expected a table in {source}; its first row is longer than any table's. Check that "
            "every quotation mark is closed."
        )
    names, rows = [name.strip() for name in records[0]], records[1:]
    widths = sorted(len(row) for row in rows)
    usual = widths[len(widths) // 2] if widths else len(names)
    if usual > len(names) + 1 and len(names) <= 2:
        raise ValueError(
            f"Expected the names of the columns in the first row of {source}; got "
            f"{listed(names)!r}, and rows of {usual} columns below. Remove what is above the "
            "header."
        )
    if rows and all(len(row) == len(names) + 1 for row in rows):
        ends_empty = all(row[-1] == "" for row in rows)  # a separator after the last field
        return [*names, ""] if ends_empty else ["", *names]
    return names


def _decimal(records: list[list[str]], separator: str) -> str:
    """Tell decimal commas from decimal points by the first rows; both may be mended later."""
    cells = [cell for record in records[1:] for cell in record]
    n_commas, n_points = (
        sum(pattern.fullmatch(cell) is not None for cell in cells) for pattern in (_COMMA, _POINT)
    )
    return "," if separator != "," and n_commas > n_points else "."


def _body(text: str, separator: str, decimal: str, n_columns: int, source: str) -> "pd.DataFrame":
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # Rows longer than the header would lose their end with nothing but a warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                io.StringIO(text),
                sep=separator,
                decimal=decimal,
                header=0,
                names=range(n_columns),
                index_col=False,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=MISSING,
                low_memory=False,
            )
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if "EOF inside string" in str(error):
            raise ValueError(
                f"Expected closed quotation marks in {source}; the last one is never closed. "
                'Close it, or remove it (5" is written 5 in).'
            ) from None
        raise ValueError(
            f"Expected rows as long as the header ({n_columns} columns) in {source}; "
            f"{_first_other(text, separator, n_columns) or error}. Mend that row."
        ) from None


def _first_other(text: str, separator: str, n_columns: int) -> str | None:
    """Name the first line that is longer than the header."""
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    try:
        for record in reader:
            if len(record) > n_columns:
                return f"line {reader.line_num} has {len(record)}"
    except csv.Error:
        pass
    return None
