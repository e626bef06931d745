"""k nearest neighbours of many points for the estimators: when lists take over, and their fit."""

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.distances.neighbors import SEARCHES
from nearfield.estimators import _near
from nearfield.estimators._metric import MetricSpace, is_named
from nearfield.estimators._near import NearFieldFit, infer_parameters, is_pseudolikelihood
from nearfield.estimators._settings import (
    check_choice,
    check_longest,
    choose_engine,
    make_priors,
    make_rng,
)
from nearfield.near.drawn import site_rows
from nearfield.near.fit import n_sites
from nearfield.near.list_fit import MAX_K, fit_lists, n_sites_for, upper_end
from nearfield.near.lists import ListSearch
from nearfield.near.quick_index import quick_index


def wants_lists(estimator: Any, n_points: int) -> bool:
    """Tell whether lists of neighbours are to stand in for all distances."""
    check_choice(estimator.search, "search", SEARCHES)
    if estimator.n_neighbors is not None or is_named(estimator.metric, "precomputed"):
        return False
    return n_points > _near.MAX_DENSE_AUTOMATIC and is_pseudolikelihood(estimator)


def fit_by_lists(
    estimator: Any,
    space: MetricSpace,
    labels: NDArray[np.int64],
    prior_k: Any,
    *,
    is_directed: bool,
) -> NearFieldFit:
    """Infer the parameters of a k-nearest-neighbour field from lists of neighbours."""
    rng = make_rng(estimator.random_state)
    n_points, n_classes = len(labels), len(estimator.classes_)
    most = min(MAX_K, n_points // 2)
    prior_k = stats.randint(1, most + 1) if prior_k is None else prior_k
    index = quick_index(
        space.points, metric=space.metric, metric_params=space.params, search=estimator.search
    )
    sites = site_rows(n_points, n_sites_for(n_sites(n_points), n_classes), int(rng.integers(2**63)))
    search = ListSearch(
        space.points, labels, index, sites, n_jobs=estimator.n_jobs, verbose=estimator.verbose
    )
    infer = partial(infer_parameters, estimator=estimator, prior_sigma=prior_k, rng=rng)
    fit = fit_lists(search, n_classes, infer, is_directed=is_directed)
    check_longest(float(fit.lists.typical.max()))
    _warn_of_end(upper_end(fit.posterior), most)
    name, _ = choose_engine(estimator.inference, fit.conditionals)
    priors = make_priors(fit.conditionals, estimator.prior_beta, prior_k)
    lists: Any = fit.lists
    return NearFieldFit(lists, fit.posterior, priors, name, 0.0)


def _warn_of_end(upper_end: int, most: int) -> None:
    if most == MAX_K and upper_end > 0.9 * most:  # else there are no larger ones
        warnings.warn(
            f"Expected a posterior of k below {most}, the largest k that is looked at with many "
            f"points; got one that reaches {upper_end}. Larger k may be more probable: use "
            "DistanceNeighborsClassifier, which sees all points, or fit on a subset.",
            ConvergenceWarning,
            stacklevel=4,
        )
