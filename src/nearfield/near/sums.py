"""Sums over the training points, or a shard of them, as some points see them at some scales."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field.weights import RADIUS_EPSILON
from nearfield.sampling.cell_table import CellTable
from nearfield.sampling.near_radius import near_radius_sums
from nearfield.sampling.near_support import near_sums
from nearfield.sampling.near_terms import Neighborhood, ScaleTable, Sources, Vicinity

Floats = NDArray[np.float64]


class ClassSums(NamedTuple):
    """Kernel and shares summed over training points, class by class; shards add up."""

    out: Floats  # shape (m, n_scales, G), what points give, relative to the closest
    back: Floats  # shape (m, n_scales, G), what they get
    rest: Floats  # shape (2, n_scales, G), what sites and new points get from all, however far

    def plus(self, other: "ClassSums") -> "ClassSums":
        """Add the sums over other training points."""
        return ClassSums(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))

    def part(self, rows: slice) -> "ClassSums":
        """Take some of the points."""
        return ClassSums(self.out[rows], self.back[rows], self.rest)


class Support(NamedTuple):
    """What the sums over all training points come to."""

    out: Floats  # shape (m, n_scales, G); sums to one over classes
    back: Floats  # shape (m, n_scales, G)
    log_sums: Floats  # shape (m, n_scales), of the kernel relative to that at the closest point


@dataclass(frozen=True, eq=False)
class FieldSums:
    """Sums over training points at some sigmas, prepared.

    Attributes
    ----------
    table : CellTable
    sources : Sources
    scales : ScaleTable
    kernel : str
    vicinity : Vicinity
        What counts one by one.
    class_counts : ndarray of int, shape (G,)
        Of all training points.
    place_of : ndarray of int, optional
        Where each row that a neighbourhood speaks of is among the sources, -1 if it is not; by
        default in its own place.
    """

    table: CellTable = field(repr=False)
    sources: Sources = field(repr=False)
    scales: ScaleTable = field(repr=False)
    kernel: str
    vicinity: Vicinity
    class_counts: NDArray[np.int64]
    place_of: NDArray[np.int32] | None = field(repr=False, default=None)

    def support(self, neighborhood: Neighborhood, is_joint: bool = True) -> Support:
        """Sum over all training points, which are all at hand."""
        return self.finish(neighborhood, self.parts(neighborhood, is_joint), is_joint)

    def parts(
        self, neighborhood: Neighborhood, is_joint: bool = True, adds_near: bool = True
    ) -> ClassSums:
        """Sum over the training points at hand.

        Parameters
        ----------
        neighborhood : Neighborhood
        is_joint : bool
            Whether to sum what the points get, or only what they give.
        adds_near : bool
            Whether to add the points on the lists, or to leave them out.
        """
        shape = len(neighborhood.sites), len(self.scales.values), len(self.class_counts)
        out, back = np.zeros(shape), np.zeros(shape)
        neighborhood = self._placed(neighborhood)
        tables = self.table, self.sources, self.scales, (self.vicinity, is_joint, adds_near)
        if self.kernel == "radius":
            near_radius_sums(neighborhood, *tables, RADIUS_EPSILON, out, back)
        else:
            closest = neighborhood.near_distances.min(axis=1, initial=np.inf)
            near_sums(neighborhood, closest, *tables, out, back)
        return ClassSums(out, back, self.scales.rest)

    def finish(self, neighborhood: Neighborhood, sums: ClassSums, is_joint: bool = True) -> Support:
        """Make support of complete sums."""
        out, back = sums.out, sums.back
        if self.kernel == "radius":
            out, back = self._with_rest(self._placed(neighborhood).sites, sums, is_joint)
        totals = out.sum(axis=2)
        return Support(out / totals[..., None], back, np.log(totals))

    def _placed(self, neighborhood: Neighborhood) -> Neighborhood:
        if self.place_of is None:
            return neighborhood
        sites = neighborhood.sites
        return neighborhood._replace(
            near_index=self.place_of[neighborhood.near_index].astype(np.int64),
            sites=np.where(sites >= 0, self.place_of[sites], -1).astype(np.int64),
        )

    def _with_rest(
        self, sites: NDArray[np.int64], sums: ClassSums, is_joint: bool
    ) -> tuple[Floats, Floats]:
        """Add what everybody weighs under the radius kernel, whatever the distance."""
        out = sums.out + RADIUS_EPSILON * self.class_counts
        back = sums.back + sums.rest[np.where(sites >= 0, 0, 1)] if is_joint else sums.back
        own = np.flatnonzero(sites >= 0)  # but for the point itself
        labels = self.sources.labels[sites[own]]
        out[own, :, labels] -= RADIUS_EPSILON
        if is_joint:
            totals = self.scales.totals[sites[own]].astype(np.float64)
            back[own, :, labels] -= RADIUS_EPSILON / totals
        return out, back
