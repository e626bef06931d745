"""How features become points, in files: transforms, tables, and metric spaces."""

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from nearfield.distances import (
    LEARNED_METRICS,
    ColumnCode,
    FeatureView,
    PowerTransform,
    TableEncoder,
)
from nearfield.estimators import MetricSpace, Standardization, check_metric
from nearfield.persistence._schema import (
    REACH,
    Array,
    Codec,
    Either,
    Flag,
    Many,
    Maybe,
    Number,
    OneOf,
    Reader,
    Record,
    Text,
    Writer,
    ask,
)
from nearfield.persistence._settings import Settings, Transformer

_IN_REACH = (-REACH, REACH)

N_FEATURES = Number(1, 2**31, is_whole=True, length="f")
_SCALE = Array(("f",), 0.0, has_infinities=True)  # that of a constant feature is infinite

POWER_TRANSFORM = Transformer(
    PowerTransform,
    {
        "n_features_in_": N_FEATURES,
        "powers_": Array(("f",), -10.0, 10.0),
        "mean_": Array(("f",)),
        "scale_": _SCALE,
        "new_mean_": Array(("f",)),
        "new_scale_": _SCALE,
    },
)

_LEARNED: dict[str, Codec] = {
    "n_features_in_": N_FEATURES,
    "mean_": Array(("f",)),
    "map_": Either((Array(("f",)), Array(("components", "f")))),
    "scales_": Maybe(Array(("scales",), 0.0)),
    "log_pseudolikelihood_": Maybe(Number()),
    "n_iter_": Maybe(Number(0, is_whole=True)),
    "shrinkage_": Maybe(Number(0.0, 1.0)),
    "variance_kept_": Maybe(Number(-1.0, 1.0)),
    "n_discriminant_": Maybe(Number(0, is_whole=True)),
}
_QUADRATIC: dict[str, Codec] = {
    "n_features_in_": N_FEATURES,
    "mean_": Array(("f",)),
    "map_": Array(("axes", "f")),
    "centers_": Array(("classes", "axes")),
    "class_maps_": Array(("classes", "axes", "axes")),
}
LEARNER = OneOf(
    {
        name: (kind, Transformer(kind, _QUADRATIC if name == "quadratic" else _LEARNED))
        for name, kind in LEARNED_METRICS.items()
    }
)

STANDARDIZATION = Record(
    {
        "center": Array(("f",)),
        "factor": Array(("f",), 0.0),
        "columns": Maybe(Array(("f",), 0, dtype=np.int64)),
    },
    Standardization,
)


# Tables

_CODE = Record(
    {
        "name": Settings(),
        "kind": Text(("number", "boolean", "ordered category", "category")),
        "has_gaps": Flag(),
        "fill": Number(),
        "levels": Many(Text()),
        "points": Array(("rows", "width")),
        "has_proportions": Flag(),
    },
    lambda levels, **rest: ColumnCode(levels=np.array(levels, dtype=np.str_), **rest),
)
_VIEW = Record(
    {
        "columns": Array(("columns",), 0, dtype=np.int64),
        "is_scaled": Array(("columns",), dtype=np.bool_),
        "description": Text(),
    },
    FeatureView,
)


