"""``nearfield evaluate``: how good a model would be on new rows, beside two that everyone knows."""

import time
from typing import Annotated, Any, NamedTuple

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
    simple_settings,
    with_encoding,
)
from nearfield.cli._progress import progress
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import read_table, source_name
from nearfield.cli._words import counted, note, table

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
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="COLUMN",
            help="Rows with the same value, such as replicates of one sample, stay in one fold.",
            show_default=False,
        ),
    ] = None,
    id: _options.Id = None,
    ignore: _options.Ignored = None,
    feature: _options.Features = None,
    one_hot: _options.OneHot = False,
    missing: _options.MissingValues = None,
    sheet: _options.Sheet = None,
    max_size: _options.MaxSize = _options.MAX_GIGABYTES,
    seed: _options.Seed = 0,
    jobs: _options.Jobs = None,
    json: _options.Json = False,
) -> str:
    """Estimate by cross-validation how well a model predicts new rows.

    Gives the error, the log loss, the Brier score and the expected calibration error of the
    model, beside those of k-nn (k by leave-one-out) and logistic regression (its penalty by
    cross-validation) on the same folds.

    Example: `nearfield evaluate iris.csv --target species`
    """
    settings = Settings(model, metric, inference, seed, n_jobs=None)  # the folds run in parallel
    methods = {str(model): classifier(settings)}
    frame = read_table(data, sheet=sheet, max_bytes=_options.to_bytes(max_size))
    drops_missing = missing is _options.Missing.DROP
    roles = Roles(target, id, groups, ignore or [], feature or [], one_hot, drops_missing)
    training = training_data(frame, roles)
    split = _folds(training.target, training.groups, folds, seed)
    methods |= _peers(
        seed, is_knn=model is Model.KNN, smallest=int(np.bincount(split.labels).min())
    )
    results = {
        name: _cross_validate(name, final, training, split, jobs) for name, final in methods.items()
    }
    n_folds = int(split.test_fold.max()) + 1
    account = {
        "data": source_name(data),
        "target": target,
        "n_rows": len(split.labels),
        "classes": split.classes,
        "n_folds": n_folds,
        "seed": seed,
        "settings": simple_settings(methods[str(model)]),
        "results": results,
    }
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
            f"{str(rare)!r} has {counted(int(counts.min()), unit)}. Supply more rows."
        )
    if counts.min() < n_folds:
        n_folds = int(counts.min())
        note(f"{n_folds} folds, the number of {unit}s of the smallest class.")
    dealt = dealer(n_folds, shuffle=True, random_state=seed).split(labels, labels, groups)
    test_fold = np.empty(len(labels), dtype=np.int64)
    for fold, (_, test) in enumerate(dealt):
        test_fold[test] = fold
    return _Folds(labels.astype(np.int64), classes, test_fold)


def _peers(seed: int, *, is_knn: bool, smallest: int) -> dict[str, Any]:
    """Make the methods to compare with, tuned as a careful user would."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import nearfield

    inner = StratifiedKFold(min(5, max(2, smallest - 1)), shuffle=True, random_state=seed)
    logistic = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cg", max_iter=1_000)),
        {"logisticregression__C": 10.0 ** np.arange(-3, 4)},
        scoring="neg_log_loss",
        cv=inner,
    )
    peers = {} if is_knn else {"k-nn": nearfield.KNeighborsClassifierCV()}
    return peers | {"logistic regression": logistic}


def _cross_validate(
    name: str, final: Any, training: Training, split: _Folds, n_jobs: int | None
) -> dict[str, Any]:
    """Predict every row by a model that has not seen it, and average the losses."""
    from joblib import Parallel, delayed

    from nearfield.reproduction.metrics import point_losses

    started = time.perf_counter()
    whole = with_encoding(final, list(training.features.columns), training.text_columns)
    tests = [np.flatnonzero(split.test_fold == fold) for fold in range(split.test_fold.max() + 1)]
    parts = Parallel(n_jobs, return_as="generator")(
        delayed(_predict_fold)(whole, training.features, split.labels, test) for test in tests
    )
    probabilities = np.empty((len(split.labels), len(split.classes)))
    with progress(name, len(tests)) as advance:
        for test, part in zip(tests, parts, strict=True):
            probabilities[test] = part
            advance()
    result: dict[str, Any] = dict(point_losses(probabilities, split.labels))
    by_fold = [point_losses(probabilities[test], split.labels[test]) for test in tests]
    for loss in ("error", "log_loss"):
        spread = np.std([losses[loss] for losses in by_fold], ddof=1)
        result[f"{loss}_se"] = float(spread / np.sqrt(len(tests)))
    confusion = np.zeros((len(split.classes),) * 2, dtype=np.int64)
    np.add.at(confusion, (split.labels, probabilities.argmax(axis=1)), 1)
    return result | {"confusion": confusion, "seconds": time.perf_counter() - started}


def _predict_fold(
    whole: Any, features: Any, labels: NDArray[np.int64], test: NDArray[np.int64]
) -> NDArray[np.float64]:
    from sklearn.base import clone

    is_train = np.ones(len(labels), dtype=bool)
    is_train[test] = False
    fitted = clone(whole).fit(features[is_train], labels[is_train])
    # Where groups are few, a class may be missing among the training rows.
    probabilities = np.zeros((len(test), int(labels.max()) + 1))
    probabilities[:, fitted.classes_] = fitted.predict_proba(features.iloc[test])
    return probabilities


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
    return f"{title}\n{laid_out}\n{scale}\n{_confusions(account)}\n"


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
