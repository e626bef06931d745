"""Whether d-nn at least matches k-nn, and whether d-nn2 is the weakest."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims._claim import Claim, verdict
from nearfield.reproduction.figures import COLOURS, MARKERS, new_figure
from nearfield.reproduction.paper import BENCHMARKS, TITLES
from nearfield.reproduction.sections import Figure, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

TITLE = "d-nn against k-nn"
QUOTE = (
    "In almost all of the situations d-nn1 and d-nn3 performs at least as well as k-nn and often "
    "considerably better. In general, d-nn1 and d-nn3 performed better than d-nn2."
)
PAIRS = (("d-nn1", "k-nn"), ("d-nn3", "k-nn"), ("d-nn1", "d-nn2"), ("d-nn3", "d-nn2"))


def make_units(settings: Settings) -> list[Unit]:
    """List the work of Table 2, which is found where that has run."""
    return [replace(unit, group=TITLE) for unit in errors.make_units(BENCHMARKS, settings)]


def judge(results: list[tuple[Unit, Result]], settings: Settings) -> Claim:
    """Compare the methods split by split, so that an easy split is easy for both."""
    frame = errors.main_rows(errors.collect(results), settings)
    wide = 100.0 * frame.pivot(index=["name", "split"], columns="method", values="error")
    data = pd.DataFrame([_row(name, *pair, wide) for name in BENCHMARKS for pair in PAIRS])
    against_knn = data[data["reference"] == "k-nn"]
    against_second = data[data["reference"] == "d-nn2"]
    matches, beats = against_knn["difference"] <= 0.0, against_second["difference"] < 0.0
    clearly_better = int((against_knn["difference"] < -2.0 * against_knn["error"]).sum())
    clearly_worse = int((against_knn["difference"] > 2.0 * against_knn["error"]).sum())
    share = (matches.sum() + beats.sum()) / (len(matches) + len(beats))
    finding = (
        f"d-nn1 or d-nn3 has at most the mean error of k-nn in {matches.sum()} of {len(matches)} "
        f"comparisons (clearly better, by two standard errors, in {clearly_better}; clearly worse "
        f"in {clearly_worse}), and less than that of d-nn2 in {beats.sum()} of {len(beats)}."
    )
    shown = pd.DataFrame(
        {
            "data set": data["name"].map(TITLES),
            "comparison": data["method"] + " less " + data["reference"],
            "difference (points)": [f"{value:+.2f}" for value in data["difference"]],
            "standard error": [f"{value:.2f}" for value in data["error"]],
        }
    )
    caption = "Paired differences of the test error, in percentage points (below zero: the first "
    return Claim(
        TITLE,
        QUOTE,
        "Section 5.1",
        verdict(share),
        finding,
        [
            Table("claim-comparison", caption + "is better)", shown, data),
            Figure(
                "claim-comparison",
                "Test error of d-nn less that of k-nn, split by split: mean ± 2 standard errors",
                lambda: _draw(wide),
            ),
        ],
    )


def _row(name: str, method: str, reference: str, wide: pd.DataFrame) -> dict:
    mean, error = _difference(wide.loc[name], method, reference)
    return {
        "name": name,
        "method": method,
        "reference": reference,
        "difference": mean,
        "error": error,
    }


def _difference(errors: pd.DataFrame, method: str, reference: str) -> tuple[float, float]:
    difference = errors[method] - errors[reference]
    n = len(difference)
    # The training sets overlap, so that this is somewhat too small.
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def _draw(wide: pd.DataFrame):
    figure, ax = new_figure(7.5, 4.2)
    methods = ("d-nn1", "d-nn2", "d-nn3")
    for place, method in enumerate(methods):
        for row, name in enumerate(BENCHMARKS):
            mean, error = _difference(wide.loc[name], method, "k-nn")
            ax.errorbar(
                mean,
                row + 0.2 * (place - 1),
                xerr=2.0 * error,
                fmt=MARKERS[method],
                color=COLOURS[method],
                ms=5,
                label=method if row == 0 else None,
            )
    ax.axvline(0.0, color="0.4", lw=1.0)
    ax.set_yticks(range(len(BENCHMARKS)), [TITLES[name] for name in BENCHMARKS])
    ax.set_ylim(len(BENCHMARKS) - 0.5, -0.5)
    ax.set_xlabel("error less that of k-nn (percentage points; left of zero: better than k-nn)")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
