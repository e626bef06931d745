"""Import time and the first draw, each in a fresh process."""

import os
import subprocess
import sys
import tempfile

FIRST_DRAW = """
import time, numpy as np
from nearfield.field import LabelField
from nearfield.sampling import draw_labels
field = LabelField.from_weights((1 - np.eye(37)) / 36, 3)
started = time.perf_counter()
draw_labels(np.random.default_rng(0), field, 1.0, n_sweeps=10)
print(time.perf_counter() - started)
"""
IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
PUBLIC = "nearfield, nearfield.sampling, nearfield.field.enumeration, nearfield.datasets"


def main():
    print("Start-up, each in a fresh process (best of 5)")
    libraries = best_of(IMPORT.format("sklearn.base, sklearn.metrics, sklearn.utils, numba"))
    ours = best_of(IMPORT.format(PUBLIC))
    print(
        f"  import: nearfield {ours:.2f} s, scikit-learn and Numba alone {libraries:.2f} s, "
        f"ratio {ours / libraries:.2f} (goal: at most 1.5)"
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = seconds_in_fresh_process(FIRST_DRAW, cache)
        warm = best_of(FIRST_DRAW, cache)
    print(
        f"  first draw: {warm:.3f} s with the compiled kernels cached (goal: at most 0.5), "
        f"{cold:.2f} s when they must be compiled"
    )


def best_of(script, cache=None, n_turns=5):
    return min(seconds_in_fresh_process(script, cache) for _ in range(n_turns))


def seconds_in_fresh_process(script, cache=None):
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    return float(run.stdout)


if __name__ == "__main__":
    main()
