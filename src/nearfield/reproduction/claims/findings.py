"""What came of a claim: a verdict, the numbers in a sentence or two, and the evidence."""

from typing import NamedTuple

from nearfield.reproduction.report import Figure, Table

HOLDS, IN_PART, FAILS = "holds", "in part", "does not hold"


class Finding(NamedTuple):
    """The verdict on a claim, why, and the text, tables and figures behind it."""

    verdict: str
    summary: str
    blocks: list[str | Table | Figure]


def verdict(share: float, most: float = 0.8) -> str:
    """Judge by the share of the cases in which a claim is true: most of them, half, fewer."""
    if share >= most:
        return HOLDS
    return IN_PART if share >= 0.5 else FAILS
