"""Text that is numbers: with decimal commas, or typed as text into a spreadsheet."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# 1,5 and 1.234,5 and 2.
_DECIMAL_COMMA = r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?(?:,\d+)?(?:[eE][+-]?\d+)?"
# 1,234 may be either.
_THOUSANDS = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+"

_PERCENT = r"^\s*([-+]?[\d.,]+)\s*%\s*$"
# Numbers, and values beyond a limit of detection: < 0.1, LOD, n.d., trace.
_NO_UNIT = r"^\s*[-+.,]?\d|[<>≤≥?]|LOD|LOQ|(?i:^n\W*[ad]\b|not |trace)"


def is_numeric(column: "pd.Series") -> bool:
    """Tell whether a column holds numbers or booleans."""
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    # A column without any value is numeric: what is wrong with it is that its values are missing.
    is_number = is_numeric_dtype(column) and not is_complex_dtype(column)
    return is_number or is_bool_dtype(column) or bool(column.isna().all())


def to_numbers(column: "pd.Series") -> "pd.Series":
    """Read text as numbers, the way that fits more of its values; NaN where it is none."""
    import pandas as pd

    text = column.astype(object).map(str, na_action="ignore").str.strip()
    plain = pd.to_numeric(text, errors="coerce").astype(float)
    has_comma = text.str.contains(",", regex=False, na=False)
    if not has_comma.any():
        return plain
    fits = text.str.fullmatch(_DECIMAL_COMMA).astype("boolean").fillna(False).astype(bool)
    with_points = text.where(fits).str.replace(".", "", regex=False).str.replace(",", ".")
    with_commas = pd.to_numeric(with_points, errors="coerce").astype(float)
    return with_commas if with_commas.notna().sum() > plain.notna().sum() else plain


def without_percent_signs(column: "pd.Series") -> "pd.Series | None":
    """Take the percent signs off the numbers of a column of text; None if there are none."""
    if not _is_text(column):
        return None
    text = column.astype(object).map(str, na_action="ignore")
    stripped = text.str.replace(_PERCENT, r"\1", regex=True)
    return stripped if (stripped != text)[column.notna()].any() else None


def row_of_units(numbers: "pd.DataFrame") -> Any:
    """Give the index of the first row if it holds units of columns of numbers, else None.

    Such a row holds no number, a unit in at least one column, and below each unit are numbers.
    """
    if len(numbers) < 2:
        return None
    first, below = numbers.iloc[0], numbers.iloc[1:]
    named = first.dropna().astype(str)
    if named.str.contains(_NO_UNIT).any() or not named.str.contains(r"[^\W_]|%").any():
        return None
    is_read = [to_numbers(below[name]).notna().any() for name in named.index]
    return numbers.index[0] if all(is_read) else None


def read_numbers(frame: "pd.DataFrame", *, is_comma_decimal: bool) -> tuple["pd.DataFrame", bool]:
    """Turn every column of text whose values are all numbers into numbers.

    Tells also whether any had decimal commas.

    A column of nothing but values like 1,234 is left as text, unless other columns have decimal
    commas or `is_comma_decimal` says that no comma can mean thousands.
    """
    plain, with_commas, unclear = {}, {}, {}
    for name in frame.columns:
        column = frame[name]
        if is_numeric(column) or not _is_text(column):
            continue
        numbers = to_numbers(column)
        if (numbers.isna() & column.notna()).any():
            continue
        text = column.dropna().astype(str).str.strip()
        commas = text[text.str.contains(",", regex=False)]
        if commas.empty:
            plain[name] = numbers
        elif commas.str.fullmatch(_THOUSANDS).all():
            unclear[name] = numbers
        else:
            with_commas[name] = numbers
    if with_commas or is_comma_decimal:
        with_commas |= unclear
    return frame.assign(**plain, **with_commas), bool(with_commas)


def _is_text(column: "pd.Series") -> bool:
    from pandas.api.types import is_object_dtype, is_string_dtype

    return is_object_dtype(column) or is_string_dtype(column)
