"""Checks of single numbers, made once at the border: what was expected, what came, what to do."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

_LARGEST_BETA = 1e100  # beyond, products with the support overflow


def check_generator(rng: Any) -> np.random.Generator:
    """Accept a NumPy random generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"Expected a numpy.random.Generator as rng; got {rng!r}. "
            "Pass numpy.random.default_rng(seed)."
        )
    return rng


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


def check_level(value: Any) -> float:
    """Accept the probability of an interval, between zero and one."""
    if not 0.0 < check_real(value, "level") < 1.0:
        raise ValueError(f"Expected 0 < level < 1; got level={value!r}. Try 0.95.")
    return float(value)
