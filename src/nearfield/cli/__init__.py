"""The command ``nearfield``: one small module a command, and what they share.

Results go to standard output, everything else to standard error. Exit codes: 0, 1 for a run that
failed, 2 for wrong usage, 130 or 143 for one that was interrupted or terminated.

A laboratory's file passes through these modules, in this order:

1. ``_tables.read_table``: bytes, unpacked by ``_compression``, become a header and cells, by
   ``_text``, ``_workbooks`` or Parquet as the bytes ask for;
2. ``_numbers``: columns of text that are numbers, with decimal commas or not, become numbers;
3. ``_columns``: ``training_data`` or ``prediction_data`` picks columns (by ``_names``, which says
   what may be wrong where one is missing) and rows, and makes features, classes, groups, weights;
4. ``_models`` makes the classifier that the options (``_options``) describe; ``_new_data`` loads
   one beside new rows;
5. ``_writing`` and ``_report_files`` write tables, models and pages; ``_words`` and ``_json`` say
   what was done, to people and to programs. ``_run`` is how every command ends.
"""

from typing import Annotated

import typer

from nearfield import __version__
from nearfield.cli import (
    _run,
    benchmark,
    evaluate,
    explain,
    fit,
    predict,
    report,
    reproduce,
    warmup,
)

__all__ = ["app", "main"]

app = typer.Typer(
    help="Bayesian nearest-neighbour classification.",
    epilog="Start with: nearfield evaluate data.csv --target species",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"nearfield {__version__}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error came from (a traceback).")
    ] = False,
) -> None:
    """Bayesian nearest-neighbour classification."""
    _run.shows_tracebacks = debug


app.command("fit")(fit.fit)
app.command("predict")(predict.predict)
app.command("explain")(explain.explain)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.command("benchmark")(benchmark.benchmark)
app.command("warmup")(warmup.warmup)


def main() -> None:
    """Run the command line."""
    app(prog_name="nearfield")
