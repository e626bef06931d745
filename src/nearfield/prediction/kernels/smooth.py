"""The support of new points under a smooth kernel, gaussian or exponential, at several scales.

Both kernels are exp(-rate x d^p), with p = 2 and rate = 1 / (2 sigma^2), or p = 1 and
rate = sigma. Training points come sorted by class, so that the sum over a class is one loop.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp_of, smallest_of

Floats = NDArray[np.float64]

SAFE = 300.0
"""exp(-300): squares, and products with the number of points, are normal numbers."""

LARGEST_EXPONENT = 700.0


@compiled(fastmath=ANY_ORDER)
def training_totals(
    distances: Floats,
    rates: Floats,
    is_squared: bool,
    kernel: Floats,
    log_totals: Floats,
    nearest: Floats,
) -> None:
    r"""Sum the kernel over the other training points, relative to the nearest of them.

    .. math:: \log R_j = \log \sum_{l \ne j} \kappa(d_{jl}) / \kappa(r_j),
              \qquad r_j = \min_{l \ne j} d_{jl}

    Fills in `log_totals`, shape (n_rates, n), and `nearest`, shape (n,); works in `kernel`, (n,).
    """
    n_points = distances.shape[0]
    for j in range(n_points):
        closest = np.inf
        for i in range(n_points):
            if i != j and distances[j, i] < closest:
                closest = distances[j, i]
        nearest[j] = closest
        for q in range(rates.shape[0]):
            fill_ratio(distances[j], closest, rates[q], is_squared, kernel)
            kernel[j] = total = 0.0
            for i in range(n_points):
                total += kernel[i]
            log_totals[q, j] = np.log(total)


@compiled(fastmath=ANY_ORDER)
def log_kernel_sums(
    distances: Floats, rates: Floats, is_squared: bool, kernel: Floats, log_sums: Floats
) -> None:
    """Fill in the log of the kernel summed over all training points, shape (m, n_rates).

    Works in `kernel`, shape (n,).
    """
    for i in range(distances.shape[0]):
        closest = smallest_of(distances[i])
        power = closest * closest if is_squared else closest
        for q in range(rates.shape[0]):
            fill_ratio(distances[i], closest, rates[q], is_squared, kernel)
            total = 0.0
            for j in range(kernel.shape[0]):
                total += kernel[j]
            log_sums[i, q] = np.log(total) - rates[q] * power


@compiled(fastmath=ANY_ORDER)
def smooth_support(
    distances: Floats,
    order: NDArray[np.int64],
    class_starts: NDArray[np.int64],
    rates: Floats,
    is_squared: bool,
    totals: tuple[Floats, Floats, Floats, NDArray[np.bool_]],
    is_joint: bool,
    work: Floats,
    kernel: Floats,
    support: Floats,
) -> None:
    r"""Fill in the support of each class, shape (m, n_rates, G).

    .. math:: h^*_g = \sum_{j \in g} \frac{\kappa(d^*_j)}{\sum_l \kappa(d^*_l)}
              + \sum_{j \in g} \frac{\kappa(d^*_j)}{T_j + \kappa(d^*_j)}

    Parameters
    ----------
    distances : ndarray, shape (m, n)
    order : ndarray of int, shape (n,)
        Sorts the training points by class; the totals are in this order.
    class_starts : ndarray of int, shape (G + 1,)
        Where each class starts and the last one ends.
    rates : ndarray, shape (n_rates,)
    is_squared : bool
    totals : tuple of ndarray
        `nearest`, shape (n,), and `log_totals`, (n_rates, n), from `training_totals`; T_j, with
        log T_j = log R_j + log kappa(r_j), shape (n_rates, n); and whether all of them are far
        from underflow, (n_rates,).
    is_joint : bool
        Whether to add the second sum.
    work, kernel : ndarray, shape (2, n) and (n,)
        To work in.
    support : ndarray, shape (m, n_rates, G)
    """
    nearest, log_totals, back, is_safe = totals
    row, powers = work[0], work[1]
    for i in range(distances.shape[0]):
        for j in range(order.shape[0]):
            row[j] = distances[i, order[j]]
        for j in range(order.shape[0]):
            powers[j] = row[j] * row[j] if is_squared else row[j]
        closest = smallest_of(row)
        power = closest * closest if is_squared else closest
        for q in range(rates.shape[0]):
            is_plain = is_safe[q] and power * rates[q] < SAFE
            if is_plain:
                for j in range(kernel.shape[0]):
                    kernel[j] = exp_of(-rates[q] * powers[j])
            else:
                fill_ratio(row, closest, rates[q], is_squared, kernel)
            total = 0.0
            for g in range(support.shape[2]):
                values, part = kernel[class_starts[g] : class_starts[g + 1]], 0.0
                for j in range(values.shape[0]):
                    part += values[j]
                support[i, q, g] = part
                total += part
            if is_joint and is_plain:
                for j in range(kernel.shape[0]):
                    kernel[j] /= back[q, j] + kernel[j]
            elif is_joint:
                fill_back(row, nearest, log_totals[q], rates[q], is_squared, kernel)
            for g in range(support.shape[2]):
                values, part = kernel[class_starts[g] : class_starts[g + 1]], 0.0
                if is_joint:
                    for j in range(values.shape[0]):
                        part += values[j]
                support[i, q, g] = support[i, q, g] / total + part


@compilable
def fill_ratio(
    row: Floats, reference: float, rate: float, is_squared: bool, kernel: Floats
) -> None:
    """Fill in kappa(d) / kappa(reference), which no scale makes 0/0; the reference is nearest."""
    for j in range(kernel.shape[0]):
        # Of squares as a product: two squares of far points would cancel to noise.
        factor = row[j] + reference if is_squared else 1.0
        kernel[j] = exp_of(-rate * (row[j] - reference) * factor)


@compilable
def fill_back(
    row: Floats,
    nearest: Floats,
    log_totals: Floats,
    rate: float,
    is_squared: bool,
    kernel: Floats,
) -> None:
    r"""Fill in the in-weights of the new point, :math:`1 / (1 + Z_j/\kappa_j)`."""
    for j in range(kernel.shape[0]):
        factor = row[j] + nearest[j] if is_squared else 1.0
        exponent = rate * (row[j] - nearest[j]) * factor + log_totals[j]
        exponent = exponent if exponent < LARGEST_EXPONENT else LARGEST_EXPONENT
        kernel[j] = 1.0 / (1.0 + exp_of(exponent))
