"""Pseudolikelihood beside exchange in time, and the auxiliary variable beside it in mixing.

The paper argues that exchange mixes better: here effective draws a million Gibbs sweeps of both,
with the same walk, on the six benchmark data sets. Runs are short; the ratio is what counts. It
hangs on the seed where chains of the auxiliary variable stick in one run and not in the next: on
glass five seeds gave them 3 to 64 effective draws, and exchange 68 to 119.
"""

import time
import warnings

import numpy as np
from exchange import DATASETS, PAPER, load_family, warm_up
from sklearn.exceptions import ConvergenceWarning
from timing import seconds_per_call

from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import AuxiliaryVariable, Exchange, Pseudolikelihood
from nearfield.inference._chain import RunLength, advance, start_chain
from nearfield.inference._target import check_target
from nearfield.inference.exchange import ExchangeSampler

SHORT = {"n_draws": 2_000, "n_burn": 1_000, "n_sweeps": 100, "n_chains": 2}
N_TIMED = 50  # iterations of exchange with the paper's settings, to be scaled
GOAL = 0.1  # seconds of pseudolikelihood


def main():
    print(f"Pseudolikelihood on the olive oils, warm (goal: below {GOAL:g} s)")
    family, labels = load_family("olive")
    for name, model in models(family).items():
        print(compare_time(name, model, labels), flush=True)
    print("Effective draws of the worse parameter a million Gibbs sweeps")
    for name in DATASETS:
        print(compare_mixing(name), flush=True)


def models(family):
    distances, n_classes = family.distances, family.n_classes
    kernels = ("gaussian", "radius", "exponential")
    return {kernel: DistanceFamily(distances, kernel, n_classes) for kernel in kernels} | {
        "k": NeighborFamily.from_distances(distances, n_classes),
        "directed k": NeighborFamily.from_distances(distances, n_classes, is_directed=True),
    }


def compare_time(name, family, labels):
    engine = Pseudolikelihood()
    seconds = seconds_per_call({name: lambda: engine.infer(None, family, labels)})[name]
    line = f"  {name:12s} n={family.n_points}  {seconds * 1e3:5.0f} ms"
    if not family.has_joint:
        return line
    return f"{line}   exchange x{seconds_of_exchange(family, labels) / seconds:.0f}"


def seconds_of_exchange(family, labels):
    """Time a few iterations with the paper's settings and scale them to a whole chain."""
    target = check_target(family, labels, None)
    warm_up(target)
    sampler = ExchangeSampler(target, PAPER._auxiliary_draw(target))
    length = RunLength(N_TIMED // 2, N_TIMED // 2)
    chain = start_chain(np.random.default_rng(1), sampler, length)
    started = time.process_time()
    advance(chain, sampler, length, seconds=np.inf)
    return (time.process_time() - started) * (PAPER.n_burn + PAPER.n_draws) / length.total


def compare_mixing(name):
    family, labels = load_family(name)
    exchange = draws_a_million_sweeps(Exchange(**SHORT), family, labels)
    auxiliary = draws_a_million_sweeps(AuxiliaryVariable(**SHORT), family, labels)
    return (
        f"  {name:6s} n={family.n_points:4d} G={family.n_classes}  exchange {exchange:5.0f}   "
        f"auxiliary variable {auxiliary:5.0f}   ratio {exchange / auxiliary:.1f}"
    )


def draws_a_million_sweeps(engine, family, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = engine.infer(np.random.default_rng(2), family, labels)
    n_sweeps = posterior.beta.size * engine.n_sweeps
    return posterior.summary()["ess_bulk"].min() / n_sweeps * 1e6


if __name__ == "__main__":
    main()
