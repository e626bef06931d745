"""The support of held-out points at many scales.

As float32, which takes a third of the time: the support is good to 1e-5, far below what labels can
tell. Training points come sorted by class, so that the sum over a class is one loop.
"""

import numpy as np

from nearfield._compile import compiled
from nearfield._vector import ANY_ORDER, exp32_of, smallest_of

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR, _LARGEST_EXPONENT = np.float32(3e38), np.float32(80.0)


@compiled(fastmath=ANY_ORDER)
def held_out_support(among, out, class_starts, rates, rows, totals, work, support):
    r"""Fill in the support of each class for held-out points.

    .. math:: h_{ig} = \sum_{j \in g} \frac{\kappa_{ij}}{\sum_l \kappa_{il}}
              + \sum_{j \in g} \frac{\kappa_{ij}}{\sum_{l \ne j} \kappa_{jl} + \kappa_{ij}}

    Parameters
    ----------
    among : ndarray of float32, shape (n, n)
        The energies e among the training points; its diagonal is overwritten.
    out : ndarray of float32, shape (m, n)
        The energies from held-out to training points, these sorted by class.
    class_starts : ndarray of int, shape (G + 1,)
    rates : ndarray of float32, shape (n_rates,)
    rows : ndarray of int, shape (m,)
        Where in `support` each held-out point is.
    totals : ndarray of float32, shape (2, n_rates, n)
        To work in: sums of the kernel over the other training points, relative to the nearest of
        them and plain.
    work : ndarray of float32, shape (2, n)
        To work in: the energy of the nearest neighbour, and the kernel.
    support : ndarray, shape (n_rates, n_all, G)
    """
    relative_totals, plain_totals = totals[0], totals[1]
    nearest, kernel = work[0], work[1]
    n_rates, n_points = rates.shape[0], among.shape[0]
    farthest = _ZERO
    for j in range(n_points):
        among[j, j] = _FAR
        smallest = nearest[j] = smallest_of(among[j])
        farthest = smallest if smallest > farthest else farthest
        for q in range(n_rates):
            total = _ZERO
            for i in range(n_points):
                total += exp32_of(rates[q] * (smallest - among[j, i]))
            relative_totals[q, j] = total
            plain_totals[q, j] = total * exp32_of(-rates[q] * smallest)
    for i in range(out.shape[0]):
        closest = smallest_of(out[i])
        for q in range(n_rates):
            rate, sums, total = rates[q], support[q, rows[i]], _ZERO
            for j in range(n_points):
                kernel[j] = exp32_of(rate * (closest - out[i, j]))
            for g in range(sums.shape[0]):
                values, part = kernel[class_starts[g] : class_starts[g + 1]], _ZERO
                for j in range(values.shape[0]):
                    part += values[j]
                sums[g] = part
                total += part
            if rate * farthest < _LARGEST_EXPONENT and rate * closest < _LARGEST_EXPONENT:
                unit = exp32_of(rate * closest)
                for j in range(n_points):  # no exp for each of them
                    kernel[j] /= kernel[j] + unit * plain_totals[q, j]
            else:
                for j in range(n_points):
                    gap = rate * (out[i, j] - nearest[j])
                    gap = gap if gap < _LARGEST_EXPONENT else _LARGEST_EXPONENT
                    kernel[j] = _ONE / (_ONE + relative_totals[q, j] * exp32_of(gap))
            for g in range(sums.shape[0]):
                values, part = kernel[class_starts[g] : class_starts[g + 1]], _ZERO
                for j in range(values.shape[0]):
                    part += values[j]
                sums[g] = sums[g] / total + part
