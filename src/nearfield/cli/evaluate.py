"""``nearfield evaluate``: how good a model would be on new rows, beside methods everyone knows."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from nearfield.cli import _options
from nearfield.cli._columns import Roles, Training, training_data
from nearfield.cli._json import to_json
from nearfield.cli._models import (
    DEFAULT_MODEL,
    Model,
    Settings,
    classifier,
    fit_options,
    simple_settings,
)
from nearfield.cli._progress import progress
from nearfield.cli._report_files import check_report_folder, write_report
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import read_table, source_name
from nearfield.cli._words import counted, listed, note, table

if TYPE_CHECKING:
    import pandas as pd

    from nearfield.report import Predictions

_LOSSES = {
    "error": "error",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
}
_N_CONFUSIONS = 3


class _Folds(NamedTuple):
    """Which fold each row is tested in; the classes as 0..G-1."""

    labels: NDArray[np.int64]
    classes: NDArray[Any]
    test_fold: NDArray[np.int64]


@one_line_errors
@result_on_stdout
def evaluate(
    data: _options.Data,
    target: _options.Target,
    model: _options.ModelName = DEFAULT_MODEL,
    metric: _options.Metric = None,
    inference: _options.InferenceName = None,
    folds: Annotated[
        int, typer.Option("--folds", min=2, help="Parts that each serve once as the test.")
    ] = 10,
    groups: _options.Groups = None,
    weight: _options.Weight = None,
    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="Write a page about the data and the model, report.html, and the predictions, "
            "predictions.csv, into this folder.",
            show_default=False,
        ),
    ] = None,
    spectra: _options.Spectra = False,
    id: _options.Id = None,
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
) -> str:
    """Estimate by cross-validation how well a model predicts new rows.

    Gives the error, the log loss, the Brier score and the expected calibration error of the
    model, beside those of k-nn (k by leave-one-out), logistic regression (its penalty by
    cross-validation) and, for spectra and other wide tables, PLS-DA (its components by
    cross-validation) on the same folds.

    Example: `nearfield evaluate iris.csv --target species --report iris`
    """
    from nearfield.report import describe_data

    if report is not None:
        check_report_folder(report, force=force)
    n_jobs, is_weighted = None, weight is not None  # the folds run in parallel
    settings = Settings(model, metric, inference, seed, n_jobs, spectra, is_weighted)
    methods = {str(model): classifier(settings)}
    frame = read_table(data, sheet=sheet, max_bytes=_options.to_bytes(max_size))
    drops_missing = missing is _options.Missing.DROP
    roles = Roles(target, id, groups, weight, ignore, feature, categorical, drops_missing)
    training = training_data(frame, roles)
    split = _folds(training.target, training.groups, folds, seed)
    methods |= _peers(training.features, split, seed, is_knn=model is Model.KNN)
    predictions = _cross_validate(methods, training, split, jobs)
    n_folds = int(split.test_fold.max()) + 1
    names = [str(name) for name in split.classes]
    account = {
        "data": source_name(data),
        "target": target,
        "n_rows": len(split.labels),
        "classes": split.classes,
        "n_folds": n_folds,
        "seed": seed,
        "settings": simple_settings(methods[str(model)]),
        "results": {name: _result(each, split) for name, each in predictions.items()},
        "warnings": describe_data(training.features, split.labels, names).warnings,
    }
    if report is not None:
        final = methods[str(model)]
        account["written"] = _write_report(report, final, training, split, predictions, account)
    return to_json(account) if json else _for_people(account)


def _folds(target: NDArray[Any], groups: NDArray[Any] | None, n_folds: int, seed: int) -> _Folds:
    """Deal the rows into folds, stratified by class; a group is never in two folds."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(target)
    classes, labels = np.unique(target, return_inverse=True)
    dealer, unit = (StratifiedKFold, "row") if groups is None else (StratifiedGroupKFold, "group")
    units = np.arange(len(labels)) if groups is None else groups
    counts = np.array([len(np.unique(units[labels == g])) for g in range(len(classes))])
    if len(classes) < 2 or counts.min() < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"Expected at least two classes with two {unit}s each; got {len(classes)}, of which "
            f"{str(rare)!r} has {counted(int(counts.min()), unit)}. Supply more {unit}s of it, or "
            "leave its rows out of the table."
        )
    if counts.min() < n_folds:
        n_folds = int(counts.min())
        note(f"{n_folds} folds, the number of {unit}s of the smallest class.")
    dealt = dealer(n_folds, shuffle=True, random_state=seed).split(labels, labels, groups)
    test_fold = np.empty(len(labels), dtype=np.int64)
    for fold, (_, test) in enumerate(dealt):
        test_fold[test] = fold
    return _Folds(labels.astype(np.int64), classes, test_fold)


