"""The classifiers in files: settings, and what was fitted, each value checked against the others.

A fitted attribute that a classifier gets is a line in its record here, and a row in
``docs/file_format.md``.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from nearfield.distances import PowerTransform
from nearfield.estimators import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    spectra_views,
)
from nearfield.persistence._fields import POSTERIOR, PRIORS, pack_family, unpack_family
from nearfield.persistence._schema import (
    Array,
    Codec,
    Many,
    Maybe,
    Number,
    OneOf,
    Reader,
    Record,
    Shared,
    Text,
    Writer,
    ask,
)
from nearfield.persistence._settings import Transformer, pack_settings, unpack_settings
from nearfield.persistence._spaces import (
    ENCODER,
    N_FEATURES,
    POWER_TRANSFORM,
    SPACE,
    check_inputs,
    standardization_key,
)
from nearfield.spectra import (
    MultiplicativeScatterCorrection,
    Recipe,
    SavitzkyGolay,
    SpectraRecipes,
    StandardNormalVariate,
)

_SPACE = Shared(SPACE)


class Classes:
    """The classes, ascending: numbers, truth values, text, or Python's strings."""

    def pack(self, value: Any, writer: Writer) -> Any:
        if value.dtype.kind in "biufU" and value.dtype.itemsize > 0:
            return writer.add(value)
        if all(isinstance(item, str) for item in value):
            return list(value)
        raise TypeError(
            f"Expected classes that are numbers, truth values or text; got {value[:3].tolist()}."
        )

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check that they ascend."""
        if isinstance(plain, list):
            ask(all(isinstance(item, str) for item in plain), "no classes")
            classes = np.array(plain, dtype=object)
        else:
            ask(isinstance(plain, str) and plain in reader.arrays, "no array of that name")
            classes = reader.arrays[plain]
        ask(classes.ndim == 1 and len(classes) >= 2, "too few classes")
        ask(bool((classes[:-1] < classes[1:]).all()), "classes out of order")
        reader.bind("G", len(classes))
        return classes


class Names:
    """Names of features, an array of Python's strings."""

    def pack(self, value: Any, writer: Writer) -> Any:
        return [str(name) for name in value]

    def unpack(self, plain: Any, reader: Reader) -> Any:
        ask(isinstance(plain, list) and all(isinstance(n, str) for n in plain), "no names")
        reader.bind("f", len(plain))
        return np.array(plain, dtype=object)


_OF_ALL: dict[str, Codec] = {
    "classes_": Classes(),
    "n_features_in_": N_FEATURES,
    "feature_names_in_": Maybe(Names()),
    "id_column_": Maybe(Text()),  # of the command: the column that names the rows
    "training_ids_": Maybe(Many(Text())),  # of the command: the names of the training points
    "labels_": Array(("n",), 0, dtype=np.int64),
    "encoder_": ENCODER,
    "_fill": Maybe(Array(("f",))),  # what a missing number becomes
}
_CALIBRATION: dict[str, Codec] = {  # null in the parts of an average
    "calibration_rows_": Maybe(Array(("c",), 0, dtype=np.int64)),
    "calibration_points_": Maybe(Array(("c", "width"), has_gaps=True)),
    "_calibration_groups": Maybe(Array(("c",), dtype=np.int64)),
    "_held_out_proba": Maybe(Array(("c", "G"), 0.0, 1.0)),
}
_OPTIONAL = (
    "feature_names_in_",
    "id_column_",
    "training_ids_",
    *(set(_CALIBRATION) - {"_calibration_groups"}),
)
_LATER = ("preprocess_", "training_ids_")


