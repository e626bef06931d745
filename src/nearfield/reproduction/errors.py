"""Test errors over splits: the units of work, and the tables that they make.

Shared by the benchmark data sets (Table 2) and the spectra (section 5.2).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from nearfield.reproduction.experiment import run_distance, run_nearest
from nearfield.reproduction.metrics import LOSSES
from nearfield.reproduction.paper import ERROR_REASONS, ERRORS, KERNELS, METHODS, TITLES
from nearfield.reproduction.sections import Table, mean_and_sd, spread
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

_WORDS = {"error": "error", "log_loss": "log loss", "brier": "Brier", "ece": "ECE"}


def make_units(names: Sequence[str], settings: Settings) -> list[Unit]:
    """List every method on every split of every data set, split by split."""
    elsewhere = {"data_home": settings.data_home}
    units = []
    for name in names:
        for index in range(settings.n_splits):
            common = {"name": name, "index": index, "seed": settings.seed}
            units.append(
                Unit(TITLES[name], f"{name}-{index:02d}-knn", run_nearest, common, elsewhere)
            )
            for method, kernel in KERNELS.items():
                arguments = {
                    **common,
                    "method": method,
                    "inference": settings.inference,
                    "prior": settings.prior,
                }
                label = f"{name}-{index:02d}-{kernel}"
                units.append(Unit(TITLES[name], label, run_distance, arguments, elsewhere))
    return units


def collect(results: Iterable[tuple[Unit, Result]]) -> pd.DataFrame:
    """Make one row of each data set, split, method, prior and predictive."""
    rows = []
    for unit, result in results:
        arguments = unit.arguments
        for prior, measured in result["priors"].items():
            for predictive, losses in measured["losses"].items():
                rows.append(
                    {
                        "name": arguments["name"],
                        "split": arguments["index"],
                        "method": arguments.get("method", "k-nn"),
                        "prior": prior,
                        "predictive": predictive,
                        **losses,
                        **measured.get("posterior", {}),
                        "cpu_seconds": result["cpu_seconds"],
                        "n_train": result["n_train"],
                        "n_test": result["n_test"],
                        "n_complaints": len(result.get("complaints", ())),
                    }
                )
    frame = pd.DataFrame(rows)
    places = {name: place for place, name in enumerate((*ERRORS, *METHODS))}  # the paper's order
    keys = ["name", "method", "split", "prior", "predictive"]
    return frame.sort_values(
        keys,
        key=lambda column: column.map(lambda value: places.get(value, value)),
        ignore_index=True,
    )


def main_rows(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Keep k-nn, and d-nn with the joint predictive under the prior of the tables."""
    return frame[
        (frame["method"] == "k-nn")
        | ((frame["prior"] == settings.priors[0]) & (frame["predictive"] == "joint"))
    ]


