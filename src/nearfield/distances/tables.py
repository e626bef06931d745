r"""Tables with categories and missing values as points, so that Euclidean distances suit them.

The squared distance of two rows is a sum over columns. A number, a truth value or an ordered
category (by its rank) adds :math:`(x - x')^2 / s^2`, with s the standard deviation, which is 2 on
average over pairs of rows. An unordered category adds

.. math:: \frac{2}{1 - \sum_l p_l^2} \quad\text{where the two rows differ},

with p_l the shares of its levels, which is 2 on average too. A missing value is put at the mean of
its column, a missing category at the mean of its levels, and an indicator adds 1 between a row
with a gap and one without: on average that makes 2 again, neither near nor far. A level that
training has not seen is at the mean of the levels.

A category of more than 20 levels is placed by the class proportions of its levels instead, drawn
towards those of all rows; those of a training row are estimated from other rows.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nearfield._fitting import all_or_nothing
from nearfield.distances.frames import (
    BOOLEAN,
    CATEGORY,
    NUMBER,
    ORDERED,
    RawColumn,
    as_numbers,
    as_text,
    raw_columns,
)

TYPES, CODES = "types", "codes"
VIEWS = (TYPES, CODES)
"""The ways to read a table: as its types say, or with whole numbers of few values as categories."""

_MAX_ONE_HOT = 20  # levels; of more, each has too few rows to be a direction of its own
_MAX_CODES = 10  # values of a whole number that may be codes of categories
_MAX_TEXT_SHARE = 0.5  # a text of which more values differ names the rows
_LEAST_TEXT_LEVELS = 20
_STRENGTHS = np.geomspace(0.5, 500.0, 13)
_LEAST_SHARE = 0.01  # of the variance of the classes that a category explains
_N_FOLDS = 10


class FeatureView(NamedTuple):
    """Some columns of encoded points, and which of them have a scale that must stay.

    Attributes
    ----------
    columns : ndarray of int, shape (n_columns,)
    is_scaled : ndarray of bool, shape (n_columns,)
        Not to be divided by their standard deviations.
    description : str
        What the columns of the table are taken for.
    """

    columns: NDArray[np.int64]
    is_scaled: NDArray[np.bool_]
    description: str


class Piece(NamedTuple):
    """Columns of points that come from one column of a table, and the views they belong to."""

    values: NDArray[np.float64]
    views: tuple[str, ...]
    is_scaled: bool
    is_number: bool = False


@dataclass(frozen=True, eq=False)
class ColumnCode:
    """How one column of a table becomes some columns of points.

    Attributes
    ----------
    name : Any
    kind : str
        What the column was taken for.
    has_gaps : bool
        Whether training has missing values, so that an indicator is made.
    fill : float
        What a missing number becomes: the mean.
    levels : ndarray of str, shape (n_levels,)
        Of categories, and of numbers that may be; sorted, or in their order.
    points : ndarray, shape (n_levels + 1, width)
        The point of each level, and last that of a missing or new one.
    has_proportions : bool
        Whether these are class proportions.
    """

    name: Any
    kind: str
    has_gaps: bool
    fill: float
    levels: NDArray[np.str_]
    points: NDArray[np.float64]
    has_proportions: bool = False

    @classmethod
    def fit(cls, column: RawColumn, labels: NDArray[np.int64], n_classes: int) -> Self:
        """Learn from the training rows."""
        has_gaps = bool(is_missing(column).any())
        none = np.empty(0, dtype=np.str_), np.empty((0, 0))
        code = cls(column.name, column.kind, has_gaps, 0.0, *none)
        if column.kind == ORDERED:
            code = replace(code, levels=np.array(column.levels, dtype=np.str_))
        if column.kind != CATEGORY:
            values = code.numbers(column)
            present = values[~np.isnan(values)]
            # The mean, by shares: the sum of the values may overflow.
            code = replace(code, fill=float((present / max(present.size, 1)).sum()))
        if column.kind != CATEGORY and not may_be_codes(column):
            return code
        levels = sorted({value for value in as_text(column) if value is not None})
        code = replace(code, levels=np.array(levels, dtype=np.str_))
        codes, n_levels = code.codes(column), len(code.levels)
        if n_levels <= _MAX_ONE_HOT:
            return replace(code, points=_one_hot(codes, n_levels))
        points = _proportions_points(codes, labels, n_levels, n_classes)
        return replace(code, points=points, has_proportions=True)

    def kind_in(self, view: str) -> str:
        """Tell what the column is taken for in a view."""
        return CATEGORY if view == CODES and self.points.size else self.kind

    def codes(self, column: RawColumn) -> NDArray[np.int64]:
        """Give the position of each value among the levels; -1 where missing or new."""
        known = {level: code for code, level in enumerate(self.levels.tolist())}
        return np.array([known.get(value, -1) for value in as_text(column)], dtype=np.int64)

    def numbers(self, column: RawColumn) -> NDArray[np.float64]:
        """Give numbers, booleans as 0 and 1, or the ranks of ordered levels."""
        if self.kind != ORDERED:
            return as_numbers(column)
        codes = self.codes(column)
        return np.where(codes < 0, np.nan, codes)

    @property
    def width(self) -> int:
        """The number of columns of points."""
        return int(self.kind != CATEGORY) + self.points.shape[1] + int(self.has_gaps)

    def value(self, encoded: NDArray[np.float64]) -> Any:
        """Give the value behind its columns of a point, shape (width,).

        None where it is missing, new to training, or placed by class proportions, which several
        levels may share.
        """
        if self.has_proportions or (self.has_gaps and encoded[-1] > 0.5):
            return None
        if self.kind == NUMBER:
            return float(encoded[0])
        if self.kind == BOOLEAN:
            return bool(encoded[0] > 0.5)
        if self.kind == ORDERED:
            return str(self.levels[round(encoded[0])])
        gaps = self.points - encoded[: self.points.shape[1]]
        level = int(np.argmin(np.sum(gaps**2, axis=1)))
        return str(self.levels[level]) if level < len(self.levels) else None

    def pieces(self, column: RawColumn) -> list[Piece]:
        """Encode a column of any rows."""
        pieces = []
        is_number = self.kind != CATEGORY
        if is_number:
            values = self.numbers(column)
            filled = np.where(np.isnan(values), self.fill, values)[:, None]
            views = (TYPES,) if self.points.size else VIEWS
            pieces.append(Piece(filled, views, is_scaled=False, is_number=self.kind == NUMBER))
        if self.points.size:
            views = (CODES,) if is_number else VIEWS
            pieces.append(Piece(self.points[self.codes(column)], views, is_scaled=True))
        if self.has_gaps:
            pieces.append(Piece(is_missing(column)[:, None].astype(float), VIEWS, is_scaled=True))
        return pieces


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as points between which Euclidean distances are meaningful.

    Takes data frames of pandas and polars and arrays, with numbers, booleans, ordered and
    unordered categories, text of few values, and missing values.

    Parameters
    ----------
    categorical_features : "from_dtype" or array-like
        Which columns are categories: those whose type says so, and text; or a mask, positions or
        names.

    Attributes
    ----------
    codes_ : list of ColumnCode
        One a column of the table.
    columns_ : dict
        What each column was taken for, by its name.
    views_ : dict of str to FeatureView
        ``"types"``, and ``"codes"`` where whole numbers of few values may be categories.
    is_number_ : ndarray of bool, shape (n_encoded,)
        Encoded columns that are numbers of the table, whose distribution may be transformed.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dose": [1.0, None, 2.0], "site": ["a", "b", "a"]})
    >>> encoder = TableEncoder().fit(table, [0, 1, 0])
    >>> encoder.columns_
    {'dose': 'number', 'site': 'category'}
    >>> encoder.transform(table).shape
    (3, 3)
    """

    def __init__(self, categorical_features: Any = "from_dtype") -> None:
        self.categorical_features = categorical_features

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from a table of n rows and the classes, shape (n,)."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Learn from a table and encode it; class proportions of a row are from other rows."""
        classes, labels = np.unique(np.asarray(y), return_inverse=True)
        columns = self._columns(X)
        for column in columns:
            _check_levels(column)
        self.codes_ = [ColumnCode.fit(column, labels, len(classes)) for column in columns]
        pieces = [
            _out_of_fold(code, column, labels, len(classes))
            for code, column in zip(self.codes_, columns, strict=True)
        ]
        self._keep_views([piece for group in pieces for piece in group])
        return _joined(pieces, len(labels))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encode rows of a table with the same columns."""
        check_is_fitted(self)
        columns = list(raw_columns(X))
        pairs = zip(self.codes_, columns, strict=True)
        return _joined([code.pieces(column) for code, column in pairs], X.shape[0])

    @property
    def columns_(self) -> dict[Any, str]:
        """What each column was taken for, by its name."""
        return {code.name: code.kind for code in self.codes_}

    def _columns(self, X: Any) -> list[RawColumn]:
        columns = list(raw_columns(X))
        chosen = self.categorical_features
        if isinstance(chosen, str) and chosen == "from_dtype":
            return columns
        is_category = category_mask(chosen, [column.name for column in columns])
        return [
            column._replace(kind=CATEGORY, is_declared=True) if is_chosen else _not_category(column)
            for column, is_chosen in zip(columns, is_category, strict=True)
        ]

    def _keep_views(self, pieces: list[Piece]) -> None:
        """Find the views that differ, and which columns are numbers of the table."""
        widths = [piece.values.shape[1] for piece in pieces]
        is_scaled = np.repeat([piece.is_scaled for piece in pieces], widths)
        self.is_number_ = np.repeat([piece.is_number for piece in pieces], widths)
        self.views_: dict[str, FeatureView] = {}
        for view in VIEWS:
            columns = np.flatnonzero(np.repeat([view in piece.views for piece in pieces], widths))
            known = [list(other.columns) for other in self.views_.values()]
            if list(columns) not in known:
                kinds = [code.kind_in(view) for code in self.codes_]
                self.views_[view] = FeatureView(columns, is_scaled[columns], _counted(kinds))


def category_mask(chosen: Any, names: list[Any]) -> NDArray[np.bool_]:
    """Turn a mask, positions or names of columns into a mask."""
    if chosen is None:
        return np.zeros(len(names), dtype=bool)
    array = np.asarray(chosen)
    mask = np.zeros(len(names), dtype=bool)
    if array.dtype.kind == "b" and array.shape == mask.shape:
        return array
    is_position = array.dtype.kind in "iu" and array.ndim == 1
    if is_position and (np.abs(array + 0.5) < len(names)).all():
        mask[array] = True
        return mask
    unknown = [name for name in array.ravel().tolist() if name not in names]
    if array.dtype.kind not in "OU" or array.ndim != 1 or unknown:
        raise ValueError(
            'Expected categorical_features as "from_dtype", a mask of all columns, positions or '
            f"names among {names}; got {chosen!r}. Name the columns that are categories."
        )
    return np.isin(np.array(names, dtype=object), array.astype(object))


def is_missing(column: RawColumn) -> NDArray[np.bool_]:
    """Tell which values of a column are missing."""
    values = column.values
    is_float = values.dtype.kind == "f"
    return np.isnan(values) if is_float else np.array([value is None for value in values])


def _not_category(column: RawColumn) -> RawColumn:
    if column.kind != CATEGORY:
        return column
    return column._replace(kind=NUMBER, values=as_numbers(column))


def _check_levels(column: RawColumn) -> None:
    """Refuse text that names the rows."""
    if column.is_declared:
        return
    present = [value for value in column.values if value is not None]
    n_levels = len(set(present))
    if n_levels > max(_LEAST_TEXT_LEVELS, _MAX_TEXT_SHARE * len(present)):
        raise ValueError(
            f"Expected text of few different values in column {column.name!r}; got {n_levels} in "
            f"{len(present)} rows, such as {present[0]!r}. Drop the column, turn it into numbers, "
            "or name it in categorical_features."
        )


def _counted(kinds: list[str]) -> str:
    """Count the columns of each kind, in words."""
    counts = ((kinds.count(kind), kind) for kind in (NUMBER, BOOLEAN, ORDERED, CATEGORY))
    return ", ".join(
        f"1 {kind}" if count == 1 else f"{count} {_plural(kind)}" for count, kind in counts if count
    )


def _plural(kind: str) -> str:
    return kind.removesuffix("y") + "ies" if kind.endswith("y") else kind + "s"


def may_be_codes(column: RawColumn) -> bool:
    """Tell whether numbers are whole and so few that they may stand for categories."""
    if column.kind != NUMBER:
        return False
    values = np.unique(column.values[~np.isnan(column.values)])
    is_whole = bool((values == np.round(values)).all())
    return is_whole and 3 <= len(values) <= min(_MAX_CODES, len(column.values) // 10)


def _one_hot(codes: NDArray[np.int64], n_levels: int) -> NDArray[np.float64]:
    """Place the levels at equal distances: 2 over their mean share of differing pairs, squared."""
    counts = np.bincount(codes[codes >= 0], minlength=n_levels)
    shares = counts / max(counts.sum(), 1)
    points = np.vstack([np.eye(n_levels), shares]) - shares
    share_differing = 1.0 - np.sum(shares**2)
    if share_differing <= 0.0:
        return np.zeros((n_levels + 1, min(n_levels, 1)))
    points /= np.sqrt(share_differing)
    return np.sqrt(2.0) * points[:, :1] if n_levels == 2 else points


def _proportions(
    codes: NDArray[np.int64], labels: NDArray[np.int64], n_levels: int, n_classes: int
) -> NDArray[np.float64]:
    """Estimate the class proportions of each level, drawn towards those of all rows.

    The posterior mean under a Dirichlet prior whose strength makes the counts most probable.
    Those of a new level, the last, are the proportions of all rows.
    """
    shares = np.bincount(labels, minlength=n_classes) / len(labels)
    counts = np.zeros((n_levels, n_classes))
    is_known = codes >= 0
    np.add.at(counts, (codes[is_known], labels[is_known]), 1.0)
    strength = max(_STRENGTHS, key=lambda a: _log_evidence(counts, a * shares))
    posterior = counts + strength * shares
    return np.vstack([posterior / posterior.sum(axis=1, keepdims=True), shares])


def _proportions_points(
    codes: NDArray[np.int64],
    labels: NDArray[np.int64],
    n_levels: int,
    n_classes: int,
    is_used: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Give the class proportions of the levels on a scale where their variances add up to one.

    Levels that hardly differ in their proportions are not blown up. Only the rows `is_used` tell
    the proportions; all rows tell the scale.
    """
    table = _proportions(codes, labels, n_levels, n_classes)
    shares = table[-1]
    variance = table[codes].var(axis=0).sum() + _LEAST_SHARE * np.sum(shares * (1.0 - shares))
    if is_used is not None:
        table = _proportions(codes[is_used], labels[is_used], n_levels, n_classes)
    points = (table - shares) / np.sqrt(variance)
    # The proportions of two classes differ by the same amount, with opposite signs.
    return np.sqrt(2.0) * points[:, 1:] if n_classes == 2 else points


