"""Fitting k nearest neighbours to many points: how far to look, and the posterior of k."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearfield.field.weights import TIE_TOLERANCE
from nearfield.inference import Posterior
from nearfield.near.lists import ListConditionals, ListSearch, NeighborLists

MAX_K = 512
"""The largest k with many points."""

_LEAST_K = 32  # neighbours of all points that are searched for
_MAX_TABLE = 2**26  # numbers in a table of supports: 256 MB
_LEAST_SITES = 256

Infer = Callable[[ListConditionals], tuple[ListConditionals, Posterior]]


class ListFit(NamedTuple):
    """What prediction needs of the training points, the conditionals and the posterior."""

    lists: NeighborLists
    conditionals: ListConditionals
    posterior: Posterior


def fit_lists(search: ListSearch, n_classes: int, infer: Infer, *, is_directed: bool) -> ListFit:
    """Infer beta and k from the conditionals of some sites, with all points as neighbours.

    What a site listens to is on its own list. For the symmetric model, who listens to it is
    found in the lists of all points, which are as long as twice the k that the directed model
    finds, and longer if that is not enough.

    Parameters
    ----------
    search : ListSearch
    n_classes : int
    infer : callable
        Takes conditionals and returns them, with an external field perhaps, and the posterior.
    is_directed : bool
    """
    n_points = len(search.labels)
    most = min(MAX_K, n_points - 1)
    labels = search.labels[search.sites]
    distances, own = search.from_sites(most)
    typical = np.median(distances, axis=0)
    conditionals, posterior = infer(ListConditionals.of([own], labels, n_classes, most))
    nearest = np.empty((0, most))
    k_max = 0
    while not (is_directed or k_max == most or upper_end(posterior) < 0.9 * k_max):
        k_max = min(max(2 * upper_end(posterior), _LEAST_K), most)
        nearest, hearing = search.from_all(k_max)
        both = ListConditionals.of([own, hearing], labels, n_classes, k_max)
        conditionals, posterior = infer(both)
    k_top = int(posterior.scale.max())
    lists = NeighborLists(
        n_points,
        n_classes,
        is_directed,
        typical[:k_top],
        nearest[:, :k_top].copy(),
        _n_as_near(nearest, k_top),
        conditionals.external_field,
    )
    return ListFit(lists, conditionals, posterior)


def n_sites_for(n_sites: int, n_classes: int) -> int:
    """Lower the number of sites where many classes would make their table too large."""
    return min(n_sites, max(_LEAST_SITES, _MAX_TABLE // (MAX_K * n_classes)))


def upper_end(posterior: Posterior) -> int:
    """Give the k up to which all but a thousandth of the posterior is."""
    return int(posterior.quantile([0.999])["k"].iloc[0])


def _n_as_near(nearest: NDArray[np.float64], k_top: int) -> NDArray[np.int64]:
    """Count the neighbours that are no farther than the k-th, or tie with it, as far as known."""
    n_as_near = np.full(len(nearest), k_top, dtype=np.int64)
    is_tied: Any = np.ones(len(nearest), dtype=bool)
    for place in range(k_top, nearest.shape[1]):
        is_tied &= nearest[:, place] * (1.0 - TIE_TOLERANCE) <= nearest[:, place - 1]
        if not is_tied.any():
            break
        n_as_near += is_tied
    return n_as_near
