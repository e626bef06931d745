"""The support of points in the near field: their nearest neighbours, and references for the rest.

Each point has a list of near points, and the reference points that are not among them stand for
all others, each counted as often as there are points for it to stand for.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._vector import exp_of
from nearfield.sampling._vector32 import exp32_of

_NEGLIGIBLE = 40.0  # exp(-40) times a billion points is nothing beside the nearest one
_LARGEST_EXPONENT = 700.0
_LARGEST_SINGLE = np.float32(80.0)
_ONE = np.float32(1.0)
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # of sums, as vector instructions take them


class Neighborhood(NamedTuple):
    """What some points see of the n training points: the K nearest ones, and R references."""

    near_distances: NDArray[np.float64]  # shape (m, K)
    near_index: NDArray[np.int64]  # shape (m, K)
    far_distances: NDArray[np.float64]  # shape (m, R), to all references, near ones too
    sites: NDArray[np.int64]  # shape (m,), which training point it is, -1 for a new one

    def part(self, rows: Any) -> "Neighborhood":
        """Take some of the points."""
        return Neighborhood(
            self.near_distances[rows],
            self.near_index[rows],
            self.far_distances[rows],
            self.sites[rows],
        )


class TrainingTable(NamedTuple):
    """What there is to know of the training points, and again of the references among them.

    The rows may be some of the points only, those that are on lists of near points.
    """

    n_points: int
    labels: NDArray[np.int64]  # shape (n,)
    nearest: NDArray[np.float64]  # shape (n,), the distance to the nearest other one
    log_totals: NDArray[np.float32]  # shape (n, n_tabulated), of the kernel over the other ones
    references: NDArray[np.int64]  # shape (R,)
    references_by_class: NDArray[np.int64]  # shape (R,), their places
    class_starts: NDArray[np.int64]  # shape (G + 1,), where each class starts among these
    place_of_reference: NDArray[np.int32]  # shape (n,), among the references, -1 for the others
    reference_labels: NDArray[np.int64]  # shape (R,)
    reference_nearest: NDArray[np.float64]  # shape (R,)


class ScaleTable(NamedTuple):
    """The scales at hand, and how the tabulated log totals give those at each of them."""

    values: NDArray[np.float64]  # shape (n_scales,), rates of a smooth kernel, or radii
    is_squared: bool  # whether the smooth kernel is exp(-rate d^2), else exp(-rate d)
    first: NDArray[np.int64]  # shape (n_scales,), the first tabulated scale that counts
    coefficients: NDArray[np.float64]  # shape (n_scales, n_coefficients)
    reference_totals: NDArray[np.float64]  # shape (n_scales, R), logs for a smooth kernel


@njit(cache=True, nogil=True, error_model="numpy")
def near_support(neighborhood, training, scales, is_joint, support, log_sums):
    r"""Fill in the support of each class under a smooth kernel, shape (m, n_scales, G).

    .. math:: h_g = \frac{\sum_{j \in g} f_j \kappa(d_j)}{\sum_j f_j \kappa(d_j)}
              + \sum_{j \in g} f_j \frac{\kappa(d_j)}{T_j + \kappa(d_j)}

    with :math:`f_j = 1` for a near point, :math:`(n - K) / |F|` for a reference point in F, those
    not among the near ones. For a training point, which is part of :math:`T_j` itself, the last
    denominator is :math:`T_j`.

    Parameters
    ----------
    neighborhood : Neighborhood
    training : TrainingTable
    scales : ScaleTable
    is_joint : bool
        Whether to add the second sum.
    support : ndarray, shape (m, n_scales, G)
    log_sums : ndarray, shape (m, n_scales)
        Filled in with the log of the kernel summed over all points.
    """
    n_near, n_far = neighborhood.near_index.shape[1], training.references.shape[0]
    near_out, near_back, kernel = np.empty(n_near), np.empty(n_near), np.empty(n_near)
    singles = np.empty((5, n_far), dtype=np.float32)
    far = FarTerms(
        singles[0],
        singles[1],
        np.empty(n_far + 1, dtype=np.int64),
        np.zeros(support.shape[2] + 1, dtype=np.int64),
        singles[2],
        singles[3],
        singles[4],
        np.empty(n_far, dtype=np.uint8),
    )
    is_near = np.zeros(n_far, dtype=np.bool_)
    slowest = scales.values.min()
    for i in range(neighborhood.near_index.shape[0]):
        near, site = neighborhood.near_index[i], neighborhood.sites[i]
        distances, far_distances = neighborhood.near_distances[i], neighborhood.far_distances[i]
        weight = mark_near(near, site, training, is_near)
        closest = distances.min()
        for k in range(n_near):
            near_out[k] = _gap(distances[k], closest, scales.is_squared)
            near_back[k] = _gap(distances[k], training.nearest[near[k]], scales.is_squared)
        settings = closest, slowest, scales.is_squared
        _gather_far(far_distances, is_near, settings, training, far)
        unmark_near(near, site, training, is_near)
        power = closest * closest if scales.is_squared else closest
        for q in range(scales.values.shape[0]):
            rate, row = scales.values[q], support[i, q]
            _fill_out(near_out, rate, kernel)
            row[:] = 0.0
            _add_near(kernel, near, training, row)
            _add_far_out(far, rate, weight, row)
            total = row.sum()
            log_sums[i, q] = np.log(total) - rate * power
            row /= total
            if is_joint:
                added = 0.0 if site >= 0 else 1.0
                for k in range(n_near):
                    kernel[k] = log_total(training, scales, near[k], q)
                _fill_back(near_back, rate, added, kernel)
                _add_near(kernel, near, training, row)
                _add_far_back(far, rate, scales.reference_totals[q], added, weight, row)


class FarTerms(NamedTuple):
    """The references of one point that are neither near nor negligible, by class."""

    out: NDArray[np.float32]  # d^p - c^p, with c the smallest distance of the point
    back: NDArray[np.float32]  # d^p - r^p, with r the distance of the reference to its nearest
    places: NDArray[np.int64]  # among all references
    starts: NDArray[np.int64]  # shape (G + 1,), where each class starts
    totals: NDArray[np.float32]  # log totals of these
    all_out: NDArray[np.float32]  # the same of all references, with whether they are kept
    all_back: NDArray[np.float32]
    is_kept: NDArray[np.uint8]


@register_jitable
def mark_near(near, site, training, is_near):
    """Mark the references among the near points; return for how many points each other stands."""
    n_marked = 0
    for j in near:
        place = training.place_of_reference[j]
        if place >= 0:
            is_near[place] = True
            n_marked += 1
    if site >= 0 and training.place_of_reference[site] >= 0:
        is_near[training.place_of_reference[site]] = True
        n_marked += 1
    n_others = training.n_points - near.shape[0] - (1 if site >= 0 else 0)
    n_far = is_near.shape[0] - n_marked
    return n_others / n_far if n_far > 0 else 0.0


@register_jitable
def unmark_near(near, site, training, is_near):
    """Undo `mark_near`."""
    for j in near:
        place = training.place_of_reference[j]
        if place >= 0:
            is_near[place] = False
    if site >= 0 and training.place_of_reference[site] >= 0:
        is_near[training.place_of_reference[site]] = False


@register_jitable
def _gather_far(far_distances, is_near, settings, training, far):
    """List the references that are not negligible at any scale, class by class."""
    closest, slowest, is_squared = settings
    limit = np.float32(_NEGLIGIBLE / slowest)
    nearest = training.reference_nearest
    _fill_gaps(far_distances, nearest, closest, is_squared, far.all_out, far.all_back)
    far.starts[:] = 0
    if _mark_kept(far.all_out, far.all_back, is_near, limit, far.is_kept) > 0:
        _list_kept(far.is_kept, training.references_by_class, training.class_starts, far)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_gaps(distances, nearest, closest, is_squared, out, back):
    """Fill in d^p - c^p, at least zero should a search have missed the closest, and d^p - r^p."""
    if is_squared:
        for r in range(distances.shape[0]):
            distance, unit = distances[r], nearest[r]
            out[r] = max((distance - closest) * (distance + closest), 0.0)
            back[r] = (distance - unit) * (distance + unit)
    else:
        for r in range(distances.shape[0]):
            out[r] = max(distances[r] - closest, 0.0)
            back[r] = distances[r] - nearest[r]


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_kept(out, back, is_near, limit, is_kept):
    """Mark the references that are neither near nor negligible; return how many there are."""
    n_kept = 0
    for r in range(out.shape[0]):
        is_kept[r] = ((out[r] <= limit) | (back[r] <= limit)) & (not is_near[r])
        n_kept += is_kept[r]
    return n_kept


@njit(cache=True, nogil=True, error_model="numpy")
def _list_kept(is_kept, by_class, class_starts, far):
    n_terms = 0
    places = far.places
    for g in range(class_starts.shape[0] - 1):
        far.starts[g] = n_terms
        for t in range(class_starts[g], class_starts[g + 1]):
            # Written over by the next one unless it is kept: no branch to miss.
            places[n_terms] = by_class[t]
            n_terms += is_kept[by_class[t]]
    far.starts[-1] = n_terms
    out, back, all_out, all_back = far.out, far.back, far.all_out, far.all_back
    for t in range(n_terms):
        out[t], back[t] = all_out[places[t]], all_back[places[t]]


@register_jitable
def _gap(distance, reference, is_squared):
    # As a product: two squares of far points would cancel to noise.
    gap = distance - reference
    return gap * (distance + reference) if is_squared else gap


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_out(out, rate, kernel):
    for k in range(out.shape[0]):
        kernel[k] = exp_of(-rate * out[k])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_back(back, rate, added, log_totals):
    """Replace log totals by the share of them, with the kernel of the point, that is its own."""
    for k in range(back.shape[0]):
        odds = exp_of(min(rate * back[k] + log_totals[k], _LARGEST_EXPONENT))
        # A site is part of the total: its share of an estimated one is still at most all of it.
        log_totals[k] = 1.0 / max(added + odds, 1.0)


@register_jitable
def _add_near(kernel, near, training, support):
    for k in range(near.shape[0]):
        support[training.labels[near[k]]] += kernel[k]


@register_jitable
def _add_far_out(far, rate, weight, support):
    """Add the kernel at the references, class by class."""
    single = np.float32(rate)
    for g in range(support.shape[0]):
        start, stop = far.starts[g], far.starts[g + 1]
        support[g] += weight * _sum_of_kernel(far.out[start:stop], single)


@register_jitable
def _add_far_back(far, rate, reference_totals, added, weight, support):
    """Add the shares that the references give to the point, class by class."""
    for t in range(far.starts[-1]):
        far.totals[t] = reference_totals[far.places[t]]
    single, one = np.float32(rate), np.float32(added)
    for g in range(support.shape[0]):
        some = slice(far.starts[g], far.starts[g + 1])
        support[g] += weight * _sum_of_shares(far.back[some], far.totals[some], single, one)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def _sum_of_kernel(out, rate):
    total = 0.0
    for t in range(out.shape[0]):
        total += exp32_of(-rate * out[t])
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def _sum_of_shares(back, log_totals, rate, added):
    total = 0.0
    for t in range(back.shape[0]):
        odds = exp32_of(min(rate * back[t] + log_totals[t], _LARGEST_SINGLE))
        total += _ONE / max(added + odds, _ONE)
    return total


@register_jitable
def log_total(training, scales, j, q):
    """Interpolate the log total of a training point at a scale."""
    total = 0.0
    for c in range(scales.coefficients.shape[1]):
        total += scales.coefficients[q, c] * training.log_totals[j, scales.first[q] + c]
    return total
