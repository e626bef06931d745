"""Numbers of points at which the estimators change how they work, in one record."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Sizes:
    """Limits and sample sizes.

    Attributes
    ----------
    max_path : int
        Up to so many training points "auto" means path sampling, pseudolikelihood above.
    max_dense : int
        More training points would need distances of more than a gigabyte.
    max_dense_automatic : int
        Above so many training points ``n_neighbors=None`` means a graph with k chosen from the
        data.
    max_k : int
        The largest k of pk-nn, and to try by leave-one-out, with many points.
    max_all_sites, n_sites : int
        Up to so many points all conditionals are used; of more, so many.
    n_pilot_sites : int
        Conditionals that choose k.
    n_left_out : int
        Points that leave-one-out leaves out, of many.
    max_folds : int
        Up to so many points the estimators of an average are fitted in folds; more are on the
        graph. With 2,000 points the graph takes a third of the time, with the same mean log loss
        over eleven data sets; with 1,200 points its log loss is 5% higher.
    max_learning, n_learning : int
        Up to so many points teach a metric; of more, so many, but at most half: the others weigh.
    max_calibration : int
        Training points that decisions are calibrated by.
    n_sample : int
        Held-out points that choose among the estimators, and as many neighbours.
    n_weighing : int
        Held-out points that fit and weigh those chosen.
    max_normalizing : int
        Points that tell how features are distributed.
    repeats : tuple of (int, int)
        Up to so many points, as many draws of folds.
    """

    max_path: int = 1_000
    max_dense: int = 10_000
    max_dense_automatic: int = 2_000
    max_k: int = 512
    max_all_sites: int = 6_000
    n_sites: int = 4_096
    n_pilot_sites: int = 2_048
    n_left_out: int = 5_000
    max_folds: int = 1_500
    max_learning: int = 1_500
    n_learning: int = 2_000
    max_calibration: int = 2_000
    n_sample: int = 1_000
    n_weighing: int = 2_000
    max_normalizing: int = 10_000
    repeats: tuple[tuple[int, int], ...] = ((100, 8), (250, 4), (500, 2))


_current = Sizes()


def sizes() -> Sizes:
    """Give the sizes in use."""
    return _current


@contextmanager
def replaced_sizes(**changes: Any) -> Iterator[None]:
    """Use other sizes for a while, in all threads: so that few points can stand for many."""
    global _current
    before, _current = _current, replace(_current, **changes)
    try:
        yield
    finally:
        _current = before
