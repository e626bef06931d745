"""Gibbs sweeps: the compiled kernel beside vectorised NumPy and the same loop in C."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from timing import ratio_line, seconds_per_call

from nearfield.distances import distance_matrix
from nearfield.field import LabelField, gaussian_weights
from nearfield.sampling import draw_labels
from nearfield.sampling.gibbs import _EXPS, _LOGITS, _N_CELLS, kernel_of

SIZES = [37, 60, 133, 143, 1000]
CLASSES = [2, 3, 5]
REGIMES = {"disordered": 0.3, "middle": 1.5, "ordered": 3.0, "frozen": 20.0}
KEY = np.uint64(2026)


def main():
    c_sweeps = compile_c()
    print("Gibbs sweeps on dense fields: time a site, and how many times as long the others take")
    for n_points in SIZES:
        for n_classes in CLASSES:
            for regime, beta in REGIMES.items():
                print(compare(n_points, n_classes, regime, beta, c_sweeps), flush=True)


def compare(n_points, n_classes, regime, beta, c_sweeps):
    rng = np.random.default_rng(7)
    points = rng.normal(size=(n_points, 4))
    field = LabelField.from_weights(gaussian_weights(distance_matrix(points), 0.7), n_classes)
    start = draw_labels(rng, field, beta, n_sweeps=50)
    n_sweeps = max(200_000 // n_points, 20)
    results, timers = {}, {}
    for name, sweep in {"nearfield": compiled, "numpy": with_numpy, "c": c_sweeps}.items():
        if sweep is None:
            continue
        n = 2 if name == "numpy" else n_sweeps
        labels = start.copy()
        kernel = kernel_of(field, beta, labels)
        sweep(field, beta, kernel, n)
        results[name] = labels.tolist()
        timers[name] = (lambda s=sweep, kept=kernel, k=n: s(field, beta, kept, k)), n
    if c_sweeps is not None and results["c"] != results["nearfield"]:
        raise SystemExit("the C loop and the kernel drew different labels: not the same algorithm")
    times = {
        name: seconds / timers[name][1] / n_points
        for name, seconds in seconds_per_call({k: v[0] for k, v in timers.items()}).items()
    }
    case = f"n={n_points:5d} G={n_classes} {regime:10s}"
    return ratio_line(case, times.pop("nearfield"), times, unit="site")


def compiled(field, beta, kernel, n_sweeps):
    sweeps, arguments = kernel
    sweeps(*arguments, KEY, n_sweeps)


def with_numpy(field, beta, kernel, n_sweeps):
    """Sweep as a careful NumPy user would: one vector operation a step, no loop over j."""
    rng = np.random.default_rng(0)
    labels = kernel[1][2]
    support = field.support(labels).T.copy()
    for _ in range(n_sweeps):
        uniforms = rng.random(len(labels))
        for i in range(len(labels)):
            log_weights = field.external_field + beta * support[:, i]
            cumulative = np.exp(log_weights - log_weights.max()).cumsum()
            new = cumulative.searchsorted(uniforms[i] * cumulative[-1])
            old = labels[i]
            if new != old:
                support[old] -= field.coupling[i]
                support[new] += field.coupling[i]
                labels[i] = new


def compile_c():
    """Build the C loop, or return None where there is no gcc."""
    if shutil.which("gcc") is None:
        print("gcc not found: no comparison with C")
        return None
    library = Path(tempfile.mkdtemp()) / "gibbs.so"
    source = Path(__file__).with_name("gibbs.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC", "-lm"]
    subprocess.run(["gcc", str(source), "-o", str(library), *flags], check=True)
    library = ctypes.CDLL(str(library))

    def pointer(array):
        kind = ctypes.c_double if array.dtype == np.float64 else ctypes.c_int64
        return array.ctypes.data_as(ctypes.POINTER(kind))

    def sweeps(field, beta, kernel, n_sweeps):
        _, (coupling, kept, labels) = kernel
        arrays = [pointer(array) for array in (coupling, kept, labels, _LOGITS)]
        whole = ctypes.c_int64
        run = whole(len(labels)), ctypes.c_uint64(int(KEY)), whole(n_sweeps)
        if field.n_classes == 2:
            library.two_class_sweeps(*arrays, whole(_N_CELLS), *run)
        else:
            shape = run[0], whole(field.n_classes)
            library.class_sweeps(*arrays, whole(_N_CELLS), pointer(_EXPS), *shape, *run[1:])

    return sweeps


if __name__ == "__main__":
    main()
