"""Arithmetic that the compiler turns into vector instructions: no call to a library inside."""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearfield._compile import compilable, compiled, intrinsic, ir, types

ANY_ORDER = {"reassoc", "contract", "nsz"}
"""The `fastmath` of sums whose terms may come in any order, as vector instructions take them.

For loops in which nothing is infinite.
"""

_Real = TypeVar("_Real", bound=np.floating)

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # its last 32 bits are zero: times k it is exact
_LN2_LOW = 1.90821492927058770002e-10
_ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it leaves a whole number in the last bits
_LOWEST = -708.0  # below, exp is no longer a normal number; 1e-308 stands for it

_ZERO_32, _ONE_32, _LOG2_E_32 = np.float32(0.0), np.float32(1.0), np.float32(_LOG2_E)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_ROUNDER_32 = np.float32(12582912.0)  # 1.5 * 2**23
_LOWEST_32 = np.float32(-60.0)  # products of less may be denormal, and take the CPU long
_C2, _C3 = np.float32(0.5), np.float32(1.0 / 6.0)
_C4, _C5, _C6 = np.float32(1.0 / 24.0), np.float32(1.0 / 120.0), np.float32(1.0 / 720.0)


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> tuple[Any, Any]:
    """Read a float64 as the int64 of the same bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _times_power_of_two(typing_context: Any, value: Any, shifted: Any) -> tuple[Any, Any]:
    """Multiply a number by 2^k, with k the whole number in the last bits of `shifted`.

    Both are float32 or both float64: Numba itself would widen whole numbers of 32 bits.
    """
    n_bits, n_mantissa = (32, 23) if value == types.float32 else (64, 52)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = ir.IntType(n_bits)
        bits, k = (builder.bitcast(argument, whole) for argument in arguments)
        exponent = builder.shl(k, ir.Constant(whole, n_mantissa))
        return builder.bitcast(builder.add(bits, exponent), arguments[0].type)

    return value(value, value), generate


@compilable(inline="always")
def bits_of(value: float) -> int:
    """Read a float64 as the int64 of the same bits: of numbers above zero, the order stays."""
    return _bits_of(value)


@compiled(fastmath={"contract"})
def exp_of(x: float) -> float:
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
    return _times_power_of_two(p, shifted)


@compiled(fastmath={"contract"})
def exp32_of(x: np.float32) -> np.float32:
    """Evaluate exp(x) of a float32 <= 80 to a relative error of 1e-6; zero for all below -60."""
    is_tiny = x < _LOWEST_32
    x = _LOWEST_32 if is_tiny else x
    shifted = x * _LOG2_E_32 + _ROUNDER_32
    k = shifted - _ROUNDER_32
    r = (x - k * _LN2_HIGH_32) - k * _LN2_LOW_32
    p = _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + _ONE_32
    p = p * r + _ONE_32
    return _ZERO_32 if is_tiny else _times_power_of_two(p, shifted)


@compiled(fastmath=ANY_ORDER | {"nnan"})
def smallest_of(values: NDArray[_Real]) -> _Real:
    """Find the smallest value."""
    smallest = values[0]
    for j in range(values.shape[0]):
        smallest = values[j] if values[j] < smallest else smallest
    return smallest
