"""Fitting the near field: how many neighbours, the posterior, and how far off the result may be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.inference import Posterior
from nearfield.inference._progress import progress
from nearfield.near._hashing import sample_rows
from nearfield.near.conditionals import NearConditionals
from nearfield.near.error import neighborhood_error, normalizer_error
from nearfield.near.field import NearField
from nearfield.sampling.near_support import Neighborhood

N_SITES = 4_096
"""So many conditionals, drawn at random, fit the parameters where there are many points."""

MAX_ALL_SITES = 6_000
"""Up to so many points all of their conditionals do."""

CHOICES = (64, 128, 256, 512)
"""The numbers of neighbours to choose from."""

GOAL = 0.005
"""The error of class probabilities at which no more neighbours are needed."""

N_PILOT = 512
"""So many of them choose the number of neighbours."""

_SITE_STREAM = 2

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
    less than 0.005 for 99% of some sites, at the parameters that these suggest.

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
    conditionals = conditionals_at(near_field, n_sites(near_field.n_points), **options)
    conditionals, posterior = infer(conditionals)
    near_field = near_field.changed(external_field=conditionals.external_field)
    beta, sigma = middle_of(posterior)
    off_by = normalizer_error(near_field, sigma)
    error = neighborhood_error(near_field, conditionals.neighborhood, beta, sigma, off_by)
    return NearFit(near_field, posterior, error)


def n_sites(n_points: int) -> int:
    """Choose how many conditionals to fit the parameters by."""
    return n_points if n_points <= MAX_ALL_SITES else N_SITES


def conditionals_at(
    near_field: NearField, n_sites: int, *, n_jobs: int | None = None, verbose: int = 0
) -> NearConditionals:
    """Draw sites and find their neighbours."""
    sites = site_rows(near_field.n_points, n_sites, near_field.seed)
    with progress(len(sites), "neighbours", verbose) as advance:
        neighborhood = near_field.look_from(sites, n_jobs=n_jobs, advance=advance)
    return NearConditionals(near_field, neighborhood, n_jobs=n_jobs)


def site_rows(n_points: int, n_sites: int, seed: int) -> NDArray[np.int64]:
    """Draw sites; fewer of them are the first ones of more."""
    return sample_rows(n_points, n_sites, seed, _SITE_STREAM)


def middle_of(posterior: Posterior) -> tuple[float, float]:
    """Give the mean beta and the mean sigma, geometric, of a posterior."""
    weight = posterior.weight.ravel()
    beta = np.average(posterior.beta.ravel(), weights=weight)
    sigma = np.exp(np.average(np.log(posterior.scale.ravel()), weights=weight))
    return float(beta), float(sigma)


def choose_neighbors(near_field: NearField, infer: Infer, **options: Any) -> int:
    """Double the number of neighbours until some sites need no more, by one search of them."""
    most = min(CHOICES[-1], near_field.n_points - 1)
    pilot = conditionals_at(near_field.changed(n_neighbors=most), N_PILOT, **options)
    pilot, posterior = infer(pilot)
    beta, sigma = middle_of(posterior)
    off_by = normalizer_error(near_field, sigma)
    near_field = near_field.changed(external_field=pilot.external_field)
    for n_neighbors in CHOICES:
        seen = _nearest_only(pilot.neighborhood, n_neighbors)
        if neighborhood_error(near_field, seen, beta, sigma, off_by) < GOAL:
            break
    return n_neighbors


def _nearest_only(neighborhood: Neighborhood, n_neighbors: int) -> Neighborhood:
    return neighborhood._replace(
        near_distances=np.ascontiguousarray(neighborhood.near_distances[:, :n_neighbors]),
        near_index=np.ascontiguousarray(neighborhood.near_index[:, :n_neighbors]),
    )
