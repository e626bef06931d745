"""Claim: d-nn is robust to outliers.

Two experiments on the petals of iris. A training point of another class is placed beside a test
point and moved away. Then the test point itself is moved away from all training points.
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from nearfield.reproduction.claims.findings import FAILS, HOLDS, IN_PART, Finding
from nearfield.reproduction.experiment import fit_quietly, make_model
from nearfield.reproduction.figures import COLOURS, new_figure
from nearfield.reproduction.paper import METHODS
from nearfield.reproduction.problems import Problem, petals, split, stream
from nearfield.reproduction.settings import Settings
from nearfield.runs import Result, Results, Unit

NEAREST, FARTHEST = 0.02, 1.5  # distances of the intruder, in standard deviations
OUTLIER_DISTANCES = np.geomspace(0.1, 100.0, 40)
HOST, INTRUDER = 0, 2  # setosa, virginica
CONFIDENT = 0.9


def make_units(settings: Settings) -> list[Unit]:
    """List each method."""
    arguments = {"seed": settings.seed, "n_distances": settings.n_intruder_distances}
    return [Unit("outlier", run_outlier, {"method": method, **arguments}) for method in METHODS]


def run_outlier(method: str, seed: int, n_distances: int) -> Result:
    """Follow the probabilities of a test point as the intruder, then the point itself, moves."""
    problem = petals(split("iris", 0, seed))
    train = StandardScaler().fit_transform(problem.train_features)
    labels = problem.train_labels
    centre = train[labels == HOST].mean(axis=0)
    direction = np.array([-1.0, -1.0]) / np.sqrt(2.0)  # away from the other classes
    distances = np.linspace(NEAREST, FARTHEST, n_distances)
    intruded = []
    for distance in distances:
        points = np.vstack([train, centre + distance * direction])
        model = _fit(method, points, np.append(labels, INTRUDER), seed)
        intruded.append(float(model.predict_proba(centre[None])[0, HOST]))
    model = _fit(method, train, labels, seed)
    far = centre + OUTLIER_DISTANCES[:, None] * direction
    return {
        "distances": distances.tolist(),
        "intruded": intruded,
        "far": model.predict_proba(far).max(axis=1).tolist(),
        "score": [] if method == "k-nn" else model.outlier_score(far).tolist(),
    }


def _fit(method: str, features: np.ndarray, labels: np.ndarray, seed: int) -> Any:
    model = make_model("iris", method, "pseudolikelihood", "cut", stream(seed, "outlier"))
    fit_quietly(model.set_params(standardize=False), Problem(features, labels, features, labels))
    return model


def judge(results: Results, settings: Settings) -> Finding:
    """Ask how much an intruder lowers the probability, and whether confidence falls far away."""
    found = {unit.arguments["method"]: result for unit, result in results}
    data = pd.DataFrame([_record(method, found[method]) for method in METHODS])
    return Finding(*assess(data), data, lambda: _draw(found))


def assess(data: pd.DataFrame) -> tuple[str, str]:
    """Return the verdict and its reason."""
    knn, dnn = data.iloc[0], data.iloc[1:]
    is_softer, is_doubtful = dnn["lowest"] >= knn["lowest"], dnn["far"] < CONFIDENT
    verdict = HOLDS if is_softer.all() and is_doubtful.all() else IN_PART
    if not (is_softer.any() or is_doubtful.any()):
        verdict = FAILS
    confident = ", ".join(dnn["method"][~is_doubtful])
    doubtful = ", ".join(dnn["method"][is_doubtful])
    summary = (
        "A training point of another class beside the test point lowers the probability of the "
        f"true class to {knn['lowest']:.2f} with k-nn and to {dnn['lowest'].min():.2f} at worst "
        "with d-nn; the effect vanishes as it moves away. For a test point far from all training "
        f"points, k-nn stays confident ({knn['far']:.2f})"
    )
    summary += f", {doubtful} does not" if doubtful else ""
    if confident:
        summary += (
            f", and {confident} stay confident: weights are relative, so that there is always a "
            "nearest neighbour. The outlier score detects such points"
        )
    return verdict, summary + "."


def _record(method: str, result: Result) -> dict[str, Any]:
    score = result["score"] or [np.nan]
    return {
        "method": method,
        "lowest": min(result["intruded"]),
        "intruder_far": result["intruded"][-1],
        "far": result["far"][-1],
        "score_near": score[0],
        "score_far": score[-1],
    }


def _draw(found: dict[str, Result]) -> Any:
    figure, (left, right) = new_figure(9.5, 4.0, ncols=2, sharey=True)
    for method, line in zip(METHODS, ("-", "--", "-.", ":"), strict=True):
        style = {"color": COLOURS[method], "ls": line, "lw": 2.0}
        result = found[method]
        left.plot(result["distances"], result["intruded"], label=method, **style)
        right.plot(OUTLIER_DISTANCES, result["far"], **style)
    left.set(xlabel="distance of the intruder (sd)", ylabel="probability")
    left.set_title("of the true class", fontsize=10)
    right.set(xscale="log", ylim=(0.3, 1.02), xlabel="distance of the test point (sd)")
    right.set_title("of the most probable class", fontsize=10)
    figure.legend(loc="outside upper center", ncols=len(METHODS), frameon=False)
    return figure
