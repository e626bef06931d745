"""``nearfield predict``: from a model file and a table to predictions."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from nearfield.cli import _options
from nearfield.cli._json import to_json
from nearfield.cli._names import require_columns
from nearfield.cli._new_data import load_both, model_features, sample_ids
from nearfield.cli._progress import progress
from nearfield.cli._report_files import is_predictions
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import STREAM, source_name
from nearfield.cli._words import counted, listed
from nearfield.cli._writing import check_output, table_suffix, write_file, write_table

if TYPE_CHECKING:
    import pandas as pd

_N_ROWS_AT_ONCE = 20_000
_DOUBTFUL = 0.8  # a class of a lower probability is worth a second look
_OUTSIDE = 0.05  # a row whose every p-value of membership is at most this is unusual
_N_DIGITS = 4


@one_line_errors
@result_on_stdout
def predict(
    model: _options.ModelFile,
    data: _options.Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="PREDICTIONS",
            help="The file to write, as its name says: .csv, .tsv, .xlsx, .ods or .parquet, and "
            ".gz, .bz2, .xz or .zst after that; - for csv on standard output.",
        ),
    ] = STREAM,
    id: _options.ModelId = None,
    level: Annotated[
        float,
        typer.Option("--level", help="The probability of the interval, between 0 and 1."),
    ] = 0.95,
    keep: Annotated[
        list[str] | None,
        _options.column_option(
            "--keep", "A further column of DATA to copy; may be given more than once."
        ),
    ] = None,
    full_precision: Annotated[
        bool,
        typer.Option(
            "--full-precision", help="Write all digits, as JSON has them, rather than four."
        ),
    ] = False,
    missing: _options.MissingValues = _options.Missing.KEEP,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    force: _options.Force = False,
    json: _options.Json = False,
) -> str | bytes:
    """Predict the class of every row of a table.

    Each row of the result holds the row's id or number, the class, the probability of every
    class, the credible interval of that of the predicted one, the outlier score, and the largest
    p-value of membership in a class: small for a row that is unlike all that the model has seen.

    Example: `nearfield predict iris.model new.csv --out predictions.csv`
    """
    if not 0.0 < level < 1.0:
        raise typer.BadParameter(f"{level} is not between 0 and 1.", param_hint="'--level'")
    if out != STREAM:
        table_suffix(out)
    check_output(out, [model, data], is_predictions, "predictions", force=force)
    fitted, frame = load_both(model, data, sheet, _options.to_bytes(max_size))
    require_columns(frame, [*([id] if id else []), *(keep or [])])
    features = model_features(fitted, frame, drops_missing=missing is _options.Missing.DROP)
    predictions = _predictions(fitted, features, level)
    id, ids = sample_ids(fitted, frame.loc[features.index], id)
    is_rounded = not full_precision and not (json and out == STREAM)
    rounded = _rounded(predictions) if is_rounded else predictions
    table = _with_names(rounded, frame.loc[features.index, keep or []], id, ids)
    if out == STREAM and json:
        return to_json(table.astype(object).to_dict(orient="records"))
    if out == STREAM:
        return write_table(table, ".csv")
    write_file(out, write_table(table, out))
    summary = _summary(predictions, table.iloc[:, 0])
    return to_json(summary | {"written": out}) if json else _for_people(summary, data, out)


def _predictions(fitted: Any, features: "pd.DataFrame", level: float) -> "pd.DataFrame":
    """Predict, a part of the rows at a time."""
    import pandas as pd

    starts = range(0, len(features), _N_ROWS_AT_ONCE)
    parts = []
    with progress(f"Predicting {len(features):,} rows", len(starts)) as advance:
        for start in starts:
            parts.append(_predicted(fitted, features.iloc[start : start + _N_ROWS_AT_ONCE], level))
            advance()
    return pd.concat(parts)


def _predicted(fitted: Any, features: "pd.DataFrame", level: float) -> "pd.DataFrame":
    """Predict; a model without intervals, outlier score or p-values gives what it has."""
    import pandas as pd

    from nearfield.estimators import split_pipeline

    final, X = split_pipeline(fitted, features)
    probabilities = final.predict_proba(X)
    top = probabilities.argmax(axis=1)
    rows = np.arange(len(top))
    columns: dict[str, Any] = {"class": final.classes_[top]}
    for g, name in enumerate(final.classes_):
        columns[f"probability_{name}"] = probabilities[:, g]
    if hasattr(final, "predict_proba_interval"):
        lower, upper = final.predict_proba_interval(X, level=level)
        columns["lower"], columns["upper"] = lower[rows, top], upper[rows, top]
    if hasattr(final, "outlier_score"):
        columns["outlier_score"] = final.outlier_score(X)
    if hasattr(final, "membership"):
        columns["p_value"] = final.membership(X, class_conditional=False).max(axis=1)
    return pd.DataFrame(columns, index=features.index)


def _with_names(
    predictions: "pd.DataFrame", kept: "pd.DataFrame", id_name: str, ids: NDArray[Any]
) -> "pd.DataFrame":
    """Put the id or the row number, and what else is to be kept, before the predictions."""
    named = predictions.copy()
    for position, name in enumerate(kept.columns):
        named.insert(position, name, kept.iloc[:, position], allow_duplicates=True)
    named.insert(0, id_name, ids, allow_duplicates=True)
    return named


def _rounded(predictions: "pd.DataFrame") -> "pd.DataFrame":
    """Round probabilities to four decimals, and the score, which has no bound, to four digits."""
    rounded = predictions.round(_N_DIGITS)
    if "outlier_score" in predictions:
        rounded["outlier_score"] = [
            float(f"{score:.{_N_DIGITS}g}") for score in predictions["outlier_score"]
        ]
    return rounded


def _summary(predictions: "pd.DataFrame", names: "pd.Series") -> dict[str, Any]:
    probabilities = predictions.filter(regex="^probability_").max(axis=1).to_numpy()
    summary = {
        "n_rows": len(predictions),
        "classes": predictions["class"].value_counts().to_dict(),
        "doubtful": names[probabilities < _DOUBTFUL].tolist(),
    }
    if "p_value" in predictions:
        summary["outside"] = names[(predictions["p_value"] <= _OUTSIDE).to_numpy()].tolist()
    return summary


def _for_people(summary: dict[str, Any], data: str, out: str) -> str:
    found = listed(f"{name}: {count:,}" for name, count in summary["classes"].items())
    lines = [f"Predicted {counted(summary['n_rows'], 'row')} of {source_name(data)} ({found})."]
    doubtful = summary["doubtful"]
    if doubtful:
        lines.append(
            f"{counted(len(doubtful), 'row')} with no class above a probability of {_DOUBTFUL}: "
            f"{listed(doubtful)}."
        )
    outside = summary.get("outside")
    if outside:
        expected = _OUTSIDE * summary["n_rows"]
        lines.append(
            f"{len(outside):,} of {counted(summary['n_rows'], 'row')} "
            f"{'lies' if len(outside) == 1 else 'lie'} outside the training data (p <= {_OUTSIDE}; "
            f"by chance {expected:,.1f}, if all were like it): {listed(outside)}."
        )
    return "\n".join([*lines, f"Wrote {out}."]) + "\n"
