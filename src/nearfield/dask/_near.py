"""A training set over many workers: fitted by the near field, and what it predicts."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._field import SeenSites, ShardedField
from nearfield.dask._search import RowTable
from nearfield.dask._shard_sums import Request, row_sums
from nearfield.dask._shards import joined
from nearfield.dask._some_rows import SeenPoints, SomeRows, seen_points
from nearfield.dask._space import place
from nearfield.estimators._metric import MetricSpace
from nearfield.inference import Posterior
from nearfield.near.conditionals import NearConditionals
from nearfield.near.error import neighborhood_error, normalizer_error
from nearfield.near.field import NearField
from nearfield.near.fit import CHOICES, N_PILOT, Infer, first_good, middle_of, n_sites
from nearfield.near.normalizers import Normalizers
from nearfield.near.predictor import NearPredictor
from nearfield.near.sums import ClassSums
from nearfield.prediction import map_chunks


class Summary(NamedTuple):
    """What a fit brings to the client: nothing that grows with the training points."""

    posterior: Posterior
    external_field: Any
    neighborhood_error: float
    outline: Any  # the field, SomeRows, without its rows


class Fitted(NamedTuple):
    """What a fit leaves on a worker."""

    predictor: NearPredictor  # whose field knows the references alone
    summary: Summary


@dataclass(frozen=True, eq=False)
class NearModel:
    """A near field on shards with the posterior of its parameters.

    Attributes
    ----------
    sharded : ShardedField
    space : MetricSpace
        The way to where distances are taken.
    infer : callable
        As for `nearfield.near.fit.fit_near_field`; it goes to a worker.
    n_neighbors : int
    predictive : {"joint", "printed"}
    """

    sharded: ShardedField
    space: MetricSpace
    infer: Infer
    n_neighbors: int
    predictive: str

    @classmethod
    def of(
        cls,
        sharded: ShardedField,
        space: MetricSpace,
        infer: Infer,
        n_neighbors: int | None,
        predictive: str,
    ) -> "NearModel":
        """Choose the number of neighbours if it is not given; on a worker."""
        n_points = sharded.settings.n_points
        if n_neighbors is None:
            pilot = sharded.seen_from_sites(N_PILOT, min(CHOICES[-1], n_points - 1))
            inferred = delayed(_infer)(pilot.field, pilot.labels, infer)
            errors = [_error(sharded, pilot, inferred, choice) for choice in CHOICES]
            n_neighbors = delayed(first_good)(errors).compute()
        return cls(sharded, space, infer, min(n_neighbors, n_points - 1), predictive)

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    @cached_property
    def fitted(self) -> Delayed:
        """The fit, as `Fitted`, on some worker."""
        n_points = self.sharded.settings.n_points
        sites = self.sharded.seen_from_sites(n_sites(n_points), self.n_neighbors)
        inferred = delayed(_infer)(sites.field, sites.labels, self.infer)
        error = _error(self.sharded, sites, inferred, self.n_neighbors)
        return delayed(_fitted)(inferred, error, self.predictive).persist()

    def summary(self) -> Summary:
        """Fetch what does not grow with the training points."""
        return delayed(attrgetter("summary"))(self.fitted).compute()

    def near_field(self) -> NearField:
        """Fetch the field with all its training points."""
        sharded = self.sharded
        summary = delayed(attrgetter("summary"))(self.fitted)
        shards, normalizers, references, summary = dask.compute(
            list(sharded.shards), list(sharded.normalizers), sharded.references, summary
        )
        order = np.argsort(np.concatenate([shard.rows for shard in shards]))
        whole, outline = joined(shards), summary.outline
        known = {argument.name: getattr(outline, argument.name) for argument in fields(NearField)}
        return NearField(
            **known
            | {
                "points": whole.points,
                "labels": whole.labels,
                "normalizers": Normalizers(
                    outline.normalizers.scales,
                    np.concatenate([part.nearest for part in normalizers])[order],
                    np.concatenate([part.log_totals for part in normalizers])[order],
                ),
                "references": references.rows,
            }
        )

    def apply(self, method: str, points: Delayed, *arguments: Any) -> Delayed:
        """Call a method of the predictor on a block of at least one point.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        points : Delayed ndarray, shape (m, n_features)
        """
        placed = delayed(place)(points, delayed(self.space, pure=True))
        if method != "outlier_score":
            placed = delayed(_drawn_in)(self.fitted, placed)
        found = self.sharded.find(placed, self.n_neighbors)
        table = self.sharded.table([delayed(attrgetter("rows"))(found)])
        seen = delayed(seen_points)(placed, found)
        sums = self.sharded.sums(seen, delayed(_request_of)(self.fitted, method))
        return delayed(_apply)(self.fitted, table, seen, sums, method, arguments)


class Inferred(NamedTuple):
    """The parameters that some sites suggest."""

    field: SomeRows  # with the external field, if one is fitted
    posterior: Posterior


def _infer(field: SomeRows, labels: NDArray[np.int64], infer: Infer) -> Inferred:
    conditionals, posterior = infer(NearConditionals(field, labels, field.sites))
    return Inferred(field.changed(external_field=conditionals.external_field), posterior)


def _error(sharded: ShardedField, sites: SeenSites, inferred: Delayed, n_neighbors: int) -> Delayed:
    """Measure the error of the class probabilities of sites, with so many neighbours."""
    supports = []
    for sign in (1.0, -1.0):
        request = delayed(_varied_request)(inferred, n_neighbors, sign)
        sums = sharded.sums(sites.seen, request)
        supports.append(delayed(_varied_support)(inferred, sites.seen, sums, request))
    return delayed(_measure_error)(inferred, supports)


def _varied_request(inferred: Inferred, n_neighbors: int, sign: float) -> Request:
    _, sigma = middle_of(inferred.posterior)
    off_by = normalizer_error(inferred.field, sigma)
    n_neighbors = min(n_neighbors, inferred.field.n_neighbors)
    return Request(np.array([sigma]), False, n_neighbors, sign, off_by)


def _varied_support(
    inferred: Inferred, seen: SeenPoints, sums: ClassSums, request: Request
) -> NDArray[np.float64]:
    field = inferred.field.changed(n_neighbors=request.n_neighbors)
    complete = row_sums(field, seen, request).plus(sums)
    prepared = field.sums_at(
        request.sigmas, sign=request.sign, normalizer_error=request.normalizer_error
    )
    support = prepared.finish(field.neighborhood_at(seen), complete)
    return (support.out + support.back)[:, 0]


def _measure_error(inferred: Inferred, supports: list[NDArray[np.float64]]) -> float:
    beta, _ = middle_of(inferred.posterior)
    one, other = supports
    return neighborhood_error((one, other), beta, inferred.field.external_field)


def _fitted(inferred: Inferred, error: float, predictive: str) -> Fitted:
    field, posterior = inferred
    summary = Summary(posterior, field.external_field, error, field.without_rows())
    predictor = NearPredictor(posterior, field, predictive)
    return Fitted(predictor.on(field.references_only()), summary)


def _drawn_in(fitted: Fitted, points: NDArray[np.float64]) -> NDArray[np.float64]:
    return fitted.predictor.family.drawn_in(points)


def _request_of(fitted: Fitted, method: str) -> Request:
    return Request(fitted.predictor.sigmas_of(method))


def _apply(
    fitted: Fitted,
    table: RowTable,
    seen: SeenPoints,
    sums: ClassSums,
    method: str,
    arguments: tuple[Any, ...],
) -> Any:
    """Predict points from what was found near to them, and the sums over the shards."""
    known = fitted.predictor.family
    assert isinstance(known, SomeRows)
    predictor = fitted.predictor.on(known.with_neighbors(table))
    function: Callable[..., Any] = getattr(predictor, method)
    complete = replace(seen, sums=sums)
    return map_chunks(lambda some: function(some, *arguments), complete, predictor.chunk_size)
