"""Label fields in files: priors and posteriors of their parameters, and families of fields."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from nearfield.estimators import MeasuredFamily
from nearfield.field import KERNELS, DistanceFamily, NeighborFamily
from nearfield.inference import Posterior, Priors
from nearfield.neighbors import TIE_TOLERANCE, NeighborGraph
from nearfield.persistence._schema import (
    LARGEST,
    REACH,
    Array,
    Codec,
    Flag,
    Maybe,
    Number,
    Reader,
    Record,
    Text,
    Writer,
    ask,
)
from nearfield.persistence._settings import Settings

_LARGEST_BETA = 1e100
_WEIGHT_TOLERANCE = 1e-6


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
        "distances": Maybe(Array(("sites", "columns"), 0.0, REACH)),
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
        Record({"distances": Array(("n", "n"), 0.0, REACH)} | _KERNEL_FIELD, dict),
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
