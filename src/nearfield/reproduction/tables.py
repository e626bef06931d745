"""Sections of the report: Table 1, Table 2, and the two sets of spectra with figures 1 and 2."""

import numpy as np
import pandas as pd

from nearfield.reproduction import errors, figures, readings
from nearfield.reproduction.paper import BENCHMARKS, MAX_SIGMA, SPECTRA, TABLE1, TITLES, Sizes
from nearfield.reproduction.problems import DataHome, load, why_missing
from nearfield.reproduction.report import Figure, Section, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.texts import TEXTS
from nearfield.runs import Results, Unit

FIGURE_NUMBERS = {"meat": 1, "olive-oil": 2}


def table1(data_home: DataHome = None) -> Section:
    """Compare the sizes of the data sets with the paper's."""
    records, missing = [], []
    for name in (*BENCHMARKS, *SPECTRA):
        try:
            bunch = load(name, data_home)
        except FileNotFoundError:
            missing.append(TITLES[name])
            continue
        ours = Sizes(len(bunch.target_names), bunch.data.shape[1], bunch.data.shape[0])
        records.append(
            {
                "name": name,
                **ours._asdict(),
                **{f"paper_{key}": value for key, value in TABLE1[name]._asdict().items()},
                "agrees": ours == TABLE1[name],
                "reason": TEXTS["size_reasons"].get(name, ""),
            }
        )
    data = pd.DataFrame(records)
    lead: list[str | Table] = [
        f"The sizes of {data['agrees'].sum()} of {len(data)} data sets agree with the paper's.",
        Table("table1", data=data, **TEXTS["tables"]["table1"]),
    ]
    if missing:
        lead.append(
            f"Not found: {' and '.join(missing)}. The spectra are not part of nearfield; `--data` "
            "or NEARFIELD_DATA names the folder that holds them."
        )
    return Section("table1", "Table 1: data sets", lead)


def table2_units(settings: Settings) -> list[Unit]:
    """List the work of Table 2."""
    return errors.make_units(settings.data_sets, settings) + readings.make_units(settings)


def table2(results: Results, settings: Settings) -> Section:
    """Compare test errors on the benchmark data sets with the paper's."""
    own = [pair for pair in results if pair[0].group != readings.TITLE]
    other = [pair for pair in results if pair[0].group == readings.TITLE]
    lead: list[str | Table] = []
    rest: list[str | Table | Figure] = []
    if own:
        frame = errors.collect(own)
        summary = errors.summarise(frame, settings)
        lead = errors.comparison(summary, "table2")
        rest = [
            _table2_settings(settings),
            Figure("table2", TEXTS["figures"]["table2"], lambda: figures.draw_errors(summary)),
            *errors.details(frame, settings, "table2"),
        ]
    if other:
        rest += readings.blocks(other)
    return Section("table2", "Table 2: benchmark data sets", lead, rest)


def _table2_settings(settings: Settings) -> str:
    prior = "beta ~ N(0, 50²)" + (" given beta ≥ 0" if settings.main_prior == "cut" else "")
    return (
        f"{settings.n_splits} stratified splits with a quarter of the points to train on; features "
        "standardised by the training set. k-nn: k from 1 to half of the training points by "
        f"leave-one-out, ties to the smallest. d-nn: {prior}, sigma ~ U(0, 100), posterior by "
        f"{TEXTS['engines'][settings.inference]}."
    )


def spectra_units(name: str, settings: Settings) -> list[Unit]:
    """List the work, if the spectra are there."""
    is_there = why_missing(name, settings.data_home) is None
    return errors.make_units([name], settings) if is_there else []


def spectra(name: str, results: Results, settings: Settings) -> Section:
    """Compare test errors on spectra with the paper's, and draw its figure of k-nn over k."""
    title = f"{TITLES[name]}: figure {FIGURE_NUMBERS[name]}"
    if not results:
        reason = why_missing(name, settings.data_home)
        return Section(name, title, [f"Left out: the spectra are not there. {reason}"])
    frame = errors.collect(results)
    summary = errors.summarise(frame, settings)
    leave_one_out, test = _curves(results)
    means = summary.set_index("method")["mean"]
    rest: list[str | Table | Figure] = [
        f"{frame['n_train'][0]} training and {frame['n_test'][0]} test samples, "
        f"{settings.n_splits} stratified splits, 1050 standardised wavelengths; sigma ~ "
        f"U(0, {MAX_SIGMA.get(name, 100.0):g}); posterior by "
        f"{TEXTS['engines'][settings.inference]}.",
        Figure(
            f"{name}-k",
            TEXTS["figures"]["spectra"].format(number=FIGURE_NUMBERS[name]),
            lambda: figures.draw_curves(leave_one_out, test, means, TITLES[name]),
        ),
        _chosen_k_text(name, leave_one_out),
        *errors.details(frame, settings, name),
    ]
    return Section(name, title, errors.comparison(summary, name), rest)


def _curves(results: Results) -> tuple[np.ndarray, np.ndarray]:
    """Return leave-one-out and test errors of k-nn, shape (split, k)."""
    ordered = sorted(results, key=lambda pair: pair[0].arguments["index"])
    curves = [result for _, result in ordered if "test_errors" in result]
    keys = ("leave_one_out_errors", "test_errors")
    leave_one_out, test = (np.array([curve[key] for curve in curves]) for key in keys)
    return leave_one_out, test


def _chosen_k_text(name: str, leave_one_out: np.ndarray) -> str:
    values, counts = np.unique(1 + leave_one_out.argmin(axis=1), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:3]
    often = ", ".join(f"k = {values[i]} on {counts[i]}" for i in order)
    return (
        f"Leave-one-out chose {often} of {len(leave_one_out)} splits; on the paper's split it "
        f"chose {TEXTS['paper_k'][name]}."
    )
