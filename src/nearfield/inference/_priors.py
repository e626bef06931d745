"""Prior distributions of beta and of the scale, and the default ones."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nearfield.field import FieldFamily

_EXAMPLES = {"beta": "norm(0, 50)", "sigma": "uniform(0, 100)", "k": "randint(1, 50)"}
_SD_BETA = 50.0  # the paper's beta ~ N(0, 50^2)
_PAPER_SIGMA = 100.0  # sigma ~ U(0, 100)
_USUAL_LONGEST = (0.2, 200.0)  # largest distances for which that prior is meant
_UNIT_LONGEST = 10.0  # the largest distance, in the unit that the prior has otherwise


@dataclass(frozen=True)
class Priors:
    """Independent priors: frozen `scipy.stats` distributions of beta and of sigma or k.

    Examples
    --------
    >>> from scipy import stats
    >>> from nearfield.inference import Priors
    >>> priors = Priors(beta=stats.halfnorm(scale=50.0), scale=stats.uniform(0.0, 100.0))
    >>> priors.log_density(1.0, 2.0).round(2)
    np.float64(-8.74)
    """

    beta: Any
    scale: Any

    def log_density(self, beta: ArrayLike, scale: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the joint log density (for k, log mass); -inf outside the support."""
        return self.log_beta(beta) + self.log_scale(scale)

    def log_beta(self, beta: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the log density of beta."""
        return log_density_of(self.beta)(np.asarray(beta, dtype=np.float64))

    @cached_property
    def beta_range(self) -> tuple[float, float]:
        """The betas between which all but 2e-13 of the prior is: rounding."""
        return float(self.beta.ppf(1e-13)), float(self.beta.ppf(1.0 - 1e-13))

    def log_scale(self, scale: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the log density of sigma, or the log mass of k."""
        is_discrete = hasattr(self.scale.dist, "pmf")
        return self.scale.logpmf(scale) if is_discrete else self.scale.logpdf(scale)

    def __getstate__(self) -> dict[str, Any]:
        return {"beta": pack_prior(self.beta), "scale": pack_prior(self.scale)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The only assignments to frozen priors: as they are read from a file or a pickle.
        for name in ("beta", "scale"):
            object.__setattr__(self, name, unpack_prior(state[name]))


def pack_prior(prior: Any) -> Any:
    """Describe a distribution of `scipy.stats` by its name and arguments; leave others alone.

    The distribution itself is full of functions, which are not to be read from files.
    """
    name = getattr(getattr(prior, "dist", None), "name", None)
    if name is None or type(getattr(stats, name, None)) is not type(prior.dist):
        return prior
    return {"scipy.stats": name, "args": list(prior.args), "kwds": dict(prior.kwds)}


def unpack_prior(packed: Any) -> Any:
    """Make the distribution that `pack_prior` described."""
    if not (isinstance(packed, dict) and "scipy.stats" in packed):
        return packed
    distribution = getattr(stats, packed["scipy.stats"])
    if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete):
        raise ValueError(f"Expected a distribution of scipy.stats; got {packed['scipy.stats']!r}.")
    return distribution(*packed["args"], **packed["kwds"])


@lru_cache(maxsize=32)
def log_density_of(prior: Any) -> Callable[[Any], Any]:
    """Give the log density of a continuous prior as a function of a number or an array.

    A frozen distribution takes 80 microseconds a call, as long as the rest of a move of a chain,
    so the priors of the paper are written out.
    """
    distribution = getattr(prior, "dist", None)
    if type(distribution) is type(stats.halfnorm):
        start, sd = float(prior.support()[0]), float(prior.std()) / math.sqrt(1.0 - 2.0 / math.pi)
        constant = -math.log(sd) + 0.5 * math.log(2.0 / math.pi)
        return lambda x: np.where(x >= start, constant - 0.5 * ((x - start) / sd) ** 2, -math.inf)
    if type(distribution) is type(stats.norm):
        mean, sd = float(prior.mean()), float(prior.std())
        constant = -math.log(sd) - 0.5 * math.log(2.0 * math.pi)
        return lambda x: constant - 0.5 * ((x - mean) / sd) ** 2
    if type(distribution) is type(stats.uniform):
        lower, upper = map(float, prior.support())
        inside = -math.log(upper - lower)
        return lambda x: np.where((x >= lower) & (x <= upper), inside, -math.inf)
    return prior.logpdf


def default_priors(family: FieldFamily) -> Priors:
    """Return the default priors of all engines and estimators.

    beta is half normal, the paper's N(0, 50^2) given that beta >= 0. k is uniform on 1..n/2.
    sigma is uniform on (0, 100) as in the paper, where the largest distance is between 0.2 and
    200, as it is for standardized features; otherwise the same in the unit in which the largest
    distance is 10.
    """
    if family.is_discrete:
        return _default_priors(max_k=max(family.n_points // 2, 1))
    longest = float(family.longest)
    if longest == 0.0 or _USUAL_LONGEST[0] <= longest <= _USUAL_LONGEST[1]:
        return _default_priors(max_sigma=_PAPER_SIGMA)
    unit, is_inverse = longest / _UNIT_LONGEST, getattr(family, "kernel", None) == "exponential"
    return _default_priors(max_sigma=_PAPER_SIGMA * (1.0 / unit if is_inverse else unit))


@lru_cache(maxsize=64)
def _default_priors(max_sigma: float = 0.0, max_k: int = 0) -> Priors:
    """Make the default priors, once: SciPy takes two milliseconds."""
    scale = stats.randint(1, max_k + 1) if max_k else stats.uniform(0.0, max_sigma)
    return Priors(stats.halfnorm(scale=_SD_BETA), scale)


def check_priors(priors: Priors, family: FieldFamily) -> None:
    """Refuse priors that leave nothing to infer, before any work starts."""
    name = family.scale_name
    if not isinstance(priors, Priors):
        raise TypeError(
            f"Expected Priors; got {priors!r}. Give nearfield.inference.Priors(beta, scale), two "
            "frozen scipy.stats distributions, or leave it out for the default ones."
        )
    for prior, parameter in ((priors.beta, "beta"), (priors.scale, name)):
        if not (hasattr(prior, "dist") and hasattr(prior, "ppf") and hasattr(prior, "rvs")):
            raise ValueError(
                f"Expected a frozen scipy.stats distribution as the prior of {parameter}; got "
                f"{prior!r}. Give one such as scipy.stats.{_EXAMPLES[parameter]}."
            )
        if np.ndim(prior.ppf(0.5)) != 0:
            raise ValueError(
                f"Expected one distribution as the prior of {parameter}; got "
                f"{prior.dist.name}{prior.args or prior.kwds}, several of them. Give numbers as "
                "its parameters."
            )
    if hasattr(priors.beta.dist, "pmf") or hasattr(priors.scale.dist, "pmf") != family.is_discrete:
        expected = "a discrete" if family.is_discrete else "a continuous"
        raise ValueError(
            f"Expected a continuous prior of beta and {expected} prior of {name}; got "
            f"{priors.beta.dist.name} and {priors.scale.dist.name}. Change the one that differs."
        )
    _check_density(priors.beta, "beta", priors.beta.logpdf)
    lower, upper = family.scale_range if family.is_discrete else (0.0, np.inf)
    mass = priors.scale.cdf(upper) - priors.scale.cdf(lower - 1.0 if family.is_discrete else lower)
    if not mass > 0.0:
        raise ValueError(
            f"Expected a prior of {name} with mass between {lower:g} and {upper:g}; got "
            f"{priors.scale.dist.name}{priors.scale.args} with none there. Choose another prior."
        )
    _check_density(priors.scale, name, priors.log_scale)


def _check_density(prior: Any, name: str, log_density: Callable[[Any], Any]) -> None:
    """Refuse a prior that is no distribution, such as one of a negative sd."""
    quantiles = np.asarray(prior.ppf([0.1, 0.5, 0.9]), dtype=np.float64)
    values = np.asarray(log_density(quantiles), dtype=np.float64)
    if not (
        np.isfinite(quantiles).all() and (values > -np.inf).any() and not np.isnan(values).any()
    ):
        raise ValueError(
            f"Expected a prior of {name} with a density at its quantiles; got "
            f"{prior.dist.name}{prior.args or prior.kwds} with log densities {values.tolist()} at "
            f"{quantiles.tolist()}. Check its parameters."
        )
