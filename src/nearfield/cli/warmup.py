"""``nearfield warmup``: compile the numerical code now, for images of containers."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.cli._progress import progress
from nearfield.cli._run import one_line_errors, result_on_stdout

_N_POINTS = 60
_N_POINTS_OF_GRAPH = 2_100  # classifiers of more than 2,000 points use the neighbour graph


@one_line_errors
@result_on_stdout
def warmup() -> str:
    """Compile what classifiers need for small and large tables, so that no later run has to.

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
    from scipy import stats

    from nearfield import (
        DistanceNeighborsClassifier,
        KNeighborsClassifierCV,
        NearfieldClassifier,
        ProbabilisticKNeighborsClassifier,
    )

    X, y = _random_table(_N_POINTS)
    models: list[Any] = [
        NearfieldClassifier(random_state=0),
        *(
            DistanceNeighborsClassifier(kernel=kernel, random_state=0)
            for kernel in ("gaussian", "radius", "exponential")
        ),
        ProbabilisticKNeighborsClassifier(random_state=0),
    ]
    for model in models:
        _use(model.fit(X, y), X[:5])
    KNeighborsClassifierCV().fit(X, y).predict_proba(X[:5])
    X, y = _random_table(_N_POINTS_OF_GRAPH)
    for model in (
        NearfieldClassifier(random_state=0),
        DistanceNeighborsClassifier(random_state=0),
        ProbabilisticKNeighborsClassifier(prior_k=stats.randint(1, 33), random_state=0),
    ):
        _use(model.fit(X, y), X[:5])


def _random_table(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    y = np.arange(n_points) % 3
    return np.random.default_rng(0).normal(size=(n_points, 3)) + y[:, None], y


def _use(model: Any, X: NDArray[np.float64]) -> None:
    model.predict_proba(X)
    model.predict_proba_interval(X)
    model.outlier_score(X)
    model.decide(X, level=0.1)
