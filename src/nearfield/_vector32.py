"""The exponential of float32 numbers, in vector instructions: eight at a time."""

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)  # its last bits are zero: times k it is exact
_LN2_LOW = np.float32(-2.12194440e-4)
_ROUNDER = np.float32(12582912.0)  # 1.5 * 2**23: adding it leaves a whole number in the last bits
_LOWEST = np.float32(-87.0)
_SHIFT = np.int32(23)
_ONE = np.float32(1.0)
_C2, _C3 = np.float32(0.5), np.float32(1.0 / 6.0)
_C4, _C5, _C6 = np.float32(1.0 / 24.0), np.float32(1.0 / 120.0), np.float32(1.0 / 720.0)


@intrinsic
def _bits_of(typing_context, value):
    """Read a float32 as the int32 of the same bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic
def _float_of(typing_context, bits):
    """Read an int32 as the float32 of the same bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _shifted_left(typing_context, bits, places):
    """Shift an int32, which Numba would widen to an int64."""

    def generate(context, builder, signature, arguments):
        return builder.shl(*arguments)

    return types.int32(types.int32, types.int32), generate


@intrinsic
def _sum_of_bits(typing_context, first, second):
    """Add two int32, which Numba would widen to int64."""

    def generate(context, builder, signature, arguments):
        return builder.add(*arguments)

    return types.int32(types.int32, types.int32), generate


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def exp32_of(x):
    """Evaluate exp(x) for x <= 80 to a relative error of 1e-6; 2e-38 for all x below -87."""
    x = max(x, _LOWEST)
    shifted = x * _LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + _ONE
    p = p * r + _ONE
    return _float_of(_sum_of_bits(_bits_of(p), _shifted_left(_bits_of(shifted), _SHIFT)))  # type: ignore[call-arg]
