"""The checkable sentences of the paper, each an experiment with a verdict; one file a claim.

A claim's module has ``TITLE``, ``make_units(settings)``, the work, and ``judge(results,
settings)``, which makes a `Claim` of what came of it.
"""

from types import ModuleType

import pandas as pd

from nearfield.reproduction.claims import (
    comparison,
    exchange,
    limit,
    outlier,
    pseudolikelihood,
    uncertainty,
)
from nearfield.reproduction.sections import Section, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

CLAIMS: tuple[ModuleType, ...] = (
    exchange,
    comparison,
    outlier,
    uncertainty,
    pseudolikelihood,
    limit,
)


def make_units(settings: Settings) -> list[Unit]:
    """List the work of every claim; a claim is a group of units."""
    return [unit for claim in CLAIMS for unit in claim.make_units(settings)]


def build(results: list[tuple[Unit, Result]], settings: Settings) -> Section:
    """Judge every claim whose work is done."""
    judged = []
    for claim in CLAIMS:
        own = [pair for pair in results if pair[0].group == claim.TITLE]
        if own:
            judged.append(claim.judge(own, settings))
    shown = pd.DataFrame(
        [
            {"claim": claim.title, "verdict": claim.verdict, "in short": claim.finding}
            for claim in judged
        ]
    )
    blocks: list = [
        "Sentences of the paper that can be checked, each with an experiment and a verdict.",
        Table("claims", "The verdicts", shown, shown),
    ]
    for claim in judged:
        blocks += claim.to_blocks()
    return Section("claims", "Claims", blocks)
