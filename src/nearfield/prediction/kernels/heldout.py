"""The support of held-out points at many scales.

As float32, which takes a third of the time: the support is good to 1e-5, far below what labels can
tell. Training points come sorted by class, so that the sum over a class is one loop.
"""

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled
from nearfield._vector import ANY_ORDER, exp32_of, smallest_of

Singles = NDArray[np.float32]

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(3e38)
_LARGEST_EXPONENT = np.float32(45.0)  # a kernel that `exp32_of` takes for zero is below e^-15 of it


@compiled(fastmath=ANY_ORDER)
def held_out_support(
    among: Singles,
    out: Singles,
    counts: Singles | None,
    class_starts: NDArray[np.int64],
    rates: Singles,
    rows: NDArray[np.intp],
    totals: Singles,
    work: Singles,
    support: NDArray[np.float64],
) -> None:
    r"""Fill in the support of each class for held-out points.

    .. math:: h_{ig} = \sum_{j \in g} \frac{s_j \kappa_{ij}}{\sum_l s_l \kappa_{il}}
              + \sum_{j \in g} s_j \frac{\kappa_{ij}}{\sum_{l \ne j} s_l \kappa_{jl} + \kappa_{ij}}

    Parameters
    ----------
    among : ndarray of float32, shape (n, n)
        The energies e among the training points, log kappa = -r e.
    out : ndarray of float32, shape (m, n)
        The energies from held-out to training points, these sorted by class.
    counts : ndarray of float32, shape (n,), or None
        s, as how many points each training point counts; one by default.
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
                total += counted(counts, i, exp32_of(rates[q] * (smallest - among[j, i])))
            relative_totals[q, j] = total
            plain_totals[q, j] = total * exp32_of(-rates[q] * smallest)
        among[j, j] = _ZERO
    for i in range(out.shape[0]):
        closest = smallest_of(out[i])
        for q in range(n_rates):
            rate, sums, total = rates[q], support[q, rows[i]], _ZERO
            for j in range(n_points):
                kernel[j] = exp32_of(rate * (closest - out[i, j]))
            for g in range(sums.shape[0]):
                first, part = class_starts[g], _ZERO
                values = kernel[first : class_starts[g + 1]]
                for j in range(values.shape[0]):
                    part += counted(counts, first + j, values[j])
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
                first, part = class_starts[g], _ZERO
                values = kernel[first : class_starts[g + 1]]
                for j in range(values.shape[0]):
                    part += counted(counts, first + j, values[j])
                sums[g] = sums[g] / total + part


@compilable
def counted(counts: Singles | None, j: int, value: np.float32) -> np.float32:
    """Multiply by how often a point counts; without counts the compiler leaves no trace of it."""
    if counts is None:
        return value
    return counts[j] * value