class Encoder:
    """The encoder of tables, or null; it sets e, the number of columns that the points have."""

    def pack(self, value: Any, writer: Writer) -> Any:
        if value is None:
            return None
        return {
            "categorical_features": Settings().pack(value.categorical_features, writer),
            "codes": [_CODE.pack(code, writer) for code in value.codes_],
            "views": {name: _VIEW.pack(view, writer) for name, view in value.views_.items()},
            "is_number": writer.add(value.is_number_),
        }

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check the columns of each part against each other."""
        if plain is None:
            reader.bind("e", reader.lengths["f"])
            return None
        names = {"categorical_features", "codes", "views", "is_number"}
        ask(isinstance(plain, dict) and set(plain) == names, "no encoder")
        ask(isinstance(plain["codes"], list) and isinstance(plain["views"], dict), "no encoder")
        encoder = TableEncoder(Settings().unpack(plain["categorical_features"], reader))
        encoder.codes_ = [_CODE.unpack(code, reader.within()) for code in plain["codes"]]
        reader.bind("f", len(encoder.codes_))
        reader.bind("e", sum(map(_width, encoder.codes_)))
        encoder.is_number_ = Array(("e",), dtype=np.bool_).unpack(plain["is_number"], reader)
        ask("types" in plain["views"] and set(plain["views"]) <= {"types", "codes"}, "no views")
        encoder.views_ = {
            name: _VIEW.unpack(view, reader.within()) for name, view in plain["views"].items()
        }
        for view in encoder.views_.values():
            ask(view.columns.max(initial=0) < reader.lengths["e"], "a column out of range")
        return encoder


ENCODER = Encoder()


def _width(code: Any) -> int:
    """Count the columns of points that a column of a table becomes."""
    n_rows, n_columns = code.points.shape
    ask(code.points.size == 0 or n_rows == len(code.levels) + 1, "another number of levels")
    ask(code.points.size > 0 or code.kind != "category", "a category without points")
    n_columns = n_columns if code.points.size else 0
    return (code.kind != "category") + n_columns + code.has_gaps


# The metric space

_SPARSE = Record(
    {
        "shape": Array((2,), 0, 2**31, np.int64),
        "data": Array(("entries",), *_IN_REACH),
        "indices": Array(("entries",), 0, 2**31, np.int64),
        "indptr": Array(("rows",), 0, dtype=np.int64),
    },
    dict,
)


class Space:
    """A metric space with its training points.

    Points of a learned metric are left out where they follow from points that another space of
    the file holds: those standardized in the same way.
    """

    _record = Record(
        {
            "metric": Text(),
            "params": Settings(),
            "standardization": Maybe(STANDARDIZATION),
            "learner": Maybe(LEARNER),
        },
        dict,
    )

    def pack(self, value: Any, writer: Writer) -> Any:
        return self._record.pack(value, writer) | {"points": self._pack_points(value, writer)}

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check the points against the way to them."""
        ask(isinstance(plain, dict) and "points" in plain, "no metric space")
        rest = {name: item for name, item in plain.items() if name != "points"}
        inner = reader.within("n")  # here f counts the columns that a standardization leaves
        found = self._record.unpack(rest, inner)
        found["params"] = check_metric(found["metric"], found["params"])
        learner, metric = found["learner"], found["metric"]
        points = self._unpack_points(plain["points"], learner, metric, reader)
        reader.bind("n", points.shape[0])
        ask(isinstance(metric, str) and metric not in LEARNED_METRICS, "no metric on points")
        if metric == "precomputed":
            ask(points.shape[1] == 0, "points where distances are given")
        else:
            width = inner.lengths.get("f", reader.lengths["e"])
            width = width if learner is None else learner.n_components_
            ask(points.shape[1] == width, "points of another number of features")
        return MetricSpace(points=points, **found)

    def _pack_points(self, space: Any, writer: Writer) -> Any:
        points = space.points
        if sp.issparse(points):
            return {"sparse": _SPARSE.pack(points, writer)}
        base = None
        if space.learner is not None:
            base = writer.standardized.get(standardization_key(space))
        if base is not None and np.array_equal(space.learner.place(base), points):
            return {"placed": writer.add(base)}
        return {"dense": writer.add(np.asarray(points, dtype=np.float64))}

    def _unpack_points(self, plain: Any, learner: Any, metric: Any, reader: Reader) -> Any:
        ask(isinstance(plain, dict) and len(plain) == 1, "no points")
        ((kind, content),) = plain.items()
        if kind == "sparse":
            return _to_csr(_SPARSE.unpack(content, reader.within()))
        dense = Array(("n", "width"), *_IN_REACH, has_gaps=metric == "nan_euclidean")
        points = dense.unpack(content, reader.within("n"))
        if kind == "placed":
            ask(learner is not None and points.shape[1] == len(learner.mean_), "no learned metric")
            points = learner.place(points)
            ask(bool(np.abs(points).max(initial=0.0) <= REACH), "a number out of range")
            return points
        ask(kind == "dense", "points of an unknown kind")
        return points


SPACE = Space()


def standardization_key(space: Any) -> str:
    """Tell spaces apart that standardize features in different ways."""
    if space.standardization is None:
        return ""
    parts = [part for part in vars(space.standardization).values() if part is not None]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def check_inputs(space: Any, n_inputs: int) -> None:
    """Compare the columns that a space takes with those that it is given."""
    standardization, learner = space.standardization, space.learner
    if standardization is not None and standardization.columns is not None:
        ask(bool((standardization.columns < n_inputs).all()), "a column out of range")
        n_inputs = len(standardization.columns)
    if standardization is not None:
        ask(len(standardization.center) == n_inputs, "another number of features")
    n_features = space.points.shape[1] if learner is None else len(learner.mean_)
    ask(n_features == n_inputs, "another number of features")


def _to_csr(parts: dict[str, Any]) -> Any:
    shape, indices, indptr = parts["shape"].tolist(), parts["indices"], parts["indptr"]
    ask(len(indptr) == shape[0] + 1 and indptr[0] == 0, "rows of another number")
    ask(bool((np.diff(indptr) >= 0).all()) and indptr[-1] == len(indices), "rows out of order")
    ask(bool((indices < shape[1]).all()), "a column out of range")
    return sp.csr_matrix((parts["data"], indices, indptr), shape=shape)
