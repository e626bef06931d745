"""Prediction: beside scikit-learn's nearest neighbours, and by the number of draws."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from timing import seconds_per_call

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
    datasets,
)
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import Exchange, Posterior
from nearfield.neighbors.index import PrecomputedIndex
from nearfield.prediction import NeighborPredictor, Predictor

N_TEST, N_TRAIN, N_FEATURES = 100_000, 2_000, 10
N_TURNS = 3
N_SHORT_TURNS = 30
ONE_ROW_SIZES = (200, 2_000, 5_000)
N_THREADS = 2
MODELS = {
    "gaussian": DistanceNeighborsClassifier("gaussian", inference="pseudolikelihood"),
    "exponential": DistanceNeighborsClassifier("exponential", inference="pseudolikelihood"),
    "radius": DistanceNeighborsClassifier("radius", inference="pseudolikelihood"),
    "pk-nn, directed": ProbabilisticKNeighborsClassifier("directed"),
    "pk-nn, symmetric": ProbabilisticKNeighborsClassifier(inference="pseudolikelihood"),
    "k-nn, k by cv": KNeighborsClassifierCV(random_state=0),
}
REAL = ("iris", "wine", "glass", "crabs", "olive", "pima")
SHORT_CHAINS = Exchange(n_draws=2_500, n_burn=1_000, n_sweeps=100)  # 10,000 draws in all
SIZES = ((200, 3), (500, 4), (2_000, 6))  # points and features, to compare numbers of draws on
WIDTHS = {"realistic": (3.0, 0.6, 0.12), "wide": (8.0, 4.0, 0.8)}  # beta, its sd, that of log scale


def main():
    print(
        f"predict_proba, {N_TEST:,} x {N_TRAIN:,} x {N_FEATURES}, {N_THREADS} threads: CPU "
        "seconds, and as a multiple of scikit-learn's brute-force k-nn"
    )
    print(beside_scikit_learn(), flush=True)
    print("predict_proba of one row, NearfieldClassifier and scikit-learn's k-nn: CPU milliseconds")
    for n_points in ONE_ROW_SIZES:
        ours, theirs = one_row(n_points)
        print(f"  {n_points:6,} training points  {ours:5.2f}  {theirs:5.2f}", flush=True)
    sizes = ", ".join(f"{n_points:,} x {n_features}" for n_points, n_features in SIZES)
    print(f"10,000 draws: CPU time as a multiple of that for 100 nodes; {sizes}")
    for model in ("gaussian", "exponential", "radius", "k"):
        for width in WIDTHS:
            ratios = [by_number_of_draws(model, width, *size) for size in SIZES]
            line = "  ".join(f"x{ratio:.2f}" for ratio in ratios)
            print(f"  {model:12s} {width:10s} {line}", flush=True)
    models = ("gaussian", "exponential", "radius", "k")
    print(f"The same with draws by exchange; a quarter of each set trains; {', '.join(models)}")
    for name in REAL:
        line = "  ".join(f"x{of_real_draws(name, model):.2f}" for model in models)
        print(f"  {name:12s} {line}", flush=True)


def problem(n_points, n_features=N_FEATURES, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features))
    noise = 0.5 * rng.normal(size=n_points)
    return points, (points[:, 0] + 0.5 * points[:, 1] + noise > 0).astype(int) + (points[:, 2] > 1)


def beside_scikit_learn():
    """Time every model, and scikit-learn's nearest neighbours, in turns."""
    X, y = problem(N_TRAIN)
    new, _ = problem(N_TEST, seed=1)
    theirs = KNeighborsClassifier(n_neighbors=15, algorithm="brute", n_jobs=N_THREADS).fit(X, y)
    timers = {"scikit-learn": lambda: theirs.predict_proba(new)}
    for name, model in MODELS.items():
        model.set_params(n_jobs=N_THREADS).fit(X, y)
        model.predict_proba(new[:1_000])  # compiles, and places the nodes
        timers[name] = lambda model=model: model.predict_proba(new)
    with threadpool_limits(N_THREADS):
        seconds = seconds_per_call(timers, N_TURNS)
    return "\n".join(
        f"  {name:20s} {value:6.2f} s  x{value / seconds['scikit-learn']:.2f}"
        for name, value in seconds.items()
    )


