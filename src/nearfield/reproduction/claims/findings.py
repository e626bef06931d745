"""What came of a claim: a verdict, the numbers in a sentence or two, and the evidence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

HOLDS, IN_PART, FAILS = "holds", "in part", "does not hold"


class Finding(NamedTuple):
    """The verdict on a claim, why, the records behind it, their figure, and further notes."""

    verdict: str
    summary: str
    data: pd.DataFrame
    draw: Callable[[], Any]
    notes: tuple[str, ...] = ()


def verdict(share: float, most: float = 0.8) -> str:
    """Judge by the share of the cases in which a claim is true: most of them, half, fewer."""
    if share >= most:
        return HOLDS
    return IN_PART if share >= 0.5 else FAILS
