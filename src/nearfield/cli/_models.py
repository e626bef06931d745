"""The models that the command line knows by name, and the pipeline that a model file holds."""

from enum import StrEnum
from typing import Any, NamedTuple

import typer

_KERNELS = {
    "dnn1": "gaussian",
    "dnn2": "radius",
    "dnn3": "exponential",
    "gaussian": "gaussian",
    "radius": "radius",
    "exponential": "exponential",
}


class Model(StrEnum):
    """A model by name."""

    NEARFIELD = "nearfield"
    DNN1 = "dnn1"
    DNN2 = "dnn2"
    DNN3 = "dnn3"
    GAUSSIAN = "gaussian"
    RADIUS = "radius"
    EXPONENTIAL = "exponential"
    PKNN = "pknn"
    KNN = "knn"


DEFAULT_MODEL = Model.NEARFIELD


class Inference(StrEnum):
    """An engine by name."""

    AUTO = "auto"
    PATH = "path"
    EXCHANGE = "exchange"
    PSEUDOLIKELIHOOD = "pseudolikelihood"
    AUXILIARY_VARIABLE = "auxiliary_variable"


class Settings(NamedTuple):
    """What the options say of a model; None leaves the choice to the model."""

    model: Model
    metric: str | None
    inference: Inference | None
    seed: int
    n_jobs: int | None
    is_watched: bool = False  # engines that take minutes show how far they are


def classifier(settings: Settings) -> Any:
    """Make the classifier that the options describe, not yet fitted."""
    import nearfield

    model = settings.model
    if settings.inference is not None and model in (Model.NEARFIELD, Model.KNN):
        raise typer.BadParameter(
            f"the model {model} has no choice of inference. Leave --inference out, or choose "
            "dnn1, dnn2, dnn3 or pknn.",
            param_hint="'--inference'",
        )
    metric: dict[str, Any] = {} if settings.metric is None else {"metric": settings.metric}
    if model is Model.KNN:
        return nearfield.KNeighborsClassifierCV(**metric, n_jobs=settings.n_jobs)
    if model is Model.NEARFIELD:
        metrics: dict[str, Any] = {} if settings.metric is None else {"metrics": (settings.metric,)}
        return nearfield.NearfieldClassifier(
            **metrics, random_state=settings.seed, n_jobs=settings.n_jobs
        )
    common = metric | {
        "inference": str(settings.inference or Inference.AUTO),
        "random_state": settings.seed,
        "n_jobs": settings.n_jobs,
        "verbose": int(settings.is_watched),
    }
    if model is Model.PKNN:
        return nearfield.ProbabilisticKNeighborsClassifier(**common)
    return nearfield.DistanceNeighborsClassifier(_KERNELS[model], **common)


def with_encoding(final: Any, columns: list[str], text_columns: list[str]) -> Any:
    """Put the encoding of text before a classifier; without any, it is left as it is."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    if not text_columns:
        return final
    numbers = [name for name in columns if name not in text_columns]
    steps = [
        ("numbers", "passthrough", numbers),
        ("text", OneHotEncoder(sparse_output=False), text_columns),
    ]
    encoder = ColumnTransformer(steps, sparse_threshold=0.0, verbose_feature_names_out=False)
    return Pipeline([("columns", encoder), ("classifier", final)])


def final_step(fitted: Any) -> Any:
    """Give the classifier of a model that may encode text before it."""
    from sklearn.pipeline import Pipeline

    return fitted[-1] if isinstance(fitted, Pipeline) else fitted


def known_categories(encoder: Any) -> dict[str, list[str]]:
    """Give, for each column that a fitted encoder turns into several, the values it knows."""
    for name, transformer, columns in encoder.transformers_:
        if name == "text":
            return {
                column: [str(value) for value in values]
                for column, values in zip(columns, transformer.categories_, strict=True)
            }
    return {}


def simple_settings(final: Any) -> dict[str, Any]:
    """Give the settings of a classifier that are single words or numbers."""
    settings = final.get_params(deep=False)
    return {
        name: value
        for name, value in settings.items()
        if value is None or isinstance(value, (bool, int, float, str))
    }
