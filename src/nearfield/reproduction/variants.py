"""What k-nn gives when a detail that the paper leaves open is read another way.

Instant, and the one method that needs no choice of ours: so a figure of the paper that k-nn reaches
under one reading only tells which reading it was.
"""

import numpy as np
import pandas as pd

from nearfield.datasets import stratified_split
from nearfield.reproduction.paper import BENCHMARKS, ERRORS, TITLES
from nearfield.reproduction.problems import load
from nearfield.reproduction.sections import Table, mean_and_sd
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

SHARES = (0.25, 0.75)
SCALINGS = {"train": "standardised", "none": "raw features"}


def make_units(settings: Settings) -> list[Unit]:
    """List the data sets, each with its variants."""
    arguments = {"seed": settings.seed, "n_splits": settings.n_splits}
    return [
        Unit("Variants of k-nn", f"variants-{name}", run_variants, {**arguments, "name": name})
        for name in BENCHMARKS
    ]


def run_variants(name: str, seed: int, n_splits: int) -> Result:
    """Measure k-nn, k by leave-one-out, for each training share and scaling."""
    bunch = load(name)
    return {
        "errors": {
            f"{share:g} {scaling}": [
                _error(bunch.data, bunch.target, share, scaling, [seed, index])
                for index in range(n_splits)
            ]
            for share in SHARES
            for scaling in SCALINGS
        }
    }


def _error(features, labels, share: float, scaling: str, seed: list[int]) -> float:
    from nearfield.estimators import KNeighborsClassifierCV

    train, test = stratified_split(labels, share, random_state=np.random.default_rng(seed))
    model = KNeighborsClassifierCV(standardize=scaling == "train")
    return 1.0 - float(
        model.fit(features[train], labels[train]).score(features[test], labels[test])
    )


def table(results: list[tuple[Unit, Result]]) -> Table:
    """Show the error of k-nn under each reading beside the paper's."""
    shown, data = [], []
    for unit, result in sorted(
        results, key=lambda pair: BENCHMARKS.index(pair[0].arguments["name"])
    ):
        name = unit.arguments["name"]
        row = {"data set": TITLES[name], "paper's k-nn": ERRORS[name]["k-nn"]}
        for variant, errors in result["errors"].items():
            share, scaling = variant.split()
            row[f"{float(share):.0%} to train, {SCALINGS[scaling]}"] = mean_and_sd(errors)
            data.append({"name": name, "variant": variant, "mean": np.mean(errors)})
        shown.append(row)
    caption = "k-nn under other readings of the paper: error in per cent, mean ± sd (range)"
    return Table("variants", caption, pd.DataFrame(shown), pd.DataFrame(data))
