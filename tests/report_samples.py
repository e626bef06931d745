"""A report made of arrays, for tests of the page that need no model."""

import numpy as np
import pandas as pd

from nearfield.report import describe_data
from nearfield.report.results import (
    EstimatorSummary,
    Method,
    Neighbors,
    Report,
    SampleMap,
    Spectra,
)

HOSTILE = (
    "<script>window.broken = 1</script>",
    "\"double\" & 'single'",
    "</script><img src=x onerror='window.broken = 1'>",
    "a long name that goes on " + "and on " * 12,
    "x" * 120,
)
LOSSES = {"error": 0.1, "error_se": 0.01, "log_loss": 0.3, "log_loss_se": 0.02, "brier": 0.2}


def make_report(classes=("a", "b", "c"), n=30, *, has_spectra=False, names=None):
    """Make a report of n samples, every seventh of them predicted wrong."""
    rng = np.random.default_rng(5)
    n_classes = len(classes)
    labels = np.arange(n) % n_classes
    predicted = np.where(np.arange(n) % 7 == 3, (labels + 1) % n_classes, labels)
    probabilities = rng.dirichlet(np.ones(n_classes), n) + 2.0 * np.eye(n_classes)[predicted]
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    ids = tuple(names or (f"s{i}" for i in range(1, n + 1)))
    features = pd.DataFrame(rng.normal(size=(n, 2)), columns=["u", "v"])
    rows = (np.arange(n)[:, None] + np.arange(1, 5)) % n
    quantiles = {"beta": np.arange(1.0, 6.0), "sigma": np.arange(0.1, 0.6, 0.1)[:5]}
    axis = np.linspace(400, 700, 60)
    values = rng.normal(size=(n, 60)).cumsum(axis=1)
    means = np.stack([values[labels == g].mean(axis=0) for g in range(n_classes)])
    return Report(
        source="table.csv",
        target="kind",
        classes=tuple(classes),
        ids=ids,
        labels=labels,
        folds=np.arange(n) % 3,
        data=describe_data(features, labels, classes),
        methods=(
            Method("nearfield", probabilities, LOSSES | {"ece": 0.05}, 1.5),
            Method("k-nn", probabilities[:, ::-1], LOSSES | {"ece": 0.15}, 0.1),
        ),
        p_values=rng.uniform(size=(n, n_classes)) * (np.arange(n) % 9 > 0)[:, None],
        neighbors=Neighbors(rows, np.tile([0.9, 0.5, -0.2, 0.1], (n, 1))),
        sample_map=SampleMap(rng.normal(size=(n, 2)), labels, ids, 0, 0.75),
        estimators=(EstimatorSummary("gaussian, ard", 0.8, -0.2, quantiles),),
        spectra=Spectra(axis, values, means) if has_spectra else None,
        settings={"model": "NearfieldClassifier"},
        seed=3,
    )
