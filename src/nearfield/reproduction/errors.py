"""Test errors over splits, of the benchmark data sets (Table 2) and the spectra (section 5.2)."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction.experiment import run_distance, run_nearest
from nearfield.reproduction.metrics import LOSSES
from nearfield.reproduction.paper import ERRORS, METHODS, TITLES
from nearfield.reproduction.report import Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.texts import TEXTS
from nearfield.runs import Results, Unit


def make_units(
    names: Sequence[str], settings: Settings, methods: Iterable[str] = METHODS
) -> list[Unit]:
    """List every method on every split of every data set, split by split."""
    context = {"data_home": settings.data_home}
    how: dict[str, Any] = {"inference": settings.inference, "prior": settings.prior}
    if settings.paper_chain:
        how["chain"] = settings.paper_chain
    units = []
    for name, index, method in product(names, range(settings.n_splits), methods):
        split = {"name": name, "index": index, "seed": settings.seed}
        if method == "k-nn":
            units.append(Unit(TITLES[name], run_nearest, split, context))
        else:
            arguments = {**split, "method": method, **how}
            units.append(Unit(TITLES[name], run_distance, arguments, context))
    return units


def collect(results: Results) -> pd.DataFrame:
    """Return one record for each data set, split, method, prior and predictive."""
    records = [
        {
            "name": unit.arguments["name"],
            "split": unit.arguments["index"],
            "method": unit.arguments.get("method", "k-nn"),
            "inference": unit.arguments.get("inference", ""),
            "prior": prior,
            "predictive": predictive,
            **losses,
            **measured.get("posterior", {}),
            "cpu_seconds": result["cpu_seconds"],
            "n_train": result["n_train"],
            "n_test": result["n_test"],
            "n_warnings": len(result.get("complaints", ())),
        }
        for unit, result in results
        for prior, measured in result["priors"].items()
        for predictive, losses in measured["losses"].items()
    ]
    return in_paper_order(pd.DataFrame(records))


def in_paper_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort data sets and methods as the paper has them, and let groups keep that order."""
    name = pd.Categorical(frame["name"], list(ERRORS), ordered=True)
    method = pd.Categorical(frame["method"], METHODS, ordered=True)
    frame = frame.assign(name=name, method=method)
    keys = ["name", "method", *(key for key in ("split", "prior", "predictive") if key in frame)]
    return frame.sort_values(keys, ignore_index=True, kind="stable")


