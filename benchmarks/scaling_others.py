"""The other estimators as the number of points grows, beside DistanceNeighborsClassifier.

`python benchmarks/scaling_others.py --sizes 10000 100000` measures other sizes.
"""

import argparse
import json
import resource
import subprocess
import sys
import warnings

import numpy as np
from scaling import N_TEST, cpu_seconds, problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)

SIZES = (10_001, 30_000)  # 10,000 is the last size at which k-nn sees all distances
MODELS = {
    "d-nn": DistanceNeighborsClassifier(random_state=0),
    "NearfieldClassifier": NearfieldClassifier(random_state=0),
    "pk-nn directed": ProbabilisticKNeighborsClassifier("directed", random_state=0),
    "pk-nn symmetric": ProbabilisticKNeighborsClassifier(random_state=0),
    "k-nn by leave-one-out": KNeighborsClassifierCV(random_state=0),
}


def main(sizes=SIZES):
    print(f"the other estimators: CPU seconds of fit and of predicting {N_TEST:,} points")
    first = {}
    for n_points in sizes:
        base = None
        for name in MODELS:
            result = measured(name, n_points)
            base = base or result
            print(line(name, result, base, first.setdefault(name, result)), flush=True)


def measured(name, n_points):
    """Fit and predict in a process of its own, whose memory nobody else used."""
    command = [sys.executable, __file__, "--one", name, "--sizes", str(n_points)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def measure_here(name, n_points):
    model = MODELS[name]
    warnings.simplefilter("ignore", ConvergenceWarning)
    (X, y), (new, _) = problem(6_000)
    model.fit(X, y).predict_proba(new[:10])  # compiles
    (X, y), (new, new_y) = problem(n_points)
    with threadpool_limits(1):  # threads that wait for each other count as time
        fit, model = cpu_seconds(lambda: model.fit(X, y))
        predict, probabilities = cpu_seconds(lambda: model.predict_proba(new))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    probabilities = np.maximum(probabilities, 1e-6)  # k-nn is sure where it must not be
    loss = log_loss(new_y, probabilities / probabilities.sum(axis=1, keepdims=True))
    return {"n": n_points, "fit": fit, "predict": predict, "gigabytes": peak, "loss": loss}


def line(name, result, base, first):
    text = f"  n {result['n']:>9,}  {name:<28}  {result['gigabytes']:.2f} GB"
    for what in ("fit", "predict"):
        text += f"  {what} {result[what]:6.1f} s, x{result[what] / base[what]:.2f} of d-nn"
        if result["n"] > first["n"]:
            span = np.log(result["n"] / first["n"])
            text += f", n^{np.log(result[what] / first[what]) / span:.2f}"
    return f"{text}  log loss {result['loss']:.4f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", help="only measure this model at the first size, as JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure_here(arguments.one, arguments.sizes[0])))
    else:
        main(arguments.sizes)
