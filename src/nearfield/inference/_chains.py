"""Run chains side by side: in parallel, with checkpoints and progress."""

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from nearfield._checks import check_generator, check_whole
from nearfield._progress import progress
from nearfield._threads import one_blas_thread
from nearfield.inference._chain import Chain, RunLength, Sampler, advance, start_chain
from nearfield.inference._checkpoint import Checkpoint, fingerprint
from nearfield.inference._posterior import Posterior, warn_unless_converged

ROUND_SECONDS = 0.5
"""How long chains move between two looks at the checkpoint and the progress bar."""

_MAX_SHARE_OF_SAVING = 0.05  # of the running time


def check_run(settings: Any) -> None:
    """Refuse numbers of draws, sweeps and chains that make no run."""
    for name, minimum in (("n_draws", 1), ("n_burn", 0), ("n_sweeps", 1), ("n_chains", 1)):
        check_whole(getattr(settings, name), name, minimum)


def run_chains(
    rng: np.random.Generator, sampler: Sampler, settings: Any, *, n_jobs: int | None, verbose: int
) -> Posterior:
    """Run the chains that some settings ask for, and warn if they have not converged.

    Parameters
    ----------
    rng : numpy.random.Generator
        Spawns one stream a chain, so that the answer does not depend on `n_jobs`.
    sampler : Sampler
    settings : dataclass
        With `n_burn`, `n_draws`, `n_chains` and `checkpoint`.
    n_jobs, verbose : int
    """
    length = RunLength(settings.n_burn, settings.n_draws)
    streams = check_generator(rng).spawn(settings.n_chains)
    checkpoint = None
    if settings.checkpoint is not None:
        run = fingerprint(settings, sampler.target, streams)
        checkpoint = Checkpoint.open(settings.checkpoint, run)
    chains = checkpoint.load(sampler, length, settings.n_chains) if checkpoint else None
    if chains is None:
        chains = [start_chain(stream, sampler, length) for stream in streams]
    name = type(settings).__name__
    _run_to_the_end(chains, sampler, length, checkpoint, n_jobs=n_jobs, name=name, verbose=verbose)
    draws = np.stack([chain.draws for chain in chains])
    posterior = Posterior.from_draws(
        draws[:, :, 0],
        draws[:, :, 1],
        sampler.target.family.scale_name,
        acceptance_rates=np.array([chain.n_accepted / length.n_draws for chain in chains]),
    )
    warn_unless_converged(posterior)
    return posterior


def _run_to_the_end(
    chains: list[Chain],
    sampler: Sampler,
    length: RunLength,
    checkpoint: Checkpoint | None,
    *,
    n_jobs: int | None,
    name: str,
    verbose: int,
) -> None:
    """Advance the chains in rounds, in place; only whole rounds count."""
    saver = _Saver(checkpoint, sampler)
    saver.save(chains)  # a path that cannot be written to shows before the work, not after
    n_total, n_done = length.total * len(chains), sum(chain.n_done for chain in chains)
    try:
        with (
            one_blas_thread(),
            Parallel(n_jobs=n_jobs, prefer="threads") as parallel,
            progress(n_total, name, verbose) as show,
        ):
            show(n_done)
            while n_done < n_total:
                running = [c for c, chain in enumerate(chains) if chain.n_done < length.total]
                moved = parallel(
                    delayed(advance)(chains[c], sampler, length, ROUND_SECONDS) for c in running
                )
                for c, chain in zip(running, moved, strict=True):
                    show(chain.n_done - chains[c].n_done)
                    n_done += chain.n_done - chains[c].n_done
                    chains[c] = chain
                saver.save_now_and_then(chains)
    finally:  # the end, Ctrl-C or an error: what was done is kept
        saver.save(chains)


class _Saver:
    """Saves as often as it can without slowing the chains down."""

    def __init__(self, checkpoint: Checkpoint | None, sampler: Sampler) -> None:
        self.checkpoint, self.sampler = checkpoint, sampler
        self.next_save = 0.0

    def save(self, chains: list[Chain]) -> None:
        if self.checkpoint is None:
            return
        started = time.perf_counter()
        self.checkpoint.save(chains, self.sampler)
        took = time.perf_counter() - started
        self.next_save = started + took / _MAX_SHARE_OF_SAVING

    def save_now_and_then(self, chains: list[Chain]) -> None:
        if time.perf_counter() >= self.next_save:
            self.save(chains)
