"""A sentence of the paper that can be checked, and what came of it."""

from dataclasses import dataclass, field

from nearfield.reproduction.sections import Figure, Table

HOLDS, IN_PART, FAILS = "holds", "in part", "does not hold"


@dataclass(frozen=True)
class Claim:
    """The paper's sentence, a verdict on it, and the evidence.

    Parameters
    ----------
    title : str
    quote : str
        The paper's words.
    place : str
        Where they stand.
    verdict : {"holds", "in part", "does not hold"}
    finding : str
        The verdict in a sentence or two, with its numbers.
    blocks : list
        Further text, tables and figures.
    """

    title: str
    quote: str
    place: str
    verdict: str
    finding: str
    blocks: list[str | Table | Figure] = field(default_factory=list)

    def to_blocks(self) -> list[str | Table | Figure]:
        """Set the claim: heading, quotation, verdict, evidence."""
        heading = (
            f"### {self.title}\n\n> {self.quote}\n>\n> {self.place}\n\n"
            f"**Verdict: {self.verdict}.** {self.finding}"
        )
        return [heading, *self.blocks]


def verdict(share: float, most: float = 0.8) -> str:
    """Judge by the share of the cases in which a sentence is true: most of them, half, fewer."""
    if share >= most:
        return HOLDS
    return IN_PART if share >= 0.5 else FAILS