def summarise(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Put our errors over splits beside the paper's single figure, a row a figure of the paper.

    The paper prints whole per cent, so its figure lies in our range if it does when the ends of the
    range are rounded the same way.
    """
    rows = []
    for (name, method), group in main_rows(frame, settings).groupby(["name", "method"], sort=False):
        errors = 100.0 * group["error"].to_numpy()
        paper = ERRORS[name][method]
        sd = errors.std(ddof=1) if errors.size > 1 else np.nan
        rows.append(
            {
                "name": name,
                "method": method,
                "n_splits": errors.size,
                "mean": errors.mean(),
                "sd": sd,
                "min": errors.min(),
                "max": errors.max(),
                "paper": paper,
                "is_in_range": bool(np.round(errors.min()) <= paper <= np.round(errors.max())),
                "paper_minus_mean_in_sd": (paper - errors.mean()) / sd if sd > 0.0 else np.nan,
            }
        )
    return pd.DataFrame(rows)


def error_table(summary: pd.DataFrame, name: str, caption: str) -> Table:
    """Show mean, sd and range of the error, and the paper's figure, a row a data set."""
    shown = []
    for data_set, group in summary.groupby("name", sort=False):
        row = {"data set": TITLES[data_set]}
        for _, cell in group.iterrows():
            mark = "✓" if cell["is_in_range"] else "✗"
            ours = spread(cell["mean"], cell["sd"], cell["min"], cell["max"])
            row[cell["method"]] = f"{ours}, paper {cell['paper']} {mark}"
        shown.append(row)
    return Table(name, caption, pd.DataFrame(shown).fillna(""), summary)


def range_text(summary: pd.DataFrame) -> str:
    """Say how many of the paper's figures lie in our range, and which do not and why."""
    inside, n_splits = int(summary["is_in_range"].sum()), int(summary["n_splits"].max())
    lines = [
        f"**{inside} of the paper's {len(summary)} figures lie in our range** over "
        f"{n_splits} splits." + (" So few make a narrow range." if n_splits < 10 else "")
    ]
    for name, group in summary[~summary["is_in_range"]].groupby("name", sort=False):
        figures = "; ".join(
            f"{cell['method']} {cell['paper']}% against {cell['mean']:.1f}% "
            f"({cell['min']:.1f} to {cell['max']:.1f})"
            for _, cell in group.iterrows()
        )
        lines.append(f"- {TITLES[name]}: {figures}. {ERROR_REASONS[name]}")
    return lines[0] + ("\n\nOutside it:\n\n" + "\n".join(lines[1:]) if lines[1:] else "")


def loss_table(frame: pd.DataFrame, settings: Settings, name: str, caption: str) -> Table:
    """Average the four losses of k-nn and of d-nn with either predictive."""
    kept = frame[(frame["method"] == "k-nn") | (frame["prior"] == settings.priors[0])]
    data = (
        kept.groupby(["name", "method", "predictive"], sort=False)[list(LOSSES)]
        .mean()
        .reset_index()
    )
    shown = pd.DataFrame(
        {
            "data set": data["name"].map(TITLES),
            "method": data["method"],
            "predictive": data["predictive"],
            "error": [f"{100 * value:.1f}%" for value in data["error"]],
            **{
                _WORDS[loss]: [f"{value:.3f}" for value in data[loss]]
                for loss in ("log_loss", "brier", "ece")
            },
        }
    )
    return Table(name, caption, shown, data)


def predictive_text(frame: pd.DataFrame, settings: Settings) -> str:
    """Say what the coherent predictive buys over the printed one, pair by pair."""
    kept = frame[(frame["prior"] == settings.priors[0]) & (frame["method"] != "k-nn")]
    wide = kept.pivot_table(
        index=["name", "method", "split"], columns="predictive", values=list(LOSSES)
    )
    means = wide.groupby(level=["name", "method"]).mean()
    counts = {
        loss: int((means[loss, "joint"] < means[loss, "printed"]).sum())
        for loss in ("log_loss", "brier", "ece")
    }
    averages = {
        loss: (means[loss, "joint"].mean(), means[loss, "printed"].mean()) for loss in LOSSES
    }
    return (
        "The predictive that belongs to the fitted joint distribution (`joint`) against the one "
        f"that the paper prints (`printed`), over {len(means)} pairs of data set and kernel: lower "
        f"log loss on {counts['log_loss']}, lower Brier score on {counts['brier']}, lower "
        f"calibration error on {counts['ece']}. On average the log loss is "
        f"{averages['log_loss'][0]:.3f} against {averages['log_loss'][1]:.3f}, the calibration "
        f"error {averages['ece'][0]:.3f} against {averages['ece'][1]:.3f}, the error "
        f"{100 * averages['error'][0]:.1f}% against {100 * averages['error'][1]:.1f}%. The log "
        "loss of k-nn is large because its votes give some true classes a probability of zero, "
        "which counts as 2.2e-16."
    )


def prior_blocks(frame: pd.DataFrame, settings: Settings, name: str) -> list:
    """Compare the two priors of beta, where both were run."""
    if settings.prior != "both":
        return []
    caption = "The prior of beta: errors in per cent, mean ± sd (range)"
    table = prior_table(frame, name, caption)
    return [table, prior_text(table)]


def prior_table(frame: pd.DataFrame, name: str, caption: str) -> Table:
    """Compare the paper's prior of beta with the one cut at zero: errors, log losses, mass."""
    kept = frame[(frame["method"] != "k-nn") & (frame["predictive"] == "joint")]
    rows, shown = [], []
    for (data_set, method), group in kept.groupby(["name", "method"], sort=False):
        parts = dict(list(group.groupby("prior")))
        cut, paper = parts["cut"], parts["paper"]
        rows.append(
            {
                "name": data_set,
                "method": method,
                "error_cut": cut["error"].mean(),
                "error_paper": paper["error"].mean(),
                "log_loss_cut": cut["log_loss"].mean(),
                "log_loss_paper": paper["log_loss"].mean(),
                "mass_below_zero": paper["mass_below_zero"].mean(),
                "largest_mass_below_zero": paper["mass_below_zero"].max(),
            }
        )
        shown.append(
            {
                "data set": TITLES[data_set],
                "method": method,
                "error, cut prior": mean_and_sd(cut["error"]),
                "error, paper's prior": mean_and_sd(paper["error"]),
                "log loss, cut": f"{rows[-1]['log_loss_cut']:.3f}",
                "log loss, paper's": f"{rows[-1]['log_loss_paper']:.3f}",
                "mass at beta < 0": f"{100 * rows[-1]['mass_below_zero']:.1f}%",
            }
        )
    return Table(name, caption, pd.DataFrame(shown), pd.DataFrame(rows))


def prior_text(table: Table) -> str:
    """Say what the paper's uncut prior changes."""
    data = table.data
    worst = data.loc[data["mass_below_zero"].idxmax()]
    gap = (100.0 * (data["error_paper"] - data["error_cut"])).round(1) + 0.0  # no minus zero
    return (
        "The paper's prior of beta, N(0, 50²), allows repulsion. In a stratified sample the "
        "classes are more balanced than chance would have them, which a large sigma with a "
        "negative beta explains, so the posterior can have a second mode there that says nothing "
        f"of the classes. It holds most mass on {TITLES[worst['name']]} with {worst['method']}: "
        f"{100 * worst['mass_below_zero']:.0f}% on average over splits, "
        f"{100 * worst['largest_mass_below_zero']:.0f}% at most. The error under the paper's prior "
        f"differs from that under the cut one by {gap.min():+.1f} to {gap.max():+.1f} percentage "
        "points over the pairs of data set and kernel."
    )
