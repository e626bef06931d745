"""Options that several commands share, each with its help."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from nearfield.cli._models import Inference, Model

MAX_GIGABYTES = 2.0


class Missing(StrEnum):
    """What to do with rows that have missing values."""

    KEEP = "keep"
    DROP = "drop"


def column_option(flag: str, help: str) -> Any:
    """Make an option that names a column, or several."""
    return typer.Option(flag, metavar="COLUMN", help=help, show_default=False)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table with a header, one row a sample: csv, tsv, .xlsx, .ods or Parquet, "
        "compressed or not; - for standard input.",
        show_default=False,
    ),
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", metavar="COLUMN", help="The column that holds the class."),
]
ModelName = Annotated[
    Model,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="nearfield mixes kernels and metrics; dnn1 (gaussian), dnn2 (radius) and dnn3 "
        "(exponential) are the distance nearest neighbour models; pknn infers k; knn is plain "
        "k-nn with k by leave-one-out.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="A distance: euclidean, manhattan, within (learned), ard (learned) or another that "
        "scikit-learn or SciPy knows; the model's own unless given.",
        show_default=False,
    ),
]
InferenceName = Annotated[
    Inference | None,
    typer.Option(
        "--inference",
        metavar="NAME",
        help="How the posterior of dnn1 to dnn3 and pknn is found: auto, path, exchange, "
        "pseudolikelihood or auxiliary_variable; auto unless given.",
        show_default=False,
    ),
]
Spectra = Annotated[
    bool,
    typer.Option(
        "--spectra",
        help="The columns are the wavelengths of spectra, in their order: try SNV and derivatives "
        "too. Only with the model nearfield.",
    ),
]
Id = Annotated[
    str | None,
    column_option(
        "--id",
        "The column that names the samples: no feature; predictions carry it, and "
        "explanations name training samples by it.",
    ),
]
Groups = Annotated[
    str | None,
    column_option(
        "--groups", "Rows with the same value, such as replicates of one sample, stay in one fold."
    ),
]
Weight = Annotated[
    str | None,
    column_option(
        "--weight",
        "The column that says as how many rows each row counts in a fit: no feature. A weight "
        "of zero leaves a row out. Losses count every row once, and knn takes no weights.",
    ),
]
Ignored = Annotated[
    list[str] | None,
    column_option("--ignore", "A column to leave out; may be given more than once."),
]
Features = Annotated[
    list[str] | None,
    column_option(
        "--feature",
        "A column to use although it looks like an identifier; may be given more than once.",
    ),
]
MissingValues = Annotated[
    Missing,
    typer.Option("--missing", help="Keep rows with missing values, or leave them out."),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", help="The sheet of a workbook; the first.", show_default=False
    ),
]
MaxSize = Annotated[
    float,
    typer.Option("--max-size", metavar="GB", min=0.0, help="The largest table to unpack and read."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Replace an input, or a file of another kind.")
]
Categorical = Annotated[
    list[str] | None,
    column_option(
        "--categorical",
        "A column of numbers that stand for categories, as text does; may be given more than once.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="One seed gives one answer.")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Processes to use; -1 for all cores.", show_default="1"),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON instead of a table for people.")
]


def to_bytes(gigabytes: float) -> int:
    """Give a size as a number of bytes."""
    return int(gigabytes * 1e9)


ModelFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file that nearfield fit wrote; - for standard input.",
        show_default=False,
    ),
]

ModelId = Annotated[
    str | None,
    column_option(
        "--id", "The column that names the samples; that of nearfield fit, else row numbers."
    ),
]
