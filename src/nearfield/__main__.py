"""The main job of this version: the posterior of d-nn1 on the data sets of the paper.

Run as ``python -m nearfield``, or ``make run``.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from nearfield import datasets
from nearfield.distances import distance_matrix
from nearfield.families import DistanceFamily
from nearfield.inference import Exchange, Posterior

# The paper's table 1: G, F and N.
PAPER = {
    "pima": (2, 8, 532),
    "glass": (4, 9, 214),
    "iris": (3, 4, 150),
    "crabs": (4, 5, 200),
    "wine": (3, 13, 178),
    "olive": (3, 9, 572),
}
QUICK = Exchange(n_draws=1_000, n_burn=1_000, n_sweeps=100, n_chains=2)


def main() -> None:
    """Print, for each data set, its size beside the paper's and the posterior of beta and sigma."""
    print("d-nn1 (Gaussian kernel), 25% of each data set, standardised, the paper's priors.")
    print(f"Exchange algorithm, quick: {QUICK}")
    print()
    print(
        "                  G  F    N       n train       beta            sigma      accepted  time"
    )
    for name, paper in PAPER.items():
        bunch = getattr(datasets, f"load_{name}")()
        size = len(bunch.target_names), bunch.data.shape[1], bunch.data.shape[0]
        started = time.perf_counter()
        n_train, posterior = _infer(bunch.data, bunch.target)
        seconds = time.perf_counter() - started
        print(
            f"  {name:6s} here  {_sizes(size)}   {n_train:6d}   {_moments(posterior)}"
            f"   {posterior.acceptance_rate:6.0%}   {seconds:4.1f} s",
            flush=True,
        )
        print(f"         paper {_sizes(paper)}")
    print()
    print("Where F differs, nearfield.datasets says why (load_pima().DESCR, load_olive().DESCR).")


def _infer(features: np.ndarray, labels: np.ndarray) -> tuple[int, Posterior]:
    """Infer from a quarter of the data, as in the paper's section 5.1."""
    train, _ = datasets.stratified_split(labels, 0.25, random_state=0)
    points = StandardScaler().fit(features[train]).transform(features[train])
    family = DistanceFamily(distance_matrix(points), "gaussian", int(labels.max()) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a quick look, and said to be one
        rng = np.random.default_rng(2011)
        return len(train), QUICK.infer(rng, family, labels[train], n_jobs=2)


def _sizes(size: tuple[int, int, int]) -> str:
    return f"{size[0]:2d} {size[1]:2d} {size[2]:4d}"


def _moments(posterior: Posterior) -> str:
    mean, sd = posterior.mean(), posterior.sd()
    return "   ".join(f"{mean[p]:6.2f} +- {sd[p]:5.2f}" for p in ("beta", "sigma"))


if __name__ == "__main__":
    main()
