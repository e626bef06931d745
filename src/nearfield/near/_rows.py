"""Normalisers by any metric: from the distances to near points, and to references for the rest."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nearfield.distances.neighbors import NeighborIndex
from nearfield.inference._progress import progress
from nearfield.near._measure import Ruler
from nearfield.near.box_index import BoxIndex
from nearfield.near.cells import MAX_EXACT
from nearfield.near.normalizers import Normalizers
from nearfield.near.scales import TabulatedScales
from nearfield.sampling.scale_sums import ITSELF, row_sums

N_NEAR = 256
"""So many near points are summed over, of more than can be."""

_N_TARGETS = 256  # at once


def sum_normalizers_by_rows(
    points: Any,
    index: NeighborIndex | BoxIndex,
    references: NDArray[np.int64],
    ruler: Ruler,
    scales: TabulatedScales,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Normalizers:
    """Compute the normalisers of all points from their distances: to all up to some number of them.

    Above, to the 256 nearest ones, each found by a search, and to the references, which stand for
    the rest. Slower than by cells, for metrics that these do not know.
    """
    n_points = points.shape[0]

    def fill(start: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        rows = np.arange(start, min(start + _N_TARGETS, n_points))
        if n_points <= MAX_EXACT:
            distances = ruler.distances(points[rows], points)
            part = normalizers_of_rows(distances, rows, scales)
        else:
            near = without_themselves(*index.query(points[rows], N_NEAR + 1), rows)
            far = ruler.distances(points[rows], points[references])
            part = normalizers_of_lists(near, far, rows, references, n_points, scales)
        advance(len(rows))
        return part.nearest, part.log_totals

    with progress(n_points, "normalisers", verbose) as advance:
        parts = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(fill)(start) for start in range(0, n_points, _N_TARGETS)
        )
    nearest, log_totals = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Normalizers(scales, nearest, log_totals)


def without_themselves(
    distances: NDArray[np.float64], index: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Take each point off its own list of neighbours, or else the last, shape (m, K + 1) to (m, K).

    A point may be missing on its list where more than K others are at the same place.
    """
    is_itself = index == rows[:, None]
    drop = np.where(is_itself.any(axis=1), is_itself.argmax(axis=1), index.shape[1] - 1)
    kept = np.arange(index.shape[1]) != drop[:, None]
    shape = len(rows), index.shape[1] - 1
    return distances[kept].reshape(shape), index[kept].reshape(shape)


def normalizers_of_rows(
    distances: NDArray[np.float64], rows: NDArray[np.int64], scales: TabulatedScales
) -> Normalizers:
    """Sum over all points, from the distances of some to all, shape (m, n)."""
    distances[np.arange(len(rows)), rows] = np.inf
    return _sum_rows(distances, distances.shape[1], np.zeros(len(rows)), scales)


def normalizers_of_lists(
    near: tuple[NDArray[np.float64], NDArray[np.int64]],
    far_distances: NDArray[np.float64],
    rows: NDArray[np.int64],
    references: NDArray[np.int64],
    n_points: int,
    scales: TabulatedScales,
) -> Normalizers:
    """Sum over near points, and over references for the rest.

    Parameters
    ----------
    near : tuple of ndarray, shape (m, N_NEAR)
        The distances of the near points, and their rows.
    far_distances : ndarray, shape (m, R)
        To all references; overwritten.
    rows : ndarray of int, shape (m,)
    references : ndarray of int, shape (R,)
    n_points : int
    scales : TabulatedScales
    """
    near_distances, near_rows = near
    order = np.argsort(references)
    for i, row in enumerate(rows):
        taken = np.append(near_rows[i], row)
        place = np.minimum(np.searchsorted(references[order], taken), len(references) - 1)
        is_reference = references[order][place] == taken
        far_distances[i, order[place[is_reference]]] = np.inf
    n_far = np.isfinite(far_distances).sum(axis=1)
    n_near = near_distances.shape[1]
    factors = (n_points - 1 - n_near) / np.maximum(n_far, 1)
    distances = np.concatenate([near_distances, far_distances], axis=1)
    return _sum_rows(distances, n_near, factors, scales)


def _sum_rows(
    distances: NDArray[np.float64],
    n_near: int,
    factors: NDArray[np.float64],
    scales: TabulatedScales,
) -> Normalizers:
    powers = distances**2 if scales.is_squared else distances
    powers = np.minimum(powers, ITSELF).astype(np.float32)
    minima = np.full(len(powers), np.inf, dtype=np.float32)
    sums = np.zeros((len(powers), scales.n_scales))
    power = 2 if scales.is_squared else 1
    row_sums(powers, n_near, factors, scales.for_sums(power), minima, sums)
    return Normalizers.of(sums, minima, scales)
