"""Claim: pseudolikelihood is a fast approximation to the posterior."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims.findings import FAILS, HOLDS, Finding
from nearfield.reproduction.figures import ACCENTS, Series, draw_rows, legend_above
from nearfield.reproduction.paper import BENCHMARKS, KERNELS, TITLES
from nearfield.reproduction.settings import Settings
from nearfield.runs import Results, Unit

_COLUMNS = ["beta_mean", "beta_sd", "sigma_mean", "sigma_sd", "cpu_seconds", "error", "log_loss"]


def make_units(settings: Settings) -> list[Unit]:
    """List d-nn of Table 2 by pseudolikelihood, and by path sampling unless exchange is chosen."""
    full = "path" if settings.inference == "pseudolikelihood" else settings.inference
    names = [name for name in settings.long_data_sets if name in BENCHMARKS]
    return [
        unit
        for inference in ("pseudolikelihood", full)
        for unit in errors.make_units(names, replace(settings, inference=inference), KERNELS)
    ]


def judge(results: Results, settings: Settings) -> Finding:
    """Compare posterior means, times, errors and log losses."""
    frame = errors.collect(results)
    frame["by"] = np.where(frame["inference"] == "pseudolikelihood", "pseudo", "full")
    kept = errors.main_rows(frame, settings)
    means = kept.groupby(["name", "method", "by"], observed=True)[_COLUMNS].mean()
    pseudo, full = (means.xs(by, level="by").add_suffix(f"_{by}") for by in ("pseudo", "full"))
    data = pseudo.join(full).reset_index()
    notes = (_repulsion_text(frame),) if settings.prior == "both" else ()
    return Finding(*_assess(data), data, lambda: _draw(data), notes)


def _assess(data: pd.DataFrame) -> tuple[str, str]:
    """Return the verdict and its reason."""
    shift = (data["beta_mean_pseudo"] - data["beta_mean_full"]) / data["beta_sd_full"]
    ratio = data["cpu_seconds_full"] / data["cpu_seconds_pseudo"]
    lower = int((data["log_loss_pseudo"] < data["log_loss_full"]).sum())
    gap = 100.0 * (data["error_pseudo"] - data["error_full"])
    seconds = data["cpu_seconds_pseudo"].median()
    # Fast: a hundredth of an hour, the least that the paper's chains took.
    is_fast = bool(seconds < 36.0 and ratio.median() > 1.0)
    differs = bool((shift.abs() > 0.5).mean() > 0.5)
    return HOLDS if is_fast and differs else FAILS, (
        f"Fast: {seconds:.1f} s in the median with predictions, against 1 to 12 hours of the "
        f"paper's chains, and {ratio.median():.0f} times as fast as the full posterior here. "
        f"Approximate: its mean of beta differs from the full one by {shift.median():+.1f} "
        f"posterior standard deviations in the median ({shift.min():+.1f} to {shift.max():+.1f}). "
        f"Predictions differ little: the error by {gap.mean():+.2f} percentage points on average, "
        f"and the log loss is lower in {lower} of {len(gap)} cases, since pseudolikelihood fits "
        "the conditionals that prediction uses."
    )


def _repulsion_text(frame: pd.DataFrame) -> str:
    """Compare the mass that either gives to negative beta under the paper's prior."""
    groups = frame[frame["prior"] == "paper"].groupby(["name", "method", "by"], observed=True)
    mass = groups["mass_below_zero"].mean().unstack()
    name, method = mass["pseudo"].idxmax()
    worst = mass.loc[name, method]
    return (
        "Under the paper's prior, which allows negative beta, pseudolikelihood overstates "
        f"repulsion: on {TITLES[name]} with {method} it gives beta < 0 a probability of "
        f"{worst['pseudo']:.0%}, averaged over splits, the full posterior {worst['full']:.0%}. "
        "Pseudolikelihood needs the prior truncated at zero."
    )


def _draw(data: pd.DataFrame) -> Any:
    series = {}
    styles = (("pseudo", "pseudolikelihood", "o"), ("full", "full posterior", "s"))
    for colour, (suffix, label, marker) in zip(ACCENTS, styles, strict=False):
        mean, sd = data[f"beta_mean_{suffix}"], data[f"beta_sd_{suffix}"]
        low = np.maximum(mean - sd, 0.1 * mean)  # the axis is logarithmic
        series[label] = Series(mean, low, mean + sd, marker, colour)
    names = [
        f"{TITLES[name]}, {method}"
        for name, method in zip(data["name"], data["method"], strict=True)
    ]
    figure, ax = draw_rows(names, series, "beta: posterior mean ± sd")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    legend_above(figure)
    return figure