class Estimator:
    """A classifier by its settings and, if it is fitted, its record.

    Parameters
    ----------
    kind : type
    fitted : mapping of str to codec
    replaced : callable
        Takes the estimator and the writer, and gives what stands in the file for some attributes.
    from_state : callable
        Takes the estimator, the attributes and the reader, and gives the attributes to set; it
        compares them with each other.
    """

    def __init__(
        self,
        kind: type,
        fitted: Mapping[str, Codec],
        from_state: Callable[[Any, dict[str, Any], Reader], dict[str, Any]],
        replaced: Callable[[Any, Writer], dict[str, Any]] = lambda estimator, writer: {},
    ) -> None:
        names = _OF_ALL | dict(fitted)
        later = tuple(name for name in _LATER if name in names)
        self.kind, self.fitted = kind, Record(names, dict, later)
        self.from_state, self.replaced = from_state, replaced

    def pack(self, value: Any, writer: Writer) -> Any:
        packed = pack_settings(value, writer)
        if not hasattr(value, "labels_"):
            return packed | {"fitted": None}
        state = {name: getattr(value, name, None) for name in self.fitted.fields}
        state |= self.replaced(value, writer)
        return packed | {"fitted": self.fitted.pack(SimpleNamespace(**state), writer)}

    def unpack(self, plain: Any, reader: Reader) -> Any:
        estimator = unpack_settings(self.kind, plain, reader)
        if plain["fitted"] is not None:
            state = self.fitted.unpack(plain["fitted"], reader)
            _check_labels(state["labels_"], reader)
            _check_ids(state["training_ids_"], reader)
            state = self.from_state(estimator, state, reader)
            for name in _OPTIONAL:
                if state.get(name, 0) is None:
                    del state[name]
            estimator.__setstate__(vars(estimator) | state)
        return estimator


def _check_labels(labels: Any, reader: Reader) -> None:
    n_classes = reader.lengths["G"]
    ask(len(labels) > n_classes and labels.max() < n_classes, "a label out of range")
    ask(bool(np.bincount(labels, minlength=n_classes).all()), "a class without points")


def _check_ids(ids: Any, reader: Reader) -> None:
    """Compare names of training points with these; points that were added later have none."""
    ask(ids is None or len(ids) <= reader.lengths["n"], "more names than training points")


def _with_calibration(state: Any, reader: Reader) -> Any:
    """Compare the points that decisions are calibrated by with the training points."""
    rows, points = state["calibration_rows_"], state["calibration_points_"]
    ask((rows is None) == (points is None), "no calibration")
    if rows is None:
        return state
    ask(len(rows) > 0 and rows.max() < reader.lengths["n"], "a row out of range")
    ask(points.shape[1] in (0, reader.lengths["e"]), "another number of features")
    return state | {"calibration_labels_": state["labels_"][rows]}


def _check_space(space: Any, reader: Reader) -> None:
    """Compare a space, which another estimator may have made the reader read, with this one."""
    ask(space.n_points == reader.lengths["n"], "another number of points")
    if space.metric == "precomputed":
        ask(space.n_points == reader.lengths["f"], "another number of distances")
    else:
        check_inputs(space, reader.lengths["e"])


# The label fields


class Plain:
    """What is in the words of JSON already."""

    def pack(self, value: Any, writer: Writer) -> Any:
        return value

    def unpack(self, plain: Any, reader: Reader) -> Any:
        return plain


_FIELD: dict[str, Codec] = {
    "metric_space_": _SPACE,
    "family_": Plain(),  # by `pack_family`: a family needs its space
    "priors_": PRIORS,
    "posterior_": POSTERIOR,
    "inference_": Text(),
    **_CALIBRATION,
}


def _packed_family(estimator: Any, writer: Writer) -> dict[str, Any]:
    return {"family_": pack_family(estimator.family_, estimator.metric_space_, writer)}


def _field_from_state(estimator: Any, state: dict[str, Any], reader: Reader) -> dict[str, Any]:
    space, posterior = state["metric_space_"], state["posterior_"]
    _check_space(space, reader)
    search = getattr(estimator, "search", "exact")
    ask(isinstance(search, str), "no search")
    family = unpack_family(state["family_"], space, search, reader)
    ask(posterior.scale_name == family.scale_name, "a posterior of another model")
    if family.is_discrete:
        ask(bool(posterior.scale.max() <= family.n_neighbors), "k beyond the graph")
    alpha = family.external_field
    intercepts = np.zeros(family.n_classes) if alpha is None else alpha
    state = _with_calibration(state, reader)
    return state | {"family_": family, "intercept_": intercepts}


