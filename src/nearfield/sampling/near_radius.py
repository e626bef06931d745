"""The support of points in the near field under the radius kernel."""

import numpy as np
from numba import njit

from nearfield.sampling.near_support import log_total, mark_near, unmark_near


@njit(cache=True, nogil=True, error_model="numpy")
def near_radius_support(neighborhood, training, scales, is_joint, epsilon, support):
    """Fill in the support of each class under the radius kernel, as in `near_support`.

    The log totals are the logs of how many others are within each radius.
    """
    n_near, n_far = neighborhood.near_index.shape[1], training.references.shape[0]
    is_near = np.zeros(n_far, dtype=np.bool_)
    n_points = training.n_points
    for i in range(neighborhood.near_index.shape[0]):
        near, site = neighborhood.near_index[i], neighborhood.sites[i]
        weight = mark_near(near, site, training, is_near)
        added = 0.0 if site >= 0 else 1.0
        for q in range(scales.values.shape[0]):
            radius, row = scales.values[q], support[i, q]
            row[:] = 0.0
            back = np.zeros_like(row)
            for k in range(n_near):
                j = near[k]
                kernel = 1.0 if neighborhood.near_distances[i, k] < radius else epsilon
                row[training.labels[j]] += kernel
                if is_joint:
                    total = epsilon * (n_points - 1)
                    if training.nearest[j] < radius:
                        total += (1.0 - epsilon) * np.exp(log_total(training, scales, j, q))
                    back[training.labels[j]] += kernel / max(total + added * kernel, kernel)
            for r in range(n_far):
                if is_near[r]:
                    continue
                kernel = 1.0 if neighborhood.far_distances[i, r] < radius else epsilon
                row[training.reference_labels[r]] += weight * kernel
                if is_joint:
                    total = scales.reference_totals[q, r]
                    share = kernel / max(total + added * kernel, kernel)
                    back[training.reference_labels[r]] += weight * share
            total = row.sum()
            for g in range(row.shape[0]):
                row[g] = row[g] / total + back[g]
        unmark_near(near, site, training, is_near)
