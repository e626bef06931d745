"""What a run is asked to do."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfield._checks import check_whole

INFERENCES = ("path", "exchange", "pseudolikelihood")
PRIORS = ("cut", "paper", "both")


@dataclass(frozen=True)
class Settings:
    """Settings of a reproduction.

    Parameters
    ----------
    out : path
        The folder that results go to, and that a stopped run goes on from.
    n_splits : int
        Stratified splits of each data set.
    seed : int
        Of the splits and of all that is drawn.
    inference : {"path", "exchange", "pseudolikelihood"}
        How the posterior is found. Exchange has the paper's settings.
    prior : {"both", "cut", "paper"}
        The prior of beta: N(0, 50^2) as in the paper, the same cut to beta >= 0, or one after the
        other. The tables show the cut one unless the paper's is asked for alone.
    n_jobs : int
        Splits to run at a time; -1 for one a core.
    data_home : path, optional
        The folder with the spectra; by default the environment variable NEARFIELD_DATA.
    is_quick : bool
        A short look: fewer splits, and shorter chains in the claims.
    is_fresh : bool
        Whether to do again what is already there.
    """

    out: Path = Path("results")
    n_splits: int = 20
    seed: int = 2011
    inference: str = "path"
    prior: str = "both"
    n_jobs: int = -1
    data_home: str | os.PathLike[str] | None = None
    is_quick: bool = False
    is_fresh: bool = False

    def __post_init__(self) -> None:
        check_whole(self.n_splits, "n_splits", minimum=1)
        check_whole(self.seed, "seed", minimum=0)
        for name, choices in (("inference", INFERENCES), ("prior", PRIORS)):
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(
                    f"Expected {name} among {choices}; got {name}={value!r}. Choose one of them."
                )
        if self.n_jobs == 0:
            raise ValueError("Expected n_jobs >= 1, or -1 for every core; got n_jobs=0.")
        object.__setattr__(self, "out", Path(self.out))

    @property
    def priors(self) -> tuple[str, ...]:
        """The priors to run; the first is the one of the tables."""
        return ("cut", "paper") if self.prior == "both" else (self.prior,)

    def record(self) -> dict[str, Any]:
        """Write down what decides the results, for the report."""
        return {
            "splits": self.n_splits,
            "seed": self.seed,
            "inference": self.inference,
            "prior": self.prior,
            "quick": self.is_quick,
        }


QUICK = Settings(n_splits=3, inference="pseudolikelihood", prior="cut", is_quick=True)
"""A short look at the whole."""
