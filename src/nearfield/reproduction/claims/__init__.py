"""The checkable claims of the paper, one module each.

A claim's module has ``TITLE``, ``QUOTE`` and ``PLACE`` (the paper's words and where they are),
``make_units(settings)``, the work, and ``judge(results, settings)``, which returns a `Finding`.
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
from nearfield.reproduction.report import Figure, Section, Table
from nearfield.reproduction.settings import Settings
from nearfield.runs import Results, Unit

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


def build(results: Results, settings: Settings) -> Section:
    """Judge every claim whose work is done."""
    records: list[dict[str, str]] = []
    details: list[str | Table | Figure] = []
    for claim in CLAIMS:
        own = [pair for pair in results if pair[0].group == claim.TITLE]
        if own:
            verdict, summary, blocks = claim.judge(own, settings)
            records.append({"claim": claim.TITLE, "verdict": verdict, "summary": summary})
            details += [
                f"### {claim.TITLE}\n\n> {claim.QUOTE}\n>\n> {claim.PLACE}\n\n"
                f"**Verdict: {verdict}.** {summary}",
                *blocks,
            ]
    columns = {"claim": "{claim}", "verdict": "{verdict}", "finding": "{summary}"}
    lead: list[str | Table] = [
        "Statements of the paper that can be tested, each with an experiment and a verdict.",
        Table("claims", "Verdicts", pd.DataFrame(records), columns),
    ]
    return Section("claims", "Claims", lead, details)
