"""Tables and paragraphs of HTML; every text is escaped here."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of a table: what is read, and what it sorts by if that is a number."""

    text: str
    value: float | None = None
    html: str | None = None  # in place of the text

    def render(self) -> str:
        """Give the element."""
        value = "" if self.value is None else f' data-value="{self.value:.10g}"'
        kind = ' class="name"' if self.value is None else ""
        content = escape(self.text) if self.html is None else self.html
        return f"<td{kind}{value}>{content}</td>"


class Row(NamedTuple):
    """A row of a table, with its classes of style."""

    cells: Sequence[Cell | str]
    kind: str = ""


def number(value: float, pattern: str = ".3f", suffix: str = "") -> Cell:
    """Make a cell of a number; what is none is left empty, and sorts below zero."""
    if math.isnan(value):
        return Cell("", -1.0)
    return Cell(f"{value:{pattern}}{suffix}", value)


def table(header: Sequence[str], rows: Iterable[Row], *, id: str = "") -> str:
    """Make a table that can be sorted, and scrolls in itself where it is wider than the page.

    Columns are numbers if their first cell is one.
    """
    rows = list(rows)
    kinds = [_is_name(cell) for cell in rows[0].cells] if rows else [True] * len(header)
    heads = "".join(
        f'<th scope="col"{" class=name" if is_name else ""}>{escape(name)}</th>'
        for name, is_name in zip(header, kinds, strict=True)
    )
    body = "".join(_row(row) for row in rows)
    name = f' id="{id}"' if id else ""
    return (
        f'<div class="scroll" tabindex="0"><table class="sortable"{name}><thead><tr>{heads}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def paragraph(text: str, kind: str = "") -> str:
    """Make a paragraph of text."""
    style = f' class="{kind}"' if kind else ""
    return f"<p{style}>{escape(text)}</p>"


def captioned(drawing: str, caption: str) -> str:
    """Put a caption below a figure."""
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _row(row: Row) -> str:
    kind = f' class="{row.kind}"' if row.kind else ""
    cells = (cell if isinstance(cell, Cell) else Cell(cell) for cell in row.cells)
    return f"<tr{kind}>{''.join(cell.render() for cell in cells)}</tr>"


def _is_name(cell: Cell | str) -> bool:
    return isinstance(cell, str) or cell.value is None
