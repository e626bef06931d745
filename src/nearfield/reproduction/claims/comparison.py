"""Claim: d-nn1 and d-nn3 match k-nn and beat d-nn2."""

from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims.findings import Finding, verdict
from nearfield.reproduction.figures import COLOURS, MARKERS, Series, draw_rows, legend_above
from nearfield.reproduction.paper import KERNELS, TITLES
from nearfield.reproduction.settings import Settings
from nearfield.runs import Results, Unit

PAIRS = (("d-nn1", "k-nn"), ("d-nn3", "k-nn"), ("d-nn1", "d-nn2"), ("d-nn3", "d-nn2"))


def make_units(settings: Settings) -> list[Unit]:
    """List the work of Table 2."""
    return errors.make_units(settings.data_sets, settings)


def judge(results: Results, settings: Settings) -> Finding:
    """Compare the methods split by split."""
    frame = errors.main_rows(errors.collect(results), settings)
    frame = frame.astype({"name": str, "method": str})
    wide = 100.0 * frame.pivot(index=["name", "split"], columns="method", values="error")
    data = pd.DataFrame(
        [_difference(wide, name, *pair) for name in settings.data_sets for pair in PAIRS]
    )
    knn, second = (data[data["reference"] == which] for which in ("k-nn", "d-nn2"))
    matches, beats = knn["difference"] <= 0.0, second["difference"] < 0.0
    better = int((knn["difference"] < -2.0 * knn["error"]).sum())
    worse = int((knn["difference"] > 2.0 * knn["error"]).sum())
    summary = (
        f"The mean error of d-nn1 or d-nn3 is at most that of k-nn in {matches.sum()} of "
        f"{len(matches)} comparisons (lower by two standard errors in {better}, higher by two in "
        f"{worse}), and below that of d-nn2 in {beats.sum()} of {len(beats)}."
    )
    share = (matches.sum() + beats.sum()) / len(data)
    return Finding(verdict(share), summary, data, lambda: _draw(wide, settings.data_sets))


def _difference(wide: pd.DataFrame, name: str, method: str, reference: str) -> dict[str, Any]:
    difference = wide.loc[name][method] - wide.loc[name][reference]
    n = len(difference)
    return {
        "name": name,
        "method": method,
        "reference": reference,
        "difference": difference.mean(),
        # Training sets overlap, so that this is somewhat too small.
        "error": difference.std() / np.sqrt(n) if n > 1 else 0.0,
    }


def _draw(wide: pd.DataFrame, names: tuple[str, ...]) -> Any:
    series = {}
    for method in KERNELS:
        found = pd.DataFrame([_difference(wide, name, method, "k-nn") for name in names])
        mean, margin = found["difference"], 2.0 * found["error"]
        style = MARKERS[method], COLOURS[method]
        series[method] = Series(mean, mean - margin, mean + margin, *style)
    label = "error minus that of k-nn (percentage points; negative: better than k-nn)"
    figure, ax = draw_rows([TITLES[name] for name in names], series, label)
    ax.axvline(0.0, color="0.4", lw=1.0)
    legend_above(figure)
    return figure
