"""Settings of a reproduction."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nearfield._checks import check_whole
from nearfield.reproduction.paper import BENCHMARKS, METHODS, SPECTRA

INFERENCES = ("path", "exchange", "pseudolikelihood")
PRIORS = ("cut", "paper", "both")


class Chain(NamedTuple):
    """Lengths of a chain: iterations of burn-in, draws kept, auxiliary sweeps."""

    n_burn: int
    n_draws: int
    n_sweeps: int


MIXING_CHAIN = Chain(n_burn=1_000, n_draws=2_000, n_sweeps=100)


@dataclass(frozen=True)
class Settings:
    """Settings of a reproduction.

    Parameters
    ----------
    out : path
        The folder of the results; a stopped run continues from it.
    n_splits : int
        Splits of each data set into training and test points.
    seed : int
        Seed of the splits and of all draws.
    inference : {"path", "exchange", "pseudolikelihood"}
        The engine that computes posteriors.
    prior : {"both", "cut", "paper"}
        The prior of beta: N(0, 50^2) as in the paper, the same truncated to beta >= 0, or both.
        The tables show the truncated one unless the paper's is chosen alone.
    n_jobs : int
        Units of work at a time; -1 for one per core.
    data_home : path, optional
        The folder with the spectra; by default the environment variable NEARFIELD_DATA.
    is_fresh : bool
        Whether to ignore results that are already in the folder.
    data_sets : tuple of str
        Benchmark data sets to include.
    long_data_sets : tuple of str
        Data sets of the two long experiments: mixing of chains, pseudolikelihood against the full
        posterior.
    reading_methods : tuple of str
        Methods to run under other readings of the paper.
    paper_chain : Chain, optional
        Lengths of chains with ``inference="exchange"``; by default the paper's.
    mixing_chain : Chain
        Lengths of the chains whose mixing is compared.
    n_intruder_distances, n_grid : int
        Resolution of the experiments on outliers and on predictive entropy.
    """

    out: Path = Path("results")
    n_splits: int = 20
    seed: int = 2011
    inference: str = "path"
    prior: str = "both"
    n_jobs: int = -1
    data_home: str | os.PathLike[str] | None = None
    is_fresh: bool = False
    data_sets: tuple[str, ...] = BENCHMARKS
    long_data_sets: tuple[str, ...] = (*BENCHMARKS, *SPECTRA)
    reading_methods: tuple[str, ...] = METHODS
    paper_chain: Chain | None = None
    mixing_chain: Chain = MIXING_CHAIN
    n_intruder_distances: int = 30
    n_grid: int = 90

    def __post_init__(self) -> None:
        check_whole(self.n_splits, "n_splits", minimum=1)
        check_whole(self.seed, "seed", minimum=0)
        for name, values, choices in (
            ("inference", (self.inference,), INFERENCES),
            ("prior", (self.prior,), PRIORS),
            ("data_sets", self.data_sets, BENCHMARKS),
            ("reading_methods", self.reading_methods, METHODS),
        ):
            unknown = [value for value in values if value not in choices]
            if unknown:
                raise ValueError(f"Expected {name} among {choices}; got {', '.join(unknown)}.")
        if self.n_jobs == 0:
            raise ValueError("Expected n_jobs >= 1, or -1 for every core; got n_jobs=0.")
        object.__setattr__(self, "out", Path(self.out))

    @property
    def main_prior(self) -> str:
        """The prior of beta that the tables show."""
        return "paper" if self.prior == "paper" else "cut"

    def record(self) -> dict[str, Any]:
        """Return the settings that decide the results."""
        elsewhere = ("out", "n_jobs", "data_home", "is_fresh")
        return {name: value for name, value in asdict(self).items() if name not in elsewhere}


QUICK = Settings(
    inference="pseudolikelihood",
    prior="cut",
    long_data_sets=("iris", "wine"),
    reading_methods=("k-nn",),
    mixing_chain=Chain(300, 300, 20),
)
"""A short run: pseudolikelihood, one prior, short chains."""
