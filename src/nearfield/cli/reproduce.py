"""``nearfield reproduce``: the tables, figures and claims of the paper, computed anew."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfield.cli._run import one_line_errors

if TYPE_CHECKING:
    from nearfield.reproduction.sections import Section

_WIDE = 150  # columns where no terminal says how many there are


class Part(StrEnum):
    """What to reproduce."""

    table1 = "table1"
    table2 = "table2"
    meat = "meat"
    olive_oil = "olive-oil"
    claims = "claims"
    all = "all"


class Inference(StrEnum):
    """How the posterior is found."""

    path = "path"
    exchange = "exchange"
    pseudolikelihood = "pseudolikelihood"


class Prior(StrEnum):
    """The prior of beta."""

    both = "both"
    cut = "cut"
    paper = "paper"


@one_line_errors
def reproduce(
    what: Annotated[Part, typer.Argument(help="What to reproduce.")] = Part.all,
    splits: Annotated[
        int | None, typer.Option(min=1, help="Splits of each data set; 20, or 3 if quick.")
    ] = None,
    inference: Annotated[
        Inference | None,
        typer.Option(
            help="The engine; exchange has the paper's settings. Path, or pseudolikelihood if "
            "quick."
        ),
    ] = None,
    prior: Annotated[
        Prior | None,
        typer.Option(
            help="Of beta: the paper's N(0, 50^2), the same cut to beta >= 0, or both, to compare; "
            "both, or cut if quick."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short look: 3 splits, short chains.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for results.")] = Path("results"),
    data: Annotated[
        Path | None, typer.Option(help="The folder with the spectra; else NEARFIELD_DATA.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Splits at a time; -1 for one a core.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Of splits and draws.")] = 2011,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do again what earlier runs have left in the folder.")
    ] = False,
    document: Annotated[
        Path | None,
        typer.Option(help="Also write the report, with an account of it, to this Markdown file."),
    ] = None,
) -> None:
    """Reproduce the paper: its tables, its figures and its claims.

    Everything lands in the folder --out: Markdown, csv, JSON and PNG, and report.html, one page
    that holds it all. A run that was stopped goes on where it was.

    Example: nearfield reproduce table2 --quick
    """
    from nearfield.reproduction import PARTS, QUICK, Settings
    from nearfield.reproduction import reproduce as run
    from nearfield.reproduction.report import write_document

    standard = QUICK if quick else Settings()
    try:
        settings = Settings(
            out=out,
            n_splits=splits or standard.n_splits,
            seed=seed,
            inference=str(inference or standard.inference),
            prior=str(prior or standard.prior),
            n_jobs=jobs,
            data_home=data,
            is_quick=quick,
            is_fresh=fresh,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for section in run(PARTS if what is Part.all else (what.value,), settings):
        _show(section)
    typer.echo(f"The whole report: {out / 'report.html'}")
    if document is not None:
        write_document(document, out, PARTS)


def _show(section: "Section") -> None:
    """Print a part: its first table and what is said of it."""
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.rule(section.title)
    if not section.tables:
        for block in section.blocks:
            console.print(str(block))
        return
    first = section.tables[0]
    table = Table(title=first.caption)
    for column in first.shown.columns:
        table.add_column(str(column))
    for row in first.shown.itertuples(index=False):
        table.add_row(*(str(value) for value in row))
    console.print(table)
    place = section.blocks.index(first)
    for block in section.blocks[place + 1 : place + 3]:
        if isinstance(block, str) and not block.startswith("#"):
            console.print(Markdown(block.split("\n\n")[0]))
