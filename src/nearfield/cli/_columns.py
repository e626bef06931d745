"""From a table to features and labels: which columns and rows are used, and as what."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.cli._names import require_columns, same_numbers
from nearfield.cli._numbers import is_numeric, to_numbers
from nearfield.cli._words import counted, listed, note, numbered

if TYPE_CHECKING:
    import pandas as pd

_N_SHOWN = 5
_MOSTLY = 0.5  # with more numbers than this, a column of text is one of numbers that needs mending
_ID_WORDS = re.compile(
    r"(?:^|[^a-z])(id|nr|no|number|index|sample|code|barcode|scan|name)(?![a-z])"
)
_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ].*)?"


class Roles(NamedTuple):
    """What the options say of the columns of a table to fit to.

    Attributes
    ----------
    target : str
    id, groups : str, optional
    ignored, used : sequence of str
        Columns to leave out; columns to keep although they look like identifiers.
    one_hot, drops_missing : bool
    """

    target: str
    id: str | None = None
    groups: str | None = None
    ignored: Sequence[str] = ()
    used: Sequence[str] = ()
    one_hot: bool = False
    drops_missing: bool = False


class Training(NamedTuple):
    """A table taken apart.

    Attributes
    ----------
    features : DataFrame
        Numbers as float64, text as object.
    target : ndarray, shape (n,)
    text_columns : list of str
        The columns of `features` to encode.
    groups : ndarray, shape (n,), or None
    """

    features: "pd.DataFrame"
    target: NDArray[Any]
    text_columns: list[str]
    groups: NDArray[Any] | None


def training_data(frame: "pd.DataFrame", roles: Roles) -> Training:
    """Take a table apart into features and the column to predict."""
    others = [name for name in (roles.id, roles.groups) if name is not None]
    for name in [roles.target, *others, *roles.ignored, *roles.used]:
        require_columns(frame, [name])
    frame = _with_class(frame, roles.target)
    candidates = frame.drop(columns={roles.target, *others, *roles.ignored} - set(roles.used))
    features = candidates.drop(columns=_left_out(candidates, roles.used))
    if features.shape[1] == 0:
        raise ValueError(
            f"Expected at least one column of features besides the target {roles.target!r}; got "
            "none. Supply the features too."
        )
    text_columns = [name for name in features.columns if not is_numeric(features[name])]
    for name in text_columns:
        if not roles.one_hot or _is_mostly_numbers(features[name]) or _holds_dates(features[name]):
            raise ValueError(_no_numbers(features[name], len(text_columns) - 1))
    features = complete_rows(features, drops_missing=roles.drops_missing)
    frame = frame.loc[features.index]
    groups = None if roles.groups is None else frame[roles.groups].astype(str).to_numpy()
    labels = _labels(frame[roles.target])
    return Training(_as_features(features, text_columns), labels, text_columns, groups)


def prediction_data(
    frame: "pd.DataFrame",
    columns: list[str],
    categories: dict[str, list[str]],
    *,
    drops_missing: bool = False,
) -> "pd.DataFrame":
    """Take the columns that a model was fitted on out of a table, in their order.

    `categories` holds, for each column that the model encodes, the values that it knows.
    """
    frame = same_numbers(frame, columns)
    require_columns(frame, columns)
    features = frame[columns]
    for name in columns:
        if name not in categories and not is_numeric(features[name]):
            raise ValueError(
                f"Expected numbers in column {name!r}, as in the data that the model was fitted "
                f"to; {_example(features[name])}. {_remedy(features[name])}"
            )
    converted = _as_features(complete_rows(features, drops_missing=drops_missing), list(categories))
    for name, known in categories.items():
        is_new = ~converted[name].isin(known).to_numpy()
        if is_new.any():
            row = int(np.argmax(is_new))
            raise ValueError(
                f"Expected column {name!r} to hold a value that the model was fitted to "
                f"({listed(known)}); row {converted.index[row]} holds "
                f"{converted[name].iloc[row]!r}. "
                "Leave out such rows, or fit the model to data that has them."
            )
    return converted


def complete_rows(features: "pd.DataFrame", *, drops_missing: bool) -> "pd.DataFrame":
    """Leave out rows with missing values where that is wanted; refuse them otherwise."""
    is_missing = features.isna()
    if drops_missing:
        is_complete = ~is_missing.any(axis=1)
        if not is_complete.any():
            worst = is_missing.sum().idxmax()
            raise ValueError(
                f"Expected rows without missing values; all {len(features)} have some, "
                f"{is_missing[worst].sum()} of them in column {worst!r}. Pass --ignore for such "
                "columns."
            )
        if not is_complete.all():
            lost = features.index[~is_complete]
            note(f"left out {counted(len(lost), 'row')} with missing values ({numbered(lost)}).")
        features = features[is_complete]
    else:
        _refuse_places(
            is_missing, "missing", "Fill them in, pass --missing drop to leave out those rows, or"
        )
    infinite = features.select_dtypes("number").isin([np.inf, -np.inf])
    _refuse_places(infinite, "infinite", "Mend them, or")
    return features


def _refuse_places(flags: "pd.DataFrame", kind: str, remedy: str) -> None:
    rows, columns = np.nonzero(flags.to_numpy())
    if len(rows) == 0:
        return
    places = [
        f"row {flags.index[row]}, column {str(flags.columns[column])!r}"
        for row, column in zip(rows[:_N_SHOWN], columns[:_N_SHOWN], strict=True)
    ]
    more = f"; and {len(rows) - _N_SHOWN:,} more" if len(rows) > _N_SHOWN else ""
    raise ValueError(
        f"Expected a finite value everywhere; {kind} in {'; '.join(places)}{more} (row 1 is the "
        f"first below the header). {remedy} leave out such a column (--ignore)."
    )


def _with_class(frame: "pd.DataFrame", target: str) -> "pd.DataFrame":
    """Leave out rows without a class."""
    has_class = frame[target].notna()
    if not has_class.any():
        raise ValueError(f"Expected classes in column {target!r}; it is empty. Check the name.")
    if not has_class.all():
        lost = frame.index[~has_class]
        note(f"left out {counted(len(lost), 'row')} without a class ({numbered(lost)}).")
    return frame[has_class]


def _left_out(features: "pd.DataFrame", used: Sequence[str]) -> list[str]:
    """Name the columns that are empty or tell rows apart, and say so."""
    left_out = []
    for name in features.columns:
        reason = None if name in used else _reason_to_leave_out(features[name])
        if reason is not None:
            left_out.append(name)
            note(f"left out column {name!r}: {reason}. Pass --feature {name!r} to use it.")
    return left_out


def _reason_to_leave_out(column: "pd.Series") -> str | None:
    if column.isna().all():
        return "it is empty"
    if len(column) < 3 or column.isna().any() or not column.is_unique:
        return None
    if not is_numeric(column):
        is_id = not _is_mostly_numbers(column) and not _holds_dates(column)
        return "its values differ in every row, as identifiers do" if is_id else None
    values = column.to_numpy(dtype=float)
    if not np.isfinite(values).all() or (values != np.round(values)).any():
        return None
    steps = np.diff(values)
    if (steps == steps[0]).all() or (len(values) >= 10 and (steps > 0).all()):
        return "it numbers the rows"
    if _ID_WORDS.search(str(column.name).lower()):
        return "its values differ in every row, as identifiers do"
    return None


def _as_features(features: "pd.DataFrame", text_columns: list[str]) -> "pd.DataFrame":
    kinds = {name: object if name in text_columns else np.float64 for name in features.columns}
    converted = features.astype(kinds)
    for name in text_columns:
        converted[name] = converted[name].map(str).astype(object)
    return converted


def _labels(column: "pd.Series") -> NDArray[Any]:
    """Give the classes as numbers, booleans or text; the estimators refuse what are no classes."""
    if not is_numeric(column):
        return column.map(str).str.strip().to_numpy(dtype=str)
    values = column.to_numpy()
    # Whole numbers beside empty cells were read as floats.
    is_whole = values.dtype.kind == "f" and (values == np.round(values)).all()
    return values.astype(np.int64) if is_whole and (np.abs(values) < 2**53).all() else values


def _no_numbers(column: "pd.Series", n_others: int) -> str:
    others = f" (and {n_others} more of text)" if n_others else ""
    return (
        f"Expected numbers in column {str(column.name)!r}{others}; {_example(column)}. "
        f"{_remedy(column)}"
    )


def _example(column: "pd.Series") -> str:
    """Name the first value that is not a number."""
    is_text = (to_numbers(column).isna() & column.notna()).to_numpy()
    row = int(np.argmax(is_text))
    held = f"row {column.index[row]} holds {str(column.iloc[row])!r}"
    if not _is_mostly_numbers(column):
        return held
    return f"{is_text.sum():,} of {len(column):,} rows hold something else, {held}"


def _remedy(column: "pd.Series") -> str:
    name = repr(str(column.name))
    if _holds_dates(column):
        return f"These are dates: pass --ignore {name}, or turn them into numbers such as days."
    if _is_mostly_numbers(column):
        values = column[to_numbers(column).isna() & column.notna()].astype(str)
        is_limit = values.str.contains(r"^\s*[<>≤≥]|LOD|LOQ", regex=True).any()
        what = (
            "Values beyond a limit of detection need a number (half the limit is customary)"
            if is_limit
            else "Replace them by numbers"
        )
        return f"{what}, or empty those cells and pass --missing drop; or pass --ignore {name}."
    if column.nunique() > max(len(column) / 2, 2):
        return f"If it names the samples, pass --id {name}; otherwise --ignore {name}."
    return (
        f"Pass --one-hot to turn each of its values into a column of its own, or --ignore {name}."
    )


def _is_mostly_numbers(column: "pd.Series") -> bool:
    return to_numbers(column).notna().sum() > _MOSTLY * column.notna().sum()


def _holds_dates(column: "pd.Series") -> bool:
    if column.dtype.kind in "mM":
        return True
    return bool(column.dropna().astype(str).str.strip().str.fullmatch(_DATE).mean() > _MOSTLY)
