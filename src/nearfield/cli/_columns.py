"""From a table to features and labels: which columns, of what kind, with nothing missing."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.cli._words import listed

if TYPE_CHECKING:
    import pandas as pd

_N_SHOWN = 5


class Training(NamedTuple):
    """A table taken apart.

    Attributes
    ----------
    features : DataFrame
        Numbers as float64, text as object.
    target : ndarray, shape (n,)
    text_columns : list of str
        The columns of `features` to encode.
    """

    features: "pd.DataFrame"
    target: NDArray[Any]
    text_columns: list[str]


def training_data(
    frame: "pd.DataFrame", target: str, ignored: list[str], *, one_hot: bool
) -> Training:
    """Take a table apart into features and the column to predict."""
    for name in [target, *ignored]:
        require_columns(frame, [name])
    features = frame.drop(columns=[target, *ignored])
    if features.shape[1] == 0:
        raise ValueError(
            f"Expected at least one column besides the target {target!r}; got none. "
            "Supply the features too."
        )
    text_columns = [name for name in features.columns if not _is_numeric(features[name])]
    if text_columns and not one_hot:
        raise ValueError(_refusal(features[text_columns[0]], text_columns))
    check_missing(frame[[*features.columns, target]])
    labels = _labels(frame[target])
    return Training(_as_features(features, text_columns), labels, text_columns)


def prediction_data(
    frame: "pd.DataFrame", columns: list[str], categories: dict[str, list[str]]
) -> "pd.DataFrame":
    """Take the columns that a model was fitted on out of a table, in their order.

    `categories` holds, for each column that the model encodes, the values that it knows.
    """
    require_columns(frame, columns)
    features = frame[columns]
    for name in columns:
        if name not in categories and not _is_numeric(features[name]):
            raise ValueError(
                f"Expected numbers in column {name!r}, as in the data that the model was fitted "
                f"to; {_example(features[name])}. Mend the column."
            )
    check_missing(features)
    converted = _as_features(features, list(categories))
    for name, known in categories.items():
        is_new = ~converted[name].isin(known).to_numpy()
        if is_new.any():
            row = int(np.argmax(is_new))
            raise ValueError(
                f"Expected column {name!r} to hold a value that the model was fitted to "
                f"({listed(known)}); row {row + 1} holds {converted[name].iloc[row]!r}. "
                "Leave out such rows, or fit the model to data that has them."
            )
    return converted


def require_columns(frame: "pd.DataFrame", names: list[str]) -> None:
    """Refuse a table that lacks a column."""
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        raise ValueError(
            f"Expected a column {lacking[0]!r}; the columns are "
            f"{listed(repr(str(name)) for name in frame.columns)}. Check the name."
        )


def check_missing(frame: "pd.DataFrame") -> None:
    """Refuse missing and infinite values, by row and column."""
    is_infinite = frame.select_dtypes("number").isin([np.inf, -np.inf])
    for kind, flags in (("missing", frame.isna()), ("infinite", is_infinite)):
        rows, columns = np.nonzero(flags.to_numpy())
        if len(rows):
            places = [
                f"row {row + 1}, column {str(flags.columns[column])!r}"
                for row, column in zip(rows[:_N_SHOWN], columns[:_N_SHOWN], strict=True)
            ]
            more = f"; and {len(rows) - _N_SHOWN} more" if len(rows) > _N_SHOWN else ""
            raise ValueError(
                f"Expected a finite value everywhere; {kind} in {'; '.join(places)}{more} (row 1 "
                "is the first below the header). Fill them in, or leave out those rows or columns."
            )


def _is_numeric(column: "pd.Series") -> bool:
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    # A column without any value is numeric: what is wrong with it is that its values are missing.
    is_number = is_numeric_dtype(column) and not is_complex_dtype(column)
    return is_number or is_bool_dtype(column) or bool(column.isna().all())


def _as_features(features: "pd.DataFrame", text_columns: list[str]) -> "pd.DataFrame":
    kinds = {name: object if name in text_columns else np.float64 for name in features.columns}
    converted = features.astype(kinds)
    for name in text_columns:
        converted[name] = converted[name].map(str).astype(object)
    return converted


def _labels(column: "pd.Series") -> NDArray[Any]:
    """Give the classes as numbers, booleans or text; the estimators refuse what are no classes."""
    if _is_numeric(column):
        return column.to_numpy()
    return column.map(str).to_numpy(dtype=str)


def _refusal(column: "pd.Series", text_columns: list[str]) -> str:
    others = f" (and {len(text_columns) - 1} more like it)" if len(text_columns) > 1 else ""
    return (
        f"Expected numbers in column {column.name!r}{others}; {_example(column)}. Pass --one-hot "
        "to turn each of its values into a column of its own, or --ignore the column."
    )


def _example(column: "pd.Series") -> str:
    """Name the first value that is not a number."""
    import pandas as pd

    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    is_text = (numbers.isna() & column.notna()).to_numpy()
    row = int(np.argmax(is_text))
    return f"row {row + 1} holds {str(column.iloc[row])!r}"
