"""``nearfield reproduce``: the tables, figures and claims of the paper, recomputed."""

import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearfield.cli._run import one_line_errors

if TYPE_CHECKING:
    from nearfield.reproduction.report import Section

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
    splits: Annotated[int, typer.Option(min=1, help="Splits of each data set.")] = 20,
    inference: Annotated[
        Inference | None,
        typer.Option(
            help="The engine, exchange with the paper's settings; path, or pseudolikelihood if "
            "quick."
        ),
    ] = None,
    prior: Annotated[
        Prior | None,
        typer.Option(
            help="The prior of beta: the paper's N(0, 50^2), the same cut to beta >= 0, or both; "
            "both, or cut if quick."
        ),
    ] = None,
    data_set: Annotated[
        list[str] | None,
        typer.Option(
            help="A benchmark data set; may be given more than once.", show_default="all six"
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="A short run: pseudolikelihood, one prior, short chains."),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for results.")] = Path("results"),
    data: Annotated[
        Path | None, typer.Option(help="The folder with the spectra; else NEARFIELD_DATA.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Units of work at a time; -1 for one per core.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits and draws.")] = 2011,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore results of earlier runs in the folder.")
    ] = False,
    document: Annotated[
        Path | None,
        typer.Option(help="Also write the report, with a discussion, to this Markdown file."),
    ] = None,
) -> None:
    """Reproduce the tables, figures and claims of the paper.

    The folder --out gets Markdown, csv, JSON and PNG files and report.html, a page that holds the
    whole report. A run that was stopped continues where it was.

    Example: nearfield reproduce table2 --quick
    """
    from nearfield.reproduction import PARTS, QUICK, Settings
    from nearfield.reproduction import reproduce as run
    from nearfield.reproduction.report import write_document

    standard = QUICK if quick else Settings()
    try:
        settings = replace(
            standard,
            out=out,
            n_splits=splits,
            seed=seed,
            inference=str(inference or standard.inference),
            prior=str(prior or standard.prior),
            n_jobs=jobs,
            data_home=data,
            is_fresh=fresh,
            data_sets=tuple(data_set or standard.data_sets),
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    for section in run(PARTS if what is Part.all else (what.value,), settings):
        _show(section)
    typer.echo(f"Full report: {out / 'report.html'}")
    if document is not None:
        write_document(document, out, PARTS)


def _show(section: "Section") -> None:
    """Print what leads a section."""
    from rich import box
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.rule(section.title)
    for block in section.lead:
        if isinstance(block, str):
            console.print(Markdown(block))
        else:
            console.print(f"\n{block.caption}", style="italic", highlight=False)
            table = Table(*block.columns, box=box.SIMPLE_HEAD)
            for row in block.rows():
                table.add_row(*row)
            console.print(table)
