"""Fitting the near field: how many neighbours, the posterior, and how far off the result may be."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nearfield.inference import Posterior
from nearfield.near.conditionals import NearConditionals
from nearfield.near.drawn import site_rows
from nearfield.near.error import neighborhood_error, normalizer_error, varied_support
from nearfield.near.field import NearField
from nearfield.sampling.near_terms import Neighborhood

N_SITES = 4_096
"""So many conditionals, drawn at random, fit the parameters where there are many points."""

MAX_ALL_SITES = 6_000
"""Up to so many points all of their conditionals do."""

CHOICES = (64, 128, 256, 512)
"""The numbers of neighbours to choose from."""

GOAL = 0.005
"""The error of class probabilities at which no more neighbours are needed."""

_AS_GOOD = 1.1  # times the least error

N_PILOT = 512
"""So many of them choose the number of neighbours."""

Infer = Callable[[NearConditionals], tuple[NearConditionals, Posterior]]


@dataclass(frozen=True, eq=False)
class NearFit:
    """A near field with the posterior of its parameters.

    Attributes
    ----------
    near_field : NearField
        With the number of neighbours that was chosen.
    posterior : Posterior
    neighborhood_error : float
        What class probabilities may be off by; see `nearfield.near.error`.
    """

    near_field: NearField
    posterior: Posterior = field(repr=False)
    neighborhood_error: float


def fit_near_field(
    near_field: NearField,
    infer: Infer,
    n_neighbors: int | None = None,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> NearFit:
    """Choose the number of neighbours and infer the parameters.

    Unless it is given, the number doubles from 64 up to 512, until class probabilities are off by
    less than 0.005 for 99% of some sites, at the parameters these suggest, or it helps no more.

    Parameters
    ----------
    near_field : NearField
    infer : callable
        Takes conditionals and returns them, with an external field perhaps, and the posterior.
    n_neighbors : int, optional
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int
    """
    options: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose}
    if n_neighbors is None:
        n_neighbors = choose_neighbors(near_field, infer, **options)
    near_field = near_field.changed(n_neighbors=min(n_neighbors, near_field.n_points - 1))
    neighborhood, conditionals = seen_conditionals(
        near_field, n_sites(near_field.n_points), **options
    )
    conditionals, posterior = infer(conditionals)
    near_field = near_field.changed(external_field=conditionals.external_field)
    error = prediction_error(near_field, neighborhood, posterior)
    return NearFit(near_field, posterior, error)


def prediction_error(
    near_field: NearField, neighborhood: Neighborhood, posterior: Posterior
) -> float:
    """Measure the error of class probabilities by some sites that see as much as new points do.

    Those whose neighbours are not searched know of the closest point alone.
    """
    if not near_field.lists_new_points:
        neighborhood = nearest_only(neighborhood, 1)
    return error_at(near_field, neighborhood, posterior)


def error_at(near_field: NearField, neighborhood: Neighborhood, posterior: Posterior) -> float:
    """Measure the error of class probabilities of some points, where the posterior is."""
    beta, sigma = middle_of(posterior)
    off_by = normalizer_error(near_field, sigma)
    varied = varied_support(near_field, neighborhood, sigma, off_by)
    return neighborhood_error(varied, beta, near_field.external_field)


def n_sites(n_points: int) -> int:
    """Choose how many conditionals to fit the parameters by."""
    return n_points if n_points <= MAX_ALL_SITES else N_SITES


def conditionals_at(near_field: NearField, n_sites: int, **options: Any) -> NearConditionals:
    """Draw sites and compute their support; `options` are `n_jobs` and `verbose`."""
    return seen_conditionals(near_field, n_sites, **options)[1]


def seen_conditionals(
    near_field: NearField, n_sites: int, **options: Any
) -> tuple[Neighborhood, NearConditionals]:
    """Do so, and tell what the sites are near to."""
    sites = site_rows(near_field.n_points, n_sites, near_field.seed)
    neighborhood, table = near_field.tabulate(sites, **options)
    return neighborhood, NearConditionals(near_field, near_field.labels[sites], table)


def middle_of(posterior: Posterior) -> tuple[float, float]:
    """Give the mean beta and the mean sigma, geometric, of a posterior."""
    weight = posterior.weight.ravel()
    beta = np.average(posterior.beta.ravel(), weights=weight)
    sigma = np.exp(np.average(np.log(posterior.scale.ravel()), weights=weight))
    return float(beta), float(sigma)


def choose_neighbors(near_field: NearField, infer: Infer, **options: Any) -> int:
    """Double the number of neighbours until some sites need no more, by one search of them."""
    most = min(CHOICES[-1], near_field.n_points - 1)
    near_field = near_field.changed(n_neighbors=most)
    neighborhood, pilot = seen_conditionals(near_field, N_PILOT, **options)
    pilot, posterior = infer(pilot)
    near_field = near_field.changed(external_field=pilot.external_field)
    return first_good(
        error_at(near_field, nearest_only(neighborhood, n_neighbors), posterior)
        for n_neighbors in CHOICES
    )


def first_good(errors: Iterable[float]) -> int:
    """Choose the first number of neighbours whose error is small enough.

    If there is none, the first that is about as good as any: more would cost time for nothing.
    """
    seen: list[float] = []
    for n_neighbors, error in zip(CHOICES, errors, strict=True):
        if error < GOAL:
            return n_neighbors
        seen.append(error)
    is_as_good = np.array(seen) <= _AS_GOOD * min(seen)
    return CHOICES[int(np.argmax(is_as_good))]


def nearest_only(neighborhood: Neighborhood, n_neighbors: int) -> Neighborhood:
    """Shorten the lists of the nearest points."""
    return neighborhood._replace(
        near_distances=np.ascontiguousarray(neighborhood.near_distances[:, :n_neighbors]),
        near_index=np.ascontiguousarray(neighborhood.near_index[:, :n_neighbors]),
    )
