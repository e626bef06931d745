"""Columns of a table, whatever holds it: pandas, polars, or an array of objects.

A column is read as numbers (missing values are NaN) or as text (missing values are None). Numbers
that serve as categories are written the same way whether they came as 1, 1.0 or "1".
"""

from collections.abc import Iterator
from datetime import date, timedelta
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

NUMBER, BOOLEAN, ORDERED, CATEGORY = "number", "boolean", "ordered category", "category"


class RawColumn(NamedTuple):
    """A column as its type says.

    Attributes
    ----------
    name : Any
        The name, or the position where there are no names.
    kind : str
        ``"number"``, ``"boolean"``, ``"ordered category"`` or ``"category"``.
    values : ndarray, shape (n,)
        float64, or text with None.
    levels : list of str or None
        The categories that the type declares, in their order.
    is_declared : bool
        Whether the type says that it holds categories; text alone does not.
    """

    name: Any
    kind: str
    values: NDArray[Any]
    levels: list[str] | None = None
    is_declared: bool = True


def is_table(X: Any) -> bool:
    """Tell whether X has named columns, as a data frame of pandas or polars."""
    return isinstance(X, pd.DataFrame) or _is_polars(X)


def raw_columns(X: Any) -> Iterator[RawColumn]:
    """Read the columns of a table or of a two-dimensional array one by one."""
    if _is_polars(X):
        for name in X.columns:
            yield _read(name, _from_polars(X[name]))
    elif isinstance(X, pd.DataFrame):
        for position, name in enumerate(X.columns):
            yield _read(name, X.iloc[:, position])
    else:
        for position, values in enumerate(np.asarray(X).T):
            yield _read(position, pd.Series(values))


def as_numbers(column: RawColumn) -> NDArray[np.float64]:
    """Give the values as numbers; refuse text that is none."""
    if column.values.dtype.kind == "f":
        if np.isinf(column.values).any():
            raise ValueError(
                f"Input X contains infinity: expected finite numbers in column {column.name!r}. "
                "Mend them, or leave them empty."
            )
        return column.values
    numbers = pd.to_numeric(pd.Series(column.values, dtype=object), errors="coerce")
    is_text = numbers.isna().to_numpy() & np.array([v is not None for v in column.values])
    if is_text.any():
        row = int(np.argmax(is_text))
        raise ValueError(
            f"Expected numbers in column {column.name!r}, as in training; row {row} holds "
            f"{column.values[row]!r}. Mend it, or leave it empty."
        )
    return numbers.to_numpy(dtype=np.float64)


def as_text(column: RawColumn) -> NDArray[Any]:
    """Give the values as text; missing ones are None."""
    if column.values.dtype.kind != "f":
        return column.values
    return np.array([None if np.isnan(v) else f"{v:.15g}" for v in column.values], dtype=object)


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "get_columns")


def _from_polars(series: Any) -> pd.Series:
    """Turn a polars column into one of pandas; an Enum has an order, a Categorical has none."""
    kind = series.dtype
    values = pd.Series(series.to_list(), dtype=object)
    if kind.is_temporal():
        return pd.to_datetime(pd.Series([pd.NaT] * len(values)))
    if kind.is_numeric():
        return values.astype(np.float64)
    type_name = type(kind).__name__
    if type_name not in ("Enum", "Categorical"):
        return values
    is_ordered = type_name == "Enum"
    levels = kind.categories.to_list() if is_ordered else None
    return pd.Series(pd.Categorical(values, levels, ordered=is_ordered))


def _read(name: Any, series: pd.Series) -> RawColumn:
    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        levels = [_level(value) for value in kind.categories]
        codes = series.cat.codes.to_numpy()
        text = np.array([*levels, None], dtype=object)[codes]
        return RawColumn(name, ORDERED if kind.ordered else CATEGORY, text, levels)
    if types.is_datetime64_any_dtype(kind) or types.is_timedelta64_dtype(kind):
        raise _dates(name)
    if isinstance(kind, pd.PeriodDtype | pd.IntervalDtype):
        raise _dates(name)
    if types.is_bool_dtype(kind):
        return RawColumn(name, BOOLEAN, _floats(series))
    if types.is_complex_dtype(kind):
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    if types.is_numeric_dtype(kind):
        return RawColumn(name, NUMBER, _floats(series))
    return _read_objects(name, series)


def _read_objects(name: Any, series: pd.Series) -> RawColumn:
    """Read objects by what they are: numbers, booleans or text."""
    present = series.dropna()
    if all(isinstance(value, bool | np.bool_) for value in present):
        return RawColumn(name, BOOLEAN, _floats(series))
    if all(isinstance(value, Real) for value in present):
        return RawColumn(name, NUMBER, _floats(series))
    if any(isinstance(value, date | timedelta) for value in present):
        raise _dates(name)
    if not all(isinstance(value, str | Real) for value in present):
        odd = next(value for value in present if not isinstance(value, str | Real))
        raise TypeError(
            f"Expected numbers, booleans or text in column {name!r}; a feature argument must "
            f"be a string or a number, got {type(odd).__name__}. Drop the column."
        )
    is_missing = series.isna().to_numpy()
    text = [None if gap else _level(v) for v, gap in zip(series, is_missing, strict=True)]
    return RawColumn(name, CATEGORY, np.array(text, dtype=object), is_declared=False)


def _floats(series: pd.Series) -> NDArray[np.float64]:
    return series.to_numpy(dtype=np.float64, na_value=np.nan)


def _level(value: Any) -> str:
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return f"{float(value):.15g}" if is_number else str(value)


def _dates(name: Any) -> ValueError:
    return ValueError(
        f"Expected numbers, truth values, categories or text in column {name!r}; got dates or "
        "times. Turn them into numbers, such as days since a date, the month or the hour, or drop "
        "the column."
    )
