"""Arithmetic that the compiler turns into vector instructions: no call to a library inside."""

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic, register_jitable

ANY_ORDER = {"reassoc", "contract", "nsz"}
"""The `fastmath` of sums whose terms may come in any order, as vector instructions take them.

For loops in which nothing is infinite.
"""

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # its last 32 bits are zero: times k it is exact
_LN2_LOW = 1.90821492927058770002e-10
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it leaves a whole number in the last bits
_LOWEST = -708.0  # below, exp is no longer a normal number; 1e-308 stands for it
_SHIFT = np.int64(52)


@intrinsic
def _bits_of(typing_context, value):
    """Read a float64 as the int64 of the same bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(typing_context, bits):
    """Read an int64 as the float64 of the same bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@register_jitable(inline="always")
def bits_of(value):
    """Read a float64 as the int64 of the same bits: of numbers above zero, the order stays."""
    return _bits_of(value)  # type: ignore[call-arg]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp_of(x):
    r"""Evaluate exp(x) for x <= 700 to a relative error of 1e-14; 1e-308 for all x below -708.

    .. math:: e^x = 2^k e^r, \qquad k = [x / \ln 2], \quad |r| \le \tfrac12 \ln 2

    with the Taylor polynomial of degree 11 for the second factor.
    """
    x = max(x, _LOWEST)
    shifted = x * _LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return _float_of(_bits_of(p) + (_bits_of(shifted) << _SHIFT))  # type: ignore[call-arg]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=ANY_ORDER | {"nnan"})
def smallest_of(values):
    """Find the smallest value."""
    smallest = values[0]
    for j in range(values.shape[0]):
        smallest = min(smallest, values[j])
    return smallest
