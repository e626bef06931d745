"""Whether d-nn treats an outlier more robustly than k-nn.

Two points are moved in turn. A training point of another class, put beside a test point and then
moved away: how soon does it lose its say? And the test point itself, moved away from all the
training points: does the method stop being sure?
"""

import numpy as np
import pandas as pd

from nearfield.reproduction.claims._claim import FAILS, HOLDS, IN_PART, Claim
from nearfield.reproduction.experiment import distance_model, fit_quietly
from nearfield.reproduction.figures import COLOURS, new_figure
from nearfield.reproduction.paper import KERNELS, METHODS
from nearfield.reproduction.problems import Problem, split, stream
from nearfield.reproduction.sections import Figure, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

TITLE = "Outliers"
QUOTE = (
    "By contrast the distance nearest neighbour models deal with outlying points in a more robust "
    "manner, since if a point x_j lies further away from other neighbours of x_i, then it will "
    "have a relatively smaller weight. … Our approach is robust to outliers whereas the nearest "
    "neighbour approaches will always have an outlying point having neighbours."
)
INTRUDER_DISTANCES = np.linspace(0.02, 1.5, 30)
OUTLIER_DISTANCES = np.geomspace(0.1, 100.0, 40)
PETALS = [2, 3]
HOST, INTRUDER = 0, 2  # setosa, virginica
SURE = 0.9


def make_units(settings: Settings) -> list[Unit]:
    """List one run a method."""
    return [
        Unit(TITLE, f"outlier-{method}", run_outlier, {"method": method, "seed": settings.seed})
        for method in METHODS
    ]


def run_outlier(method: str, seed: int) -> Result:
    """Follow the probabilities of one test point while a point moves, two features of iris."""
    problem = _petals(split("iris", 0, seed))
    centre = problem.train_features[problem.train_labels == HOST].mean(axis=0)
    direction = np.array([-1.0, -1.0]) / np.sqrt(2.0)  # away from the other classes
    intruded = []
    for distance in INTRUDER_DISTANCES:
        other = Problem(
            np.vstack([problem.train_features, centre + distance * direction]),
            np.append(problem.train_labels, INTRUDER),
            centre[None],
            np.array([HOST]),
        )
        intruded.append(float(_fit(method, other, seed).predict_proba(centre[None])[0, HOST]))
    model = _fit(method, problem, seed)
    far = centre + OUTLIER_DISTANCES[:, None] * direction
    result = {"intruded": intruded, "far": model.predict_proba(far).max(axis=1).tolist()}
    if method != "k-nn":
        result["score"] = model.outlier_score(far).tolist()
    return result


def _petals(problem: Problem) -> Problem:
    """Take two features, in units of their standard deviation."""
    train, test = problem.train_features[:, PETALS], problem.test_features[:, PETALS]
    mean, sd = train.mean(axis=0), train.std(axis=0)
    return Problem(
        (train - mean) / sd, problem.train_labels, (test - mean) / sd, problem.test_labels
    )


def _fit(method: str, problem: Problem, seed: int):
    from nearfield.estimators import KNeighborsClassifierCV

    if method == "k-nn":
        model = KNeighborsClassifierCV(standardize=False)
        return model.fit(problem.train_features, problem.train_labels)
    model = distance_model("iris", method, "pseudolikelihood", "cut", stream(seed, "outlier"))
    fit_quietly(model.set_params(standardize=False), problem)
    return model


def judge(results: list[tuple[Unit, Result]], settings: Settings) -> Claim:
    """Ask how far an intruder is heard, and whether anybody doubts far away."""
    found = {unit.arguments["method"]: result for unit, result in results}
    data = pd.DataFrame([_row(method, found[method]) for method in METHODS])
    return Claim(
        TITLE,
        QUOTE,
        "Section 3, comment 1, and section 6",
        *_find(data),
        [
            Table(
                "claim-outlier",
                "Iris, two features; distances in standard deviations",
                _shown(data),
                data,
            ),
            Figure(
                "claim-outlier",
                "A training point of another class moves away from a test point (left); the test "
                "point moves away from all training points (right)",
                lambda: _draw(found),
            ),
        ],
    )


def _find(data: pd.DataFrame) -> tuple[str, str]:
    """Give the verdict, and say it."""
    knn, dnn = data.iloc[0], data.iloc[1:]
    is_softer, is_doubting = dnn["lowest"] >= knn["lowest"], dnn["far"] < SURE
    verdict = HOLDS if is_softer.all() and is_doubting.all() else IN_PART
    if not (is_softer.any() or is_doubting.any()):
        verdict = FAILS
    doubters = ", ".join(dnn["method"][is_doubting]) or "none"
    sure = ", ".join(dnn["method"][~is_doubting])
    why = (
        f", and {sure} stay sure: weights are relative, so that there is always a nearest "
        "neighbour. The outlier score tells such a point."
    )
    return verdict, (
        "A training point of another class beside the test point lowers the probability of the "
        f"right class to {knn['lowest']:.2f} with k-nn and to {dnn['lowest'].min():.2f} at worst "
        "with d-nn, and the loss fades as it moves away. When the test point itself moves away "
        f"from all training points, k-nn stays sure of its class ({knn['far']:.2f}); of the d-nn "
        f"models {doubters} doubt{why if sure else '.'}"
    )


def _shown(data: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": data["method"],
            "lowest probability, intruder near": [f"{value:.2f}" for value in data["lowest"]],
            f"with the intruder {INTRUDER_DISTANCES[-1]:g} sd away": [
                f"{value:.2f}" for value in data["intruder_far"]
            ],
            "top probability 100 sd away": [f"{value:.2f}" for value in data["far"]],
            "outlier score 0.1 and 100 sd away": [
                "" if np.isnan(near) else f"{near:.2f}, {away:.2f}"
                for near, away in zip(data["score_near"], data["score_far"], strict=True)
            ],
        }
    )


def _row(method: str, result: Result) -> dict:
    score = result.get("score", [np.nan])
    return {
        "method": method,
        "lowest": min(result["intruded"]),
        "intruder_far": result["intruded"][-1],
        "far": result["far"][-1],
        "score_near": score[0],
        "score_far": score[-1],
    }


def _draw(found: dict[str, Result]):
    figure, (left, right) = new_figure(9.5, 4.0, ncols=2, sharey=True)
    styles = dict(zip(METHODS, ("-", "--", "-.", ":"), strict=True))
    for method in METHODS:
        style = {"color": COLOURS[method], "ls": styles[method], "lw": 2.0}
        left.plot(INTRUDER_DISTANCES, found[method]["intruded"], label=method, **style)
        right.plot(OUTLIER_DISTANCES, found[method]["far"], **style)
    left.set_xlabel("distance of the intruder (sd)")
    left.set_ylabel("probability")
    left.set_title("of the right class", fontsize=10)
    right.set(xscale="log", ylim=(0.3, 1.02))
    right.set_xlabel("distance of the test point (sd)")
    right.set_title("of the most probable class", fontsize=10)
    figure.legend(loc="outside upper center", ncols=len(KERNELS) + 1, frameon=False)
    return figure
