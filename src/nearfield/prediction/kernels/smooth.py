"""The support of new points under a smooth kernel, gaussian or exponential, at several scales.

Both kernels are exp(-rate x d^p), with p = 2 and rate = 1 / (2 sigma^2), or p = 1 and
rate = sigma. Training points come sorted by class, so that the sum over a class is one loop.
"""

import numpy as np

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp_of, smallest_of

_SAFE = 300.0  # exp(-300): squares, and products with the number of points, are normal numbers
_LARGEST_EXPONENT = 700.0


@compiled
def training_totals(distances, rates, is_squared, log_totals, nearest):
    r"""Sum the kernel over the other training points, relative to the nearest of them.

    .. math:: \log R_j = \log \sum_{l \ne j} \kappa(d_{jl}) / \kappa(r_j),
              \qquad r_j = \min_{l \ne j} d_{jl}

    Fills in `log_totals`, shape (n_rates, n), and `nearest`, shape (n,).
    """
    n_points = distances.shape[0]
    kernel = np.empty(n_points)
    for j in range(n_points):
        nearest[j] = np.inf
        for i in range(n_points):
            if i != j:
                nearest[j] = min(nearest[j], distances[j, i])
        for q in range(rates.shape[0]):
            fill_ratio(distances[j], nearest[j], rates[q], is_squared, kernel)
            kernel[j] = 0.0
            log_totals[q, j] = np.log(sum_of(kernel))


@compiled
def log_kernel_sums(distances, rates, is_squared, log_sums):
    """Fill in the log of the kernel summed over all training points, shape (m, n_rates)."""
    kernel = np.empty(distances.shape[1])
    for i in range(distances.shape[0]):
        closest = smallest_of(distances[i])
        power = closest * closest if is_squared else closest
        for q in range(rates.shape[0]):
            fill_ratio(distances[i], closest, rates[q], is_squared, kernel)
            log_sums[i, q] = np.log(sum_of(kernel)) - rates[q] * power


@compiled
def smooth_support(
    distances, order, class_starts, rates, is_squared, nearest, log_totals, is_joint, support
):
    r"""Fill in the support of each class, shape (m, n_rates, G).

    .. math:: h^*_g = \sum_{j \in g} \frac{\kappa(d^*_j)}{\sum_l \kappa(d^*_l)}
              + \sum_{j \in g} \frac{\kappa(d^*_j)}{T_j + \kappa(d^*_j)}

    Parameters
    ----------
    distances : ndarray, shape (m, n)
    order : ndarray of int, shape (n,)
        Sorts the training points by class; `nearest` and `log_totals` are in this order.
    class_starts : ndarray of int, shape (G + 1,)
        Where each class starts and the last one ends.
    rates : ndarray, shape (n_rates,)
    is_squared : bool
    nearest, log_totals : ndarray, shape (n,) and (n_rates, n)
        From `training_totals`: log T_j = log R_j + log kappa(r_j).
    is_joint : bool
        Whether to add the second sum.
    support : ndarray, shape (m, n_rates, G)
    """
    n_points = order.shape[0]
    row, powers, kernel = np.empty(n_points), np.empty(n_points), np.empty(n_points)
    back, is_safe = prepare_totals(rates, is_squared, nearest, log_totals)
    for i in range(distances.shape[0]):
        closest = take_row(distances[i], order, is_squared, row, powers)
        farthest_power = closest * closest if is_squared else closest
        for q in range(rates.shape[0]):
            if is_safe[q] and farthest_power * rates[q] < _SAFE:
                fill_kernel(powers, rates[q], kernel)
                add_up(kernel, back[q], class_starts, is_joint, support[i, q])
            else:
                fill_ratio(row, closest, rates[q], is_squared, kernel)
                add_up(kernel, back[q], class_starts, False, support[i, q])
                if is_joint:
                    fill_back(row, nearest, log_totals[q], rates[q], is_squared, kernel)
                    for g in range(support.shape[2]):
                        support[i, q, g] += sum_of(kernel[class_starts[g] : class_starts[g + 1]])


@compilable
def prepare_totals(rates, is_squared, nearest, log_totals):
    """Compute T_j, and tell at which rates all of them are far from underflow."""
    back = np.empty_like(log_totals)
    is_safe = np.empty(rates.shape[0], dtype=np.bool_)
    for q in range(rates.shape[0]):
        is_safe[q] = True
        for j in range(nearest.shape[0]):
            power = nearest[j] * nearest[j] if is_squared else nearest[j]
            is_safe[q] &= power * rates[q] < _SAFE
            back[q, j] = np.exp(log_totals[q, j] - min(power * rates[q], _LARGEST_EXPONENT))
    return back, is_safe


@compilable
def take_row(distances, order, is_squared, row, powers):
    """Copy a row in the order of the classes, with its powers; return the smallest distance."""
    for j in range(order.shape[0]):
        row[j] = distances[order[j]]
    for j in range(order.shape[0]):
        powers[j] = row[j] * row[j] if is_squared else row[j]
    return smallest_of(row)


@compilable
def add_up(kernel, back, class_starts, is_joint, support):
    """Fill in the support of one point at one scale from its kernel values."""
    total = 0.0
    for g in range(support.shape[0]):
        support[g] = sum_of(kernel[class_starts[g] : class_starts[g + 1]])
        total += support[g]
    for g in range(support.shape[0]):
        support[g] /= total
        if is_joint:
            start, stop = class_starts[g], class_starts[g + 1]
            support[g] += sum_of_shares(kernel[start:stop], back[start:stop])


@compiled
def fill_kernel(powers, rate, kernel):
    """Fill in exp(-rate d^p)."""
    for j in range(kernel.shape[0]):
        kernel[j] = exp_of(-rate * powers[j])


@compiled
def fill_ratio(row, reference, rate, is_squared, kernel):
    """Fill in kappa(d) / kappa(reference), which no scale makes 0/0; the reference is nearest."""
    if is_squared:
        for j in range(kernel.shape[0]):
            # As a product: two squares of far points would cancel to noise.
            kernel[j] = exp_of(-rate * (row[j] - reference) * (row[j] + reference))
    else:
        for j in range(kernel.shape[0]):
            kernel[j] = exp_of(-rate * (row[j] - reference))


@compiled
def fill_back(row, nearest, log_totals, rate, is_squared, kernel):
    r"""Fill in the in-weights of the new point, :math:`1 / (1 + Z_j/\kappa_j)`."""
    for j in range(kernel.shape[0]):
        gap = rate * (row[j] - nearest[j])
        if is_squared:
            gap *= row[j] + nearest[j]
        kernel[j] = 1.0 / (1.0 + exp_of(min(gap + log_totals[j], _LARGEST_EXPONENT)))


@compiled(fastmath=ANY_ORDER)
def sum_of(values):
    """Add up values."""
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j]
    return total


@compiled(fastmath=ANY_ORDER)
def sum_of_shares(kernel, back):
    r"""Add up :math:`\kappa_j / (T_j + \kappa_j)`."""
    total = 0.0
    for j in range(kernel.shape[0]):
        total += kernel[j] / (back[j] + kernel[j])
    return total
