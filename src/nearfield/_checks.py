"""Checks of single numbers, made once at the border: what was expected, what came, what to do."""

import math
from numbers import Integral, Real
from typing import Any


def check_whole(value: Any, name: str, minimum: int) -> int:
    """Accept a whole number that is not too small."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"Expected a whole number {name} >= {minimum}; got {name}={value!r}. "
            f"Set {name} to {minimum} or more."
        )
    return int(value)


def check_real(value: Any, name: str) -> float:
    """Accept a finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(
            f"Expected a finite real number {name}; got {name}={value!r}. Set {name} to a number."
        )
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """Accept a finite real number above zero."""
    if check_real(value, name) <= 0.0:
        raise ValueError(f"Expected {name} > 0; got {name}={value!r}. Set {name} above zero.")
    return float(value)
