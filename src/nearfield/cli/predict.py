"""``nearfield predict``: from a model file and a table to predictions."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from nearfield.cli import _options
from nearfield.cli._columns import prediction_data
from nearfield.cli._json import to_json
from nearfield.cli._model_files import load_model
from nearfield.cli._models import final_step, known_categories
from nearfield.cli._names import require_columns
from nearfield.cli._progress import progress
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import STREAM, read_table, source_name
from nearfield.cli._words import counted, listed
from nearfield.cli._writing import check_output, table_suffix, write_file, write_table

if TYPE_CHECKING:
    import pandas as pd

_N_ROWS_AT_ONCE = 20_000
_DOUBTFUL = 0.8  # a class of a lower probability is worth a second look
_N_DIGITS = 4


@one_line_errors
@result_on_stdout
def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A file that nearfield fit wrote; - for standard input.",
            show_default=False,
        ),
    ],
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
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="The column that names the samples; that of nearfield fit, else row numbers.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option("--level", help="The probability of the interval, between 0 and 1."),
    ] = 0.95,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A further column of DATA to copy; may be given more than once.",
            show_default=False,
        ),
    ] = None,
    full_precision: Annotated[
        bool,
        typer.Option(
            "--full-precision", help="Write all digits, as JSON has them, rather than four."
        ),
    ] = False,
    missing: _options.MissingValues = None,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    force: _options.Force = False,
    json: _options.Json = False,
) -> str | bytes:
    """Predict the class of every row of a table.

    Each row of the result holds the row's id or number, the class, the probability of every
    class, the credible interval of that of the predicted one, and the outlier score: high for
    a row that is far from all that the model has seen.

    Example: `nearfield predict iris.model new.csv --out predictions.csv`
    """
    if model == STREAM and data == STREAM:
        raise typer.BadParameter("MODEL and DATA cannot both be standard input.")
    if not 0.0 < level < 1.0:
        raise typer.BadParameter(f"{level} is not between 0 and 1.", param_hint="'--level'")
    if out != STREAM:
        table_suffix(out)
    check_output(out, [model, data], _is_predictions, "predictions", force=force)
    fitted = load_model(model)
    frame = read_table(data, sheet=sheet, max_bytes=_options.to_bytes(max_size))
    require_columns(frame, [*([id] if id else []), *(keep or [])])
    features = _features(fitted, frame, drops_missing=missing is _options.Missing.DROP)
    predictions = _predictions(fitted, features, level)
    remembered = getattr(fitted, "id_column_", None)
    id = id or (remembered if remembered in frame.columns else None)
    is_rounded = not full_precision and not (json and out == STREAM)
    rounded = _rounded(predictions) if is_rounded else predictions
    table = _with_names(rounded, frame, id, keep or [])
    if out == STREAM and json:
        return to_json(table.astype(object).to_dict(orient="records"))
    if out == STREAM:
        return write_table(table, ".csv")
    write_file(out, write_table(table, out))
    summary = _summary(predictions, table.iloc[:, 0])
    return to_json(summary | {"written": out}) if json else _for_people(summary, data, out)


def _features(fitted: Any, frame: "pd.DataFrame", *, drops_missing: bool) -> "pd.DataFrame":
    """Take out of a table what a model needs, be it from `nearfield fit` or from Python."""
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "Expected a model that knows the names of its columns; this one was fitted to an "
            "array. Fit it with nearfield fit, or in Python to a DataFrame."
        )
    categories = {} if final_step(fitted) is fitted else known_categories(fitted[0])
    return prediction_data(frame, list(names), categories, drops_missing=drops_missing)


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
    """Predict; a model without intervals or an outlier score gives what it has."""
    import pandas as pd

    final = final_step(fitted)
    X = features if final is fitted else fitted[:-1].transform(features)
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
    return pd.DataFrame(columns, index=features.index)


def _with_names(
    predictions: "pd.DataFrame", frame: "pd.DataFrame", id: str | None, keep: list[str]
) -> "pd.DataFrame":
    """Put the id or the row number, and what else is to be kept, before the predictions."""
    frame = frame.loc[predictions.index]
    named = predictions.copy()
    for position, name in enumerate(keep):
        named.insert(position, name, frame[name], allow_duplicates=True)
    named.insert(0, id or "row", frame.index if id is None else frame[id], allow_duplicates=True)
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
    return {
        "n_rows": len(predictions),
        "classes": predictions["class"].value_counts().to_dict(),
        "doubtful": names[probabilities < _DOUBTFUL].tolist(),
    }


def _for_people(summary: dict[str, Any], data: str, out: str) -> str:
    found = listed(f"{name}: {count:,}" for name, count in summary["classes"].items())
    lines = [f"Predicted {counted(summary['n_rows'], 'row')} of {source_name(data)} ({found})."]
    doubtful = summary["doubtful"]
    if doubtful:
        lines.append(
            f"{counted(len(doubtful), 'row')} with no class above a probability of {_DOUBTFUL}: "
            f"{listed(doubtful)}."
        )
    return "\n".join([*lines, f"Wrote {out}."]) + "\n"


def _is_predictions(path: str) -> bool:
    """Tell whether a file holds predictions, of whatever model."""
    try:
        columns = list(read_table(path).columns)
    except (ValueError, ImportError):
        return False
    return "class" in columns and any(name.startswith("probability_") for name in columns)
