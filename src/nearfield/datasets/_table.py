"""Labelled tables: the one csv reader, and the check that every cell is a finite number."""

from collections.abc import Hashable
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LABEL_COLUMN = "class"


def read_labelled_csv(file: Path | IO[str], source: str) -> tuple[pd.DataFrame, NDArray[np.str_]]:
    """Read a csv with a header: the column ``class`` is the label, every other one a feature.

    Parameters
    ----------
    file : Path or text file
    source : str
        What an error message calls the file.

    Returns
    -------
    features : DataFrame of shape (N, F), float64
    labels : ndarray of shape (N,), str
    """
    try:
        # Blank cells stay text, so that an error can show them.
        table = pd.read_csv(file, dtype={LABEL_COLUMN: str}, keep_default_na=False)
    except ValueError as error:
        raise ValueError(
            f"Expected a csv table with a header in {source}; reading it failed: "
            f"{str(error).strip()}. Repair the file or fetch it again."
        ) from error
    if LABEL_COLUMN not in table:
        raise ValueError(
            f"Expected a column {LABEL_COLUMN!r} with the labels in {source}; got "
            f"{_shortened(list(table.columns))}. Name the label column {LABEL_COLUMN!r}."
        )
    labels = table.pop(LABEL_COLUMN).to_numpy(dtype=np.str_)
    return to_finite(table, source), labels


def to_finite(cells: pd.DataFrame, source: str) -> pd.DataFrame:
    """Turn every cell into a float64, and refuse text, blanks, NaN and infinity."""
    numbers = cells.apply(pd.to_numeric, errors="coerce").astype(np.float64)
    not_finite = np.argwhere(~np.isfinite(numbers.to_numpy()))
    if len(not_finite):
        row, column = not_finite[0]
        raise ValueError(
            f"Expected finite numbers in {source}; got {str(cells.iat[row, column])!r} in data row "
            f"{row} (from 0), column {cells.columns[column]!r}, and {len(not_finite)} such "
            "cell(s) in all. Repair the file or fetch it again."
        )
    return numbers


def _shortened(names: list[Hashable], n_shown: int = 5) -> str:
    shown = ", ".join(repr(name) for name in names[:n_shown])
    return f"{len(names)} columns: {shown}{', ...' if len(names) > n_shown else ''}"
