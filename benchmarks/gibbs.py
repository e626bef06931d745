"""Gibbs sweeps: the compiled kernel beside vectorised NumPy and the same loop in C."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from timing import ratio_line, seconds_per_call

from nearfield.distances import distance_matrix
from nearfield.field import LabelField
from nearfield.sampling import draw_labels
from nearfield.sampling._support import stored_support
from nearfield.sampling.gibbs import _EXP_BOUNDS, gibbs_sweeps
from nearfield.weights import gaussian_weights

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
        support = stored_support(field, labels)
        sweep(field, beta, labels, support, n)
        results[name] = labels.tolist() if name != "numpy" else None
        timers[name] = (lambda s=sweep, y=labels, h=support, k=n: s(field, beta, y, h, k)), n
    if c_sweeps is not None and results["c"] != results["nearfield"]:
        raise SystemExit("the C loop and the kernel drew different labels: not the same algorithm")
    times = {
        name: seconds / timers[name][1] / n_points
        for name, seconds in seconds_per_call({k: v[0] for k, v in timers.items()}).items()
    }
    case = f"n={n_points:5d} G={n_classes} {regime:10s}"
    return ratio_line(case, times.pop("nearfield"), times, unit="site")


def compiled(field, beta, labels, support, n_sweeps):
    gibbs_sweeps(
        field.coupling,
        field.total_coupling,
        field.external_field,
        beta,
        labels,
        support,
        KEY,
        n_sweeps,
    )


def with_numpy(field, beta, labels, support, n_sweeps):
    """Sweep as a careful NumPy user would: one vector operation a step, no loop over j."""
    rng = np.random.default_rng(0)
    full = np.vstack([field.total_coupling - support.sum(axis=0), support])
    for _ in range(n_sweeps):
        uniforms = rng.random(len(labels))
        for i in range(len(labels)):
            log_weights = field.external_field + beta * full[:, i]
            cumulative = np.exp(log_weights - log_weights.max()).cumsum()
            new = cumulative.searchsorted(uniforms[i] * cumulative[-1])
            old = labels[i]
            if new != old:
                full[old] -= field.coupling[i]
                full[new] += field.coupling[i]
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
    function = ctypes.CDLL(str(library)).gibbs_sweeps

    def doubles(array):
        return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))

    def sweeps(field, beta, labels, support, n_sweeps):
        function(
            doubles(field.coupling),
            doubles(field.total_coupling),
            doubles(field.external_field),
            doubles(_EXP_BOUNDS),
            ctypes.c_double(beta),
            labels.ctypes.data_as(ctypes.POINTER(ctypes.c_int64)),
            doubles(support),
            ctypes.c_int64(len(labels)),
            ctypes.c_int64(field.n_classes),
            ctypes.c_uint64(int(KEY)),
            ctypes.c_int64(n_sweeps),
        )

    return sweeps


if __name__ == "__main__":
    main()
