"""Sums of a kernel over sources at given distances, at many scales in one pass.

Rates of a smooth kernel double: the kernel at the next is the square of that at the last.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from nearfield.sampling._vector import ANY_ORDER
from nearfield.sampling._vector32 import exp32_of

N_TOGETHER = 8
"""Over so many octaves one exponential does, and its squares; beyond, digits would be lost."""

N_AT_ONCE = 2_048
"""So many sources are summed over at a time: they stay in the first cache."""

ITSELF = np.float32(1e30)
"""The power of the distance to what does not count."""

_NEGLIGIBLE = 30.0  # exp(-30): beside the nearest point not even ten million of these count
_FLOOR = np.float32(1e-18)  # its square is a normal number; others take a hundred times as long
_LARGEST_ROOT = np.float32(1e15)
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


class SumScales(NamedTuple):
    """At which scales to sum: rates of a smooth kernel, or radii."""

    is_radius: bool
    exponent: float  # of the powers, as they come, in the kernel: 0.5, 1 or 2
    first: float  # the smallest rate
    n_sequences: int  # of rates that double; they divide an octave evenly
    thresholds: NDArray[np.float32]  # squares of the radii


@njit(cache=True, nogil=True, error_model="numpy")
def row_sums(powers, n_near, far_factors, scales, minima, sums):
    """Fill in minima and add sums over sources at given distances: near ones, and others.

    Parameters
    ----------
    powers : ndarray of float32, shape (m, n_sources)
        The first `n_near` of each row count once; `ITSELF` stands for what does not count at all.
    n_near : int
    far_factors : ndarray, shape (m,)
        For how many points each of the others stands.
    scales, minima, sums
        As in `nearfield.sampling.cell_sums.cell_sums`.
    """
    kernel = np.empty(N_AT_ONCE, dtype=np.float32)
    for i in range(powers.shape[0]):
        minima[i] = min(minima[i], smallest_of(powers[i]))
        for part in range(2):
            some = slice(0, n_near) if part == 0 else slice(n_near, powers.shape[1])
            factor = 1.0 if part == 0 else far_factors[i]
            if factor > 0.0:
                add_sums(powers[i, some], minima[i], scales, factor, kernel, sums[i])


@register_jitable
def add_sums(powers, reference, scales, factor, kernel, sums):
    """Add what sources at some distances contribute, each counted `factor` times."""
    for start in range(0, powers.shape[0], N_AT_ONCE):
        some = powers[start : start + N_AT_ONCE]
        if scales.is_radius:
            _add_counts(some, scales.thresholds, factor, sums)
        else:
            _add_kernels(some, reference, scales, factor, kernel[: some.shape[0]], sums)


@register_jitable
def _add_kernels(powers, reference, scales, factor, kernel, sums):
    """Add the kernel at all rates: an exponential, its square, the square of that, and so on."""
    smallest = smallest_of(powers) - reference
    n_sequences = scales.n_sequences
    n_octaves = sums.shape[0] // n_sequences
    for sequence in range(n_sequences):
        for first in range(0, n_octaves, N_TOGETHER):
            rate = scales.first * 2.0 ** (first + sequence / n_sequences)
            if smallest * rate > _NEGLIGIBLE:
                break
            _fill_kernel(powers, reference, np.float32(rate), kernel)
            sums[first * n_sequences + sequence] += factor * _sum_of(kernel)
            for octave in range(first + 1, min(first + N_TOGETHER, n_octaves)):
                sums[octave * n_sequences + sequence] += factor * _sum_of_squared(kernel)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _fill_kernel(powers, reference, rate, kernel):
    for j in range(powers.shape[0]):
        kernel[j] = exp32_of(min(rate * (reference - powers[j]), _ZERO))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _sum_of(values):
    total = _ZERO
    for j in range(values.shape[0]):
        total += values[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _sum_of_squared(values):
    """Square values in place, and add them up."""
    total = _ZERO
    for j in range(values.shape[0]):
        values[j] = max(values[j] * values[j], _FLOOR)
        total += values[j]
    return total


@register_jitable
def _add_counts(powers, thresholds, factor, sums):
    """Add the numbers of sources with a power below each threshold."""
    smallest = smallest_of(powers)
    for s in range(thresholds.shape[0]):
        if smallest < thresholds[s]:
            sums[s] += factor * _count_below(powers, thresholds[s])


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER)
def _count_below(values, threshold):
    count = _ZERO
    for j in range(values.shape[0]):
        count += _ONE if values[j] < threshold else _ZERO
    return count


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER | {"nnan"})
def smallest_of(values):
    """Find the smallest value."""
    smallest = values[0]
    for j in range(values.shape[0]):
        smallest = values[j] if values[j] < smallest else smallest
    return smallest


@njit(cache=True, nogil=True, error_model="numpy")
def raise_to(exponent, values):
    """Raise values to the power of 0.5, 1 or 2, in place."""
    if exponent == 0.5:
        for j in range(values.shape[0]):
            values[j] = np.sqrt(values[j])
    elif exponent == 2.0:
        for j in range(values.shape[0]):
            # What does not count stays as it is: its square would be no number.
            values[j] = values[j] * values[j] if values[j] < _LARGEST_ROOT else ITSELF
