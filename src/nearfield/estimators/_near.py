"""The near field for the estimators: when it takes over, and how it is fitted."""

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from nearfield.distances.neighbors import SEARCHES
from nearfield.estimators._metric import MetricSpace, is_named
from nearfield.estimators._settings import (
    check_choice,
    check_longest,
    choose_engine,
    make_priors,
    make_rng,
)
from nearfield.inference import Posterior, Priors, Pseudolikelihood
from nearfield.inference._progress import progress
from nearfield.inference.intercepts import fit_external_field
from nearfield.near import NearField, fit_near_field
from nearfield.near.drawn import site_rows
from nearfield.near.fit import CHOICES, n_sites, prediction_error
from nearfield.near.sparse import SparseFamily

MAX_DENSE_AUTOMATIC = 5_000
"""Above so many training points ``n_neighbors=None`` means the near field."""

_SMALL_ERROR = 0.01


class NearFieldFit(NamedTuple):
    """All that a fit by the near field gives."""

    family: NearField
    posterior: Posterior
    priors: Priors
    engine_name: str
    neighborhood_error: float


def wants_near_field(estimator: Any, n_points: int) -> bool:
    """Tell whether to fit by the near field; refuse a number of neighbours that makes no sense."""
    n_neighbors, is_given = estimator.n_neighbors, estimator.n_neighbors is not None
    if is_given and (
        not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool) or n_neighbors < 1
    ):
        raise ValueError(
            "Expected n_neighbors as a whole number >= 1, or None; got "
            f"n_neighbors={n_neighbors!r}. Leave it out for all points, or as many as it takes."
        )
    if is_named(estimator.metric, "precomputed"):
        if is_given:
            raise ValueError(
                'Expected n_neighbors=None with metric="precomputed", where all distances are '
                f"known; got n_neighbors={n_neighbors!r}. Leave it out."
            )
        return False
    return is_given or (n_points > MAX_DENSE_AUTOMATIC and is_pseudolikelihood(estimator))


def fit_by_near_field(
    estimator: Any, space: MetricSpace, labels: NDArray[np.int64], prior_sigma: Any
) -> NearFieldFit:
    """Infer the parameters of a distance nearest neighbour classifier from near neighbours."""
    rng = make_rng(estimator.random_state)
    options = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    n_neighbors = None if estimator.n_neighbors is None else int(estimator.n_neighbors)
    near_field = NearField.of(
        space.points,
        labels,
        len(estimator.classes_),
        estimator.kernel,
        n_neighbors=CHOICES[0] if n_neighbors is None else n_neighbors,
        seed=int(rng.integers(2**63)),
        metric=space.metric,
        metric_params=space.params,
        search=check_choice(estimator.search, "search", SEARCHES),
        **options,
    )
    check_longest(near_field.longest)
    family: Any = near_field
    infer = partial(infer_parameters, estimator=estimator, prior_sigma=prior_sigma, rng=rng)
    if is_pseudolikelihood(estimator):
        name = "pseudolikelihood"
        fit = fit_near_field(near_field, infer, n_neighbors, **options)
        near_field, posterior, error = fit.near_field, fit.posterior, fit.neighborhood_error
    else:
        family = _sparse_family(near_field, **options)
        name, _ = choose_engine(estimator.inference, family)
        family, posterior = infer(family, labels)
        near_field = near_field.changed(external_field=family.external_field)
        error = _error_of(near_field, posterior)
    warn_of_error(error, near_field.n_neighbors)
    priors = make_priors(family, estimator.prior_beta, prior_sigma)
    return NearFieldFit(near_field, posterior, priors, name, error)


def infer_parameters(
    family: Any,
    labels: NDArray[np.int64] | None = None,
    *,
    estimator: Any,
    prior_sigma: Any,
    rng: np.random.Generator,
) -> tuple[Any, Posterior]:
    """Infer the parameters of a family, the conditionals of some sites or a sparse one.

    Parameters
    ----------
    family : NearConditionals or SparseFamily
    labels : ndarray of int, optional
        Those that the family knows, by default.
    estimator : object
        Whose engine, prior of beta and external field are taken.
    prior_sigma : object
    rng : numpy.random.Generator

    Returns
    -------
    family : object
        With the external field, if one is fitted.
    posterior : Posterior
    """
    labels = family.labels if labels is None else labels
    engine = Pseudolikelihood()
    if not (is_pseudolikelihood(estimator) and isinstance(estimator.inference, str)):
        _, engine = choose_engine(estimator.inference, family)
    priors = make_priors(family, estimator.prior_beta, prior_sigma)
    if estimator.external_field == "fitted":
        family = replace(family, external_field=fit_external_field(family, labels, priors))
    options = {"n_jobs": estimator.n_jobs, "verbose": estimator.verbose}
    return family, engine.infer(rng, family, labels, priors, **options)


def is_pseudolikelihood(estimator: Any) -> bool:
    """Tell whether parameters are inferred by pseudolikelihood where there are many points."""
    inference = estimator.inference
    is_named_so = isinstance(inference, str) and inference in ("auto", "pseudolikelihood")
    return is_named_so or isinstance(inference, Pseudolikelihood)


def _sparse_family(near_field: NearField, *, n_jobs: int | None, verbose: int) -> SparseFamily:
    with progress(near_field.n_points, "neighbours", verbose) as advance:
        return SparseFamily.of(near_field, n_jobs=n_jobs, advance=advance)


def _error_of(near_field: NearField, posterior: Posterior) -> float:
    sites = site_rows(near_field.n_points, n_sites(near_field.n_points), near_field.seed)
    return prediction_error(near_field, near_field.look_from(sites), posterior)


def warn_of_error(error: float, n_neighbors: int) -> None:
    if error > _SMALL_ERROR:
        warnings.warn(
            f"Expected class probabilities within {_SMALL_ERROR:g} of those with all points as "
            f"neighbours; with n_neighbors={n_neighbors} one in a hundred may be off by "
            f"{error:.2g} or more (neighborhood_error_). Set n_neighbors higher if that matters.",
            ConvergenceWarning,
            stacklevel=4,
        )
