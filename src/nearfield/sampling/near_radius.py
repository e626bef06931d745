"""The support of points in the near field under the radius kernel."""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from nearfield.sampling.cell_scan import (
    N_TARGETS,
    Sight,
    bounds_by_block,
    make_scan,
    scan_around,
)
from nearfield.sampling.near_terms import NEW, gather_terms, make_terms, mark_near


@njit(cache=True, nogil=True, error_model="numpy")
def near_radius_sums(neighborhood, table, sources, scales, options, epsilon, out, back):
    r"""Add the sums that the support of each class is made of, under the radius kernel.

    As `nearfield.sampling.near_support.near_sums`, but for what everybody weighs, however far,

    .. math:: O_g = (1 - \epsilon) \sum_{j \in g} f_j 1[d_j < \sigma], \qquad
              B_g = \sum_{j \in g} f_j 1[d_j < \sigma] \Big(\frac{1}{T_j + 1}
              - \frac{\epsilon}{T_j + \epsilon}\Big)

    The totals are those of the kernel as it is.
    """
    (n_whole, _), is_joint, adds_near = options
    n_near, largest = neighborhood.near_index.shape[1], scales.values.max()
    terms = make_terms(table, sources.references.shape[0], n_whole, out.shape[2])
    scan, n_all = make_scan(table, n_whole), (table.sizes.sum(), n_whole)
    farthest = largest * largest
    sight = Sight(farthest, farthest, 0.0, 0.0)
    bounds = bounds_by_block(table, sources.units, farthest, scales.exponent)
    is_near = np.zeros(sources.labels.shape[0], dtype=np.bool_)
    from_zero = np.zeros(N_TARGETS)  # whatever is closest, powers are taken as they are
    for i in range(out.shape[0]):
        if i % N_TARGETS == 0:
            points = neighborhood.points[i : i + N_TARGETS]
            scan_around(points, from_zero, sight, n_whole, scales.exponent, table, bounds, scan)
        near, site = neighborhood.near_index[i], neighborhood.sites[i]
        added = 1.0 if site == NEW else 0.0
        seen = neighborhood.points[i], neighborhood.far_distances[i]
        some_near = is_near if near.shape[0] > 0 or site >= 0 else is_near[:0]
        mark_near(near, site, is_near, True)
        gather_terms(
            i % N_TARGETS, n_all, sight, seen, scan, table, sources, scales, some_near, terms
        )
        mark_near(near, site, is_near, False)
        _add_terms(i, terms, scales, added, is_joint, epsilon, out, back)
        if adds_near:
            for k in range(n_near):
                g, distance = sources.labels[near[k]], neighborhood.near_distances[i, k]
                for q in range(scales.values.shape[0]):
                    if distance < scales.values[q]:
                        out[i, q, g] += 1.0 - epsilon
                        if is_joint:
                            back[i, q, g] += _share(scales.totals[near[k], q], added, epsilon)


@register_jitable
def _add_terms(i, terms, scales, added, is_joint, epsilon, out, back):
    for g in range(out.shape[2]):
        for t in range(terms.ends[g]):
            power, weight = terms.out[g, t], terms.weight[g, t]
            for q in range(scales.values.shape[0]):
                if power < scales.values[q] * scales.values[q]:
                    out[i, q, g] += weight * (1.0 - epsilon)
                    if is_joint:
                        total = scales.totals[terms.places[g, t], q]
                        back[i, q, g] += weight * _share(total, added, epsilon)


@register_jitable
def _share(total, added, epsilon):
    """Give what a point within the radius has of a total beyond what one outside has."""
    # A site is part of the total: its share of an estimated one is still at most all of it.
    return 1.0 / max(total + added, 1.0) - epsilon / max(total + added * epsilon, epsilon)
