"""``nearfield benchmark``: the recommended classifier against its peers."""

from pathlib import Path
from typing import Annotated

import typer

from nearfield.cli._run import one_line_errors, result_on_stdout

_QUICK_SPLITS = 3


@one_line_errors
@result_on_stdout
def benchmark(
    out: Annotated[Path, typer.Option(help="The folder for results, one file a run.")] = Path(
        "results/benchmark"
    ),
    splits: Annotated[
        int | None, typer.Option(min=1, help="Splits of each data set; 20, or 3 if quick.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short look: 3 splits.")] = False,
    problem: Annotated[
        list[str] | None,
        typer.Option(help="A data set; may be given more than once.", show_default="all"),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method; may be given more than once.", show_default="all"),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder with the spectra; else NEARFIELD_DATA.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Runs at a time; times are measured best with one.")
    ] = 1,
    part: Annotated[
        str,
        typer.Option(
            help="numeric: small tables of numbers; mixed: small tables with categories and "
            "missing values; large: tables of 5,000 to 50,000 rows; spectra: with preprocessing."
        ),
    ] = "numeric",
    seed: Annotated[int, typer.Option(min=0, help="Of splits and draws.")] = 1000,
    document: Annotated[
        Path | None, typer.Option(help="Also write the report to this Markdown file.")
    ] = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing; report what is in the folder.")
    ] = False,
) -> str:
    """Compare the recommended classifier with its peers on data sets of four kinds.

    Error, log loss, Brier score, calibration error and time over stratified splits. A run that was
    stopped continues where it was.

    Example: nearfield benchmark --quick
    """
    from nearfield.benchmark import PARTS, mean_ranks, read_results, run_benchmark, write_report

    if part not in PARTS:
        raise typer.BadParameter(f"{part!r} is not among {list(PARTS)}.", param_hint="'--part'")
    if report_only:
        results = read_results(out)
    else:
        results = run_benchmark(
            out,
            problems=problem,
            methods=method,
            n_splits=splits or (_QUICK_SPLITS if quick else 20),
            seed=seed,
            data_home=data,
            n_jobs=jobs,
            verbose=1,
            suite=PARTS[part],
        )
    if document is not None:
        write_report(results, document, part)
    ranks = mean_ranks(results, "log_loss")
    lines = [f"{name:<22}{rank:5.2f}" for name, rank in ranks.items()]
    return "Mean rank in log loss\n" + "\n".join(lines) + "\n"
