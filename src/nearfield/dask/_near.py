"""A training set over many workers: fitted by the near field, and what it predicts."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from nearfield.dask._field import ShardedField
from nearfield.dask._search import Found, RowTable
from nearfield.dask._shards import joined
from nearfield.dask._some_rows import SomeRows, seen_points
from nearfield.dask._space import place
from nearfield.estimators._metric import MetricSpace
from nearfield.inference import Posterior
from nearfield.near.field import NearField
from nearfield.near.fit import CHOICES, N_PILOT, Infer, choose_neighbors, fit_near_field, n_sites
from nearfield.near.normalizers import Normalizers
from nearfield.near.predictor import NearPredictor
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
            n_neighbors = delayed(choose_neighbors)(pilot, infer).compute()
        return cls(sharded, space, infer, min(n_neighbors, n_points - 1), predictive)

    def __getstate__(self) -> dict[str, Any]:
        return {argument.name: getattr(self, argument.name) for argument in fields(self)}

    @cached_property
    def fitted(self) -> Delayed:
        """The fit, as `Fitted`, on some worker."""
        n_points = self.sharded.settings.n_points
        seen = self.sharded.seen_from_sites(n_sites(n_points), self.n_neighbors)
        return delayed(_fit)(seen, self.infer, self.n_neighbors, self.predictive).persist()

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
        found = self.sharded.find(placed, self.n_neighbors)
        table = self.sharded.table([delayed(attrgetter("rows"))(found)])
        return delayed(_apply)(self.fitted, table, placed, found, method, arguments)


def _fit(seen: SomeRows, infer: Infer, n_neighbors: int, predictive: str) -> Fitted:
    fit = fit_near_field(seen, infer, n_neighbors)
    field = fit.near_field
    assert isinstance(field, SomeRows)
    outline = field.without_rows()
    summary = Summary(fit.posterior, field.external_field, fit.neighborhood_error, outline)
    predictor = NearPredictor(fit.posterior, field, predictive)
    return Fitted(predictor.on(field.references_only()), summary)


def _apply(
    fitted: Fitted,
    table: RowTable,
    points: NDArray[np.float64],
    found: Found,
    method: str,
    arguments: tuple[Any, ...],
) -> Any:
    """Predict points from what was found near to them."""
    known = fitted.predictor.family
    assert isinstance(known, SomeRows)
    field = known.with_neighbors(table)
    predictor = fitted.predictor.on(field)
    function: Callable[..., Any] = getattr(predictor, method)
    seen = seen_points(field.rows, points, found)
    return map_chunks(lambda some: function(some, *arguments), seen, predictor.chunk_size)