def _peers(features: "pd.DataFrame", split: _Folds, seed: int, *, is_knn: bool) -> dict[str, Any]:
    """Make the methods to compare with, tuned as a careful user would.

    Where a fold leaves one row of a class to train on, there is nothing to tune by.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    import nearfield
    from nearfield.benchmark import one_hot
    from nearfield.report import PLS_COMPONENTS, PLSDiscriminantAnalysis

    def tuned(method: Any, name: str, values: Any) -> Any:
        if n_least < 2:
            return method
        inner = StratifiedKFold(min(5, n_least), shuffle=True, random_state=seed)
        return GridSearchCV(method, {name: values}, scoring="neg_log_loss", cv=inner)

    n_least = _least_to_train_on(split)
    peers = {} if is_knn else {"k-nn": nearfield.KNeighborsClassifierCV(random_state=seed)}
    logistic = one_hot(LogisticRegression(solver="newton-cg", max_iter=1_000))
    penalties = 10.0 ** np.arange(-3, 4)
    peers["logistic regression"] = tuned(logistic, "logisticregression__C", penalties)
    if _is_wide(features):
        pls = PLSDiscriminantAnalysis()
        peers["PLS-DA"] = tuned(pls, "n_components", list(PLS_COMPONENTS))
    if n_least < 2:
        names = [name for name in peers if name != "k-nn"]
        note(
            f"{listed(names)} with {'its' if len(names) == 1 else 'their'} usual settings: the "
            f"smallest class leaves {counted(n_least, 'row')} to train on, too few to tune by."
        )
    return peers


def _least_to_train_on(split: _Folds) -> int:
    """Count the rows of the rarest class in the folds that train the models, at the fewest."""
    n_folds, n_classes = int(split.test_fold.max()) + 1, len(split.classes)
    counts = np.zeros((n_folds, n_classes), dtype=np.int64)
    np.add.at(counts, (split.test_fold, split.labels), 1)
    return int((counts.sum(axis=0) - counts).min())


def _is_wide(features: "pd.DataFrame") -> bool:
    """Tell whether a table is one of spectra, or has more columns than rows: numbers throughout."""
    from nearfield.report import feature_axis

    is_complete = features.select_dtypes("number").notna().sum().sum() == features.size
    is_wide = features.shape[1] >= len(features) or feature_axis(features.columns) is not None
    return bool(is_complete and is_wide)


def _cross_validate(
    methods: dict[str, Any], training: Training, split: _Folds, n_jobs: int | None
) -> "dict[str, Predictions]":
    """Predict every row by models that have not seen it."""
    from nearfield.report import cross_validate

    n_folds = int(split.test_fold.max()) + 1
    what = f"{counted(n_folds, 'fold')} of {counted(len(methods), 'method')}"
    with progress(what, n_folds * len(methods)) as advance:
        return cross_validate(
            methods,
            training.features,
            split.labels,
            split.test_fold,
            fit_options=lambda method, rows: fit_options(
                method, training.groups, training.weights, rows
            ),
            n_jobs=n_jobs,
            advance=advance,
        )


def _result(predictions: "Predictions", split: _Folds) -> dict[str, Any]:
    """Average the losses of one method."""
    from nearfield.report import confusion_matrix, summarize_losses

    probabilities = predictions.probabilities
    confusion = confusion_matrix(probabilities.argmax(axis=1), split.labels, len(split.classes))
    losses = summarize_losses(probabilities, split.labels, split.test_fold)
    return {**losses, "confusion": confusion, "seconds": predictions.seconds}


def _write_report(
    folder: str,
    final: Any,
    training: Training,
    split: _Folds,
    predictions: "dict[str, Predictions]",
    account: dict[str, Any],
) -> list[str]:
    """Fit the model to all rows, for its map and posterior, and write the page."""
    from sklearn.base import clone

    from nearfield.report import Source, gather

    fitted = clone(final)
    with progress(f"Fitting to {counted(len(split.labels), 'row')}"):
        options = fit_options(fitted, training.groups, training.weights)
        fitted.fit(training.features, split.labels, **options)
    source = Source(
        account["data"],
        training.features,
        split.classes,
        training.ids,
        split.labels,
        target=account["target"],
        folds=split.test_fold,
        seed=account["seed"],
    )
    return write_report(folder, gather(source, predictions, fitted), training.id_name)


def _for_people(account: dict[str, Any]) -> str:
    rows = []
    for name, result in account["results"].items():
        cells = [
            f"{result[loss]:.3f} ± {result[loss + '_se']:.3f}"
            if f"{loss}_se" in result
            else f"{result[loss]:.3f}"
            for loss in _LOSSES
        ]
        rows.append((name, *cells, f"{result['seconds']:.1f} s"))
    title = (
        f"{account['n_folds']}-fold cross-validation on {account['data']}: "
        f"{counted(account['n_rows'], 'row')}, "
        f"{counted(len(account['classes']), 'class', 'classes')}."
    )
    laid_out = table(("model", *_LOSSES.values(), "time"), rows)
    scale = "Lower is better; ± is the standard error over the folds."
    lines = [title, laid_out, scale, _confusions(account)]
    lines += [f"Warning: {text}" for text in account["warnings"]]
    lines += [f"Wrote {path}." for path in account.get("written", [])]
    return "\n".join(lines) + "\n"


def _confusions(account: dict[str, Any]) -> str:
    """Say how many rows the model got wrong, and which classes it takes for each other."""
    name, result = next(iter(account["results"].items()))
    wrong = result["confusion"] * (1 - np.eye(len(account["classes"]), dtype=np.int64))
    if wrong.sum() == 0:
        return f"{name} predicted every row right."
    order = np.argsort(-wrong, axis=None, kind="stable")[:_N_CONFUSIONS]
    pairs = [divmod(int(cell), len(wrong)) for cell in order if wrong.flat[cell] > 0]
    kinds = [
        f"{account['classes'][true]} as {account['classes'][predicted]}: {wrong[true, predicted]}"
        for true, predicted in pairs
    ]
    return (
        f"{name} predicted {counted(int(wrong.sum()), 'row')} wrong; most often {', '.join(kinds)}."
    )
