"""How the sums of a near field are prepared: what is known of its points, cell by cell."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearfield.near._measure import Ruler
from nearfield.near.cells import (
    n_cells,
    seen_from_many,
    seen_from_one,
    sort_into_cells,
    without_cells,
)
from nearfield.near.normalizers import Normalizers
from nearfield.near.scales import TabulatedScales
from nearfield.near.sums import FieldSums
from nearfield.near.tables import scale_table, signs_of, sources_of, varied
from nearfield.sampling.cell_table import CellTable
from nearfield.sampling.near_terms import NEGLIGIBLE, Sources, Vicinity

_WIDE = 0.25  # a kernel as wide as this part of the longest distance


class SummingField:
    """The part of a near field that prepares sums over its training points."""

    points: Any
    labels: NDArray[np.int64]
    n_classes: int
    kernel: str
    normalizers: Normalizers
    references: NDArray[np.int64]
    scale_range: tuple[float, float]
    longest: float
    metric: str | Callable[..., float]
    metric_params: Mapping[str, Any]
    search: str
    seed: int
    cell_of: NDArray[np.int32] | None

    @property
    def n_points(self) -> int:
        """The number of training points."""
        return self.points.shape[0]

    @property
    def is_smooth(self) -> bool:
        """Whether the field changes smoothly with sigma."""
        return self.kernel != "radius"

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """The numbers of the rows at hand among all training points."""
        return np.arange(self.n_points)

    @cached_property
    def class_counts(self) -> NDArray[np.int64]:
        """How many training points each class has."""
        return np.bincount(self.labels, minlength=self.n_classes)

    @property
    def site_scales(self) -> TabulatedScales:
        """The scales at which the support of sites is computed."""
        return self.normalizers.scales.within(*self.scale_range)

    def vicinity(self, sigmas: NDArray[np.float64], *, is_coarse: bool) -> Vicinity:
        """Choose what counts one by one."""
        if self.power is None:
            return Vicinity(0, NEGLIGIBLE)
        if not is_coarse:
            return seen_from_one(self.n_points)
        rates = self.normalizers.scales.values_of(sigmas)
        power = 2 if self.normalizers.scales.is_squared else 1
        is_wide = self.is_smooth and bool((rates * (_WIDE * self.longest) ** power <= 0.5).all())
        return seen_from_many(self.n_points, is_wide)

    def coarse_sums_at(self, sigmas: NDArray[np.float64]) -> FieldSums:
        """Prepare the sums that parameters are fitted by."""
        return self.sums_at(sigmas, is_coarse=True)

    def sums_at(
        self,
        sigmas: ArrayLike,
        *,
        is_coarse: bool = False,
        sign: float = 0.0,
        normalizer_error: float = 0.0,
    ) -> FieldSums:
        """Prepare sums at some sigmas.

        Parameters
        ----------
        sigmas : array-like, shape (n_sigmas,)
        is_coarse : bool
            Whether to fit parameters by them, where errors of single points average out.
        sign : {0.0, 1.0, -1.0}
            Unless zero, all that is estimated is off by about as much as it may be, each in a
            direction of its own, and with the other sign in the other direction.
        normalizer_error : float
            Of the logs of the normalisers.
        """
        sigmas = np.asarray(sigmas, dtype=np.float64)
        order, table = self.cells
        change = sign * normalizer_error * signs_of(self.row_numbers, self.seed) if sign else 0.0
        return FieldSums(
            table,
            self._sources(sign),
            scale_table(
                sigmas,
                self.n_points,
                self.labels,
                self.normalizers,
                self.n_classes,
                power=table.power,
                order=order,
                log_change=change,
            ),
            self.kernel,
            self.vicinity(sigmas, is_coarse=is_coarse),
            self.class_counts,
            self._place_of,
        )

    @property
    def power(self) -> int | None:
        """2 if distances are Euclidean, 1 if Manhattan, none if the metric is unknown to cells."""
        return self._ruler.power(self.points)

    @cached_property
    def cells(self) -> tuple[NDArray[np.int64], CellTable]:
        """The training points by cell: their order, and the table."""
        references, power = self.references, self.power
        if power is None:
            return np.arange(self.n_points), without_cells(self.n_points, len(references), 0)
        return sort_into_cells(
            self.points,
            self.points[references[: n_cells(self.n_points)]],
            self.points[references],
            self.seed,
            power=power,
            cell_of=self.cell_of,
        )

    @cached_property
    def _place_of(self) -> NDArray[np.int32]:
        return np.argsort(self.cells[0], kind="stable").astype(np.int32)

    @cached_property
    def _plain_sources(self) -> Sources:
        references = self._place_of[self.references].astype(np.int64)
        return sources_of(self.labels, self.normalizers, references, self.cells[0])

    def _sources(self, sign: float) -> Sources:
        if not sign:
            return self._plain_sources
        signs = signs_of(self.row_numbers[self.references], self.seed)
        return varied(self._plain_sources, sign * signs, self.n_points)

    @cached_property
    def _ruler(self) -> Ruler:
        return Ruler(self.metric, self.metric_params)
