"""Uniform numbers by position: the number of a sweep and site follows from a key alone.

The generator is SplitMix64 (Steele, Lea and Flood, 2014). Having no state but a counter it needs
no memory traffic inside a kernel, and coupling from the past can read a number a second time.
"""

import numpy as np

from nearfield._compile import compilable

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_27, _SHIFT_30, _SHIFT_31 = np.uint64(27), np.uint64(30), np.uint64(31)
_SHIFT_TO_53_BITS = np.uint64(11)
_UNIT_OF_53_BITS = 2.0**-53


@compilable(inline="always")
def uniform_at(key: np.uint64, position: int | np.uint64) -> float:
    """Return the uniform number of the open interval (0, 1) at a position of a key's stream."""
    bits = key + np.uint64(position) * _GOLDEN_GAMMA
    bits = (bits ^ (bits >> _SHIFT_30)) * _MIX_1
    bits = (bits ^ (bits >> _SHIFT_27)) * _MIX_2
    bits = bits ^ (bits >> _SHIFT_31)
    return (np.float64(np.int64(bits >> _SHIFT_TO_53_BITS)) + 0.5) * _UNIT_OF_53_BITS


def draw_key(rng: np.random.Generator) -> np.uint64:
    """Take the key of a new stream from a generator."""
    return rng.integers(0, 2**64, dtype=np.uint64)