def _field_estimator(kind: type) -> Estimator:
    return Estimator(kind, _FIELD, _field_from_state, _packed_family)


# The average

_SUMMARY = Record(
    {
        "features": Many(Text(), "all"),
        "kernel": Many(Text(), "all"),
        "metric": Many(Text(), "all"),
        "weight": Many(Number(0.0, 1.0), "all"),
        "log_score": Many(Number(), "all"),
        "beta": Many(Number(), "all"),
        "sigma": Many(Number(), "all"),
    },
    dict,
)


class _Inner:
    """A classifier inside another: it has the same points and classes."""

    _codec = _field_estimator(DistanceNeighborsClassifier)

    def pack(self, value: Any, writer: Writer) -> Any:
        return self._codec.pack(value, writer)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        inner = reader.within("n", "G")
        inner.bind("f", reader.lengths["w"])
        estimator = self._codec.unpack(plain, inner)
        ask(hasattr(estimator, "labels_"), "a part that is not fitted")
        return estimator


class Within:
    """An object whose lengths have nothing to do with those around it."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def pack(self, value: Any, writer: Writer) -> Any:
        return self.codec.pack(value, writer)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        return self.codec.unpack(plain, reader.within())


_RECIPES = Transformer(SpectraRecipes, {"n_features_in_": N_FEATURES})


class Placed:
    """What features go through first, or null; it sets w, the number of columns afterwards."""

    def pack(self, value: Any, writer: Writer) -> Any:
        return None if value is None else _RECIPES.pack(value, writer)

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check that they are of these features."""
        if plain is None:
            reader.bind("w", reader.lengths["e"])
            return None
        inner = reader.within("f")
        recipes = _RECIPES.unpack(plain, inner)
        ask(reader.lengths["e"] == reader.lengths["f"], "spectra from a table of categories")
        reader.bind("w", len(recipes.recipes) * reader.lengths["f"])
        ask(all(Recipe(*recipe).is_possible for recipe in recipes.recipes), "no recipe")
        return recipes


_AVERAGE: dict[str, Codec] = {
    "preprocess_": Placed(),
    "power_transform_": Maybe(Within(POWER_TRANSFORM)),
    "weights_": Array(("estimators",), 0.0, 1.0),
    "log_scores_": Array(("estimators",)),
    "estimators_": Many(_Inner(), "estimators"),
    "_description": _SUMMARY,
    **_CALIBRATION,
}


def _packed_summary(estimator: Any, writer: Writer) -> dict[str, Any]:
    """Note also the points that those of learned metrics follow from."""
    for each in estimator.estimators_:
        space = each.metric_space_
        if space.learner is None and isinstance(space.points, np.ndarray):
            writer.standardized[standardization_key(space)] = space.points
    return {"_description": SimpleNamespace(**estimator._description)}


def _view_of(standardization: Any, views: list[Any]) -> Any:
    """Find the view that an estimator has: it must be fitted anew where points are held out."""
    columns = None if standardization is None else standardization.columns
    found = [] if columns is None else [v for v in views if np.array_equal(v.columns, columns)]
    ask(len(found) == min(len(views), 1), "a part with other columns")
    return found[0] if found else None


def _average_from_state(estimator: Any, state: dict[str, Any], reader: Reader) -> dict[str, Any]:
    ask(abs(float(state["weights_"].sum()) - 1.0) < 1e-6, "weights do not sum to 1")
    transform = state["power_transform_"]
    ask(transform is None or transform.n_features_in_ == reader.lengths["e"], "another transform")
    recipes, encoder = state["preprocess_"], state["encoder_"]
    ask(recipes is None or transform is None, "two transforms")
    views = [] if encoder is None else list(encoder.views_.values())
    views = views if recipes is None else spectra_views(recipes)
    for each in state["estimators_"]:
        ask(np.array_equal(each.labels_, state["labels_"]), "a part with other labels")
        each._feature_view = _view_of(each.metric_space_.standardization, views)
    return _with_calibration(state, reader)


