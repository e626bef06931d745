"""The two sets of spectra (section 5.2): test errors, and figures 1 and 2."""

import numpy as np

from nearfield.reproduction import errors, figures
from nearfield.reproduction.paper import MAX_SIGMA, TITLES
from nearfield.reproduction.problems import load
from nearfield.reproduction.sections import Figure, Section
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.table2 import describe_inference, time_text
from nearfield.reproduction.units import Result, Unit

FIGURE_NUMBERS = {"meat": 1, "olive-oil": 2}
PAPER_K = {"meat": "k = 3, with k = 4 as good", "olive-oil": "k = 3"}


def make_units(name: str, settings: Settings) -> list[Unit]:
    """List the work; FileNotFoundError, saying where to get them, without the spectra."""
    load(name, settings.data_home)
    return errors.make_units([name], settings)


def build(name: str, results: list[tuple[Unit, Result]], settings: Settings) -> Section:
    """Make the section from what is there."""
    frame = errors.collect(results)
    summary = errors.summarise(frame, settings)
    curves = _curves(results)
    means = summary.set_index("method")["mean"]
    number = FIGURE_NUMBERS[name]
    blocks: list = [
        _settings_text(name, frame, settings),
        errors.error_table(
            summary, name, "Test error in per cent: mean ± sd (range), and the paper's figure"
        ),
        errors.range_text(summary),
        Figure(
            f"{name}-k",
            f"Figure {number}. k-nn as k varies: (a) leave-one-out error on the training set, (b) "
            "error on the test set, with the mean errors of d-nn",
            lambda: figures.draw_curves(*curves, means, TITLES[name]),
        ),
        _curve_text(name, curves[0]),
        errors.loss_table(frame, settings, f"{name}-losses", "Mean losses over splits"),
        errors.predictive_text(frame, settings),
    ]
    blocks += [*errors.prior_blocks(frame, settings, f"{name}-priors"), time_text(frame, settings)]
    return Section(name, f"{TITLES[name]}: figure {number}", blocks)


def missing(name: str, error: FileNotFoundError) -> Section:
    """Say that the spectra are not there."""
    text = f"Left out, because the spectra are not there. {error}"
    return Section(name, f"{TITLES[name]}: figure {FIGURE_NUMBERS[name]}", [text])


def _settings_text(name: str, frame, settings: Settings) -> str:
    return (
        f"{int(frame['n_train'].iloc[0])} samples to train on, {int(frame['n_test'].iloc[0])} to "
        f"test, {settings.n_splits} stratified splits, 1050 standardised wavelengths. "
        f"sigma ~ U(0, {MAX_SIGMA.get(name, 100.0):g}); posterior by "
        f"{describe_inference(settings.inference)}."
    )


def _curves(results) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out and test errors of k-nn, shape (split, k)."""
    ordered = sorted(results, key=lambda pair: pair[0].arguments["index"])
    curves = [result for _, result in ordered if "test_errors" in result]
    return (
        np.array([result["leave_one_out_errors"] for result in curves]),
        np.array([result["test_errors"] for result in curves]),
    )


def _curve_text(name: str, leave_one_out: np.ndarray) -> str:
    best = 1 + leave_one_out.argmin(axis=1)
    values, counts = np.unique(best, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:3]
    often = ", ".join(f"k = {values[i]} ({counts[i]})" for i in order)
    return (
        f"Leave-one-out chose {often} most often (times of {len(best)} splits); on the paper's "
        f"split it chose {PAPER_K[name]}."
    )
