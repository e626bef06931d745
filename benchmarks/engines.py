"""Path sampling beside exchange with the paper's settings, on the six benchmark data sets.

The goal: at most one fiftieth of the time of exchange. CPU time; exchange is run for some
iterations and scaled.
"""

import time

import numpy as np
from exchange import DATASETS, N_QUICK, PAPER, load_family, warm_up
from threadpoolctl import threadpool_limits

from nearfield.inference import PathSampling
from nearfield.inference._chain import RunLength, advance, start_chain
from nearfield.inference._target import check_target
from nearfield.inference.exchange import ExchangeSampler

GOAL = 50
N_RUNS = 3


def main():
    print(
        "Path sampling, and how many times as long exchange takes: one chain, and its "
        f"{PAPER.n_chains} (goal: at least x{GOAL})"
    )
    with threadpool_limits(limits=1, user_api="blas"):
        for name in DATASETS:
            print(compare(name), flush=True)


def compare(name):
    family, labels = load_family(name)
    PathSampling().infer(np.random.default_rng(0), family, labels)  # compile or load the kernels
    seconds, posterior = path_seconds(family, labels)
    chain_seconds = exchange_seconds(family, labels)
    ratio = chain_seconds / seconds
    mean, error = posterior.mean()["beta"], posterior.mean_error[0]
    return (
        f"  {name:6s} n={family.n_points:4d} G={family.n_classes}  {seconds:5.2f} s   "
        f"one chain x{ratio:.0f}, {PAPER.n_chains} chains x{PAPER.n_chains * ratio:.0f}   "
        f"beta {mean:.2f} +- {error:.2f}, log evidence {posterior.log_evidence:.2f} +- "
        f"{posterior.log_evidence_error:.2f}"
    )


def path_seconds(family, labels):
    """Time some runs; return the median, and the last posterior."""
    times = []
    for seed in range(N_RUNS):
        started = time.process_time()
        posterior = PathSampling().infer(np.random.default_rng(seed), family, labels)
        times.append(time.process_time() - started)
    return float(np.median(times)), posterior


def exchange_seconds(family, labels):
    """Time a short chain with the paper's number of sweeps, scaled to all its iterations."""
    target = check_target(family, labels, None)
    warm_up(target)
    sampler = ExchangeSampler(target, PAPER._auxiliary_draw(target))
    length = RunLength(N_QUICK // 2, N_QUICK // 2)
    started = time.process_time()
    chain = start_chain(np.random.default_rng(1), sampler, length)
    advance(chain, sampler, length, seconds=np.inf)
    scale = (PAPER.n_burn + PAPER.n_draws) / length.total
    return (time.process_time() - started) * scale


if __name__ == "__main__":
    main()
