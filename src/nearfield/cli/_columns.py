"""From a table to features and labels: which columns and rows are used, and as what."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.cli._names import require_columns, same_numbers
from nearfield.cli._numbers import (
    is_numeric,
    read_numbers,
    row_of_units,
    to_numbers,
    without_percent_signs,
)
from nearfield.cli._words import counted, listed, note, numbered, quoted

if TYPE_CHECKING:
    import pandas as pd

_N_SHOWN = 5
_EMPTY = "it is empty"
_MOSTLY = 0.5  # with more numbers than this, a column of text is one of numbers that needs mending
_MOST_REPLICATES = 10  # rows of one sample, on average
_ID_WORDS = re.compile(
    r"(?:^|[^a-z])(id|nr|no|number|index|sample|code|barcode|scan|name)(?![a-z])"
)
_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[T ].*)?"


class Roles(NamedTuple):
    """What the options say of the columns of a table to fit to.

    Attributes
    ----------
    target : str
    id, groups, weight : str, optional
    ignored, used : sequence of str, optional
        Columns to leave out; columns to keep although they look like identifiers.
    categorical : sequence of str, optional
        Columns of numbers that stand for categories.
    drops_missing : bool
    """

    target: str
    id: str | None = None
    groups: str | None = None
    weight: str | None = None
    ignored: Sequence[str] | None = None
    used: Sequence[str] | None = None
    categorical: Sequence[str] | None = None
    drops_missing: bool = False


class Training(NamedTuple):
    """A table taken apart.

    Attributes
    ----------
    features : DataFrame
        Numbers as float64, categories as a column of that type, of text.
    target : ndarray, shape (n,)
    groups : ndarray, shape (n,), or None
    ids : ndarray, shape (n,)
        The names of the samples, or the numbers of their rows.
    id_name : str
        What these are.
    weights : ndarray, shape (n,), or None
        As how many rows each row counts, above zero.
    """

    features: "pd.DataFrame"
    target: NDArray[Any]
    groups: NDArray[Any] | None
    ids: NDArray[Any]
    id_name: str
    weights: NDArray[np.float64] | None = None


def training_data(frame: "pd.DataFrame", roles: Roles) -> Training:
    """Take a table apart into features and the column to predict."""
    others = [name for name in (roles.id, roles.groups, roles.weight) if name is not None]
    ignored, used, categorical = roles.ignored or [], roles.used or [], roles.categorical or []
    for name in [roles.target, *others, *ignored, *used, *categorical]:
        require_columns(frame, [name])
    frame = _with_weight(_with_class(frame, roles.target), roles.weight)
    candidates = frame.drop(columns={roles.target, *others, *ignored} - set(used))
    numeric = [name for name in candidates.columns if name not in categorical]
    candidates = _read_percentages(candidates, numeric)
    features = candidates.drop(columns=_left_out(candidates, {*used, *categorical}))
    if features.shape[1] == 0:
        raise ValueError(
            f"Expected at least one column of features besides the target {roles.target!r}; got "
            "none. Supply the features too."
        )
    texts = [name for name in features.columns if not is_numeric(features[name])]
    unclear = [name for name in texts if name not in categorical]
    _refuse_text(
        features[[name for name in unclear if not _is_category(features[name])]],
        "numbers, or text of few values,",
        _remedy,
    )
    features = usable_rows(features, drops_missing=roles.drops_missing)
    frame = frame.loc[features.index]
    groups = None if roles.groups is None else frame[roles.groups].astype(str).to_numpy()
    labels = class_labels(frame[roles.target])
    if groups is None:
        _note_replicates(features[unclear], labels)
    ids = frame.index if roles.id is None else frame[roles.id]
    weights = None if roles.weight is None else frame[roles.weight].to_numpy(dtype=float)
    features = _as_features(features, [*texts, *categorical])
    return Training(features, labels, groups, ids.to_numpy(), roles.id or "row", weights)


def prediction_data(
    frame: "pd.DataFrame",
    columns: Mapping[str, str],
    categories: Mapping[str, Sequence[str]],
    *,
    drops_missing: bool = False,
) -> "pd.DataFrame":
    """Take the columns that a model was fitted on out of a table, in their order.

    `columns` says what the model took each for, and `categories` which levels it knows.
    """
    frame = same_numbers(frame, list(columns))
    require_columns(frame, list(columns))
    numbers = [name for name, kind in columns.items() if kind in ("number", "boolean")]
    features = _without_units(frame[list(columns)], numbers)
    features = _read_percentages(features, numbers)
    _refuse_text(
        features[[name for name in numbers if not is_numeric(features[name])]],
        "numbers, as in the data that the model was fitted to,",
        lambda column: f"{_mending(column)}.",
    )
    features = usable_rows(features, drops_missing=drops_missing)
    empty = features.index[features.isna().all(axis=1)]
    if len(empty):
        note(
            f"{counted(len(empty), 'row')} without any of the model's features "
            f"({numbered(empty)}): their probabilities are the class proportions of training."
        )
    converted = _as_features(features, [n for n, kind in columns.items() if "category" in kind])
    for name, known in categories.items():
        new = converted.loc[~converted[name].isin(known) & converted[name].notna(), name]
        if len(new):
            note(
                f"column {name!r} holds values that the model was not fitted to in "
                f"{counted(len(new), 'row')} ({listed(sorted(set(new)))}): they tell nothing."
            )
    return converted


def usable_rows(features: "pd.DataFrame", *, drops_missing: bool) -> "pd.DataFrame":
    """Leave out rows with missing values where that is wanted; refuse infinite numbers."""
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
    _refuse_infinite(features)
    return features


def _refuse_infinite(features: "pd.DataFrame") -> None:
    flags = features.select_dtypes("number").isin([np.inf, -np.inf])
    rows, columns = np.nonzero(flags.to_numpy())
    if len(rows) == 0:
        return
    places = [
        f"row {flags.index[row]}, column {str(flags.columns[column])!r}"
        for row, column in zip(rows[:_N_SHOWN], columns[:_N_SHOWN], strict=True)
    ]
    more = f"; and {len(rows) - _N_SHOWN:,} more" if len(rows) > _N_SHOWN else ""
    raise ValueError(
        f"Expected a finite value everywhere; infinite in {'; '.join(places)}{more} (row 1 is the "
        "first below the header). Mend them, or leave out such a column (--ignore)."
    )


def _with_class(frame: "pd.DataFrame", target: str) -> "pd.DataFrame":
    """Leave out rows without a class; of a row of units, what is below it becomes numbers."""
    has_class = frame[target].notna()
    if not has_class.any():
        raise ValueError(f"Expected classes in column {target!r}; it is empty. Check the name.")
    if has_class.all():
        return frame
    lost = frame.index[~has_class]
    note(f"left out {counted(len(lost), 'row')} without a class ({numbered(lost)}).")
    return read_numbers(frame[has_class], is_comma_decimal=False)[0]


def _without_units(features: "pd.DataFrame", numbers: Sequence[str]) -> "pd.DataFrame":
    """Leave out a row of units; what was text by it alone becomes numbers."""
    row = row_of_units(features[list(numbers)])
    if row is not None:
        units = features.loc[row, list(numbers)].dropna()
        note(f"left out row {row}, which holds units ({listed(units)}).")
        features = features.drop(index=row)
    return features.assign(**read_numbers(features[list(numbers)], is_comma_decimal=False)[0])


def _read_percentages(features: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Take percent signs off columns that are mostly numbers without them, and say so."""
    for name in names:
        column = features[name]
        text = None if is_numeric(column) else without_percent_signs(column)
        if text is None or not _is_mostly_numbers(text):
            continue
        n_signs = int((text != column)[column.notna()].sum())
        note(
            f"column {name!r} holds percent signs in {n_signs:,} of "
            f"{counted(len(column), 'row')}: 5% was read as 5."
        )
        features = features.assign(**read_numbers(text.to_frame(name), is_comma_decimal=True)[0])
    return features


