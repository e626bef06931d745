"""Claim: pseudolikelihood is a fast approximation to the posterior."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims.findings import FAILS, HOLDS, Finding
from nearfield.reproduction.figures import ACCENTS, Series, draw_rows, legend_above
from nearfield.reproduction.paper import BENCHMARKS, TITLES
from nearfield.reproduction.report import Figure, Table
from nearfield.reproduction.settings import Settings
from nearfield.runs import Results, Unit

TITLE = "Pseudolikelihood against the full posterior"
QUOTE = (
    "This approximation yields a fast approximation to the posterior distribution, however it does "
    "ignore dependencies beyond first order."
)
PLACE = "Section 4.1"
_COLUMNS = ["beta_mean", "beta_sd", "sigma_mean", "sigma_sd", "cpu_seconds", "error", "log_loss"]


def make_units(settings: Settings) -> list[Unit]:
    """List d-nn of Table 2 by pseudolikelihood, and by path sampling unless exchange is chosen."""
    full = "path" if settings.inference == "pseudolikelihood" else settings.inference
    names = [name for name in settings.long_data_sets if name in BENCHMARKS]
    return [
        unit
        for inference in ("pseudolikelihood", full)
        for unit in errors.make_units(names, replace(settings, inference=inference), group=TITLE)
        if "method" in unit.arguments
    ]


def judge(results: Results, settings: Settings) -> Finding:
    """Compare posterior means, times, errors and log losses."""
    frames = {
        suffix: errors.collect(
            [
                pair
                for pair in results
                if (pair[0].arguments["inference"] == "pseudolikelihood") == is_pseudo
            ]
        )
        for suffix, is_pseudo in (("pseudo", True), ("full", False))
    }
    means = [
        errors.main_rows(frame, settings)
        .groupby(["name", "method"], observed=True)[_COLUMNS]
        .mean()
        .add_suffix(f"_{suffix}")
        for suffix, frame in frames.items()
    ]
    data = means[0].join(means[1]).reset_index()
    columns = {"data set": "{title}", "method": "{method}"}
    for quantity in ("beta", "sigma"):
        for suffix, word in (("pseudo", "PL"), ("full", "full")):
            mean, sd = f"{quantity}_mean_{suffix}", f"{quantity}_sd_{suffix}"
            columns[f"{quantity}, {word}"] = f"{{{mean}:.2f}} ± {{{sd}:.2f}}"
    columns |= {
        "error, PL": "{error_pseudo:.1%}",
        "error, full": "{error_full:.1%}",
        "log loss, PL": "{log_loss_pseudo:.3f}",
        "log loss, full": "{log_loss_full:.3f}",
    }
    caption = (
        "Posterior mean ± sd, test error and log loss, averaged over splits (PL: pseudolikelihood)"
    )
    drawing = Figure(
        "claim-pseudolikelihood",
        "Posterior mean ± sd of beta, averaged over splits, by pseudolikelihood and in full",
        lambda: _draw(data),
    )
    repulsion = [_repulsion_text(*frames.values())] if settings.prior == "both" else []
    table = Table("claim-pseudolikelihood", caption, data, columns)
    return Finding(*_assess(data), [*repulsion, table, drawing])


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


def _repulsion_text(pseudo: pd.DataFrame, full: pd.DataFrame) -> str:
    """Compare the mass that either gives to negative beta under the paper's prior."""
    by_pseudo, by_full = (
        frame[frame["prior"] == "paper"]
        .groupby(["name", "method"], observed=True)["mass_below_zero"]
        .mean()
        for frame in (pseudo, full)
    )
    name, method = worst = by_pseudo.idxmax()
    return (
        "Under the paper's prior, which allows negative beta, pseudolikelihood overstates "
        f"repulsion: on {TITLES[name]} with {method} it gives beta < 0 a probability of "
        f"{by_pseudo[worst]:.0%}, averaged over splits, the full posterior {by_full[worst]:.0%}. "
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