def main_rows(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Keep k-nn, and d-nn with the joint predictive under the main prior."""
    is_main = (frame["prior"] == settings.main_prior) & (frame["predictive"] == "joint")
    return frame[(frame["method"] == "k-nn") | is_main]


def spread(errors: pd.Series) -> dict[str, float]:
    """Return mean, standard deviation and range, in per cent."""
    e = 100.0 * errors
    return {"mean": e.mean(), "sd": e.std(), "min": e.min(), "max": e.max()}


def against_paper(errors: pd.Series, paper: int) -> dict[str, Any]:
    """Compare errors over splits with a figure of the paper.

    It is reproduced if it lies in our range, the ends rounded as the paper does.
    """
    ours = spread(errors)
    is_in_range = bool(np.round(ours["min"]) <= paper <= np.round(ours["max"]))
    return {**ours, "paper": paper, "is_in_range": is_in_range}


def summarise(frame: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Compare our errors over splits with each figure of the paper."""
    groups = main_rows(frame, settings).groupby(["name", "method"], observed=True)
    records = [
        {"name": name, "method": method, "n_splits": len(group)}
        | against_paper(group["error"], ERRORS[name][method])
        for (name, method), group in groups
    ]
    summary = in_paper_order(pd.DataFrame(records))
    gap = (summary["paper"] - summary["mean"]) / summary["sd"].replace(0.0, np.nan)
    return summary.assign(paper_minus_mean_in_sd=gap)


def comparison(summary: pd.DataFrame, name: str) -> list[str | Table]:
    """Say what was reproduced, show the figures, and explain those outside our range."""
    return [_reproduced_text(summary), error_table(summary, name), *_difference_text(summary)]


def details(frame: pd.DataFrame, settings: Settings, name: str) -> list[str | Table]:
    """Compare the two predictives and the two priors; report times."""
    return [
        _loss_table(frame, settings, name),
        _predictive_text(frame, settings),
        *_prior_blocks(frame, settings, name),
        _time_text(frame, settings),
    ]


def _reproduced_text(summary: pd.DataFrame) -> str:
    """Say what was reproduced."""
    agrees = summary.groupby("name", observed=True)["is_in_range"].all()
    names = [TITLES[name] for name in agrees.index[agrees]]
    n_splits = int(summary["n_splits"].max())
    text = (
        f"**Reproduced: {summary['is_in_range'].sum()} of the paper's {len(summary)} test errors "
        f"lie within our range over {n_splits} splits"
    )
    text += f", with all methods on {_listed(names)}.**" if names and len(agrees) > 1 else ".**"
    few = " So few splits give a narrow range: the full run has 20."
    return text + (few if n_splits < 10 else "")


def error_table(data: pd.DataFrame, name: str) -> Table:
    """Show the paper's figures beside our means and ranges, for each data set and reading."""
    keys, columns = ["name"], {"data set": "{title}"}
    if "reading" in data:
        keys, columns = [*keys, "reading"], columns | {"features, training set": "{reading}"}
    shown = pd.DataFrame(
        [
            dict(zip(keys, values, strict=True))
            | {cell["method"]: _cell_text(cell) for cell in group.to_dict("records")}
            for values, group in data.groupby(keys, observed=True)
        ]
    )
    columns |= {method: f"{{{method}}}" for method in METHODS if method in shown}
    captions = TEXTS["error_tables"]
    return Table(name, f"{captions[name]}: {captions['cells']}", data, columns, shown)


def _cell_text(cell: dict[Any, Any]) -> str:
    mark = "" if cell["is_in_range"] else "†"
    return f"{cell['paper']}{mark} / {cell['mean']:.1f} ({cell['min']:.0f}-{cell['max']:.0f})"


def _difference_text(summary: pd.DataFrame) -> list[str]:
    """Explain each data set on which a figure of the paper is outside our range, in one line."""
    lines = []
    for name, group in summary[~summary["is_in_range"]].groupby("name", observed=True):
        paper, ours = _span(group["paper"], 0), _span(group["mean"], 1)
        methods = _listed(list(group["method"])) if len(group) < len(METHODS) else "all methods"
        lines.append(
            f"- *{TITLES[name]}*, {methods}: paper {paper}%, here {ours}%. "
            f"{TEXTS['error_reasons'][name]}"
        )
    return ["**Outside our range:**\n\n" + "\n".join(lines)] if lines else []


def _loss_table(frame: pd.DataFrame, settings: Settings, name: str) -> Table:
    """Average the four losses of k-nn and of d-nn with either predictive."""
    kept = frame[(frame["method"] == "k-nn") | (frame["prior"] == settings.main_prior)]
    groups = kept.groupby(["name", "method", "predictive"], observed=True)
    data = groups[list(LOSSES)].mean().reset_index()
    return Table(f"{name}-losses", data=data, **TEXTS["tables"]["losses"])


def _predictive_text(frame: pd.DataFrame, settings: Settings) -> str:
    """Compare the joint predictive with the printed one over pairs of data set and kernel."""
    kept = frame[(frame["prior"] == settings.main_prior) & (frame["method"] != "k-nn")]
    means = kept.groupby(["name", "method", "predictive"], observed=True)[list(LOSSES)].mean()
    joint, printed = (means.xs(which, level="predictive") for which in ("joint", "printed"))
    wins, a, b = (joint < printed).sum(), joint.mean(), printed.mean()
    return (
        f"Over {len(joint)} pairs of data set and kernel, the predictive of the fitted joint "
        f"distribution has a lower log loss than the paper's printed one in {wins['log_loss']}, a "
        f"lower Brier score in {wins['brier']} and a lower calibration error (ECE) in "
        f"{wins['ece']}. Means: log loss {a['log_loss']:.3f} and {b['log_loss']:.3f}, ECE "
        f"{a['ece']:.3f} and {b['ece']:.3f}, error {a['error']:.1%} and {b['error']:.1%}. The "
        "votes of k-nn give some true classes probability zero, which counts as 2.2e-16 in the "
        "log loss."
    )


def _prior_blocks(frame: pd.DataFrame, settings: Settings, name: str) -> list[str | Table]:
    """Compare the paper's prior of beta with the truncated one, where both were run."""
    if settings.prior != "both":
        return []
    kept = frame[(frame["method"] != "k-nn") & (frame["predictive"] == "joint")]
    records = []
    for (data_set, method), group in kept.groupby(["name", "method"], observed=True):
        record = {"name": data_set, "method": method}
        for prior, part in group.groupby("prior"):
            record |= {f"{key}_{prior}": value for key, value in spread(part["error"]).items()}
            record[f"log_loss_{prior}"] = part["log_loss"].mean()
        below = group[group["prior"] == "paper"]["mass_below_zero"]
        records.append(
            {**record, "mass_below_zero": below.mean(), "largest_mass_below_zero": below.max()}
        )
    data = pd.DataFrame(records)
    table = Table(f"{name}-priors", data=data, **TEXTS["tables"]["priors"])
    return [table, _prior_text(data)]


def _prior_text(data: pd.DataFrame) -> str:
    worst = data.loc[data["mass_below_zero"].idxmax()]
    gap = (data["mean_paper"] - data["mean_cut"]).round(1) + 0.0  # no minus zero
    if worst["mass_below_zero"] < 0.005:
        return "The posterior under the paper's prior N(0, 50²) has no mass at negative beta here."
    return (
        "The paper's prior N(0, 50²) allows negative beta. A stratified sample has more balanced "
        "classes than independent labels would have, and a negative beta with a large sigma fits "
        "that, so that the posterior can have a second mode there, which carries no information "
        f"about the classes. Its mass is largest on {TITLES[worst['name']]} with "
        f"{worst['method']}: {worst['mass_below_zero']:.0%} on average over splits, "
        f"{worst['largest_mass_below_zero']:.0%} at most. It changes the mean error by "
        f"{gap.min():+.1f} to {gap.max():+.1f} percentage points."
    )


def _time_text(frame: pd.DataFrame, settings: Settings) -> str:
    """Report processor times and warnings of the fits."""
    fits = main_rows(frame, settings).query("method != 'k-nn'")
    n_warned = int((fits["n_warnings"] > 0).sum())
    return (
        f"{len(fits)} posteriors by {TEXTS['engines'][settings.inference]}: median "
        f"{fits['cpu_seconds'].median():.1f} s of processor time with predictions, at most "
        f"{fits['cpu_seconds'].max():.1f} s; the paper's took 1 to 12 hours. "
        + (f"{n_warned} gave a warning (in the result files)." if n_warned else "No warnings.")
    )


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _span(values: pd.Series, digits: int) -> str:
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"
