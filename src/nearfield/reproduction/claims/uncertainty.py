"""Claim: the posterior shows where allocation is uncertain."""

from typing import Any

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims.findings import Finding, verdict
from nearfield.reproduction.experiment import fit_quietly, make_model
from nearfield.reproduction.figures import ACCENTS, new_figure
from nearfield.reproduction.metrics import predictive_entropy
from nearfield.reproduction.problems import load, petals, split, stream
from nearfield.reproduction.settings import Settings
from nearfield.runs import Result, Results, Unit


def make_units(settings: Settings) -> list[Unit]:
    """List a map of the petals of iris, and d-nn1 of Table 2."""
    arguments = {"seed": settings.seed, "inference": settings.inference, "n_grid": settings.n_grid}
    if settings.paper_chain:
        arguments["chain"] = settings.paper_chain
    table2 = errors.make_units(settings.data_sets, settings, methods=("d-nn1",))
    return [Unit("uncertainty", run_map, arguments), *table2]


def run_map(
    seed: int, inference: str, n_grid: int, chain: tuple[int, int, int] | None = None
) -> Result:
    """Fit d-nn1 to the petals of iris; compute the predictive entropy on a grid."""
    problem = petals(split("iris", 0, seed))
    model = make_model("iris", "d-nn1", inference, "cut", stream(seed, "map"), chain)
    fit_quietly(model, problem)
    points = np.vstack([problem.train_features, problem.test_features])
    margin = 0.08 * np.ptp(points, axis=0)
    axes = np.linspace(points.min(axis=0) - margin, points.max(axis=0) + margin, n_grid).T
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    entropy = predictive_entropy(model.predict_proba(grid))
    return {
        "axes": axes.tolist(),
        "entropy": np.round(entropy, 4).reshape(n_grid, n_grid).tolist(),
        "train": problem.train_features.tolist(),
        "train_labels": problem.train_labels.tolist(),
        "test": problem.test_features.tolist(),
        "is_wrong": (model.predict(problem.test_features) != problem.test_labels).tolist(),
    }


def judge(results: Results, settings: Settings) -> Finding:
    """Ask whether errors are where the entropy is high."""
    (entropy_map,) = [result for unit, result in results if unit.function is run_map]
    thirds = {
        name: np.mean(
            [
                result["priors"][settings.main_prior]["errors_by_entropy"]
                for unit, result in results
                if unit.arguments.get("name") == name
            ],
            axis=0,
        )
        for name in settings.data_sets
    }
    data = pd.DataFrame(thirds, index=["low", "middle", "high"]).T.rename_axis("name").reset_index()
    data["share"] = data["high"] / data[["low", "middle", "high"]].sum(axis=1).replace(0.0, np.nan)
    is_ordered = (data["low"] <= data["middle"]) & (data["middle"] < data["high"])
    summary = (
        "The error increases from the third of the test points with the lowest predictive entropy "
        f"to the third with the highest on {is_ordered.sum()} of {len(data)} data sets; the latter "
        f"has {data['share'].min():.0%} to {data['share'].max():.0%} of all errors."
    )
    share = float(is_ordered.mean())
    return Finding(verdict(share), summary, data, lambda: _draw(entropy_map))


def _draw(entropy_map: Result) -> Any:
    iris = load("iris")
    figure, ax = new_figure(7.0, 5.0)
    mesh = ax.pcolormesh(
        *entropy_map["axes"],
        np.array(entropy_map["entropy"]),
        cmap="Greys",
        vmin=0.0,
        rasterized=True,
    )
    figure.colorbar(mesh, ax=ax, label="predictive entropy (nats)")
    points, labels = np.array(entropy_map["train"]), np.array(entropy_map["train_labels"])
    for g, name in enumerate(iris.target_names):
        own = points[labels == g]
        ax.scatter(*own.T, s=34, color=ACCENTS[g], edgecolor="white", lw=0.8, label=str(name))
    wrong = np.array(entropy_map["test"])[np.array(entropy_map["is_wrong"], dtype=bool)]
    ax.plot(*wrong.T, "x", color="black", ms=8, mew=2.0, label="test point, wrong")
    ax.set(xlabel=iris.feature_names[2], ylabel=iris.feature_names[3])
    ax.legend(loc="upper left", frameon=True, framealpha=0.9, fontsize=9)
    return figure
