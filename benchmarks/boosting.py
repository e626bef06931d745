"""Large tables beside gradient boosting: error, log loss, fit and predict time.

LightGBM is measured where it is installed.

`python benchmarks/boosting.py --large` also runs 200,000 x 20 and 1,000,000 x 10 points.
"""

import argparse
import importlib.util

import numpy as np
from scaling import cpu_seconds
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier

N_TEST = 10_000
SHAPES = ((20_000, 20), (50_000, 10))
LARGE = (*SHAPES, (200_000, 20), (1_000_000, 10))


def main(shapes=SHAPES):
    print(f"beside gradient boosting (200 trees): CPU seconds, {N_TEST:,} predictions")
    warm_up()
    for n_points, n_features in shapes:
        (X, y), (new, new_y) = problem(n_points, n_features)
        for name, model in models().items():
            with threadpool_limits(1):
                fit, _ = cpu_seconds(lambda model=model, X=X, y=y: model.fit(X, y))
                predict, found = cpu_seconds(lambda model=model, new=new: model.predict_proba(new))
            error = np.mean(model.classes_[found.argmax(axis=1)] != new_y)
            print(
                f"  {n_points:>9,} x {n_features}  {name:<28} fit {fit:6.1f} s  predict "
                f"{predict:5.1f} s  error {error:.4f}  log loss {log_loss(new_y, found):.4f}",
                flush=True,
            )


def models():
    found = {
        "DistanceNeighborsClassifier": DistanceNeighborsClassifier(random_state=0),
        "NearfieldClassifier": NearfieldClassifier(random_state=0),
        "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=200, random_state=0),
    }
    if importlib.util.find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        found["LightGBM"] = LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, random_state=0)
    return found


def problem(n_points, n_features):
    """Make clusters of four classes; two in five features are redundant or noise."""
    X, y = make_classification(
        n_points + N_TEST,
        n_features=n_features,
        n_informative=int(0.6 * n_features),
        n_redundant=int(0.2 * n_features),
        n_classes=4,
        n_clusters_per_class=3,
        flip_y=0.05,
        random_state=1,
    )
    return (X[:n_points], y[:n_points]), (X[n_points:], y[n_points:])


def warm_up():
    (X, y), (new, _) = problem(6_000, 10)
    for model in models().values():
        model.fit(X, y).predict_proba(new[:10])  # compiles


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    main(LARGE if parser.parse_args().large else SHAPES)
