"""``nearfield predict``: from a model file and a table to predictions."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from nearfield.cli import _options
from nearfield.cli._columns import prediction_data, require_columns
from nearfield.cli._files import load_model, write_file
from nearfield.cli._json import to_json
from nearfield.cli._models import known_categories
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import STREAM, read_table, source_name, write_table
from nearfield.cli._words import counted

if TYPE_CHECKING:
    import pandas as pd


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
            help="The file to write, as its name says: .csv, .tsv or .parquet, and .gz, .bz2, .xz "
            "or .zst after that; - for csv on standard output.",
        ),
    ] = STREAM,
    level: Annotated[
        float,
        typer.Option("--level", help="The probability of the interval, between 0 and 1."),
    ] = 0.95,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A column of DATA to copy, such as an identifier; may be given more than once.",
            show_default=False,
        ),
    ] = None,
    json: _options.Json = False,
) -> str | bytes:
    """Predict the class of every row of a table.

    Each row of the result holds the class, the probability of every class, the credible
    interval of that of the predicted one, and the outlier score: high for a row that is
    far from all that the model has seen.

    Example: `nearfield predict iris.model new.csv --out predictions.csv`
    """
    if model == STREAM and data == STREAM:
        raise typer.BadParameter("MODEL and DATA cannot both be standard input.")
    if not 0.0 < level < 1.0:
        raise typer.BadParameter(f"{level} is not between 0 and 1.", param_hint="'--level'")
    fitted = load_model(model)
    frame = read_table(data)
    require_columns(frame, keep or [])
    predictions = _predictions(fitted, frame, level)
    for position, name in enumerate(keep or []):
        predictions.insert(position, name, frame[name], allow_duplicates=True)
    if out == STREAM:
        return _records(predictions) if json else write_table(predictions, ".csv")
    write_file(out, write_table(predictions, out))
    counts = predictions["class"].value_counts()
    if json:
        return to_json({"written": out, "n_rows": len(frame), "classes": counts.to_dict()})
    found = ", ".join(f"{name}: {count:,}" for name, count in counts.items())
    return (
        f"Predicted {counted(len(frame), 'row')} of {source_name(data)} ({found}).\nWrote {out}.\n"
    )


def _predictions(fitted: Any, frame: "pd.DataFrame", level: float) -> "pd.DataFrame":
    """Predict; a model without intervals or an outlier score gives what it has."""
    import pandas as pd

    final, features = _model_and_features(fitted, frame)
    probabilities = final.predict_proba(features)
    top = probabilities.argmax(axis=1)
    rows = np.arange(len(top))
    columns: dict[str, Any] = {"class": final.classes_[top]}
    for g, name in enumerate(final.classes_):
        columns[f"probability_{name}"] = probabilities[:, g]
    if hasattr(final, "predict_proba_interval"):
        lower, upper = final.predict_proba_interval(features, level=level)
        columns["lower"], columns["upper"] = lower[rows, top], upper[rows, top]
    if hasattr(final, "outlier_score"):
        columns["outlier_score"] = final.outlier_score(features)
    return pd.DataFrame(columns)


def _model_and_features(fitted: Any, frame: "pd.DataFrame") -> tuple[Any, Any]:
    """Split a pipeline of `nearfield fit`; take a classifier saved from Python as it is."""
    from sklearn.pipeline import Pipeline

    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "Expected a model that knows the names of its columns; this one was fitted to an "
            "array. Fit it with nearfield fit, or in Python to a DataFrame."
        )
    if not isinstance(fitted, Pipeline):
        return fitted, prediction_data(frame, list(names), {})
    encoder = fitted[:-1]
    categories = known_categories(fitted[0])
    return fitted[-1], encoder.transform(prediction_data(frame, list(names), categories))


def _records(predictions: "pd.DataFrame") -> str:
    return to_json(predictions.astype(object).to_dict(orient="records"))
