"""What a posterior says of new points in the near field."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.field import check_external_field
from nearfield.inference import Posterior
from nearfield.near._average import NearSums, Probes, StepAverage
from nearfield.near.field import NearField
from nearfield.near.support_table import SupportTable
from nearfield.prediction._intervals import IntervalNodes
from nearfield.prediction._knots import Interpolation
from nearfield.prediction._outliers import typical_scales
from nearfield.prediction._predictor import measure_of, normalized
from nearfield.prediction._rules import Measure
from nearfield.prediction._smooth import smooth_average

Floats = NDArray[np.float64]

_N_PROBES = 32
_N_TYPICAL = 256


@dataclass(frozen=True, eq=False)
class NearPredictor:
    """Class probabilities of new points, averaged over the posterior, by the near field.

    As `nearfield.prediction.Predictor`, but it takes the points, not their distances.

    Parameters
    ----------
    posterior : Posterior
    family : NearField
    predictive : {"joint", "printed"}
        With the weight that the training points give to the new one, or without.
    """

    posterior: Posterior = field(repr=False)
    family: NearField = field(repr=False)
    predictive: str = "joint"

    takes_points = True
    chunk_size = 256

    def probabilities(self, points: Any) -> Floats:
        """Average the class probabilities over the posterior, shape (m, G)."""
        return self.probabilities_seen(self.family.look_within(points))

    def probabilities_seen(self, neighborhood: Any) -> Floats:
        """Do so for points whose neighbours are known."""
        return normalized(self._average.probabilities(neighborhood))

    def interval(self, points: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bound each class probability, as the parameters vary by the posterior."""
        tail = 0.5 * (1.0 - level)
        neighborhood = self.family.look_within(points)
        nodes = IntervalNodes.of(self._average, self._measure, self._external_field)

        def support_at(rows: Any) -> tuple[Floats, Interpolation]:
            return nodes.support_at(neighborhood.part(rows))

        by_row = IntervalNodes(nodes.nodes, support_at, nodes.external_field)
        every = np.arange(points.shape[0])
        lower, upper = by_row.quantiles(every, (tail, 1.0 - tail))
        return lower, upper

    def outlier_score(self, points: Any) -> Floats:
        r"""Say how far points are from all training points, at the scale of the posterior.

        With a smooth kernel how much less all training points weigh on the point than on a
        typical one of them; with the radius kernel the distance to the k-th neighbour in units
        of the radius, less one, where k is how many neighbours are typical, and at most K. What is
        typical is seen at 256 of them. See `nearfield.prediction.Predictor.outlier_score`.
        """
        neighborhood = self.family.look(points)
        if self.family.is_smooth:
            sums = self._outlier_sums.prepared.support(neighborhood, is_joint=False).log_sums
            scales = self.family.normalizers.scales
            powers = neighborhood.near_distances.min(axis=1) ** (2 if scales.is_squared else 1)
            sums = sums - scales.values_of(self._scales) * powers[:, None]
            return (self._typical_sums - sums).mean(axis=1)
        kth_distances = np.sort(neighborhood.near_distances, axis=1)[:, self._typical_ranks]
        return (kth_distances / self._scales).mean(axis=1) - 1.0

    def sigmas_of(self, method: str) -> Floats:
        """Tell at which sigmas a method needs the support of new points.

        Parameters
        ----------
        method : {"probabilities", "interval", "outlier_score"}
        """
        if method == "outlier_score":
            return self._scales
        if method == "interval" and not self.family.is_smooth:
            return IntervalNodes.of(self._average, self._measure, self._external_field).nodes.scales
        return self._average.sums.sigmas

    def on(self, near_field: NearField) -> "NearPredictor":
        """Do the same with what another field knows of the training points.

        Its rows are those on the lists of the points to predict; all that was chosen or measured
        with this one's field is taken from here.
        """
        other = replace(self, family=near_field)
        sums = replace(self._average.sums, near_field=near_field)
        other.__dict__["_average"] = replace(self._average, sums=sums)
        typical = "_typical_sums" if near_field.is_smooth else "_typical_ranks"
        other.__dict__[typical] = getattr(self, typical)
        return other

    @cached_property
    def _average(self) -> Any:
        near_field, is_joint = self.family, self.predictive == "joint"
        if not near_field.is_smooth:
            return StepAverage.of(self._measure, near_field, is_joint, self._external_field)
        return smooth_average(
            self._measure,
            lambda scales: NearSums(near_field, scales, is_joint),
            self._probes,
            self._external_field,
        )

    @cached_property
    def _probes(self) -> Probes:
        return Probes(self.family.site_table(_N_PROBES))

    @cached_property
    def _scales(self) -> Floats:
        return typical_scales(self.posterior)

    @cached_property
    def _outlier_sums(self) -> NearSums:
        return NearSums(self.family, self._scales, is_joint=False)

    @cached_property
    def _typical(self) -> SupportTable:
        return self.family.site_table(_N_TYPICAL)

    @cached_property
    def _typical_sums(self) -> Floats:
        return np.median(self._typical.log_sums(self._scales), axis=0)

    @cached_property
    def _typical_ranks(self) -> NDArray[np.int64]:
        kth_distances = np.median(np.sort(self._typical.near_distances, axis=1), axis=0)
        return np.maximum(np.searchsorted(kth_distances, self._scales) - 1, 0)

    @cached_property
    def _measure(self) -> Measure:
        return measure_of(self.posterior, self.family)  # type: ignore[arg-type]

    @cached_property
    def _external_field(self) -> Floats:
        return check_external_field(self.family.external_field, self.family.n_classes)
