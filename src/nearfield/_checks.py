"""Checks of single numbers, made once at the border: what was expected, what came, what to do."""

import math
import reprlib
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

Rng: TypeAlias = (
    np.random.Generator
    | np.random.BitGenerator
    | np.random.SeedSequence
    | int
    | Sequence[int]
    | None
)
"""What `numpy.random.default_rng` takes."""

_LARGEST_BETA = 1e100  # beyond, products with the support overflow


def check_generator(rng: Rng) -> np.random.Generator:
    """Accept whatever `numpy.random.default_rng` takes; a generator stays itself."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "Expected rng as numpy.random.default_rng takes it: a Generator, a seed or None; got "
            f"{reprlib.repr(rng)}. Pass numpy.random.default_rng(seed)."
        ) from error


def check_beta(value: Any) -> float:
    """Accept a finite real beta that is not absurdly large."""
    if abs(check_real(value, "beta")) > _LARGEST_BETA:
        raise ValueError(
            f"Expected |beta| <= {_LARGEST_BETA:g}; got beta={value!r}. Choose a smaller beta."
        )
    return float(value)


def check_whole(value: Any, name: str, minimum: int) -> int:
    """Accept a whole number that is not too small."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"Expected a whole number {name} >= {minimum}; got {name}={value!r}. "
            f"Give {name} as an int of {minimum} or more."
        )
    return int(value)


def check_real(value: Any, name: str) -> float:
    """Accept a finite real number."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not _is_finite(value):
        raise ValueError(
            f"Expected a finite real number {name}; got {name}={value!r}. Set {name} to a number."
        )
    return float(value)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number such as 10**400
        return False


def check_positive(value: Any, name: str) -> float:
    """Accept a finite real number above zero."""
    if check_real(value, name) <= 0.0:
        raise ValueError(f"Expected {name} > 0; got {name}={value!r}. Set {name} above zero.")
    return float(value)


def check_level(value: Any, name: str = "level", usual: float = 0.95) -> float:
    """Accept the probability of an interval, a set or an error, between zero and one."""
    if not 0.0 < check_real(value, name) < 1.0:
        raise ValueError(f"Expected 0 < {name} < 1; got {name}={value!r}. Try {usual}.")
    return float(value)
