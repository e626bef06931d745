"""``nearfield evaluate``: how good a model would be on new rows, beside two that everyone knows."""

import time
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from nearfield.cli import _options
from nearfield.cli._columns import Training, training_data
from nearfield.cli._json import to_json
from nearfield.cli._models import (
    DEFAULT_MODEL,
    Model,
    Settings,
    classifier,
    pipeline,
    simple_settings,
)
from nearfield.cli._run import one_line_errors, result_on_stdout
from nearfield.cli._tables import read_table, source_name
from nearfield.cli._words import counted, table

_LOSSES = {
    "error": "error",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error",
}


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
    ignore: _options.Ignored = None,
    one_hot: _options.OneHot = False,
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
    training = training_data(read_table(data), target, ignore or [], one_hot=one_hot)
    split = _folds(training.target, folds, seed)
    methods |= _peers(
        seed, is_knn=model is Model.KNN, smallest=int(np.bincount(split.labels).min())
    )
    results = {}
    for name, final in methods.items():
        typer.echo(f"{name} ...", err=True)
        results[name] = _cross_validate(final, training, split, jobs)
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


def _folds(target: NDArray[Any], n_folds: int, seed: int) -> _Folds:
    """Deal the rows into folds, stratified by class."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(target)
    classes, labels, counts = np.unique(target, return_inverse=True, return_counts=True)
    if len(classes) < 2 or counts.min() < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"Expected at least two classes with two rows each; got {len(classes)}, of which "
            f"{str(rare)!r} has {counted(int(counts.min()), 'row')}. Supply more rows."
        )
    if counts.min() < n_folds:
        n_folds = int(counts.min())
        typer.echo(f"Note: {n_folds} folds, the number of rows of the smallest class.", err=True)
    dealt = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels)
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
    final: Any, training: Training, split: _Folds, n_jobs: int | None
) -> dict[str, float]:
    """Predict every row by a model that has not seen it, and average the losses."""
    from joblib import Parallel, delayed

    from nearfield.reproduction.metrics import point_losses

    started = time.perf_counter()
    whole = pipeline(final, list(training.features.columns), training.text_columns)
    tests = [np.flatnonzero(split.test_fold == fold) for fold in range(split.test_fold.max() + 1)]
    parts = Parallel(n_jobs)(
        delayed(_predict_fold)(whole, training.features, split.labels, test) for test in tests
    )
    probabilities = np.empty((len(split.labels), len(split.classes)))
    for test, part in zip(tests, parts, strict=True):
        probabilities[test] = part
    result = dict(point_losses(probabilities, split.labels))
    by_fold = [point_losses(probabilities[test], split.labels[test]) for test in tests]
    for name in ("error", "log_loss"):
        spread = np.std([losses[name] for losses in by_fold], ddof=1)
        result[f"{name}_se"] = float(spread / np.sqrt(len(tests)))
    return result | {"seconds": time.perf_counter() - started}


def _predict_fold(
    whole: Any, features: Any, labels: NDArray[np.int64], test: NDArray[np.int64]
) -> NDArray[np.float64]:
    from sklearn.base import clone

    is_train = np.ones(len(labels), dtype=bool)
    is_train[test] = False
    fitted = clone(whole).fit(features[is_train], labels[is_train])
    return fitted.predict_proba(features.iloc[test])


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
    return f"{title}\n{laid_out}\nLower is better; ± is the standard error over the folds.\n"
