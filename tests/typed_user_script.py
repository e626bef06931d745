"""A user's script, for type checkers: what it uses has types, and its typos are errors."""

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import nearfield
from nearfield.datasets import load_iris, stratified_split
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference import Exchange, PathSampling, Posterior


def main(folder: Path) -> None:
    iris = load_iris()
    X, y = load_iris(return_X_y=True)
    assert_type(X, NDArray[np.float64])
    train, test = stratified_split(y, 0.5, random_state=0)

    model = nearfield.NearfieldClassifier(random_state=0).fit(X[train], y[train])
    probabilities = assert_type(model.predict_proba(X[test]), NDArray[np.float64])
    sets = assert_type(model.predict_set(X[test], coverage=0.9), NDArray[np.bool_])
    print(
        iris.feature_names, probabilities.max(), sets.sum(axis=1), model.decide(X[test], level=0.05)
    )

    paper = nearfield.DistanceNeighborsClassifier("gaussian", inference=PathSampling(n_draws=2))
    posterior = assert_type(paper.fit(X[train], y[train]).posterior_, Posterior)
    print(posterior.summary().loc["beta"], posterior.sigma.mean(), posterior.log_evidence)

    nearfield.save(model, folder / "iris.nearfield")
    again = nearfield.load(folder / "iris.nearfield")
    accuracy = assert_type(again.score(X[test], y[test]), float)
    if isinstance(again, nearfield.NearfieldClassifier):
        print(accuracy, again.outlier_score(X[test]).max())

    family = DistanceFamily(distance_matrix(X[train]), "gaussian", n_classes=3)
    draws = Exchange(n_draws=500, n_burn=500, n_sweeps=20, start="data").infer(0, family, y[train])
    print(draws.quantile([0.05, 0.95]), draws.acceptance_rate)


def typos(distances: NDArray[np.float64]) -> None:
    DistanceFamily(distances, "gausian", n_classes=3)  # type: ignore[arg-type]
    Exchange(start="random labels")  # type: ignore[arg-type]
    nearfield.DistanceNeighborsClassifier("gausian")  # type: ignore[arg-type]
    nearfield.DistanceNeighborsClassifier(metric="manhatan")  # type: ignore[arg-type]
    nearfield.DistanceNeighborsClassifier(inference="exchanged")  # type: ignore[arg-type]
    nearfield.ProbabilisticKNeighborsClassifier("symetric")  # type: ignore[arg-type]
    nearfield.NearfieldClassifier(["gaussian"], ["cosin"])  # type: ignore[list-item]
    nearfield.NearfieldClassifier(averaging="bayes", preprocess="nir")  # type: ignore[arg-type]
    nearfield.load("iris.nearfield").predict_probability(distances)  # type: ignore[attr-defined]
    print(load_iris().feature_names.shape)  # type: ignore[attr-defined]