def _log_evidence(counts: NDArray[np.float64], prior: NDArray[np.float64]) -> float:
    """Give the log probability of counts, shape (n_levels, G), under a Dirichlet prior."""
    prior = np.maximum(prior, 1e-12)
    total = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum(axis=1))
    return float(total.sum() + np.sum(gammaln(prior + counts) - gammaln(prior)))


def _out_of_fold(
    code: ColumnCode, column: RawColumn, labels: NDArray[np.int64], n_classes: int
) -> list[Piece]:
    """Encode training rows, with class proportions from the rows of other folds."""
    pieces = code.pieces(column)
    if not code.has_proportions:
        return pieces
    codes = code.codes(column)
    values = np.empty((len(codes), code.points.shape[1]))
    fold = np.random.default_rng(0).permutation(len(codes)) % _N_FOLDS
    for number in range(_N_FOLDS):
        out, rest = fold == number, fold != number
        points = _proportions_points(codes, labels, len(code.levels), n_classes, rest)
        values[out] = points[codes[out]]
    return [pieces[0]._replace(values=values), *pieces[1:]]


def _joined(pieces: list[list[Piece]], n_rows: int) -> NDArray[np.float64]:
    values = [piece.values for group in pieces for piece in group]
    return np.hstack([np.empty((n_rows, 0)), *values])
