"""``nearfield warmup``: compile the numerical code now, for images of containers."""

import time
from typing import Any

import numpy as np

from nearfield.cli._progress import progress
from nearfield.cli._run import one_line_errors, result_on_stdout

_N_POINTS = 60


@one_line_errors
@result_on_stdout
def warmup() -> str:
    """Compile what classifiers need for tables of up to 2,000 rows, so that no later run has to.

    The code is kept in NUMBA_CACHE_DIR where that is set, else in the package or in the user's
    cache. It depends on the processor: run this on the kind of machine that will use it.

    Example: `nearfield warmup`
    """
    started = time.perf_counter()
    with progress("Compiling"):
        compile_classifiers()
    return f"Compiled or loaded the classifiers in {time.perf_counter() - started:.0f} s.\n"


def compile_classifiers() -> None:
    """Fit every classifier to a small random table and use what it offers."""
    from nearfield import (
        DistanceNeighborsClassifier,
        KNeighborsClassifierCV,
        NearfieldClassifier,
        ProbabilisticKNeighborsClassifier,
    )

    rng = np.random.default_rng(0)
    y = np.arange(_N_POINTS) % 3
    X = rng.normal(size=(_N_POINTS, 3)) + y[:, None]
    models: list[Any] = [
        NearfieldClassifier(random_state=0),
        *(
            DistanceNeighborsClassifier(kernel=kernel, random_state=0)
            for kernel in ("gaussian", "radius", "exponential")
        ),
        ProbabilisticKNeighborsClassifier(random_state=0),
    ]
    for model in models:
        model.fit(X, y).predict_proba(X[:5])
        model.predict_proba_interval(X[:5])
        model.outlier_score(X[:5])
        model.decide(X[:5], level=0.1)
    KNeighborsClassifierCV().fit(X, y).predict_proba(X[:5])
