"""Test errors under other readings of the paper.

The paper does not say how features were scaled, nor how the training set was drawn. A reading takes
raw features, standardised features or whitened principal components, and trains on a quarter, a
half or three quarters of the points, in a stratified split or drawn at random.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from nearfield.datasets import stratified_split
from nearfield.inference import Pseudolikelihood
from nearfield.reproduction import errors
from nearfield.reproduction.experiment import fit_quietly, make_model
from nearfield.reproduction.paper import ERRORS, TITLES
from nearfield.reproduction.problems import Problem, load
from nearfield.reproduction.report import Table
from nearfield.reproduction.settings import Settings
from nearfield.runs import Result, Results, Unit

TITLE = "Readings"
FEATURES = ("raw", "standardised", "whitened")
SPLITS = tuple((how, share) for share in (0.25, 0.5, 0.75) for how in ("stratified", "random"))
DENSITY = 0.5  # of the quadrature: errors within a few tenths of those at 1 in 2/3 of the time


def make_units(settings: Settings) -> list[Unit]:
    """List each reading of each data set."""
    units = []
    for name, features, (how, share) in product(settings.data_sets, FEATURES, SPLITS):
        arguments = {"name": name, "features": features, "how": how, "share": share}
        arguments |= {"methods": settings.reading_methods}
        arguments |= {"seed": settings.seed, "n_splits": settings.n_splits}
        units.append(Unit(TITLE, run_reading, arguments))
    return units


def run_reading(
    name: str, features: str, how: str, share: float, methods: Any, seed: int, n_splits: int
) -> Result:
    """Return the test errors of each method over splits, d-nn by pseudolikelihood."""
    found: dict[str, list[float]] = {method: [] for method in methods}
    for index in range(n_splits):
        problem = transform(draw(name, how, share, [seed, index]), features)
        for method in methods:
            model = _model(name, method)
            fit_quietly(model, problem)
            score = model.score(problem.test_features, problem.test_labels)
            found[method].append(1.0 - float(score))
    return {"errors": found}


def _model(name: str, method: str) -> Any:
    model = make_model(name, method, "pseudolikelihood", "cut", 0).set_params(standardize=False)
    return model if method == "k-nn" else model.set_params(inference=Pseudolikelihood(DENSITY))


def draw(name: str, how: str, share: float, seed: list[int]) -> Problem:
    """Draw the training set: its classes in proportion, or a simple random sample."""
    bunch, rng = load(name), np.random.default_rng(seed)
    if how == "stratified":
        train, test = stratified_split(bunch.target, share, random_state=rng)
    else:
        order = rng.permutation(len(bunch.target))
        train, test = np.split(order, [round(share * len(order))])
    return Problem(bunch.data[train], bunch.target[train], bunch.data[test], bunch.target[test])


def transform(problem: Problem, features: str) -> Problem:
    """Transform the features, fitted to the training set."""
    if features == "raw":
        return problem
    scaler = StandardScaler() if features == "standardised" else PCA(whiten=True)
    return problem._replace(
        train_features=scaler.fit_transform(problem.train_features),
        test_features=scaler.transform(problem.test_features),
    )


def collect(results: Results) -> pd.DataFrame:
    """Return one record for each data set, reading and method, beside the paper's figure."""
    records = []
    for unit, result in results:
        about = {key: unit.arguments[key] for key in ("name", "features", "how", "share")}
        reading = _reading(about["features"], about["how"], about["share"])
        for method, values in result["errors"].items():
            paper = ERRORS[about["name"]][method]
            record = {**about, "method": method, "reading": reading}
            records.append(record | errors.against_paper(pd.Series(values), paper))
    frame = errors.in_paper_order(pd.DataFrame(records))
    order = [_reading(features, *split) for features, split in product(FEATURES, SPLITS)]
    return frame.assign(reading=pd.Categorical(frame["reading"], order, ordered=True))


def _reading(features: str, how: str, share: float) -> str:
    return f"{features}, {how} {share:.0%}"


def blocks(results: Results) -> list[str | Table]:
    """Count the paper's figures within range by reading; detail the data sets that differ."""
    frame = collect(results)
    counts = frame.groupby(["reading", "name"], observed=True)["is_in_range"].sum().unstack()
    names = list(counts.columns)
    total = counts.sum(axis=1)
    shown = counts.assign(total=total).reset_index()
    columns = {"features, training set": "{reading}"}
    columns |= {TITLES[name]: f"{{{name}}}" for name in names} | {"total": "{total}"}
    n_methods, best = frame["method"].nunique(), "; ".join(total.index[total == total.max()])
    text = (
        "**Other readings of the paper.** The paper states neither the scaling of the features nor "
        "how the training set was drawn. Features may be raw, standardised or whitened principal "
        "components (Mahalanobis distance); the training set a quarter, a half or three quarters, "
        f"stratified or a simple random sample. Of the paper's {n_methods * len(names)} figures, "
        f"between {total.min()} and {total.max()} lie within our range, most with: {best}. Fewer "
        "test points widen the range. d-nn is fitted by pseudolikelihood here."
    )
    caption = f"The paper's figures within our range, of {n_methods} for each data set, by reading"
    return [text, Table("readings", caption, frame, columns, shown), *_details(frame)]


def _details(frame: pd.DataFrame) -> list[Table]:
    """Show the errors on data sets that differ under the main reading."""
    main = frame[frame["reading"] == "standardised, stratified 25%"]
    data = frame[frame["name"].isin(main["name"][~main["is_in_range"]])]
    if data.empty:
        return []
    return [errors.error_table(data, "readings-errors")]
