"""The support of points in the near field, under a smooth kernel.

Each point has a list of near points; other points near by count one by one, and reference points
stand for the rest.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling._vector import ANY_ORDER, exp_of
from nearfield.sampling._vector32 import exp32_of
from nearfield.sampling.cell_scan import N_TARGETS, bounds_by_block, make_scan, scan_around
from nearfield.sampling.near_terms import (
    NEW,
    drop_negligible,
    fill_up,
    gather_terms,
    make_terms,
    mark_near,
    smooth_sight,
)
from nearfield.sampling.scale_sums import N_AT_ONCE

_LARGEST_EXPONENT = 700.0
_LARGEST_SINGLE = np.float32(80.0)
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)
_N_BETWEEN = 2  # scales, after which the terms are thinned again


@njit(cache=True, nogil=True, error_model="numpy")
def near_sums(neighborhood, closest, table, sources, scales, options, out, back):
    r"""Add the sums that the support of each class is made of, under a smooth kernel.

    .. math:: O_g = \sum_{j \in g} f_j \kappa(d_j) / \kappa(c), \qquad
              B_g = \sum_{j \in g} f_j \frac{\kappa(d_j)}{T_j + \kappa(d_j)}

    with c the smallest distance of the point, and :math:`f_j` for how many points source j stands:
    one, unless it is a reference, or in a crowd. For a training point, which is part of
    :math:`T_j` itself, the last denominator is :math:`T_j`.

    Parameters
    ----------
    neighborhood : Neighborhood
    closest : ndarray, shape (m,)
        c, or infinite to have it found among the points around.
    table : CellTable
    sources : Sources
        The points of the table, if it has any, in its order.
    scales : ScaleTable
    options : tuple
        The vicinity; whether to fill in B; whether to add the points on the lists of the nearest
        ones, or, for a shard, to leave them to others.
    out, back : ndarray, shape (m, n_scales, G)
    """
    vicinity, is_joint, adds_near = options
    n_points, n_scales, n_whole = out.shape[0], scales.values.shape[0], vicinity.n_whole
    terms = make_terms(table, sources.references.shape[0], n_whole, out.shape[2])
    scan, n_all = make_scan(table, n_whole), (table.sizes.sum(), n_whole)
    sight = smooth_sight(scales, vicinity)
    bounds = bounds_by_block(table, sources.units, sight.reach, scales.exponent)
    is_near = np.zeros(sources.labels.shape[0], dtype=np.bool_)
    for i in range(n_points):
        if i % N_TARGETS == 0:
            some = slice(i, i + N_TARGETS)
            powers = closest[some] ** 2 if scales.is_squared else closest[some]
            points = neighborhood.points[some]
            scan_around(points, powers, sight, n_whole, scales.exponent, table, bounds, scan)
        near, site = neighborhood.near_index[i], neighborhood.sites[i]
        added = 1.0 if site == NEW else 0.0
        seen = neighborhood.points[i], neighborhood.far_distances[i]
        some_near = is_near if near.shape[0] > 0 or site >= 0 else is_near[:0]
        mark_near(near, site, is_near, True)
        gather_terms(
            i % N_TARGETS, n_all, sight, seen, scan, table, sources, scales, some_near, terms
        )
        mark_near(near, site, is_near, False)
        for q in range(n_scales):
            if q % _N_BETWEEN == 0 and q > 0:
                drop_negligible(scales.values[q:].min(), terms)
            rate = np.float32(scales.values[q])
            for g in range(out.shape[2]):
                end = fill_up(g, terms)
                weight = terms.weight[g, :end]
                out[i, q, g] += _sum_of_kernel(terms.out[g, :end], weight, rate)
                if is_joint:
                    _take_totals(terms.places[g, :end], scales.totals, q, terms.totals[:end])
                    back[i, q, g] += _sum_of_shares(
                        terms.back[g, :end],
                        terms.totals[:end],
                        weight,
                        rate,
                        np.float32(added),
                    )
        if adds_near:
            _add_near(i, neighborhood, closest[i], added, sources, scales, is_joint, out, back)


@register_jitable
def _add_near(i, neighborhood, closest, added, sources, scales, is_joint, out, back):
    near, distances = neighborhood.near_index[i], neighborhood.near_distances[i]
    n_near = near.shape[0]
    gaps, shares = np.empty(n_near), np.empty(n_near)
    back_gaps, totals = np.empty(n_near), np.empty(n_near)
    for k in range(n_near):
        gaps[k] = _gap(distances[k], closest, scales.is_squared)
        back_gaps[k] = _gap(distances[k], sources.nearest[near[k]], scales.is_squared)
    for q in range(scales.values.shape[0]):
        rate = scales.values[q]
        _fill_kernel(gaps, rate, shares)
        for k in range(n_near):
            out[i, q, sources.labels[near[k]]] += shares[k]
        if is_joint:
            for k in range(n_near):
                totals[k] = scales.totals[near[k], q]
            _fill_shares(back_gaps, totals, rate, added, shares)
            for k in range(n_near):
                back[i, q, sources.labels[near[k]]] += shares[k]


@register_jitable
def _gap(distance, reference, is_squared):
    # As a product: two squares of far points would cancel to noise.
    gap = distance - reference
    return gap * (distance + reference) if is_squared else gap


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_kernel(gaps, rate, kernel):
    for k in range(gaps.shape[0]):
        kernel[k] = exp_of(-rate * gaps[k])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_shares(gaps, totals, rate, added, shares):
    """Fill in what part the kernel of the point has of each total, with the point's own in it."""
    for k in range(gaps.shape[0]):
        odds = exp_of(min(rate * gaps[k], _LARGEST_EXPONENT)) * totals[k]
        # A site is part of the total: its share of an estimated one is still at most all of it.
        shares[k] = 1.0 / max(added + odds, 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _take_totals(places, totals, q, taken):
    for t in range(places.shape[0]):
        taken[t] = totals[np.uint64(places[t]), q]  # no place is counted from the end


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_kernel(out, weight, rate):
    total = 0.0
    for start in range(0, out.shape[0], N_AT_ONCE):  # longer sums of single numbers lose digits
        some = slice(start, start + N_AT_ONCE)
        total += _few_of_kernel(out[some], weight[some], rate)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_of_shares(back, totals, weight, rate, added):
    total = 0.0
    for start in range(0, back.shape[0], N_AT_ONCE):
        some = slice(start, start + N_AT_ONCE)
        total += _few_of_shares(back[some], totals[some], weight[some], rate, added)
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _few_of_kernel(out, weight, rate):
    total = _ZERO
    for t in range(out.shape[0]):
        total += weight[t] * exp32_of(-rate * out[t])
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _few_of_shares(back, totals, weight, rate, added):
    total = _ZERO
    for t in range(back.shape[0]):
        odds = exp32_of(min(rate * back[t], _LARGEST_SINGLE)) * totals[t]
        total += weight[t] / max(added + odds, _ONE)
    return total
