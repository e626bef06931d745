"""A table before any model: its size, its classes, and what may spoil an evaluation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nearfield.report.results import DataSummary, Integers

_TINY = 10  # samples of a class; fewer say little about its sensitivity
_N_NAMED = 5


def describe_data(
    features: pd.DataFrame, labels: Integers | None, classes: Sequence[str]
) -> DataSummary:
    """Summarize the features of samples and warn of what is unusual.

    Parameters
    ----------
    features : DataFrame, shape (n, n_features)
    labels : ndarray of int, shape (n,), or None
        Positions in `classes`.
    classes : sequence of str
    """
    n_classes = len(classes)
    counts = np.zeros(n_classes, dtype=np.int64)
    if labels is not None:
        counts = np.bincount(labels, minlength=n_classes).astype(np.int64)
    warnings = [
        *_duplicates(features, labels),
        *_constant_columns(features),
        *_counting_columns(features),
        *([] if labels is None else _tiny_classes(counts, classes)),
    ]
    return DataSummary(
        len(features),
        features.shape[1],
        int(features.isna().to_numpy().sum()),
        counts,
        tuple(warnings),
    )


def _duplicates(features: pd.DataFrame, labels: Integers | None) -> list[str]:
    """Find rows that are equal in all features: held-out ones are known to the model."""
    is_copy = features.duplicated(keep=False).to_numpy()
    n_extra = int(features.duplicated().sum())
    if n_extra == 0:
        return []
    found = [
        f"{_counted(n_extra, 'row')} equal to an earlier one in every feature. Copies in several "
        "folds make the evaluation optimistic: keep one of each, or name the column that tells "
        "which belong together (--groups)."
    ]
    if labels is not None:
        copies = features[is_copy].set_axis(range(features.shape[1]), axis=1)  # names may repeat
        keys = copies.groupby(list(copies.columns), dropna=False, sort=False).ngroup().to_numpy()
        n_each = pd.Series(labels[is_copy]).groupby(keys).nunique()
        n_mixed = int((n_each > 1).sum())
        if n_mixed:
            found.append(
                f"{_counted(n_mixed, 'set')} of equal rows with different classes: no method "
                "can predict all of them."
            )
    return found


def _constant_columns(features: pd.DataFrame) -> list[str]:
    constant = list(features.columns[features.nunique(dropna=False).to_numpy() <= 1])
    if not constant or len(features) < 2:
        return []
    return [f"{_counted(len(constant), 'constant column')} ({_listed(constant)})."]


def _counting_columns(features: pd.DataFrame) -> list[str]:
    """Find columns that rise or fall with the order of the rows, as a running number does."""
    if len(features) < 10:
        return []
    found = []
    for name, column in features.select_dtypes("number").items():
        steps = np.diff(column.to_numpy(dtype=np.float64))
        if (steps > 0).all() or (steps < 0).all():
            found.append(name)
    if not found:
        return []
    verb = "rises or falls" if len(found) == 1 else "rise or fall"
    return [
        f"{_counted(len(found), 'column')} ({_listed(found)}) that {verb} with every row, as a "
        "running number does. If the rows are sorted by class, it gives the class away: leave it "
        "out (--ignore)."
    ]


def _tiny_classes(counts: Integers, classes: Sequence[str]) -> list[str]:
    tiny = [f"{classes[g]}: {counts[g]}" for g in np.flatnonzero(counts < _TINY).tolist()]
    if not tiny:
        return []
    return [
        f"{_counted(len(tiny), 'class', 'classes')} of fewer than {_TINY} samples "
        f"({_listed(tiny)}): {'its' if len(tiny) == 1 else 'their'} rates are uncertain."
    ]


def _counted(n: int, noun: str, plural: str | None = None) -> str:
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:_N_NAMED])
    return shown + (f" and {len(names) - _N_NAMED:,} more" if len(names) > _N_NAMED else "")
