"""One exchange chain with the paper's settings on its six benchmark data sets.

The paper reports 1 to 12 hours a data set; the goal is a minute on one core. Beside it the same
chain in vectorised NumPy, run for a few iterations and scaled. `--quick` scales nearfield too.
"""

import argparse
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from nearfield import datasets
from nearfield.datasets import stratified_split
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference._chain import RunLength, advance, start_chain
from nearfield.inference._target import check_target
from nearfield.inference.exchange import Exchange, ExchangeSampler

DATASETS = ["crabs", "glass", "iris", "olive", "pima", "wine"]
PAPER = Exchange()
N_QUICK = 1_000  # iterations, of which the first half is burn-in
N_NUMPY_SWEEPS = 20


def main(is_quick=False):
    print("Exchange, one chain, 20,000 iterations of 1,000 sweeps (goal: at most 60 s a data set)")
    with threadpool_limits(limits=1, user_api="blas"):  # as in a run, and fair to NumPy
        for name in DATASETS:
            print(compare(name, is_quick), flush=True)


def compare(name, is_quick):
    family, labels = load_family(name)
    target = check_target(family, labels, None)
    length = RunLength(PAPER.n_burn, PAPER.n_draws)
    n_run = RunLength(N_QUICK // 2, N_QUICK // 2) if is_quick else length
    warm_up(target)
    sampler = ExchangeSampler(target, PAPER._auxiliary_draw(target))
    started = time.process_time()
    start = start_chain(np.random.default_rng(1), sampler, n_run)
    chain = advance(start, sampler, n_run, seconds=np.inf)
    scale = length.total / n_run.total
    seconds = (time.process_time() - started) * scale
    numpy_seconds = seconds_of_numpy(chain.state.point, labels, family) * length.total
    beta, sigma = chain.draws.mean(axis=0)
    return (
        f"  {name:6s} n={family.n_points:4d} G={family.n_classes}  {seconds:6.1f} s"
        f"{' (scaled)' if is_quick else ''}   acceptance {chain.n_accepted / n_run.n_draws:.0%}   "
        f"beta {beta:.2f}, sigma {sigma:.2f}   numpy x{numpy_seconds / seconds:.0f}"
    )


def load_family(name):
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, _ = stratified_split(labels, 0.25, random_state=0)
    features, labels = features[train], labels[train]
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    n_classes = int(labels.max()) + 1
    return DistanceFamily(distance_matrix(features), "gaussian", n_classes), labels


def warm_up(target):
    """Compile or load the kernels before the clock starts."""
    settings, length = replace(PAPER, n_sweeps=1), RunLength(10, 10)
    sampler = ExchangeSampler(target, settings._auxiliary_draw(target))
    advance(start_chain(np.random.default_rng(0), sampler, length), sampler, length, np.inf)


def seconds_of_numpy(point, labels, family):
    """Time one iteration in NumPy at a point of the posterior: weights, sweeps, agreements."""
    rng = np.random.default_rng(0)
    started = time.process_time()
    field = family.at(point.scale)
    auxiliary = rng.integers(family.n_classes, size=family.n_points)
    support = field.support(auxiliary).T.copy()
    _ = [f.agreement(y) for f, y in ((field, labels), (field, auxiliary), (point.field, auxiliary))]
    once = time.process_time() - started
    sweep_with_numpy(rng, field, point.beta, auxiliary, support, n_sweeps=50)  # past the start
    started = time.process_time()
    sweep_with_numpy(rng, field, point.beta, auxiliary, support, N_NUMPY_SWEEPS)
    return once + (time.process_time() - started) / N_NUMPY_SWEEPS * PAPER.n_sweeps


def sweep_with_numpy(rng, field, beta, labels, support, n_sweeps):
    """Sweep as a careful NumPy user would: one vector operation a step, no loop over j."""
    for _ in range(n_sweeps):
        uniforms = rng.random(len(labels))
        for i in range(len(labels)):
            log_weights = beta * support[:, i]
            weights = np.exp(log_weights - log_weights.max())
            cumulative = np.cumsum(weights)
            new = int(np.searchsorted(cumulative, uniforms[i] * cumulative[-1], side="right"))
            if new != labels[i]:
                support[labels[i]] -= field.coupling[i]
                support[new] += field.coupling[i]
                labels[i] = new


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer iterations, scaled up")
    main(parser.parse_args().quick)
