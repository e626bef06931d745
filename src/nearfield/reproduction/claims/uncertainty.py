"""Whether the posterior shows where allocation is uncertain."""

from dataclasses import replace

import numpy as np
import pandas as pd

from nearfield.reproduction import errors
from nearfield.reproduction.claims._claim import Claim, verdict
from nearfield.reproduction.experiment import distance_model, fit_quietly
from nearfield.reproduction.figures import ACCENTS, new_figure
from nearfield.reproduction.metrics import predictive_entropy
from nearfield.reproduction.paper import BENCHMARKS, TITLES
from nearfield.reproduction.problems import Problem, load, split, stream
from nearfield.reproduction.sections import Figure, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

TITLE = "Where allocation is uncertain"
QUOTE = (
    "The most likely allocations for the test dataset can be evaluated and also the uncertainty "
    "that goes with them. So this makes it possible to determine regions where allocation to "
    "specific classes is uncertain."
)
PETALS = [2, 3]  # length and width
N_GRID = 90


def make_units(settings: Settings) -> list[Unit]:
    """List a map of iris, and d-nn1 of Table 2, which is found where that has run."""
    arguments = {"seed": settings.seed, "inference": settings.inference}
    return [
        Unit(TITLE, "entropy-map", run_map, arguments),
        *(
            replace(unit, group=TITLE)
            for unit in errors.make_units(BENCHMARKS, settings)
            if unit.arguments.get("method") == "d-nn1"
        ),
    ]


def run_map(seed: int, inference: str) -> Result:
    """Fit d-nn1 to two features of iris and measure the entropy on a grid."""
    problem = split("iris", 0, seed)
    flat = Problem(
        problem.train_features[:, PETALS],
        problem.train_labels,
        problem.test_features[:, PETALS],
        problem.test_labels,
    )
    model = distance_model("iris", "d-nn1", inference, "cut", stream(seed, "map"))
    fit_quietly(model, flat)
    points = np.vstack([flat.train_features, flat.test_features])
    margin = 0.08 * np.ptp(points, axis=0)
    axes = [
        np.linspace(low, high, N_GRID)
        for low, high in zip(points.min(axis=0) - margin, points.max(axis=0) + margin, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    entropy = predictive_entropy(model.predict_proba(grid))
    return {
        "axes": [axis.tolist() for axis in axes],
        "entropy": np.round(entropy, 4).reshape(N_GRID, N_GRID).tolist(),
        "train": flat.train_features.tolist(),
        "train_labels": flat.train_labels.tolist(),
        "test": flat.test_features.tolist(),
        "is_wrong": (model.predict(flat.test_features) != flat.test_labels).tolist(),
    }


def judge(results: list[tuple[Unit, Result]], settings: Settings) -> Claim:
    """Ask whether errors are where the entropy is high."""
    (picture,) = [result for unit, result in results if unit.function is run_map]
    rows = []
    for name in BENCHMARKS:
        thirds = np.mean(
            [
                result["priors"][settings.priors[0]]["errors_by_entropy"]
                for unit, result in results
                if unit.arguments.get("name") == name
            ],
            axis=0,
        )
        share = thirds[2] / thirds.sum() if thirds.sum() > 0.0 else np.nan
        rows.append([name, *thirds, share])
    data = pd.DataFrame(rows, columns=["name", "sure", "between", "unsure", "share"])
    is_ordered = (data["sure"] <= data["between"]) & (data["between"] < data["unsure"])
    finding = (
        f"The error grows from the third of test points with the least predictive entropy to the "
        f"third with the most on {is_ordered.sum()} of {len(data)} data sets; the unsure third "
        f"holds {data['share'].min():.0%} to {data['share'].max():.0%} of all errors."
    )
    shown = pd.DataFrame(
        {
            "data set": data["name"].map(TITLES),
            "error, surest third": [f"{value:.1%}" for value in data["sure"]],
            "error, middle third": [f"{value:.1%}" for value in data["between"]],
            "error, least sure third": [f"{value:.1%}" for value in data["unsure"]],
            "share of all errors there": [
                "" if np.isnan(value) else f"{value:.0%}" for value in data["share"]
            ],
        }
    )
    return Claim(
        TITLE,
        QUOTE,
        "Section 6",
        verdict(float(is_ordered.mean())),
        finding,
        [
            Table("claim-uncertainty", "Test points of d-nn1 by predictive entropy", shown, data),
            Figure(
                "claim-uncertainty",
                "Predictive entropy of d-nn1 on two features of iris; discs are training points, "
                "crosses the test points that it gets wrong",
                lambda: _draw(picture, load("iris")),
            ),
        ],
    )


def _draw(picture: Result, iris):
    figure, ax = new_figure(7.0, 5.0)
    mesh = ax.pcolormesh(
        *picture["axes"], np.array(picture["entropy"]), cmap="Greys", vmin=0.0, rasterized=True
    )
    figure.colorbar(mesh, ax=ax, label="predictive entropy (nats)")
    points, labels = np.array(picture["train"]), np.array(picture["train_labels"])
    for g, name in enumerate(iris.target_names):
        own = points[labels == g]
        ax.scatter(*own.T, s=34, color=ACCENTS[g], edgecolor="white", lw=0.8, label=str(name))
    wrong = np.array(picture["test"])[np.array(picture["is_wrong"], dtype=bool)]
    ax.plot(*wrong.T, "x", color="black", ms=8, mew=2.0, label="test point, wrong")
    ax.set_xlabel(iris.feature_names[PETALS[0]])
    ax.set_ylabel(iris.feature_names[PETALS[1]])
    ax.legend(loc="upper left", frameon=True, framealpha=0.9, fontsize=9)
    return figure
