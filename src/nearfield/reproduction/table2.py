"""Table 2: test errors on the six benchmark data sets, beside the paper's."""

import pandas as pd

from nearfield.reproduction import errors, figures, variants
from nearfield.reproduction.paper import BENCHMARKS
from nearfield.reproduction.sections import Figure, Section
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit


def make_units(settings: Settings) -> list[Unit]:
    """List the work."""
    return errors.make_units(BENCHMARKS, settings) + variants.make_units(settings)


def build(results: list[tuple[Unit, Result]], settings: Settings) -> Section:
    """Make the section from what is there."""
    is_variant = [unit.function is variants.run_variants for unit, _ in results]
    variant_results = [pair for pair, own in zip(results, is_variant, strict=True) if own]
    main_results = [pair for pair, own in zip(results, is_variant, strict=True) if not own]
    blocks: list = [_settings_text(settings)]
    if main_results:
        blocks += _error_blocks(errors.collect(main_results), settings)
    if variant_results:
        blocks.append(variants.table(variant_results))
    return Section("table2", "Table 2: benchmark data sets", blocks)


def _error_blocks(frame: pd.DataFrame, settings: Settings) -> list:
    summary = errors.summarise(frame, settings)
    return [
        errors.error_table(
            summary,
            "table2",
            "Table 2. Test error in per cent: mean ± sd (range) over splits, and the paper's "
            "figure (✓ in our range, ✗ not)",
        ),
        errors.range_text(summary),
        Figure(
            "table2",
            "Test error over splits (dot: mean, line: range) and the paper's figure (cross)",
            lambda: figures.draw_errors(summary),
        ),
        errors.loss_table(
            frame, settings, "table2-losses", "What the coherent predictive buys: mean losses"
        ),
        errors.predictive_text(frame, settings),
        *errors.prior_blocks(frame, settings, "table2-priors"),
        time_text(frame, settings),
    ]


def _settings_text(settings: Settings) -> str:
    priors = {
        "cut": "beta ~ N(0, 50²) cut to beta ≥ 0",
        "paper": "beta ~ N(0, 50²)",
    }[settings.priors[0]]
    return (
        f"A quarter of each data set to train on, {settings.n_splits} stratified splits, features "
        "standardised by the training set. k-nn: k from 1 to half of the training points by "
        f"leave-one-out, ties to the smallest k. d-nn: {priors}, sigma ~ U(0, 100), posterior by "
        f"{describe_inference(settings.inference)}."
    )


def describe_inference(inference: str) -> str:
    """Name an engine in words."""
    return {
        "path": "path sampling",
        "exchange": (
            "the exchange algorithm with the paper's settings (one chain, 10,000 iterations of "
            "burn-in, 10,000 kept, 1,000 auxiliary sweeps)"
        ),
        "pseudolikelihood": "pseudolikelihood",
    }[inference]


def time_text(frame: pd.DataFrame, settings: Settings) -> str:
    """Say how long the fits took, and what they complained of."""
    fits = errors.main_rows(frame, settings).query("method != 'k-nn'")
    complained = int((fits["n_complaints"] > 0).sum())
    return (
        f"{len(fits)} posteriors by {describe_inference(settings.inference)}: "
        f"{fits['cpu_seconds'].median():.1f} s of processor time each in the median, predictions "
        f"included, {fits['cpu_seconds'].max():.1f} s at most; the paper's took 1 to 12 hours. "
        + (
            f"{complained} of them came with a warning of the engine (in the result files)."
            if complained
            else "None came with a warning."
        )
    )