def _note_replicates(categories: "pd.DataFrame", labels: NDArray[Any]) -> None:
    """Point out text that may name the samples that several rows are replicates of."""
    n_classes = len(np.unique(labels))
    for name in categories.columns:
        classes = categories[[name]].assign(label=labels).groupby(name)["label"].nunique()
        is_fine = len(classes) >= max(2 * n_classes, len(labels) / _MOST_REPLICATES)
        if is_fine and (classes == 1).all():
            note(
                f"column {name!r} has {len(classes):,} values, each in one class alone. If they "
                f"name samples measured several times, pass --groups {name!r}: as a feature the "
                "column makes a model look better than it is."
            )


def _with_weight(frame: "pd.DataFrame", weight: str | None) -> "pd.DataFrame":
    """Refuse weights that are no numbers >= 0; leave out rows of weight zero."""
    if weight is None:
        return frame
    column = frame[weight]
    if not is_numeric(column):
        raise ValueError(
            f"Expected numbers in column {weight!r}, the weights; {_example(column)}. Mend it, or "
            "leave out --weight."
        )
    is_wrong = ~(column.astype(float) >= 0.0) | np.isinf(column.astype(float))
    if is_wrong.any():
        row = column.index[is_wrong.to_numpy().argmax()]
        value = "nothing" if column.isna()[row] else f"{column[row]:g}"
        raise ValueError(
            f"Expected finite weights >= 0 in column {weight!r}; row {row} holds {value}. Mend "
            "it; a weight of zero leaves a row out."
        )
    is_kept = column > 0
    if not is_kept.all():
        lost = frame.index[~is_kept]
        note(f"left out {counted(len(lost), 'row')} of weight zero ({numbered(lost)}).")
    return frame[is_kept]


