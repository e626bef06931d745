"""``nearfield fit``: from a table to a model file."""

import time
from contextlib import nullcontext
from typing import Annotated, Any

import numpy as np
import typer

from nearfield.cli import _options
from nearfield.cli._columns import Roles, Training, training_data
from nearfield.cli._json import to_json
from nearfield.cli._models import DEFAULT_MODEL, Settings, classifier, fit_options, simple_settings
from nearfield.cli._progress import progress
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import STREAM, read_table, source_name
from nearfield.cli._words import counted, listed, note, table
from nearfield.cli._writing import check_output, write_file


@one_line_errors
@result_on_stdout
def fit(
    data: _options.Data,
    target: _options.Target,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="MODEL", help="The model file to write.")
    ],
    model: _options.ModelName = DEFAULT_MODEL,
    metric: _options.Metric = None,
    inference: _options.InferenceName = None,
    spectra: _options.Spectra = False,
    id: _options.Id = None,
    groups: _options.Groups = None,
    weight: _options.Weight = None,
    ignore: _options.Ignored = None,
    feature: _options.Features = None,
    categorical: _options.Categorical = None,
    missing: _options.MissingValues = _options.Missing.KEEP,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    force: _options.Force = False,
    seed: _options.Seed = 0,
    jobs: _options.Jobs = None,
    json: _options.Json = False,
) -> str | bytes:
    """Fit a model to a table and write it to a file.

    Columns that number the rows, or differ in every row as identifiers do, are left out with
    a note; so are rows without a class. The model can be used in Python too: `nearfield.load`.

    Example: `nearfield fit iris.csv --target species --out iris.model`
    """
    from nearfield.persistence import to_bytes

    is_weighted = weight is not None
    settings = Settings(model, metric, inference, seed, jobs, spectra, is_weighted, is_watched=True)
    final = classifier(settings)
    check_output(out, [data], _is_model, "a model", force=force)
    frame = read_table(data, sheet=sheet, max_bytes=_options.to_bytes(max_size))
    drops_missing = missing is _options.Missing.DROP
    roles = Roles(target, id, groups, weight, ignore, feature, categorical, drops_missing)
    training = training_data(frame, roles)
    started = time.perf_counter()
    has_own = hasattr(final, "verbose")  # a bar of its own
    with nullcontext() if has_own else progress(f"Fitting {model} to {len(frame):,} rows"):
        options = fit_options(final, training.groups, training.weights)
        final.fit(training.features, training.target, **options)
    if groups is not None and "groups" not in options:
        note(
            f"--groups {groups!r} only left that column out of the features: {model} holds no rows "
            f"out in a fit to {counted(len(training.target), 'row')}. In evaluate it has its part."
        )
    if has_own:
        final.verbose = 0
    final.id_column_ = id
    if id is not None:
        final.training_ids_ = [str(name) for name in training.ids]
    account = _account(final, training, settings) | {
        "data": source_name(data),
        "target": target,
        "seconds": time.perf_counter() - started,
    }
    content = to_bytes(final)
    if out == STREAM:
        typer.echo(_for_people(account), err=True, nl=False)
        return content
    write_file(out, content)
    account["written"] = out
    return to_json(account) if json else _for_people(account)


def _is_model(path: str) -> bool:
    from nearfield.persistence import load

    try:
        load(path)
    except ValueError:
        return False
    return True


def _account(final: Any, training: Training, settings: Settings) -> dict[str, Any]:
    """Gather what a person or a program wants to know of a fit."""
    account: dict[str, Any] = {
        "model": str(settings.model),
        "settings": simple_settings(final),
        "n_rows": len(training.features),
        "features": list(training.features.columns),
        "columns": final.columns_,
        "n_missing": int(training.features.isna().sum().sum()),
        "classes": list(final.classes_),
        "class_counts": np.unique(training.target, return_counts=True)[1],
    }
    if hasattr(final, "inference_"):
        account["inference"] = final.inference_
    if hasattr(final, "n_neighbors_"):
        account["n_neighbors"] = final.n_neighbors_
    if hasattr(final, "estimators_"):
        account["candidates"] = final.summary().to_dict(orient="records")
    if hasattr(final, "posterior_"):
        account["posterior"] = final.posterior_.summary().to_dict(orient="index")
    if getattr(final, "inference_", None) == "path":  # others have none, or not that of the field
        account["log_evidence"] = final.log_evidence_
        account["log_evidence_error"] = final.log_evidence_error_
    return account


def _columns_for_people(account: dict[str, Any]) -> list[str]:
    """Say which columns are no numbers, and how many values are missing."""
    lines = []
    for kind in ("category", "boolean"):
        names = [name for name, taken in account["columns"].items() if taken == kind]
        if names:
            plural = "categories" if kind == "category" else "truth values"
            lines.append(f"Taken for {plural}: {listed(names)}.")
    if account["n_missing"]:
        lines.append(f"{counted(account['n_missing'], 'value')} missing.")
    return lines


def _estimator(row: dict[str, Any], *, is_spectra: bool) -> str:
    """Name a part of the mixture; of spectra by their preprocessing too."""
    words = [row["kernel"], row["metric"]]
    return ", ".join([*words, row["features"]] if is_spectra else words)


def _for_people(account: dict[str, Any]) -> str:
    n_features = len(account["features"])
    classes = zip(account["classes"], account["class_counts"], strict=True)
    lines = [
        f"Fitted {account['model']} to {counted(account['n_rows'], 'row')}, "
        f"{counted(n_features, 'feature')} and "
        f"{counted(len(account['classes']), 'class', 'classes')} "
        f"({listed(f'{name}: {n:,}' for name, n in classes)}) "
        f"of {account['data']} in {account['seconds']:.1f} s."
    ]
    lines += _columns_for_people(account)
    if "n_neighbors" in account:
        lines.append(f"Leave-one-out chose k = {account['n_neighbors']}.")
    if "log_evidence" in account:
        error = account["log_evidence_error"]
        lines.append(f"Log evidence: {account['log_evidence']:.2f} ± {error:.2f}.")
    if "posterior" in account:
        rows = [
            (name, *(f"{row[column]:.3g}" for column in ("mean", "sd", "lower", "upper")))
            for name, row in account["posterior"].items()
        ]
        header = ("", "mean", "sd", "2.5%", "97.5%")
        lines += [f"Posterior by {account['inference']}:", table(header, rows)]
    if "candidates" in account:
        columns = ("weight", "log_score", "beta", "sigma")
        rows = [
            (
                _estimator(row, is_spectra=account["settings"]["preprocess"] is not None),
                *(f"{row[column]:.3g}" for column in columns),
            )
            for row in account["candidates"]
            if row["weight"] > 0.0
        ]
        header = ("kernel, metric", "weight", "log score", "beta", "sigma")
        lines += ["A mixture of:", table(header, rows)]
    if "written" in account:
        lines.append(f"Wrote {account['written']}.")
    return "\n".join(lines) + "\n"
