"""What a part of the report is made of: paragraphs, tables and figures, in reading order."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Table:
    """A table as people read it, and the numbers behind it.

    `shown` holds text; `data` goes to the csv file, in full precision.
    """

    name: str
    caption: str
    shown: pd.DataFrame
    data: pd.DataFrame

    def to_markdown(self) -> str:
        """Write the table in Markdown, its caption above; columns of numbers to the right."""
        columns = [str(column) for column in self.shown.columns]
        rows = [[_cell(value) for value in row] for row in self.shown.itertuples(index=False)]
        rules = ["---:" if _is_numeric(column) else "---" for column in zip(*rows, strict=True)]
        lines = [columns, rules or ["---"] * len(columns), *rows]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when the report is written."""

    name: str
    caption: str
    draw: Callable[[], Any]  # a matplotlib Figure


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    name: str
    title: str
    blocks: list[str | Table | Figure] = field(default_factory=list)

    @property
    def tables(self) -> list[Table]:
        """The tables in it."""
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def figures(self) -> list[Figure]:
        """The figures in it."""
        return [block for block in self.blocks if isinstance(block, Figure)]


def mean_and_sd(values: Any, digits: int = 1) -> str:
    """Write shares in per cent: mean, standard deviation and range."""
    v = 100.0 * np.asarray(values, dtype=np.float64)
    return spread(v.mean(), v.std(ddof=1) if v.size > 1 else np.nan, v.min(), v.max(), digits)


def spread(mean: float, sd: float, low: float, high: float, digits: int = 1) -> str:
    """Write a mean with its standard deviation, if there is one, and its range."""
    deviation = "" if np.isnan(sd) else f" ± {sd:.{digits}f}"
    return f"{mean:.{digits}f}{deviation} ({low:.0f}-{high:.0f})"


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _is_numeric(column: tuple[str, ...]) -> bool:
    return all(text[:1].isdigit() or text[:1] in "-+" or not text for text in column)
