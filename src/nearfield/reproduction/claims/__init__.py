"""The checkable claims of the paper, one module each.

A claim's module has ``make_units(settings)``, the work, and ``judge(results, settings)``, which
returns a `Finding`. Its title, the paper's words and the captions are in ``texts.toml``.
"""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pandas as pd

from nearfield.reproduction.claims import (
    comparison,
    exchange,
    limit,
    outlier,
    pseudolikelihood,
    uncertainty,
)
from nearfield.reproduction.claims.findings import Finding
from nearfield.reproduction.report import Figure, Section, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.texts import TEXTS
from nearfield.runs import Results, Unit

CLAIMS: dict[str, ModuleType] = {
    "exchange": exchange,
    "comparison": comparison,
    "outlier": outlier,
    "uncertainty": uncertainty,
    "pseudolikelihood": pseudolikelihood,
    "limit": limit,
}


def make_units(settings: Settings) -> list[Unit]:
    """List the work of every claim; a claim is a group of units."""
    return [
        replace(unit, group=TEXTS["claims"][name]["title"])
        for name, claim in CLAIMS.items()
        for unit in claim.make_units(settings)
    ]


def build(results: Results, settings: Settings) -> Section:
    """Judge every claim whose work is done."""
    records: list[dict[str, str]] = []
    details: list[str | Table | Figure] = []
    for name, claim in CLAIMS.items():
        texts = TEXTS["claims"][name]
        own = [pair for pair in results if pair[0].group == texts["title"]]
        if own:
            finding = claim.judge(own, settings)
            records.append(
                {"claim": texts["title"], "verdict": finding.verdict, "summary": finding.summary}
            )
            details += _details(name, texts, finding)
    lead: list[str | Table] = [
        "Statements of the paper that can be tested, each with an experiment and a verdict.",
        Table("claims", data=pd.DataFrame(records), **TEXTS["tables"]["claims"]),
    ]
    return Section("claims", "Claims", lead, details)


def _details(name: str, texts: dict[str, Any], finding: Finding) -> list[str | Table | Figure]:
    """Give the paper's words, the verdict and the evidence."""
    notes = [*([texts["note"]] if "note" in texts else []), *finding.notes]
    return [
        f"### {texts['title']}\n\n> {texts['quote']}\n>\n> {texts['place']}\n\n"
        f"**Verdict: {finding.verdict}.** {finding.summary}",
        *notes,
        Table(f"claim-{name}", texts["caption"], finding.data, texts["columns"]),
        Figure(f"claim-{name}", texts["figure"], finding.draw),
    ]
