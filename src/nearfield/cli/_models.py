"""The models that the command line knows by name, and the pipeline that a model file holds."""

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nearfield.field import KernelName

_MAX_GROUPED = 2_000  # rows that are held out in folds
_KERNELS: "dict[str, KernelName]" = {
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
    is_spectra: bool
    is_weighted: bool
    is_watched: bool = False  # engines that take minutes show how far they are


def classifier(settings: Settings) -> Any:
    """Make the classifier that the options describe, not yet fitted."""
    import nearfield

    _check_has_options(settings)
    model = settings.model
    options: dict[str, Any] = {"random_state": settings.seed, "n_jobs": settings.n_jobs}
    if model is Model.NEARFIELD:
        if settings.metric is not None:
            options["metrics"] = (settings.metric,)
        options["preprocess"] = "spectra" if settings.is_spectra else None
        return nearfield.NearfieldClassifier(**options)
    if settings.metric is not None:
        options["metric"] = settings.metric
    if model is Model.KNN:
        return nearfield.KNeighborsClassifierCV(**options)
    options["inference"] = str(settings.inference or Inference.AUTO)
    options["verbose"] = int(settings.is_watched)
    if model is Model.PKNN:
        return nearfield.ProbabilisticKNeighborsClassifier(**options)
    return nearfield.DistanceNeighborsClassifier(_KERNELS[model], **options)


def _check_has_options(settings: Settings) -> None:
    """Refuse options that a model does not have."""
    model = settings.model
    if settings.inference is not None and model in (Model.NEARFIELD, Model.KNN):
        raise typer.BadParameter(
            f"the model {model} has no choice of inference. Leave --inference out, or choose "
            "dnn1, dnn2, dnn3 or pknn.",
            param_hint="'--inference'",
        )
    if settings.is_spectra and model is not Model.NEARFIELD:
        raise typer.BadParameter(
            f"the model {model} does not choose among preprocessings of spectra. Leave --spectra "
            "out, or choose nearfield.",
            param_hint="'--spectra'",
        )
    if settings.is_weighted and model is Model.KNN:
        raise typer.BadParameter(
            "the model knn takes no weights. Leave --weight out, or choose another --model.",
            param_hint="'--weight'",
        )


def fit_options(
    final: Any,
    groups: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    rows: NDArray[np.bool_] | slice = slice(None),
) -> dict[str, Any]:
    """Give what `fit` takes beside features and classes.

    Groups, if the model holds points out, and weights, if it takes them.
    """
    from sklearn.utils.validation import has_fit_parameter

    options = {}
    has_groups = groups is not None and has_fit_parameter(final, "groups")
    if groups is not None and has_groups and len(groups[rows]) <= _MAX_GROUPED:
        options["groups"] = groups[rows]
    if weights is not None and has_fit_parameter(final, "sample_weight"):
        options["sample_weight"] = weights[rows]
    return options


def known_categories(final: Any) -> dict[str, list[str]]:
    """Give, for each category of the table that a model was fitted to, the levels it knows."""
    codes = final.encoder_.codes_ if getattr(final, "encoder_", None) is not None else []
    return {code.name: code.levels.tolist() for code in codes if "category" in code.kind}


def simple_settings(final: Any) -> dict[str, Any]:
    """Give the settings of a classifier that are single words or numbers."""
    settings = final.get_params(deep=False)
    return {
        name: value
        for name, value in settings.items()
        if value is None or isinstance(value, (bool, int, float, str))
    }
