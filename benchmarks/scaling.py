"""Many points: beside scikit-learn's tuned k-nn, and as the number of points grows.

`python benchmarks/scaling.py --million` also runs a million points (several minutes), and
`--draw docs/scaling.svg` draws the curves.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from nearfield import DistanceNeighborsClassifier

N_BESIDE = 100_000
N_TEST = 10_000
N_SCORED = 2_000
N_TIMED = 500  # queries that stand for all: scikit-learn's time a query hardly varies
N_TURNS = 7
KS = (1, 3, 5, 9, 15, 25, 45, 75, 125)
SIZES = (10_000, 30_000, 100_000)
LARGE = (*SIZES, 1_000_000)


def main(sizes=SIZES, path=None):
    # First, while this process is small: one that it starts counts its memory too.
    print(f"as n grows: CPU seconds of fit and of predicting {N_TEST:,} points, peak memory")
    results = [measured(n) for n in sizes]
    print(growth(results), flush=True)
    print(f"{N_BESIDE:,} points, 10 features, 4 classes: CPU seconds, one thread")
    print(beside_scikit_learn(), flush=True)
    if path is not None:
        draw(results, path)


def problem(n_points):
    X, y = make_classification(
        n_points + N_TEST,
        n_features=10,
        n_informative=8,
        n_redundant=0,
        n_classes=4,
        n_clusters_per_class=3,
        flip_y=0.05,
        random_state=0,
    )
    return (X[:n_points], y[:n_points]), (X[n_points:], y[n_points:])


def cpu_seconds(function):
    started = time.process_time()
    result = function()
    return time.process_time() - started, result


def fitted(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DistanceNeighborsClassifier(random_state=0, **settings).fit(X, y)


def beside_scikit_learn():
    (X, y), (new, new_y) = problem(N_BESIDE)
    fitted(X[:6_000], y[:6_000])  # compiles
    with threadpool_limits(1):
        ours, model = cpu_seconds(lambda: fitted(X, y))
        k = model.family_.n_neighbors
        theirs, best_k = tuned(X, y)
        knn = KNeighborsClassifier(best_k).fit(X, y)
        new, new_y = new[:N_SCORED], new_y[:N_SCORED]
        losses = [log_loss(new_y, each.predict_proba(new)) for each in (model, knn)]
        lines = [
            f"  fit  nearfield {ours:.1f} s (k = {k})  GridSearchCV of k-nn {theirs:.0f} s: "
            f"x{theirs / ours:.1f}",
            f"  log loss  nearfield {losses[0]:.4f}  k-nn (k = {best_k}) {losses[1]:.4f}",
            predictions_beside(model, X, y, new[:N_TIMED]),
            searches_beside(model.metric_space_.points, k),
        ]
    return "\n".join(lines)


def predictions_beside(model, X, y, new):
    """Time predictions, and those of k-nn with as many neighbours, by its choice and by ours."""
    k = model.family_.n_neighbors
    models = {"nearfield": model}
    for algorithm in ("auto", "brute"):
        models[algorithm] = KNeighborsClassifier(k, algorithm=algorithm).fit(X, y)
    seconds = dict.fromkeys(models, np.inf)
    one_row = np.inf
    for _ in range(N_TURNS):  # in turn: what else the machine does is shared
        for name, each in models.items():
            took, _ = cpu_seconds(lambda each=each: each.predict_proba(new))
            seconds[name] = min(seconds[name], took)
        one_row = min(one_row, cpu_seconds(lambda: model.predict_proba(new[:1]))[0])
    ours = seconds["nearfield"]
    return (
        f"  predict  nearfield {1e3 * ours / len(new):.2f} ms a point ({1e3 * one_row:.1f} ms for "
        f"one row), x{ours / seconds['auto']:.2f} of k-nn with k = {k}; "
        f"x{ours / seconds['brute']:.2f} of it by brute force"
    )


def searches_beside(points, k):
    """Time the search of neighbours by the tree of boxes, and by others."""
    import faiss
    from scipy.spatial import cKDTree

    from nearfield.neighbors import BoxIndex

    faiss.omp_set_num_threads(1)
    single = np.ascontiguousarray(points, dtype=np.float32)
    flat = faiss.IndexFlatL2(points.shape[1])
    flat.add(single)
    boxes, tree = BoxIndex.from_points(points), cKDTree(points)
    some = boxes.order[: 10 * N_TIMED]  # neighbours in turn, as a graph is built
    seconds = {
        "boxes": cpu_seconds(lambda: boxes.query(points[some], k))[0],
        "SciPy's k-d tree": cpu_seconds(lambda: tree.query(points[some], k))[0],
        "faiss's flat index": cpu_seconds(lambda: flat.search(single[some], k))[0],
    }
    ours = seconds.pop("boxes")
    text = ", ".join(f"{name} x{took / ours:.1f}" for name, took in seconds.items())
    return f"  search  {1e3 * ours / len(some):.3f} ms a point by boxes; {text} of that"


def tuned(X, y):
    """Time a grid search over 9 values of k in 5 folds by some of its queries; find the best k."""
    held_out = np.random.default_rng(0).permutation(len(X))
    test, train = held_out[: len(X) // 5], held_out[len(X) // 5 :]
    total, losses = 0.0, []
    for k in KS:
        build, knn = cpu_seconds(lambda k=k: KNeighborsClassifier(k).fit(X[train], y[train]))
        query, found = cpu_seconds(lambda knn=knn: knn.predict_proba(X[test[:N_TIMED]]))
        total += 5 * build + query / N_TIMED * len(X)
        losses.append(log_loss(y[test[:N_TIMED]], found))
    return total, KS[int(np.argmin(losses))]


def measured(n_points):
    """Fit and predict in a process of its own, whose memory nobody else used."""
    command = [sys.executable, __file__, "--one", str(n_points)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def measure_here(n_points):
    (X, y), (new, _) = problem(6_000)
    fitted(X, y).predict_proba(new[:10])  # compiles
    (X, y), (new, _) = problem(n_points)
    fit, model = cpu_seconds(lambda: fitted(X, y))
    predict, _ = cpu_seconds(lambda: model.predict_proba(new))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {
        "n": n_points,
        "fit": fit,
        "predict": predict,
        "gigabytes": peak,
        "n_neighbors": model.family_.n_neighbors,
    }


def growth(results):
    lines = [
        f"  n {r['n']:>9,}  fit {r['fit']:7.1f} s  predict {r['predict']:6.1f} s  "
        f"{r['gigabytes']:.2f} GB  k {r['n_neighbors']}"
        for r in results
    ]
    first, last = results[0], results[-1]
    span = np.log(last["n"] / first["n"])
    exponents = [np.log(last[name] / first[name]) / span for name in ("fit", "predict")]
    lines.append(f"  fit grows as n^{exponents[0]:.2f}, predict as n^{exponents[1]:.2f}")
    return "\n".join(lines)


def draw(results, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "nearfield"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    n = np.array([r["n"] for r in results])
    for name, label in (("fit", "fit"), ("predict", f"predict {N_TEST:,} points")):
        values = np.array([r[name] for r in results])
        left.loglog(n, values, "o-", label=label)
        left.loglog(n, values[0] * (n / n[0]) ** 1.1, ":", color="grey", linewidth=1)
    left.set(xlabel="training points", ylabel="CPU seconds", title="time (dotted: $n^{1.1}$)")
    left.legend()
    right.loglog(n, [r["gigabytes"] for r in results], "o-")
    right.set(xlabel="training points", ylabel="gigabytes", title="peak memory of the process")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--draw", metavar="PATH")
    parser.add_argument("--one", type=int, help="only measure so many points, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_here(arguments.one)))
    else:
        main(LARGE if arguments.million else SIZES, arguments.draw)
