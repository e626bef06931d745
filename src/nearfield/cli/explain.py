"""``nearfield explain``: why a model gives one row of a table its class."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearfield.cli import _options
from nearfield.cli._json import to_json
from nearfield.cli._names import require_columns
from nearfield.cli._new_data import load_both, model_features, sample_ids
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._words import counted, listed, table

if TYPE_CHECKING:
    import pandas as pd

    from nearfield.prediction.explanation import Explanation


@one_line_errors
@result_on_stdout
def explain(
    model: _options.ModelFile,
    data: _options.Data,
    row: Annotated[
        int,
        typer.Option(
            "--row",
            metavar="N",
            help="The number of the row; 1 is the first below the header.",
            show_default=False,
        ),
    ],
    id: _options.ModelId = None,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", min=1, help="Training samples and features to show."),
    ] = 10,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    json: _options.Json = False,
) -> str:
    """Explain the prediction of one row of a table.

    The result names the training samples with the largest influence, by the column that `--id` gave
    to `nearfield fit`, else by their numbers from 1 among the rows that it used; what the value of
    each feature adds to the log odds of the most probable class against the next; and what would
    change the class. JSON holds all features.

    Example: `nearfield explain iris.model new.csv --row 3`
    """
    from nearfield.estimators import split_pipeline

    fitted, frame = load_both(model, data, sheet, _options.to_bytes(max_size))
    final, _ = split_pipeline(fitted)
    if not hasattr(final, "explain"):
        raise ValueError(
            f"Expected a model that explains its predictions; got {type(final).__name__}. Fit one "
            "with --model nearfield, dnn1, dnn2, dnn3 or pknn."
        )
    require_columns(frame, [id] if id else [])
    if row not in frame.index:
        raise ValueError(
            f"Expected --row between 1 and {len(frame)}, for the table has "
            f"{counted(len(frame), 'row')}; got {row}. Row 1 is the first below the header."
        )
    frame = frame.loc[[row]]
    features = model_features(fitted, frame, drops_missing=False)
    explanation = final.explain(split_pipeline(fitted, features)[1], n_samples=top)[0]
    id_name, ids = sample_ids(fitted, frame, id)
    name = None if id_name == "row" else ids[0]
    record = _record(explanation, row, name, getattr(final, "training_ids_", []))
    return to_json(record) if json else _for_people(record, top, explanation.to_frame())


def _record(
    explanation: "Explanation", row: int, name: Any, training_ids: list[str]
) -> dict[str, Any]:
    """Gather what is known, training samples by their numbers from 1 and their names, if any."""
    record = explanation.to_dict()
    classes, probabilities = record.pop("classes"), record.pop("probabilities")
    named = [*record["samples"], record["nearest_other"]]
    for sample in [*named, record["change"]] if record["change"] else named:
        place = sample.pop("row")
        sample["sample"] = place + 1
        sample["id"] = training_ids[place] if place < len(training_ids) else None
    return {
        "row": row,
        "id": name,
        "probabilities": dict(zip(classes, probabilities, strict=True)),
        **record,
    }


def _for_people(record: dict[str, Any], top: int, features: "pd.DataFrame") -> str:
    first, second = record["first"], record["second"]
    named = "" if record["id"] is None else f" ({record['id']})"
    chances = (f"{name}: {p:.4f}" for name, p in record["probabilities"].items())
    samples = [
        (_name(sample), str(sample["label"]), f"{sample['influence']:+.3f}")
        for sample in record["samples"]
    ]
    has_ids = all(sample["id"] is not None for sample in record["samples"])
    numbered = "" if has_ids else ", numbered from 1"
    lines = [
        f"Row {record['row']}{named}: {first} ({listed(chances)}).",
        "",
        f"Training samples{numbered}, by influence (log odds of their class):",
        table(("sample", "class", "influence"), samples) if samples else "  none",
    ]
    if len(features):
        shown = [
            (str(name), _value(value), f"{size:+.3f}")
            for name, value, size in features.head(top).itertuples(index=False)
        ]
        lines += [
            "",
            f"Features, by the log odds of {first} against {second} that their values add:",
            table(("feature", "value", "log odds"), shown),
        ]
    return "\n".join([*lines, "", *_change_for_people(record)]) + "\n"


def _change_for_people(record: dict[str, Any]) -> list[str]:
    """Say what would change the class."""
    nearest, change = record["nearest_other"], record["change"]
    line = f"The nearest training sample of {nearest['label']} is {_name(nearest, 'number ')}."
    if change is None:
        return [line]
    values = listed(f"{each['feature']} = {_value(each['value'])}" for each in change["values"])
    return [
        line,
        f"With values of {_name(change, 'number ')} the class would be {change['label']}: "
        f"{values}.",
    ]


def _name(sample: dict[str, Any], before_number: str = "") -> str:
    """Name a training sample by its id, or its number."""
    return f"{before_number}{sample['sample']}" if sample["id"] is None else str(sample["id"])


def _value(value: Any) -> str:
    if value is None or value != value:  # NaN is not itself
        return "?"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