def _left_out(features: "pd.DataFrame", used: Collection[str]) -> list[str]:
    """Name the columns that are empty or tell rows apart, and say so."""
    left_out = []
    for name in features.columns:
        reason = None if name in used else _reason_to_leave_out(features[name])
        if reason is not None:
            left_out.append(name)
            as_id = "" if reason == _EMPTY else f"--id {name!r} to name the samples by it, or "
            note(f"left out column {name!r}: {reason}. Pass {as_id}--feature {name!r} to use it.")
    return left_out


def _reason_to_leave_out(column: "pd.Series") -> str | None:
    if column.isna().all():
        return _EMPTY
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


def _as_features(features: "pd.DataFrame", categories: Sequence[str]) -> "pd.DataFrame":
    """Give categories as such, with a number written one way, and the rest as float64."""
    import pandas as pd

    converted = {}
    for name in features.columns:
        column = features[name]
        if name not in categories:
            converted[name] = column.astype(np.float64)
            continue
        text = column.map(lambda v: f"{v:.15g}" if isinstance(v, float) else str(v).strip())
        # Declared as categories: part of the rows may hold too few of each to tell.
        converted[name] = text.astype(object).where(column.notna(), None).astype("category")
    return pd.DataFrame(converted, index=features.index)


def class_labels(column: "pd.Series") -> NDArray[Any]:
    """Give the classes as numbers, booleans or text; the estimators refuse what are no classes."""
    if not is_numeric(column):
        return column.map(str).str.strip().to_numpy(dtype=str)
    values = column.to_numpy()
    # Whole numbers beside empty cells were read as floats.
    is_whole = values.dtype.kind == "f" and (values == np.round(values)).all()
    return values.astype(np.int64) if is_whole and (np.abs(values) < 2**53).all() else values


def _is_category(column: "pd.Series") -> bool:
    """Tell whether text is of few values, and is neither dates nor numbers that need mending."""
    is_other = _is_mostly_numbers(column) or _holds_dates(column)
    return not is_other and column.nunique() <= max(column.notna().sum() / 2, 20)


def _refuse_text(
    features: "pd.DataFrame", expected: str, remedy: Callable[["pd.Series"], str]
) -> None:
    """Refuse columns of text that need mending: the first by its values, all by their names."""
    if features.shape[1] == 0:
        return
    column = features.iloc[:, 0]
    n_others = features.shape[1] - 1
    others = ""
    if n_others:
        which = counted(n_others, "other column")
        verb, names = "needs" if n_others == 1 else "need", quoted(features.columns[1:])
        others = f" {which} {verb} mending too ({names})."
    raise ValueError(
        f"Expected {expected} in column {str(column.name)!r}; {_example(column)}. "
        f"{remedy(column)}{others}"
    )


def _example(column: "pd.Series") -> str:
    """Name the first values that are not numbers."""
    is_text = (to_numbers(column).isna() & column.notna()).to_numpy()
    shown = column[is_text] if is_text.any() else column.dropna()[:1]
    first, *more = shown.drop_duplicates().astype(str).items()
    held = f"row {first[0]} holds {first[1]!r}"
    if not _is_mostly_numbers(column):
        return held
    further = [f"row {row} {value!r}" for row, value in more[: _N_SHOWN - 1]]
    return f"{is_text.sum():,} of {len(column):,} rows hold something else, " + ", ".join(
        [held, *further]
    )


def _remedy(column: "pd.Series") -> str:
    name = repr(str(column.name))
    if _holds_dates(column):
        return f"These are dates: pass --ignore {name}, or turn them into numbers such as days."
    if _is_mostly_numbers(column):
        return f"{_mending(column)}; or pass --ignore {name}."
    return (
        f"If it names the samples, pass --id {name}; if it holds categories, --categorical {name}; "
        f"otherwise --ignore {name}."
    )


def _mending(column: "pd.Series") -> str:
    """Say what to do with cells that are not numbers."""
    values = column[to_numbers(column).isna() & column.notna()].astype(str)
    is_limit = values.str.contains(r"^\s*[<>≤≥]|LOD|LOQ", regex=True).any()
    what = (
        "Values beyond a limit of detection need a number (half the limit is customary)"
        if is_limit
        else "Replace them by numbers"
    )
    return f"{what}, or empty those cells"


def _is_mostly_numbers(column: "pd.Series") -> bool:
    return to_numbers(column).notna().sum() > _MOSTLY * column.notna().sum()


def _holds_dates(column: "pd.Series") -> bool:
    if column.dtype.kind in "mM":
        return True
    return bool(column.dropna().astype(str).str.strip().str.fullmatch(_DATE).mean() > _MOSTLY)
