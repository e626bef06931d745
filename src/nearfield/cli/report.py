"""``nearfield report``: a page about new data and what a model says of it."""

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from nearfield.cli import _options
from nearfield.cli._columns import class_labels
from nearfield.cli._json import to_json
from nearfield.cli._names import require_columns
from nearfield.cli._new_data import load_both, model_features, sample_ids, training_names
from nearfield.cli._progress import progress
from nearfield.cli._report_files import check_report_folder, write_report
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import source_name
from nearfield.cli._words import counted, listed, quoted

if TYPE_CHECKING:
    import pandas as pd


@one_line_errors
@result_on_stdout
def report(
    model: _options.ModelFile,
    data: _options.Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder to write report.html and predictions.csv to.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column that holds the class, if it is known: predictions are compared.",
            show_default=False,
        ),
    ] = None,
    id: _options.Id = None,
    missing: _options.MissingValues = _options.Missing.KEEP,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    force: _options.Force = False,
    json: _options.Json = False,
) -> str:
    """Write a page about new rows: their predictions, and the training samples behind them.

    With `--target` it compares predictions and classes. For the data that the model was fitted
    to, use `nearfield evaluate --report`, which predicts each row without having seen it.

    Example: `nearfield report iris.model new.csv --out new`
    """
    from nearfield.report import Source, gather, predict_new

    check_report_folder(out, force=force)
    fitted, frame = load_both(model, data, sheet, _options.to_bytes(max_size))
    require_columns(frame, [name for name in (id, target) if name is not None])
    features = model_features(fitted, frame, drops_missing=missing is _options.Missing.DROP)
    frame = frame.loc[features.index]
    id_name, ids = sample_ids(fitted, frame, id)
    labels = None if target is None else _codes(frame[target], fitted.classes_)
    with progress(f"Predicting {counted(len(features), 'row')}"):
        predictions = {type(fitted).__name__: predict_new(fitted, features)}
        source = Source(
            source_name(data),
            features,
            fitted.classes_,
            ids,
            labels,
            target,
            training_ids=training_names(fitted),
        )
        gathered = gather(source, predictions, fitted)
    written = write_report(out, gathered, id_name)
    account = {"n_rows": len(features), "warnings": gathered.data.warnings, "written": written}
    return to_json(account) if json else _for_people(account, data)


def _codes(column: "pd.Series", classes: NDArray[Any]) -> NDArray[np.int64]:
    """Give the classes of rows as positions among those of the model."""
    if column.isna().any():
        raise ValueError(
            f"Expected a class in every row of column {str(column.name)!r}; row "
            f"{column.index[column.isna()][0]} has none. Fill it in, or leave out --target."
        )
    values = class_labels(column)
    positions = {str(name): g for g, name in enumerate(classes)}
    unknown = sorted({str(value) for value in values} - set(positions))
    if unknown:
        raise ValueError(
            f"Expected classes that the model knows ({listed(classes)}) in column "
            f"{str(column.name)!r}; got {quoted(unknown)}. Leave out --target to see what the "
            "model says of such rows."
        )
    return np.array([positions[str(value)] for value in values], dtype=np.int64)


def _for_people(account: dict[str, Any], data: str) -> str:
    lines = [f"Reported on {counted(account['n_rows'], 'row')} of {source_name(data)}."]
    lines += [f"Warning: {text}" for text in account["warnings"]]
    return "\n".join([*lines, *(f"Wrote {path}." for path in account["written"])]) + "\n"
