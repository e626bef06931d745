"""Workbooks of spreadsheets, ``.xlsx`` and ``.ods``: read and written by pandas."""

import io
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nearfield._extras import import_extra
from nearfield.cli._compression import check_size
from nearfield.cli._text import MISSING
from nearfield.cli._words import note, quoted

if TYPE_CHECKING:
    import pandas as pd

ZIP_MAGIC = b"PK\x03\x04"
_ENGINES = {".xlsx": "openpyxl", ".ods": "odf"}
_OR_CSV = ", or use csv."


def read_workbook(
    content: bytes, source: str, sheet: str | None, max_bytes: int
) -> tuple[list[str], "pd.DataFrame"]:
    """Read the header and the rows of a sheet, the first one unless it is named."""
    import pandas as pd

    suffix = _suffix(content, source, max_bytes)
    import_extra(_ENGINES[suffix], _OR_CSV)
    with _damage_named(suffix, source):
        book = pd.ExcelFile(io.BytesIO(content), engine=_ENGINES[suffix])
    name = _sheet(book.sheet_names, sheet, source)
    with _damage_named(suffix, source):
        cells = book.parse(
            name, header=None, dtype=object, keep_default_na=False, na_values=MISSING
        )
    cells = cells[cells.notna().any(axis=1).cummax()].reset_index(drop=True)
    if cells.empty:
        raise ValueError(
            f"Expected a table with a header in sheet {name!r} of {source}; it is empty. "
            "Name another sheet with --sheet."
        )
    return [_name(cell) for cell in cells.iloc[0]], cells.iloc[1:].reset_index(drop=True)


def write_workbook(frame: "pd.DataFrame", suffix: str) -> bytes:
    """Give the content of a workbook of one sheet."""
    import pandas as pd

    import_extra(_ENGINES[suffix], _OR_CSV)
    buffer = io.BytesIO()
    with pd.ExcelWriter(buffer, engine=_ENGINES[suffix]) as writer:
        frame.to_excel(writer, index=False)
        if suffix == ".xlsx":  # in .ods a cell of text is text
            for row in next(iter(writer.sheets.values())).iter_rows():
                for cell in row:
                    if cell.data_type == "f":  # text that begins with "=" is no formula
                        cell.data_type = "s"
    return buffer.getvalue()


@contextmanager
def _damage_named(suffix: str, source: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and the like that no table needs
            yield
    except Exception as error:  # a damaged workbook can fail in any way
        raise ValueError(
            f"Expected a whole {suffix} file in {source}; got one that is damaged ({error}). Open "
            "and save it again, or save it as csv."
        ) from error


def _sheet(names: list[Any], wanted: str | None, source: str) -> Any:
    if wanted is not None and wanted not in names:
        raise ValueError(
            f"Expected a sheet {wanted!r} in {source}; its sheets are {quoted(names)}. "
            "Check the name."
        )
    if wanted is None and len(names) > 1:
        others = quoted(names[1:])
        note(f"read sheet {names[0]!r} of {source}; for another ({others}) pass --sheet.")
    return names[0] if wanted is None else wanted


def _suffix(content: bytes, source: str, max_bytes: int) -> str:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"Expected a whole .xlsx or .ods file in {source}; got one that is damaged ({error}). "
            "Save it again."
        ) from None
    check_size(sum(part.file_size for part in parts), source, max_bytes)
    names = {part.filename for part in parts}
    if "content.xml" in names:
        return ".ods"
    if any(name.startswith("xl/") for name in names):
        return ".xlsx"
    raise ValueError(
        f"Expected a table in {source}; got a zip archive of {quoted(sorted(names), 3)}. "
        "Unpack it first."
    )


def _name(cell: Any) -> str:
    """Write a cell of the header as csv would: 400 rather than 400.0, nothing for an empty one."""
    if isinstance(cell, float):
        return "" if cell != cell else f"{cell:.15g}"
    return str(cell).strip()
