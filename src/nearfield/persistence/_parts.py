"""What fitted estimators are made of, in files: posteriors, metric spaces, fields, transforms."""

import hashlib
from collections.abc import Mapping
from types import SimpleNamespace
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
from nearfield.estimators import MeasuredFamily, MetricSpace, Standardization, check_metric
from nearfield.field import KERNELS, DistanceFamily, NeighborFamily
from nearfield.inference import Posterior, Priors
from nearfield.neighbors import TIE_TOLERANCE, NeighborGraph
from nearfield.persistence._schema import (
    LARGEST,
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
from nearfield.persistence._settings import Settings, check_arguments

_REACH = 1e150  # the square of a larger number is none
_IN_REACH = (-_REACH, _REACH)
_LARGEST_BETA = 1e100
_WEIGHT_TOLERANCE = 1e-6


class Transformer:
    """An estimator by its settings and its fitted attributes; those that are null are not set."""

    def __init__(self, kind: type, fitted: Mapping[str, Codec]) -> None:
        self.kind, self.fitted = kind, Record(fitted, dict)

    def pack(self, value: Any, writer: Writer) -> Any:
        return pack_settings(value, writer) | {"fitted": self.fitted.pack(value, writer)}

    def unpack(self, plain: Any, reader: Reader) -> Any:
        estimator = unpack_settings(self.kind, plain, reader)
        for name, value in self.fitted.unpack(plain["fitted"], reader).items():
            if value is not None:
                setattr(estimator, name, value)
        return estimator


def pack_settings(value: Any, writer: Writer) -> dict[str, Any]:
    """Say the arguments that an estimator was made with."""
    settings = value.get_params(deep=False)
    return {"settings": {name: Settings().pack(item, writer) for name, item in settings.items()}}


def unpack_settings(kind: type, plain: Any, reader: Reader) -> Any:
    """Make an estimator, not yet fitted, of a record of its settings and of what was fitted."""
    ask(isinstance(plain, dict) and set(plain) == {"settings", "fitted"}, "no estimator")
    ask(isinstance(plain["settings"], dict), "no settings")
    check_arguments(kind, plain["settings"])
    settings = plain["settings"].items()
    return kind(**{name: Settings().unpack(value, reader) for name, value in settings})


# Transforms of features

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
LEARNER = OneOf(
    {name: (kind, Transformer(kind, _LEARNED)) for name, kind in LEARNED_METRICS.items()}
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
            width = width if learner is None else learner.map_.shape[0]
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
            ask(bool(np.abs(points).max(initial=0.0) <= _REACH), "a number out of range")
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


# The posterior and its priors


def _priors(beta: Any, scale: Any) -> Priors:
    for prior in (beta, scale):
        ask(hasattr(prior, "ppf") and bool(np.isfinite(prior.ppf(0.5))), "no distribution")
    return Priors(beta, scale)


PRIORS = Record({"beta": Settings(), "scale": Settings()}, _priors)

_BETAS, _SCALES = (-_LARGEST_BETA, _LARGEST_BETA), (1e-300, LARGEST)
_SCALE_NAME = Text(("sigma", "k"))

_NODES = Record(
    {
        "beta": Array(("nodes",), *_BETAS),
        "scale": Array(("nodes",), *_SCALES),
        "weight": Array(("nodes",), 0.0, 1.0),
        "scale_name": _SCALE_NAME,
        "log_evidence": Maybe(Number()),
        "log_evidence_error": Maybe(Number(0.0)),
        "mean_error": Maybe(Array((2,), 0.0)),
        "outside_mass": Maybe(Number(0.0)),
        "beta_cells": Maybe(Array((2, "nodes"))),
        "scale_cells": Maybe(Array((2, "nodes"))),
    },
    lambda **fields: Posterior(is_draws=False, **fields),
)
_DRAWS = Record(
    {
        "beta": Array(("chains", "draws"), *_BETAS),
        "scale": Array(("chains", "draws"), *_SCALES),
        "scale_name": _SCALE_NAME,
        "acceptance_rates": Maybe(Array(("chains",), 0.0, 1.0)),
    },
    Posterior.from_draws,
)


class PosteriorState:
    """A posterior: nodes with weights, or draws."""

    def pack(self, value: Any, writer: Writer) -> Any:
        record = _DRAWS if value.is_draws else _NODES
        return {"draws" if value.is_draws else "nodes": record.pack(value, writer)}

    def unpack(self, plain: Any, reader: Reader) -> Any:
        """Check it: weights sum to one, cells begin before they end, k is a whole number."""
        ask(isinstance(plain, dict) and len(plain) == 1, "no posterior")
        ((kind, content),) = plain.items()
        ask(kind in ("nodes", "draws"), "a posterior of an unknown kind")
        posterior = (_DRAWS if kind == "draws" else _NODES).unpack(content, reader.within())
        ask(posterior.beta.size > 0, "an empty posterior")
        ask(abs(float(posterior.weight.sum()) - 1.0) < _WEIGHT_TOLERANCE, "weights do not sum to 1")
        for cells in (posterior.beta_cells, posterior.scale_cells):
            ask(cells is None or bool((cells[0] <= cells[1]).all()), "a cell ends before it begins")
        is_whole = bool((posterior.scale == np.round(posterior.scale)).all())
        ask(posterior.scale_name == "sigma" or is_whole, "k is no whole number")
        return posterior


POSTERIOR = PosteriorState()


# Families of fields

_INTERCEPTS = Maybe(Array(("G",)))
_MULTIPLICITIES = Maybe(Array(("n",), np.finfo(np.float64).tiny))
_N_CLASSES = Number(2, 2**31, is_whole=True, length="G")

_GRAPH = Record(
    {
        "rows": Maybe(Array(("sites", "columns"), 0, 2**31, np.int32)),
        "distances": Maybe(Array(("sites", "columns"), 0.0, _REACH)),
        "n_neighbors": Number(1, 2**31, is_whole=True),
    },
    dict,
)
_KERNEL_FIELD: dict[str, Codec] = {
    "kernel": Text(tuple(KERNELS)),
    "n_classes": _N_CLASSES,
    "external_field": _INTERCEPTS,
}
_GRAPH_FIELD: dict[str, Codec] = {
    "kernel": Text(("uniform", *KERNELS)),
    "n_classes": _N_CLASSES,
    "is_directed": Flag(),
    "longest": Number(0.0),
    "external_field": _INTERCEPTS,
}
_FAMILIES: dict[str, tuple[type, Record]] = {
    "points": (MeasuredFamily, Record(_KERNEL_FIELD, dict)),
    "distances": (
        DistanceFamily,
        Record({"distances": Array(("n", "n"), 0.0, _REACH)} | _KERNEL_FIELD, dict),
    ),
    "graph": (NeighborFamily, Record(_GRAPH_FIELD, dict)),
}


def pack_family(family: Any, space: Any, writer: Writer) -> Any:
    """Say what a family is made of, without what follows from the training points."""
    name = next((name for name, (kind, _) in _FAMILIES.items() if type(family) is kind), None)
    if name is None or callable(family.kernel):
        raise TypeError("Expected a kernel by name; got a function. Give kernels by name.")
    packed = _FAMILIES[name][1].pack(family, writer)
    if family.multiplicities is not None:
        packed["multiplicities"] = writer.add(family.multiplicities)
    if name == "graph":
        packed["graph"] = _GRAPH.pack(_kept_graph(family.graph, space), writer)
    return {name: packed}


def unpack_family(plain: Any, space: Any, search: str, reader: Reader) -> Any:
    """Make a family over the points of a space.

    Parameters
    ----------
    plain : object
        What `pack_family` gave.
    space : MetricSpace
    search : str
        How the neighbours are found, if the graph is not in the file.
    reader : Reader
    """
    ask(isinstance(plain, dict) and len(plain) == 1 and set(plain) <= set(_FAMILIES), "no family")
    ((name, content),) = plain.items()
    kind, record = _FAMILIES[name]
    ask(isinstance(content, dict), "no family")
    parts = ("graph", "multiplicities")  # a file of points without weights has none of the latter
    fields = record.unpack({n: v for n, v in content.items() if n not in parts}, reader)
    fields["multiplicities"] = _MULTIPLICITIES.unpack(content.get("multiplicities"), reader)
    is_given = space.metric == "precomputed"
    if name == "points":
        ask(not is_given, "no points to measure")
        family = object.__new__(MeasuredFamily)
        family.__setstate__(fields | {"space": space})
        return family
    if name == "distances":
        ask(is_given, "distances beside points")
        return kind(**fields)
    graph = _GRAPH.unpack(content.get("graph"), reader.within())
    return kind(graph=_make_graph(graph, space, search, fields["is_directed"], reader), **fields)


def _kept_graph(graph: Any, space: Any) -> SimpleNamespace:
    """Leave out distances that can be measured again, and rows that take more than the points."""
    rows, distances = graph.rows, graph.distances
    if graph.n_points == space.n_points and space.power is not None:
        distances = None
        rows = rows if rows.nbytes <= 2 * space.points.nbytes else None
    return SimpleNamespace(rows=rows, distances=distances, n_neighbors=graph.n_neighbors)


def _make_graph(
    found: dict[str, Any], space: Any, search: str, is_directed: bool, reader: Reader
) -> NeighborGraph:
    rows, distances, k = found["rows"], found["distances"], found["n_neighbors"]
    n = reader.lengths["n"]
    if rows is None:
        ask(distances is None and space.power is not None and k < n, "no points to search in")
        return NeighborGraph.from_index(space.make_index(search), space.points, k)
    n_sites, n_columns = rows.shape
    ask(bool((rows < n).all()) and 1 <= k <= n_columns < n, "neighbours out of range")
    ask(n_sites == n or is_directed, "a graph of some points")
    graph = NeighborGraph(np.empty((0, 0)) if distances is None else distances, rows, k)
    ask(bool((np.diff(np.sort(rows, axis=1), axis=1) > 0).all()), "a neighbour twice")
    if n_sites == n:
        ask(not (rows == np.arange(n)[:, None]).any(), "a point is its own neighbour")
    if distances is None:
        ask(n_sites == n and space.power is not None, "no distances")
        key = ("graph", id(rows), id(space))  # estimators with one space share one graph
        if key not in reader.made:
            reader.made[key] = graph.with_distances(space.points, space.power)
        graph = NeighborGraph(reader.made[key].distances, rows, k)
    steps = np.diff(graph.distances, axis=1)
    is_rising = steps >= -TIE_TOLERANCE * graph.distances[:, 1:]
    ask(bool(np.isfinite(graph.distances).all() and is_rising.all()), "neighbours out of order")
    return graph