def one_row(n_points):
    """Time the prediction of one row, ours and by scikit-learn's k-nn, in milliseconds."""
    X, y = problem(n_points)
    row = problem(1, seed=1)[0]
    timers = {}
    for model in (NearfieldClassifier(random_state=0), KNeighborsClassifier(n_neighbors=15)):
        model.fit(X, y).predict_proba(row)  # compiles, and computes what is kept
        timers[type(model).__name__] = lambda model=model: model.predict_proba(row)
    return [1e3 * seconds for seconds in seconds_per_call(timers, N_SHORT_TURNS).values()]


def by_number_of_draws(model, width, n_points, n_features, n_test=100):
    """Time the average over 100 nodes and 10,000 draws; return the ratio."""
    points, labels = problem(n_points, n_features)
    distances = distance_matrix(points)
    new = distance_matrix(problem(n_test, n_features, seed=1)[0], points)
    family = family_of(model, distances, 3)
    few, many = (draws(model, width, n_points, n_draws) for n_draws in (100, 10_000))
    return cost_ratio(family, labels, new, few, many)


def of_real_draws(name, model):
    """Time the same with draws of a real posterior; the 100 nodes are every hundredth of them."""
    return cost_ratio(*real_draws(name, model))


def real_draws(name, model):
    """Draw from the posterior of a real set; return what `cost_ratio` takes."""
    data = getattr(datasets, f"load_{name}")()
    X, new, y, _ = train_test_split(
        data.data, data.target, train_size=0.25, stratify=data.target, random_state=0
    )
    with warnings.catch_warnings():
        # The chains are short: what they cost is of no interest here, nor is their last digit.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = classifier(model).fit(X, y)
    scaler = StandardScaler().fit(X)
    points, new = scaler.transform(X), scaler.transform(new)
    labels = np.searchsorted(fitted.classes_, y)
    family = family_of(model, distance_matrix(points), len(fitted.classes_))
    many = fitted.posterior_.beta.ravel(), fitted.posterior_.scale.ravel()
    few = tuple(values[::100] for values in many)
    return family, labels, distance_matrix(new, points), few, many


def classifier(model):
    if model == "k":
        return ProbabilisticKNeighborsClassifier(inference=SHORT_CHAINS, random_state=0)
    return DistanceNeighborsClassifier(model, inference=SHORT_CHAINS, random_state=0)


def family_of(model, distances, n_classes):
    if model == "k":
        return NeighborFamily.from_distances(distances, n_classes)
    return DistanceFamily(distances, model, n_classes)


def predictor_of(posterior, family, labels):
    if not family.has_graph:
        return Predictor(posterior, family, labels)
    return NeighborPredictor(posterior, family, labels, PrecomputedIndex(family.n_points))


def cost_ratio(family, labels, new, few, many):
    """Time predictions by few nodes and by many, given as (betas, scales); return the ratio."""
    timers = {}
    for betas, scales in (few, many):
        weights = np.full(len(betas), 1.0 / len(betas))
        posterior = Posterior.from_nodes(betas, scales, weights, family.scale_name)
        predictor = predictor_of(posterior, family, labels)
        predictor.probabilities(new[:2])
        timers[len(betas)] = lambda p=predictor: p.probabilities(new)
    seconds = seconds_per_call(timers, N_SHORT_TURNS)
    return seconds[len(many[0])] / seconds[len(few[0])]


def draws(model, width, n_points, n_draws):
    rng = np.random.default_rng(0)
    mean, sd_beta, sd_log_scale = WIDTHS[width]
    first, second = rng.normal(size=(2, n_draws))
    spread = np.exp(sd_log_scale * (0.6 * first + 0.8 * second))
    betas = mean + sd_beta * first
    if model == "k":
        return betas, np.clip(np.round(0.08 * n_points * spread**2), 1, n_points // 2)
    return betas, {"gaussian": 0.5, "exponential": 3.0, "radius": 1.2}[model] * spread


if __name__ == "__main__":
    main()
