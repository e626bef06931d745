"""New rows for a fitted model: its columns out of a table, and the names of the samples."""

from typing import TYPE_CHECKING, Any

import typer
from numpy.typing import NDArray

from nearfield.cli._columns import prediction_data
from nearfield.cli._models import known_categories
from nearfield.cli._tables import STREAM, read_bytes, read_table, source_name

if TYPE_CHECKING:
    import pandas as pd


def load_both(
    model: str, data: str, sheet: str | None, max_bytes: int
) -> tuple[Any, "pd.DataFrame"]:
    """Read a model and a table; not both from standard input."""
    from nearfield.persistence import from_bytes, load

    if model == STREAM and data == STREAM:
        raise typer.BadParameter("MODEL and DATA cannot both be standard input.")
    is_piped = model == STREAM
    fitted = from_bytes(read_bytes(model), source_name(model)) if is_piped else load(model)
    return fitted, read_table(data, sheet=sheet, max_bytes=max_bytes)


def model_features(fitted: Any, frame: "pd.DataFrame", *, drops_missing: bool) -> "pd.DataFrame":
    """Take out of a table what a model needs, be it from `nearfield fit` or from Python."""
    names = getattr(fitted, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "Expected a model that knows the names of its columns; this one was fitted to an "
            "array. Fit it with nearfield fit, or in Python to a DataFrame."
        )
    columns = getattr(fitted, "columns_", dict.fromkeys(names, "number"))
    return prediction_data(frame, columns, known_categories(fitted), drops_missing=drops_missing)


def sample_ids(fitted: Any, frame: "pd.DataFrame", id: str | None) -> tuple[str, NDArray[Any]]:
    """Name the samples: by a column, by that of `nearfield fit`, or by their row numbers."""
    remembered = getattr(fitted, "id_column_", None)
    name = id or (remembered if remembered in frame.columns else None)
    if name is None:
        return "row", frame.index.to_numpy()
    return name, frame[name].to_numpy()


def training_names(fitted: Any) -> list[str] | None:
    """Name the training samples of a model by the ids that `nearfield fit` was told, if any."""
    from nearfield.estimators import split_pipeline

    final, _ = split_pipeline(fitted)
    ids: list[str] = getattr(final, "training_ids_", [])
    if not ids:
        return None
    return [*ids, *(f"training {i}" for i in range(len(ids) + 1, len(final.labels_) + 1))]
