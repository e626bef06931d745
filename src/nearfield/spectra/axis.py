"""Names of features that are positions on an axis, such as wavelengths."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_WAVELENGTHS = 20
"""Fewer features are no spectrum."""


def feature_axis(names: Sequence[Any]) -> NDArray[np.float64] | None:
    """Read names of features such as wavelengths as positions; None if they are not ordered."""
    positions = [_number(str(name)) for name in names]
    if len(positions) < MIN_WAVELENGTHS or any(position is None for position in positions):
        return None
    axis = np.array(positions, dtype=np.float64)
    steps = np.diff(axis)
    return axis if (steps > 0).all() or (steps < 0).all() else None


def _number(name: str) -> float | None:
    """Read ``400``, ``1000,5``, ``X400`` or ``nm_400``."""
    digits = name.lstrip("".join(c for c in set(name) if c.isalpha() or c in " _")).strip()
    try:
        return float(digits.replace(",", "."))
    except ValueError:
        return None