# k nearest neighbours

_VOTES: dict[str, Codec] = {
    "metric_space_": _SPACE,
    "cv_errors_": Array(("ks",), 0.0, 1.0),
    "n_neighbors_": Number(1, is_whole=True),
}


def _votes_from_state(estimator: Any, state: dict[str, Any], reader: Reader) -> dict[str, Any]:
    _check_space(state["metric_space_"], reader)
    ask(state["n_neighbors_"] <= reader.lengths["ks"] < reader.lengths["n"], "k out of range")
    return state


# scikit-learn's


def _needs_of_scaler(scaler: StandardScaler) -> list[str]:
    return ["mean_"] * bool(scaler.with_mean) + ["var_", "scale_"] * bool(scaler.with_std)


_SCALER = Transformer(
    StandardScaler,
    {
        "n_features_in_": N_FEATURES,
        "feature_names_in_": Maybe(Names()),
        "mean_": Maybe(Array(("f",))),
        "var_": Maybe(Array(("f",), 0.0)),
        "scale_": Maybe(Array(("f",), 0.0)),
        "n_samples_seen_": Number(1, is_whole=True),
    },
    _needs_of_scaler,
)


_SPECTRUM: dict[str, Codec] = {
    "n_features_in_": N_FEATURES,
    "feature_names_in_": Maybe(Names()),
    "reference_": Maybe(Array(("f",))),
}


def _needs_of_spectra(step: Any) -> list[str]:
    return ["reference_"] * isinstance(step, MultiplicativeScatterCorrection)


_SPECTRA: dict[str, tuple[type, Codec]] = {
    kind.__name__: (kind, Transformer(kind, _SPECTRUM, _needs_of_spectra))
    for kind in (MultiplicativeScatterCorrection, SavitzkyGolay, StandardNormalVariate)
}


class Steps:
    """A pipeline of scikit-learn: names and estimators, each of a kind that files know."""

    def pack(self, value: Any, writer: Writer) -> Any:
        return {
            "names": [name for name, _ in value.steps],
            "steps": [ESTIMATOR.pack(step, writer) for _, step in value.steps],
            "id_column": getattr(value, "id_column_", None),
        }

    def unpack(self, plain: Any, reader: Reader) -> Any:
        record = Record({"names": Many(Text()), "steps": Plain(), "id_column": Maybe(Text())}, dict)
        names, steps, id_column = record.unpack(plain, reader).values()
        ask(isinstance(steps, list) and 1 <= len(names) == len(set(names)), "no steps")
        made = [ESTIMATOR.unpack(step, reader.within()) for step in steps]
        ask(not any(isinstance(step, Pipeline) for step in made), "a pipeline in a pipeline")
        pipeline = Pipeline(list(zip(names, made, strict=True)))
        if id_column is not None:
            pipeline.id_column_ = id_column
        return pipeline


_CLASSIFIERS = (
    Estimator(NearfieldClassifier, _AVERAGE, _average_from_state, _packed_summary),
    _field_estimator(DistanceNeighborsClassifier),
    _field_estimator(ProbabilisticKNeighborsClassifier),
    Estimator(KNeighborsClassifierCV, _VOTES, _votes_from_state),
)
_KINDS: dict[str, tuple[type, Codec]] = {
    "Pipeline": (Pipeline, Steps()),
    "StandardScaler": (StandardScaler, _SCALER),
    "PowerTransform": (PowerTransform, POWER_TRANSFORM),
    **_SPECTRA,
    **{codec.kind.__name__: (codec.kind, codec) for codec in _CLASSIFIERS},
}
ESTIMATOR = OneOf(_KINDS)
"""All that a file can hold."""
