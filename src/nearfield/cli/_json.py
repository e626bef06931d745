"""JSON for machines: strict (no NaN), and numbers that are NumPy's."""

import json
import math
from typing import Any

import numpy as np


def to_json(value: Any) -> str:
    """Write a result as JSON; what is not a finite number becomes null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
